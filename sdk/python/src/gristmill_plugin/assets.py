"""Files that the plugin reads.

They are those in its folder `assets/`, and those of the tenant that the pipeline's document names
under `assets`, such as a price list that changes without a build:

    labels = assets.text("labels.txt").splitlines()
    prices = json.loads(assets.read("prices.json"))
    row = assets.open("table.bin").read(4096, 512)

A file that the pipeline names hides one of the plugin. The bytes lie on the host once, for all
calls: `open` copies nothing.

Under pytest the files are those in `assets/` of the folder where it runs, and those of
`testing.asset`.
"""

from __future__ import annotations

from . import checks
from .blob import Blob
from .failure import Internal
from .host import Err
from .host import assets as host_assets

__all__ = ["NotFound", "open", "read", "text"]


class NotFound(Internal):
    """There is no file of this name. If nothing catches it: 500, with the text in the log only.

    The text says which files there are, and how to add one.
    """


def open(name: str) -> Blob:
    """The file of this name, such as `labels.txt`. Raises `NotFound`."""
    try:
        return Blob(host_assets.open(checks.text("name", name)))
    except Err as error:
        raise NotFound(error.value.value) from None


def read(name: str) -> bytes:
    """All bytes of the file of this name. Raises `NotFound`."""
    return bytes(open(name))


def text(name: str) -> str:
    """The text of the file of this name, in UTF-8. Raises `NotFound`, or `UnicodeDecodeError`."""
    return read(name).decode()

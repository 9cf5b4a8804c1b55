"""The interface `assets`: files that a test has made, and those in `assets/` of this folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .result import Err
from .types import Blob


@dataclass
class AssetError_NotFound:
    value: str


AssetError = AssetError_NotFound

#: The files by their names.
files: dict[str, bytes] = {}


def open(name: str) -> Blob:
    if name in files:
        return Blob(files[name])
    path = Path("assets", name)
    is_plain = all(part not in ("", ".", "..") for part in name.split("/"))
    if is_plain and path.is_file():
        return Blob(path.read_bytes())
    text = f"no asset {name!r}: put a file into the folder assets/ of the plugin, "
    text += f"or make one of the pipeline with testing.asset({name!r}, ..)"
    raise Err(AssetError_NotFound(text))

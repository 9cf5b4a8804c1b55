"""The interface `keep`: what a preprocessor keeps, for a postprocessor of the same process."""

from __future__ import annotations

from dataclasses import dataclass

from .image import Pixels
from .result import Err
from .tensors import Tensor
from .types import Blob

#: The most bytes of a name, as in the host.
_NAME_BYTES_MAX = 1024

_kept: dict[str, Kept] = {}


@dataclass
class Kept_Pixels:
    value: Pixels


@dataclass
class Kept_Tensor:
    value: Tensor


@dataclass
class Kept_Blob:
    value: Blob


Kept = Kept_Pixels | Kept_Tensor | Kept_Blob


def put(name: str, value: Kept) -> None:
    length = len(name.encode())
    if length > _NAME_BYTES_MAX:
        raise Err(f"the name has {length} bytes; the limit is {_NAME_BYTES_MAX}")
    _kept[name] = value


def take(name: str) -> Kept | None:
    return _kept.pop(name, None)

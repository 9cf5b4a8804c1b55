"""The interface `keep`: what a preprocessor keeps, for a postprocessor of the same process.

As in the host, what is kept is moved: the handle that `put` got cannot be used any more.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

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


class _Moved:
    """A handle that was moved."""

    def refuse(self) -> None:
        raise RuntimeError("this object is kept already, so nothing else can use it in this call")

    def __getattr__(self, name: str) -> Any:
        self.refuse()


def put(name: str, value: Kept) -> None:
    length = len(name.encode())
    if length > _NAME_BYTES_MAX:
        raise Err(f"the name has {length} bytes; the limit is {_NAME_BYTES_MAX}")
    handle: Any = value.value
    if isinstance(handle, _Moved):
        handle.refuse()
    value.value = copy.copy(handle)
    handle.__dict__.clear()
    handle.__class__ = _Moved
    _kept[name] = value


def take(name: str) -> Kept | None:
    return _kept.pop(name, None)

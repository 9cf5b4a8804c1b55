"""The error case of a `result`, as componentize-py raises it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

E = TypeVar("E")


@dataclass(frozen=True)
class Err(Exception, Generic[E]):
    """Raised by a function whose WIT result is an error."""

    value: E

"""The cases of a `result`, as componentize-py has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
E = TypeVar("E")


@dataclass
class Ok(Generic[T]):
    """The other case, where a result stands in a list."""

    value: T


@dataclass(frozen=True)
class Err(Exception, Generic[E]):
    """Raised by a function whose WIT result is an error."""

    value: E

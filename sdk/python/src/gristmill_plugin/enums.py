"""Enums of the host's interfaces, at the speed of C.

componentize-py's runtime makes a value of an enum from its number, and asks a value for its number,
with each call of the host that has one. `enum` does both in Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import EnumMeta
from operator import attrgetter
from types import ModuleType
from typing import Any


class _Members(dict[int, Any]):
    """The values of an enum by their numbers."""

    def __missing__(self, number: object) -> Any:
        raise ValueError(f"{number!r} is no number of this enum")


def quicken(modules: Iterable[ModuleType]) -> None:
    """Let the enums of these modules do in C what the runtime asks of them."""
    for module in modules:
        for kind in vars(module).values():
            if isinstance(kind, EnumMeta) and kind.__module__ == module.__name__:
                _quicken(kind)


def _quicken(kind: EnumMeta) -> None:
    members = _Members((member._value_, member) for member in kind)
    kind.__class__ = type("QuickEnum", (type(kind),), {"__call__": members.__getitem__})
    for name in ("name", "value"):
        setattr(kind, name, property(attrgetter(f"_{name}_")))

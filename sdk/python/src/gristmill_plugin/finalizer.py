"""How a component gives the host's objects back.

componentize-py's runtime makes a `weakref.finalize` for each tensor, picture, body, context and
request. That class is written in Python and takes longer than most calls to the host.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any


class Finalizer:
    """Gives a handle back when its object is gone.

    The object has the only reference to its finalizer.
    """

    __slots__ = ("_drop", "_handle", "_type")

    def __init__(
        self, owner: object, drop: Callable[[int, int], None] | None, type: int, handle: int
    ) -> None:
        self._drop = drop
        self._type = type
        self._handle = handle

    def detach(self) -> tuple[None, Any, tuple[int, int], dict[str, Any]]:
        """Someone else gives the handle back. The result has the form that the bindings read."""
        drop, self._drop = self._drop, None
        return (None, drop, (self._type, self._handle), {})

    def __del__(self) -> None:
        if self._drop is not None:
            self._drop(self._type, self._handle)


def install() -> None:
    """Let the runtime use `Finalizer`.

    It reads `weakref.finalize` once, after the import of the plugin's module, and is not called
    from Python then. All others get the class of the standard library.
    """
    module: Any = weakref
    original: type = module.finalize

    def found(name: str) -> type:
        if name != "finalize":
            raise AttributeError(f"module 'weakref' has no attribute {name!r}")
        try:
            sys._getframe(1)
        except ValueError:
            del module.__getattr__
            module.finalize = original
            return Finalizer
        return original

    del module.finalize
    module.__getattr__ = found

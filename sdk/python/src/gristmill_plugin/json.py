"""JSON as it is defined: UTF-8, and no NaN or Infinity."""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecoder, JSONEncoder
from typing import Any, NoReturn


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


_encoder = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_decode = JSONDecoder(parse_constant=_refuse).decode


#: The deepest nesting of lists and objects.
DEPTH_MAX = 500

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def dumps(value: object) -> bytes:
    """`value` as JSON, without spaces.

    Raises `TypeError` for a value that JSON has no form for, `ValueError` for NaN and infinity.
    """
    return _encoder.encode(value).encode()


def encode(value: object, default: Callable[[object], object] | None = None) -> str:
    """As `dumps`. `default` makes something else of a value that JSON has no form for."""
    if default is None:
        return _encoder.encode(value)
    return JSONEncoder(
        ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default
    ).encode(value)


def loads(data: bytes) -> Any:
    """The value of a JSON document.

    Raises `ValueError` if `data` are not one, or are nested more deeply than `DEPTH_MAX`.
    """
    if data.count(b"[") + data.count(b"{") > DEPTH_MAX and _is_too_deep(data):
        raise ValueError(f"nested more deeply than {DEPTH_MAX}")
    return _decode(data.decode())


# The parser recurses once for each level. At the end of a component's stack the call would end,
# without an exception.


def _is_too_deep(data: bytes) -> bool:
    # Nearly always a few rounds, each in C, leave nothing. Brackets in texts may stay.
    brackets = data.translate(None, _NOT_BRACKETS)
    for _ in range(8):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(brackets) <= DEPTH_MAX:
            return False
    return _depth(data) > DEPTH_MAX


def _depth(data: bytes) -> int:
    """The deepest nesting, texts apart."""
    depth = deepest = 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    return deepest

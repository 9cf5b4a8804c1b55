"""JSON as it is defined: UTF-8, and no NaN or Infinity."""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecoder, JSONEncoder, encoder
from typing import Any, NoReturn


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


_decoder = JSONDecoder(parse_constant=_refuse)


def encoder_with(default: Callable[[object], object] | None) -> Callable[[object], str]:
    """A function as `dumps`, whose result is a text.

    `default` makes something else of a value that JSON has no form for.
    """
    make = encoder.c_make_encoder
    if make is None:
        return JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default
        ).encode
    # `JSONEncoder.encode` makes this function for each value, which takes as long as a small value.
    markers: dict[int, object] = {}
    escaped = encoder.encode_basestring
    write = make(
        markers, default or JSONEncoder().default, escaped, None, ":", ",", False, False, False
    )

    def encode(value: object) -> str:
        try:
            return "".join(write(value, 0))
        except BaseException:
            # The values of this document are no longer under way.
            markers.clear()
            raise

    return encode


_encode = encoder_with(None)


#: The deepest nesting of lists and objects.
DEPTH_MAX = 500

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def dumps(value: object) -> bytes:
    """`value` as JSON, without spaces.

    Raises `TypeError` for a value that JSON has no form for, `ValueError` for NaN and infinity.
    """
    return _encode(value).encode()


def loads(data: bytes) -> Any:
    """The value of a JSON document.

    Raises `ValueError` if `data` are not one, or are nested more deeply than `DEPTH_MAX`.
    """
    if data.count(b"[") + data.count(b"{") > DEPTH_MAX and _is_too_deep(data):
        raise ValueError(f"nested more deeply than {DEPTH_MAX}")
    text = data.decode()
    body = text.strip(" \t\r\n")
    try:
        # Without the two searches for white space that `decode` makes.
        value, end = _decoder.scan_once(body, 0)
        if end == len(body):
            return value
    except (StopIteration, ValueError):
        pass
    return _decoder.decode(text)


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

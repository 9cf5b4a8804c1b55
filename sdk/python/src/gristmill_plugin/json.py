"""JSON as it is defined: UTF-8, and no NaN or Infinity."""

from __future__ import annotations

from json import JSONDecoder, JSONEncoder
from typing import Any, NoReturn


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


_encode = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_decode = JSONDecoder(parse_constant=_refuse).decode


def dumps(value: object) -> bytes:
    """`value` as JSON, without spaces.

    Raises `TypeError` for a value that JSON has no form for, `ValueError` for NaN and infinity.
    """
    return _encode(value).encode()


def loads(data: bytes) -> Any:
    """The value of a JSON document. Raises `ValueError` if `data` are not one."""
    return _decode(data.decode())

"""Elements of a tensor: from bytes to numbers and back."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

_FORMATS = {
    "BOOL": "?",
    "UINT8": "B",
    "INT8": "b",
    "UINT16": "H",
    "INT16": "h",
    "UINT32": "I",
    "INT32": "i",
    "UINT64": "Q",
    "INT64": "q",
    "FLOAT16": "e",
    "BFLOAT16": "H",
    "FLOAT32": "f",
    "FLOAT64": "d",
}

#: The bytes of an element.
SIZES = {name: struct.calcsize("<" + format) for name, format in _FORMATS.items()}


def decode(dtype: str, parts: Sequence[bytes]) -> list[float]:
    """The numbers of elements of this dtype."""
    values = struct.unpack(f"<{len(parts)}{_FORMATS[dtype]}", b"".join(parts))
    if dtype == "BFLOAT16":
        return [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in values]
    return list(values)


def encode(dtype: str, values: Sequence[float]) -> list[bytes]:
    """The elements of numbers, cast to this dtype."""
    convert = _convert_to(dtype)
    return [struct.pack("<" + _FORMATS[dtype], convert(value)) for value in values]


def rank(value: float) -> int:
    """A key that orders float32 values as IEEE 754's total order does."""
    bits: int = struct.unpack("<i", struct.pack("<f", value))[0]
    return bits if bits >= 0 else bits ^ 0x7FFF_FFFF


def _convert_to(dtype: str):  # type: ignore[no-untyped-def]
    if dtype == "BOOL":
        return lambda value: value != 0
    if dtype == "FLOAT64":
        return float
    if dtype == "BFLOAT16":
        return _bfloat16
    if dtype.startswith("FLOAT"):
        return lambda value: _rounded(_FORMATS[dtype], float(value))
    bits = 8 * SIZES[dtype]
    least, most = (0, 2**bits - 1) if dtype[0] == "U" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return lambda value: _integer(value, least, most)


def _integer(value: float, least: int, most: int) -> int:
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return most if value > 0 else least
    return min(max(int(value), least), most)


def _rounded(format: str, value: float) -> float:
    """`value`, or infinity if the format has no number so large."""
    try:
        struct.pack("<" + format, value)
    except OverflowError:
        return math.copysign(math.inf, value)
    return value


def _bfloat16(value: float) -> int:
    """The upper half of the float32, rounded to the nearest, ties to even."""
    bits: int = struct.unpack("<I", struct.pack("<f", _rounded("f", float(value))))[0]
    if math.isnan(value):
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16

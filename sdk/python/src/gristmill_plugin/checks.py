"""Checks of arguments before they go to the host.

The bindings end the call, without an exception, if an argument has a wrong type or is out of
range. These functions raise before that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

_Case = TypeVar("_Case", bound=Enum)


def u32(name: str, value: int) -> int:
    """`value`, an integer from 0 to 2^32 - 1. Raises `TypeError` or `ValueError`."""
    if type(value) is not int:
        if not hasattr(value, "__index__"):
            raise TypeError(f"{name} is {value!r}, not an integer")
        value = value.__index__()
    if not 0 <= value < 0x1_0000_0000:
        raise ValueError(f"{name} is {value}, not from 0 to 2^32 - 1")
    return value


def u32s(name: str, values: Iterable[int]) -> list[int]:
    """`values` as a list, if all are integers from 0 to 2^32 - 1."""
    return [u32(name, value) for value in values]


def u8s(name: str, values: Iterable[int], count: int) -> tuple[int, ...]:
    """`values` as a tuple, if they are `count` integers from 0 to 255."""
    found = tuple(u32(name, value) for value in values)
    if len(found) != count or max(found) > 255:
        raise ValueError(f"{name} is {found}, not {count} values from 0 to 255")
    return found


def pixel(name: str, value: float) -> int:
    """`value`, rounded to the nearest integer from -2^31 to 2^31 - 1.

    Raises `TypeError` if it is not a number, and `ValueError` if it is NaN.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, not a number") from None
    if math.isnan(number):
        raise ValueError(f"{name} is NaN")
    return math.floor(min(max(number, -(2.0**31)), 2.0**31 - 1.0) + 0.5)


def u64(name: str, value: int) -> int:
    """`value`, an integer from 0 to 2^64 - 1. Raises `TypeError` or `ValueError`."""
    if type(value) is not int:
        raise TypeError(f"{name} is {value!r}, not an integer")
    if not 0 <= value < 2**64:
        raise ValueError(f"{name} is {value}, not from 0 to 2^64 - 1")
    return value


def text(name: str, value: str) -> str:
    """`value`, a text, in which halves of surrogate pairs are question marks.

    The bindings end the call for such a half. Raises `TypeError` if it is not a text.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, not a text")
    return value if value.isascii() else value.encode(errors="replace").decode()


def case(name: str, value: _Case, wanted: type[_Case]) -> _Case:
    """`value`, if it is of the enum `wanted`. Raises `TypeError`."""
    if type(value) is not wanted:
        raise TypeError(f"{name} is {value!r}, not a {wanted.__name__}")
    return value


def f32s(name: str, values: Iterable[float]) -> list[float]:
    """`values` as floats. Raises `TypeError` if one is not a number."""
    return [f32(name, value) for value in values]


def f32(name: str, value: float) -> float:
    """`value` as a float. Raises `TypeError` if it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, not a number") from None


def instance(name: str, value: object, wanted: type | tuple[type, ...]) -> None:
    """Raises `TypeError` if `value` is not a `wanted`."""
    if not isinstance(value, wanted):
        types = wanted if isinstance(wanted, tuple) else (wanted,)
        names = " or ".join(one.__name__ for one in types)
        raise TypeError(f"{name} is {type(value).__name__}, not {names}")

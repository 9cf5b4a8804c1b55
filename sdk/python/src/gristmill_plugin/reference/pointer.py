"""Values of JSON documents, with the host's rules and texts."""

from __future__ import annotations

import json
import math
import struct
from typing import Any, NoReturn

from . import elements as numbers

#: There is no value.
NOTHING = object()


class _Float(float):
    """A number with a fraction or an exponent, which is no integer."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def dumps(value: object) -> bytes:
    """A value as a JSON document."""
    return json.dumps(value).encode()


def parse(pointer: str) -> list[str]:
    """The names of a JSON Pointer. Raises `ValueError` if it is not one."""
    if not pointer:
        return []
    if pointer[0] != "/":
        text = f'the JSON Pointer "{pointer}" does not begin with /, as /instances'
        raise ValueError(text)
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer[1:].split("/")]


def find(document: bytes, names: list[str]) -> Any:
    """The value that the names lead to, or `NOTHING`. Raises `ValueError` for other documents."""
    if not document:
        raise ValueError("the body is empty")
    value = json.loads(document, parse_constant=_refuse, parse_float=_Float)
    for name in names:
        if isinstance(value, dict):
            value = value.get(name, NOTHING)
        elif isinstance(value, list) and name.isdecimal() and str(int(name)) == name:
            value = value[int(name)] if int(name) < len(value) else NOTHING
        else:
            return NOTHING
    return value


def kind(value: object) -> str:
    """What a value is, in words."""
    if isinstance(value, bool):
        return "a boolean"
    kinds = {dict: "an object", list: "a list", str: "a text", int: "a number", _Float: "a number"}
    return kinds.get(type(value), "null")


def elements(
    value: object, keys: list[str], dtype: str, place: str
) -> tuple[list[int], list[bytes]]:
    """The shape and the elements of a value. Raises `ValueError`, which says what is wrong."""
    reading = _Reading(dtype)
    if not keys:
        reading.read(value, place, 0)
        return [length or 0 for length in reading.lengths], reading.parts
    if not isinstance(value, list):
        raise ValueError(f"{place or 'the body'} is {kind(value)}, not a list")
    widths: list[int] = []
    for row, item in enumerate(value):
        if not isinstance(item, dict):
            raise ValueError(f"{place}/{row} is {kind(item)}, not an object")
        for number, key in enumerate(keys):
            at = f"{place}/{row}/" + key.replace("~", "~0").replace("/", "~1")
            if key not in item:
                raise ValueError(f"{at} is missing")
            before = len(reading.parts)
            reading.lengths, reading.has_element = [], False
            reading.read(item[key], at, 0)
            if len(reading.lengths) > 1:
                raise ValueError(f"{at} is a list of lists, not of values")
            width = len(reading.parts) - before
            if number == len(widths):
                widths.append(width)
            elif widths[number] != width:
                raise ValueError(
                    f"{at} has {width} values, not {widths[number]} as in the objects before it"
                )
    return [len(value), sum(widths) if value else len(keys)], reading.parts


class _Reading:
    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.parts: list[bytes] = []
        self.lengths: list[int | None] = []
        self.has_element = False

    def read(self, value: object, place: str, depth: int) -> None:
        """Append the elements of a value that stands in `depth` lists."""
        if isinstance(value, list):
            self._read_list(value, place, depth)
            return
        place = place or "the body"
        if value is None or isinstance(value, dict):
            raise ValueError(f"{place} is {kind(value)}, not {_element(self.dtype)}")
        if depth != len(self.lengths):
            raise ValueError(f"{place} is {kind(value)}, not a list as the values before it")
        self.has_element = True
        self.parts.append(_encoded(value, self.dtype, place))

    def _read_list(self, values: list[object], place: str, depth: int) -> None:
        if depth == len(self.lengths):
            if self.has_element:
                raise ValueError(f"{place} is a list, not {_element(self.dtype)}")
            if depth == 32:
                raise ValueError(f"{place} is over 32 lists deep")
            self.lengths.append(None)
        for index, value in enumerate(values):
            self.read(value, f"{place}/{index}", depth + 1)
        wanted = self.lengths[depth]
        if wanted is None:
            self.lengths[depth] = len(values)
        elif wanted != len(values):
            place = place or "the body"
            raise ValueError(
                f"{place} has {len(values)} values, not {wanted} as the lists before it"
            )


def _element(dtype: str) -> str:
    return {"BOOL": "true or false", "STRING": "a text"}.get(dtype, "a number")


#: The host's names of dtypes in messages.
_NAMES = {"FLOAT16": "FP16", "BFLOAT16": "BF16", "FLOAT32": "FP32", "FLOAT64": "FP64"}


def _encoded(value: Any, dtype: str, place: str) -> bytes:
    """The bytes of an element."""
    if dtype == "STRING":
        if not isinstance(value, str):
            raise ValueError(f"{place} is {kind(value)}, not a text")
        data = value.encode()
        return struct.pack("<I", len(data)) + data
    if isinstance(value, bool) != (dtype == "BOOL") or isinstance(value, str):
        raise ValueError(f"{place} is {kind(value)}, not {_element(dtype)}")
    if "INT" in dtype and isinstance(value, _Float):
        raise ValueError(f"{place} is {float(value)!r}, not an integer")
    try:
        [data] = numbers.encode(dtype, [value])
    except OverflowError:
        raise ValueError(f"{place} is out of {_NAMES.get(dtype, dtype)}'s range") from None
    [back] = numbers.decode(dtype, [data])
    is_out = back != value if "INT" in dtype else math.isinf(back)
    if is_out:
        raise ValueError(f"{place} is out of {_NAMES.get(dtype, dtype)}'s range")
    return data

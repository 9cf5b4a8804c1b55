"""The interface `json`."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass
from typing import Any

from . import elements
from .result import Err
from .tensors import Dtype, Tensor
from .types import Blob


@dataclass
class Column:
    key: str
    elements: Tensor


@dataclass
class Part_Text:
    value: str


@dataclass
class Part_Tensor:
    value: Tensor


@dataclass
class Part_Base64:
    value: Blob


@dataclass
class Part_Objects:
    value: list[Column]


Part = Part_Text | Part_Tensor | Part_Base64 | Part_Objects


def document(parts: list[Part]) -> bytes:
    """The parts, one after another."""
    return "".join(map(_text, parts)).encode()


def _text(part: Part) -> str:
    if isinstance(part, Part_Text):
        return part.value
    if isinstance(part, Part_Base64):
        data = part.value.read(0, part.value.len())
        return json.dumps(base64.b64encode(data).decode())
    if isinstance(part, Part_Objects):
        return _objects(part.value)
    values = _values(part.value)
    return _lists(part.value.shape(), iter(values))


def _objects(columns: list[Column]) -> str:
    if not columns:
        raise Err("a list of objects has no column")
    first = columns[0]
    for column in columns:
        shape = column.elements.shape()
        if len(shape) != 1:
            raise Err(
                f'the column "{column.key}" has the shape {shape}: must have one dimension'
            )
        if shape != first.elements.shape():
            length = first.elements.shape()[0]
            raise Err(
                f'the column "{column.key}" has {shape[0]} elements, but "{first.key}" has {length}'
            )
    keys = [json.dumps(column.key, ensure_ascii=False) for column in columns]
    rows = zip(*map(_column, columns), strict=True)
    objects = (
        ",".join(f"{key}:{value}" for key, value in zip(keys, row, strict=True)) for row in rows
    )
    return "[" + ",".join(f"{{{text}}}" for text in objects) + "]"


def _column(column: Column) -> list[str]:
    try:
        return _values(column.elements)
    except Err as error:
        raise Err(f'the column "{column.key}": {error.value}') from None


def _lists(shape: list[int], values: Any) -> str:
    if not shape:
        return next(values)  # type: ignore[no-any-return]
    return "[" + ",".join(_lists(shape[1:], values) for _ in range(shape[0])) + "]"


def _values(tensor: Tensor) -> list[str]:
    dtype = tensor.dtype()
    if dtype is Dtype.STRING:
        return [json.dumps(part[4:].decode(), ensure_ascii=False) for part in tensor._parts]
    found = []
    for at, value in enumerate(elements.decode(dtype.name, tensor._parts)):
        if not math.isfinite(value):
            shape = tensor.shape()
            index = [at // math.prod(shape[axis + 1 :]) % shape[axis] for axis in range(len(shape))]
            name = "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
            raise Err(
                f"the tensor of shape {shape} has {name} at {index}: JSON has no such number"
            )
        is_short = "FLOAT" in dtype.name and dtype is not Dtype.FLOAT64
        found.append(json.dumps(_shortest(value) if is_short else value))
    return found


def _shortest(value: float) -> float:
    """The float with the fewest digits that is the same float32."""
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if elements.encode("FLOAT32", [short]) == elements.encode("FLOAT32", [value]):
            return short
    return value

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
class Piece_Text:
    value: str


@dataclass
class Piece_Tensor:
    value: Tensor


@dataclass
class Piece_Base64:
    value: Blob


Piece = Piece_Text | Piece_Tensor | Piece_Base64


def write(pieces: list[Piece]) -> bytes:
    """The pieces, one after another."""
    return "".join(map(_text, pieces)).encode()


def _text(piece: Piece) -> str:
    if isinstance(piece, Piece_Text):
        return piece.value
    if isinstance(piece, Piece_Base64):
        data = piece.value.read(0, piece.value.len())
        return json.dumps(base64.b64encode(data).decode())
    values = _values(piece.value)
    return _lists(piece.value.shape(), iter(values))


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

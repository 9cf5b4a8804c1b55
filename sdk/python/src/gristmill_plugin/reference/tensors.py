"""The interface `tensors`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from . import elements
from .result import Err

_DIMENSIONS_MAX = 32


class Dtype(Enum):
    """Element types: those of ONNX."""

    BOOL = 0
    UINT8 = 1
    INT8 = 2
    UINT16 = 3
    INT16 = 4
    UINT32 = 5
    INT32 = 6
    UINT64 = 7
    INT64 = 8
    FLOAT16 = 9
    BFLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
    STRING = 13


@dataclass
class LengthMismatch:
    expected: int
    actual: int


@dataclass
class TensorError_LengthMismatch:
    value: LengthMismatch


@dataclass
class TensorError_TooLarge:
    value: str


@dataclass
class TensorError_InvalidElement:
    value: str


@dataclass
class TensorError_InvalidArgument:
    value: str


TensorError = (
    TensorError_LengthMismatch
    | TensorError_TooLarge
    | TensorError_InvalidElement
    | TensorError_InvalidArgument
)


@dataclass
class Scored:
    """One element found by `argmax` or `top_k`: its position in the row and its value."""

    index: int
    value: float


class Tensor:
    """An immutable n-dimensional array. `parts` are its elements' bytes, one for each element."""

    def __init__(self, dtype: Dtype, shape: list[int], parts: list[bytes]) -> None:
        self._dtype = dtype
        self._shape = shape
        self._parts = parts

    @classmethod
    def create(cls, dtype: Dtype, shape: list[int], data: bytes) -> Tensor:
        if len(shape) > _DIMENSIONS_MAX:
            text = f"{len(shape)} dimensions are over the limit of {_DIMENSIONS_MAX}"
            raise Err(TensorError_TooLarge(text))
        if any(not 0 <= dim < 2**32 for dim in shape):
            raise OverflowError(f"shape {shape} has a dimension that is not a u32")
        count = math.prod(shape)
        if dtype is Dtype.STRING:
            parts = _strings(data)
            if len(parts) != count:
                text = f"{len(parts)} strings, but the shape needs {count}"
                raise Err(TensorError_InvalidElement(text))
            return cls(dtype, shape, parts)
        size = elements.SIZES[dtype.name]
        if len(data) != count * size:
            raise Err(TensorError_LengthMismatch(LengthMismatch(count * size, len(data))))
        if dtype is Dtype.BOOL and any(value > 1 for value in data):
            raise Err(TensorError_InvalidElement("a bool is neither 0 nor 1"))
        return cls(dtype, shape, [data[at : at + size] for at in range(0, len(data), size)])

    def dtype(self) -> Dtype:
        return self._dtype

    def shape(self) -> list[int]:
        return list(self._shape)

    def data(self) -> bytes:
        return b"".join(self._parts)

    def read(self, offset: int, length: int) -> bytes:
        return self.data()[offset : offset + length]

    def argmax(self) -> list[Scored]:
        found = []
        for row in self._rows():
            best = 0
            for index, value in enumerate(row):
                if value > row[best]:
                    best = index
            found.append(Scored(best, row[best]))
        return found

    def top_k(self, row: int, k: int) -> list[Scored]:
        rows = self._rows()
        if row >= len(rows):
            return []
        values = rows[row]
        order = sorted(range(len(values)), key=lambda at: (-elements.rank(values[at]), at))
        return [Scored(index, values[index]) for index in order[:k]]

    def softmax(self) -> Tensor | None:
        if self._dtype is not Dtype.FLOAT32:
            return None
        parts = []
        for row in self._rows():
            largest = max(row)
            powers = [math.exp(value - largest) for value in row]
            total = math.fsum(powers)
            parts += elements.encode("FLOAT32", [power / total for power in powers])
        return Tensor(Dtype.FLOAT32, self.shape(), parts)

    @classmethod
    def concat(cls, tensors: list[Tensor], axis: int) -> Tensor:
        first = _first(tensors, "concat")
        if axis >= len(first._shape):
            raise _invalid(f"axis {axis} of a tensor of {len(first._shape)} dimensions")
        for other in tensors[1:]:
            _check_dtype(first, other, "concat")
            ours, theirs = first.shape(), other.shape()
            ours[axis : axis + 1] = theirs[axis : axis + 1] = [0]
            if ours != theirs:
                shapes = f"{first._shape} and {other._shape}"
                raise _invalid(f"concat of shapes {shapes} along axis {axis}")
        shape = first.shape()
        shape[axis] = sum(tensor._shape[axis] for tensor in tensors)
        return cls(first._dtype, shape, _joined(tensors, axis))

    @classmethod
    def stack(cls, tensors: list[Tensor], axis: int) -> Tensor:
        first = _first(tensors, "stack")
        if axis > len(first._shape):
            raise _invalid(f"axis {axis} of a stack of tensors of {len(first._shape)} dimensions")
        for other in tensors[1:]:
            _check_dtype(first, other, "stack")
            if other._shape != first._shape:
                raise _invalid(f"stack of shapes {first._shape} and {other._shape}")
        shape = [*first._shape[:axis], len(tensors), *first._shape[axis:]]
        return cls(first._dtype, shape, _joined(tensors, axis))

    def slice(self, axis: int, start: int, end: int) -> Tensor:
        if axis >= len(self._shape):
            raise _invalid(f"axis {axis} of a tensor of {len(self._shape)} dimensions")
        if not start <= end <= self._shape[axis]:
            size = self._shape[axis]
            raise _invalid(f"slice {start} to {end} of axis {axis}, whose size is {size}")
        inner = math.prod(self._shape[axis + 1 :])
        stride = inner * self._shape[axis]
        parts: list[bytes] = []
        for outer in range(math.prod(self._shape[:axis])):
            parts += self._parts[outer * stride + start * inner : outer * stride + end * inner]
        shape = self.shape()
        shape[axis] = end - start
        return Tensor(self._dtype, shape, parts)

    def cast(self, dtype: Dtype) -> Tensor:
        if dtype is self._dtype:
            return Tensor(dtype, self.shape(), self._parts)
        if Dtype.STRING in (dtype, self._dtype):
            raise _invalid(f"cast of {self._dtype.name} to {dtype.name}: strings cannot be cast")
        values = elements.decode(self._dtype.name, self._parts)
        return Tensor(dtype, self.shape(), elements.encode(dtype.name, values))

    def _rows(self) -> list[list[float]]:
        """The rows of a float32 tensor. None of any other, and none if they have no elements."""
        width = math.prod(self._shape[1:])
        if self._dtype is not Dtype.FLOAT32 or not self._shape or width == 0:
            return []
        values = elements.decode("FLOAT32", self._parts)
        return [values[at : at + width] for at in range(0, len(values), width)]


@dataclass
class NamedTensor:
    name: str
    tensor: Tensor


def _strings(data: bytes) -> list[bytes]:
    parts = []
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if end > len(data):
            raise Err(TensorError_InvalidElement("a string is longer than the data"))
        try:
            data[at + 4 : end].decode()
        except UnicodeDecodeError:
            raise Err(TensorError_InvalidElement("a string is not UTF-8")) from None
        parts.append(data[at:end])
        at = end
    return parts


def _joined(tensors: list[Tensor], axis: int) -> list[bytes]:
    outer = math.prod(tensors[0]._shape[:axis])
    parts: list[bytes] = []
    for index in range(outer):
        for tensor in tensors:
            inner = len(tensor._parts) // outer
            parts += tensor._parts[index * inner : (index + 1) * inner]
    return parts


def _first(tensors: list[Tensor], what: str) -> Tensor:
    if not tensors:
        raise _invalid(f"{what} of no tensors")
    return tensors[0]


def _check_dtype(first: Tensor, other: Tensor, what: str) -> None:
    if other._dtype is not first._dtype:
        raise _invalid(f"{what} of {first._dtype.name} and {other._dtype.name}")


def _invalid(text: str) -> Err[TensorError]:
    return Err(TensorError_InvalidArgument(text))


def ids_of(tensor: Tensor) -> list[str] | None:
    """The elements of a tensor of int64 or of strings of one dimension, as texts. None of another."""
    dtype = tensor.dtype()
    if len(tensor.shape()) != 1 or dtype not in (Dtype.INT64, Dtype.STRING):
        return None
    if dtype is Dtype.STRING:
        return [part[4:].decode() for part in tensor._parts]
    return [str(number) for number in elements.decode(dtype.name, tensor._parts)]

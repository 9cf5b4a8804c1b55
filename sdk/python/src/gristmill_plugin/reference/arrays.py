"""The interface `arrays`, by NumPy itself: unit tests of plugins that use it need NumPy."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .result import Err
from .tensors import Dtype, Tensor


class FaultKind(Enum):
    INVALID_VALUE = 0
    INVALID_INDEX = 1
    INVALID_TYPE = 2
    INVALID_PROGRAM = 3


@dataclass
class Fault:
    kind: FaultKind
    step: int
    message: str


@dataclass
class Made:
    tensor: Tensor
    dtype: Dtype
    shape: list[int]


@dataclass
class Elements:
    dtype: Dtype
    shape: list[int]
    data: bytes


def evaluate(inputs: list[Tensor], program: str, results: list[int]) -> list[Made]:
    arrays = _run(inputs, program)
    made = []
    for at in results:
        tensor = _tensor(arrays[at])
        made.append(Made(tensor, tensor.dtype(), tensor.shape()))
    return made


def read(inputs: list[Tensor], program: str, result: int) -> Elements:
    tensor = _tensor(_run(inputs, program)[result])
    return Elements(tensor.dtype(), tensor.shape(), tensor.data())


#: Maximum steps of a program, and operands of a step.
_STEPS_MAX = 4096
_OPERANDS_MAX = 1024


def _run(inputs: list[Tensor], program: str) -> list[Any]:
    import numpy as np

    steps = json.loads(program)
    if len(steps) > _STEPS_MAX or any(len(step[1]) > _OPERANDS_MAX for step in steps):
        raise Err(Fault(FaultKind.INVALID_PROGRAM, 0, "the program is over the limit"))

    arrays = [
        np.frombuffer(one.data(), one.dtype().name.lower()).reshape(one.shape()) for one in inputs
    ]
    for step, (op, operands, params) in enumerate(steps):
        try:
            with np.errstate(all="ignore"):
                arrays.append(_step(np, op, [arrays[at] for at in operands], params))
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            kind = FaultKind.INVALID_VALUE
            if isinstance(error, IndexError):
                kind = FaultKind.INVALID_INDEX
            elif isinstance(error, TypeError):
                kind = FaultKind.INVALID_TYPE
            raise Err(Fault(kind, step, f"{op}: {error}")) from None
    return arrays


def _tensor(array: Any) -> Tensor:
    import numpy as np

    found = np.asarray(array)
    return Tensor.create(Dtype[found.dtype.name.upper()], list(found.shape), found.tobytes())


def _number(given: Any) -> Any:
    return float(given) if isinstance(given, str) else given


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _step(np: Any, op: str, given: list[Any], params: list[Any]) -> Any:
    match op, params:
        case "number", [value]:
            return _number(value)
        case "literal", [dtype, shape, values]:
            return np.array([_number(value) for value in values], dtype).reshape(shape)
        case "full", [value, shape, dtype]:
            return np.full(shape, _number(value), dtype)
        case "arange", [start, stop, step, dtype]:
            return np.arange(start, stop, step, dtype)
        case "linspace", [start, stop, count, with_end, dtype]:
            return np.linspace(start, stop, count, with_end, dtype=dtype)
        case "eye", [rows, columns, diagonal, dtype]:
            return np.eye(rows, columns, diagonal, dtype)
        case "astype", [dtype]:
            return np.asarray(given[0]).astype(dtype)
        case "one_hot", [count, dtype]:
            wrong = [one for one in np.ravel(given[0]) if not 0 <= one < count]
            if wrong:
                raise ValueError(f"class {wrong[0]} is not one of {count}")
            return np.eye(count, dtype=dtype)[given[0]]
        case "index", [parts]:
            others = iter(given[1:])
            return given[0][tuple(_part(part, others) for part in parts)]
        case "take", [axis]:
            return np.take(*given, axis)
        case "take_along_axis", [axis]:
            return np.take_along_axis(*given, axis)
        case "reshape", [shape]:
            return given[0].reshape(shape)
        case "permute_dims", [axes]:
            return np.transpose(given[0], axes)
        case "broadcast_to", [shape]:
            return np.broadcast_to(given[0], shape)
        case "concat", [axis]:
            return np.concatenate(given, axis)
        case "stack", [axis]:
            return np.stack(given, axis)
        case "repeat", [count, axis]:
            return np.repeat(given[0], count, axis)
        case "flip", [axis]:
            return np.flip(given[0], _axes(axis))
        case "softmax" | "normalize", [axis]:
            return _along(np, op, given[0], _axes(axis))
        case "cumulative_sum", [axis]:
            return np.cumsum(given[0], axis)
        case "cumulative_prod", [axis]:
            return np.cumprod(given[0], axis)
        case "sort", [axis, descending]:
            found = np.sort(given[0], axis)
            return np.flip(found, -1 if axis is None else axis) if descending else found
        case "argsort", [axis, descending]:
            return _argsort(np, given[0], axis, descending)
        case "argtopk", [axis, count]:
            order = _argsort(np, given[0], axis, True)
            if count > order.shape[axis]:
                raise ValueError(f"{count} elements of {order.shape[axis]} are wanted")
            return np.take(order, range(count), axis)
        case "round", [decimals]:
            return np.round(given[0], decimals)
        case "matmul", [True]:
            is_number = any(np.ndim(one) == 0 for one in given)
            return np.multiply(*given) if is_number else np.matmul(*given)
        case "unique_values", []:
            return np.unique(given[0])
        case "unique_counts", []:
            return np.unique(given[0], return_counts=True)[1]
        case "nonzero", []:
            return np.stack(np.nonzero(given[0]))
        case "searchsorted" | "searchsorted_right", []:
            return np.searchsorted(*given, "left" if op == "searchsorted" else "right")
        case "sigmoid", []:
            return 1 / (1 + np.exp(-given[0]))
        case "nms", [threshold, least, most]:
            return _nms(np, *given, threshold, least, most)
        case ("var" | "std"), [axis, keeps, correction]:
            return getattr(np, op)(given[0], _axes(axis), ddof=correction, keepdims=keeps)
        case ("argmax" | "argmin"), [axis, keeps]:
            return getattr(np, op)(given[0], axis, keepdims=keeps)
        case _, [axis, keeps]:
            return getattr(np, op)(given[0], axis=_axes(axis), keepdims=keeps)
        case _, []:
            return getattr(np, op)(*given)
    raise ValueError(f"there is no operation {op!r} with {params}")


def _part(part: Any, others: Any) -> Any:
    if part == "array":
        return next(others)
    if part == "...":
        return Ellipsis
    return slice(*part) if isinstance(part, list) else part


def _along(np: Any, op: str, array: Any, axis: Any) -> Any:
    found = array if array.dtype == np.float32 else array.astype(np.float64)
    if op == "softmax":
        powers = np.exp(found - found.max(axis, keepdims=True))
        return powers / powers.sum(axis, keepdims=True)
    length = np.sqrt((found * found).sum(axis, keepdims=True))
    return found / np.where(length == 0, np.ones_like(length), length)


def _argsort(np: Any, array: Any, axis: Any, descending: bool) -> Any:
    if not descending:
        return np.argsort(array, axis, kind="stable")
    along = -1 if axis is None else axis
    found = array.ravel() if axis is None else array
    back = np.argsort(np.flip(found, along), along, kind="stable")
    return found.shape[along] - 1 - np.flip(back, along)


def _nms(np: Any, boxes: Any, scores: Any, threshold: Any, least: Any, most: Any) -> Any:
    boxes, scores = boxes.astype(np.float32), scores.astype(np.float32)
    order = [
        at for at in np.argsort(-scores, kind="stable") if least is None or scores[at] >= least
    ]
    kept: list[int] = []
    for at in order:
        if most is not None and len(kept) >= most:
            break
        if all(_overlap(boxes[at], boxes[other]) <= threshold for other in kept):
            kept.append(int(at))
    return np.array(kept, np.int64)


def _overlap(one: Any, other: Any) -> float:
    width = max(0.0, min(one[2], other[2]) - max(one[0], other[0]))
    height = max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
    shared = width * height
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    covered = math.fsum(areas) - shared
    return float(shared / covered) if covered else 0.0

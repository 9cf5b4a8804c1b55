"""Functions of `gristmill_plugin.numpy` that are made of its others. Their names are there.

They mean what NumPy and the Python array API standard (2024.12) say. Where one asks for a shape,
what was noted so far is run.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import numpy as np
from .numpy import asarray, dtype, ndarray

# Places and shapes.


def astype(x: Any, dtype: Any, /) -> ndarray:
    """The same values in another dtype, as `Tensor.cast`."""
    return asarray(x).astype(dtype)


def shape(a: Any) -> tuple[int, ...]:
    """The dimensions."""
    return asarray(a).shape


def ndim(a: Any) -> int:
    """The number of dimensions."""
    return asarray(a).ndim


def size(a: Any) -> int:
    """The number of elements."""
    return asarray(a).size


def copy(a: Any) -> ndarray:
    """The array itself, since it is immutable."""
    return asarray(a)


def matrix_transpose(x: Any) -> ndarray:
    """The last two dimensions in place of each other."""
    return asarray(x).mT


def atleast_1d(a: Any) -> ndarray:
    """With one dimension at least."""
    found = asarray(a)
    return found.reshape(1) if found.ndim < 1 else found


def atleast_3d(a: Any) -> ndarray:
    """With three dimensions at least."""
    found = np.atleast_2d(a)
    if found.ndim > 2:
        return found
    return found[:, :, None]


def dstack(arrays: Sequence[Any]) -> ndarray:
    """One after another along the third axis."""
    return np.concatenate([atleast_3d(a) for a in arrays], 2)


def append(arr: Any, values: Any, axis: int | None = None) -> ndarray:
    """The values behind an array, along an axis; without one, both flat."""
    return np.concatenate([arr, values], axis)


def broadcast_arrays(*arrays: Any) -> list[ndarray]:
    """All arrays in the shape that they have together."""
    found = [asarray(a) for a in arrays]
    shapes = [a.shape for a in found]
    whole: list[int] = []
    for at in range(-builtins.max((len(one) for one in shapes), default=0), 0):
        sizes = {one[at] for one in shapes if len(one) >= -at} - {1}
        if len(sizes) > 1:
            texts = ", ".join(str(one) for one in shapes)
            raise ValueError(f"shape mismatch: {texts} cannot be broadcast to one shape")
        whole.append(sizes.pop() if sizes else 1)
    return [np.broadcast_to(a, whole) for a in found]


def meshgrid(*xi: Any, indexing: str = "xy") -> list[ndarray]:
    """The coordinates of a grid: one array for each axis."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is {indexing!r}: 'xy' or 'ij'")
    count = len(xi)
    axes = [
        asarray(x).reshape(*[-1 if at == axis else 1 for at in range(count)])
        for axis, x in enumerate(xi)
    ]
    grid = broadcast_arrays(*axes)
    return [np.swapaxes(a, 0, 1) for a in grid] if indexing == "xy" and count > 1 else grid


def unstack(x: Any, *, axis: int = 0) -> tuple[ndarray, ...]:
    """The parts along an axis, without it."""
    found = np.moveaxis(x, axis, 0)
    return tuple(found[at] for at in range(found.shape[0]))


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Parts along an axis: so many, or cut at these places."""
    found = asarray(ary)
    (axis,) = np._axes_of([axis], found.ndim)
    length = found.shape[axis]
    if hasattr(indices_or_sections, "__index__"):
        parts = indices_or_sections.__index__()
        if parts <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, more = divmod(length, parts)
        cuts = [at * each + builtins.min(at, more) for at in range(1, parts)]
    else:
        cuts = [int(at) for at in indices_or_sections]
    around = (slice(None),) * axis
    ends = zip([0, *cuts], [*cuts, length], strict=True)
    return [found[(*around, slice(start, end))] for start, end in ends]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """As `array_split`, into parts of equal size."""
    found, sections = asarray(ary), indices_or_sections
    (axis,) = np._axes_of([axis], found.ndim)
    if hasattr(sections, "__index__") and found.shape[axis] % sections.__index__():
        raise ValueError("array split does not result in an equal division")
    return array_split(found, sections, axis)


def roll(a: Any, shift: Any, axis: Any = None) -> ndarray:
    """Moved along axes; what leaves at one end comes in at the other."""
    found = asarray(a)
    if axis is None:
        return roll(found.ravel(), shift, 0).reshape(found.shape)
    if isinstance(axis, (tuple, list)) or isinstance(shift, (tuple, list)):
        # One number stands for all.
        axes, shifts = np._ints((axis,)), np._ints((shift,))
        axes = axes if isinstance(axis, (tuple, list)) else axes * len(shifts)
        shifts = shifts if isinstance(shift, (tuple, list)) else shifts * len(axes)
        for by, along in zip(shifts, axes, strict=True):
            found = roll(found, by, along)
        return found
    (axis,) = np._axes_of([axis], found.ndim)
    length = found.shape[axis]
    by = shift.__index__() % length if length else 0
    if by == 0:
        return found
    around = (slice(None),) * axis
    parts = [found[(*around, slice(-by, None))], found[(*around, slice(None, -by))]]
    return np.concatenate(parts, axis)


def flipud(m: Any) -> ndarray:
    """The rows in the opposite order."""
    return np.flip(m, 0)


def fliplr(m: Any) -> ndarray:
    """The columns in the opposite order."""
    return np.flip(m, 1)


def pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> ndarray:
    """More elements at the ends of axes.

    `pad_width` is one number, `(before, after)`, or one such pair for each axis. `mode` is
    `constant`, `edge`, `reflect`, `symmetric` or `wrap`.
    """
    if mode not in _MODES:
        raise ValueError(f"mode {mode!r} is not supported: one of {', '.join(_MODES)}")
    found = asarray(array)
    widths = _pairs(pad_width, found.ndim, "pad_width")
    if builtins.any(one < 0 for pair in widths for one in pair):
        raise ValueError("index can't contain negative values")
    values = _pairs(constant_values, found.ndim, "constant_values") if mode == "constant" else []
    for axis, (before, after) in enumerate(widths):
        if not (before or after):
            continue
        shape = found.shape
        if mode == "constant":
            first, last = (
                np.full((*shape[:axis], width, *shape[axis + 1 :]), value, found.dtype)
                for width, value in zip((before, after), values[axis], strict=True)
            )
            found = np.concatenate([first, found, last], axis)
        else:
            found = np.take(found, _padding(mode, shape[axis], before, after), axis)
    return found


_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def _pairs(given: Any, count: int, what: str) -> list[tuple[Any, Any]]:
    """A pair for each axis."""
    if isinstance(given, ndarray):
        given = given.tolist()
    if not isinstance(given, (tuple, list)):
        return [(given, given)] * count
    pairs = list(given)
    if len(pairs) == 1:
        pairs = (
            pairs * count if isinstance(pairs[0], (tuple, list)) else [(pairs[0], pairs[0])] * count
        )
    elif not isinstance(pairs[0], (tuple, list)):
        pairs = [tuple(pairs)] * count
    if len(pairs) != count or builtins.any(len(pair) != 2 for pair in pairs):
        raise ValueError(
            f"{what} is {given!r}: a number, a pair, or a pair for each of {count} axes"
        )
    return [(pair[0], pair[1]) for pair in pairs]


def _padding(mode: str, length: int, before: int, after: int) -> ndarray:
    """The places of the elements, those of the padding included."""
    if length == 0:
        raise ValueError(f"can't extend empty axis using modes other than 'constant': {mode!r}")
    places = np.arange(-before, length + after)
    if mode == "edge":
        return np.clip(places, 0, length - 1)
    if mode == "wrap":
        return places % length
    # There and back again. The turning points count once in `reflect`.
    turn = 2 * length - (1 if mode == "symmetric" else 2)
    places = places % builtins.max(turn + (mode == "symmetric"), 1)
    return np.where(places < length, places, turn - places)


def _triangle(m: Any, keeps: Callable[[ndarray, ndarray], ndarray]) -> ndarray:
    found = asarray(m)
    if found.ndim < 2:
        found = np.broadcast_to(found, (found.size, found.size))
    rows, columns = found.shape[-2:]
    kept = keeps(np.arange(rows)[:, None], np.arange(columns))
    return np.where(kept, found, np.zeros((), found.dtype))


def tril(m: Any, k: int = 0) -> ndarray:
    """The elements on a diagonal and under it; 0 elsewhere."""
    return _triangle(m, lambda row, column: column <= row + k)


def triu(m: Any, k: int = 0) -> ndarray:
    """The elements on a diagonal and over it; 0 elsewhere."""
    return _triangle(m, lambda row, column: column >= row + k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """The elements of a diagonal of two axes, along a new last axis."""
    found = asarray(a)
    first, second = np._axes_of([axis1, axis2], found.ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    others = [at for at in range(found.ndim) if at not in (first, second)]
    found = np.permute_dims(found, [*others, first, second])
    *outer, rows, columns = found.shape
    start = offset if offset >= 0 else -offset * columns
    count = (
        builtins.min(rows, columns - offset)
        if offset >= 0
        else builtins.min(rows + offset, columns)
    )
    places = np.arange(builtins.max(count, 0)) * (columns + 1) + start
    return np.take(found.reshape(*outer, rows * columns), places, -1)


def diag(v: Any, k: int = 0) -> ndarray:
    """The diagonal of a matrix, or a matrix with this diagonal."""
    found = asarray(v)
    if found.ndim == 2:
        return diagonal(found, k)
    if found.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    whole = found.size + builtins.abs(k)
    placed = pad(found, (builtins.max(k, 0), builtins.max(-k, 0)))
    kept = np.eye(whole, k=k, dtype=np.bool)
    return np.where(kept, placed, np.zeros((), found.dtype))


def trace(a: Any, offset: int = 0) -> ndarray:
    """The sum of a diagonal of the first two axes."""
    return np.sum(diagonal(a, offset), axis=-1)


# Each element by itself.


def positive(x: Any) -> ndarray:
    """The array itself."""
    return asarray(x)


real = conj = conjugate = positive


def arcsinh(x: Any) -> ndarray:
    """The inverse of `sinh`."""
    x = _float(x)
    far = np.absolute(x)
    near = np.log1p(far + far * far / (1 + np.hypot(far, 1)))
    # Of large numbers the square does not fit.
    return _sign_of(np.where(far < _LARGE, near, np.log(far) + math.log(2)), x)


def arccosh(x: Any) -> ndarray:
    """The inverse of `cosh`."""
    x = _float(x)
    over = x - 1
    near = np.log1p(over + np.sqrt(over) * np.sqrt(over + 2))
    return np.where(x < _LARGE, near, np.log(x) + math.log(2))


#: From here on 1 does not count beside a number's square.
_LARGE = 1e9


def _float(x: Any) -> ndarray:
    """An array of floats. A number takes the dtype of the array that it meets."""
    found = np._operand(x)
    return found if found._op == "number" else found * 1.0


def arctanh(x: Any) -> ndarray:
    """The inverse of `tanh`."""
    x = asarray(x)
    return (np.log1p(x) - np.log1p(-x)) * 0.5


asinh, acosh, atanh = arcsinh, arccosh, arctanh


def cbrt(x: Any) -> ndarray:
    """The third root."""
    x = asarray(x)
    return _sign_of(np.absolute(x) ** (1 / 3), x)


def _sign_of(size: ndarray, x: ndarray) -> ndarray:
    return np.where(x < 0, -size, np.where(x == 0, x, size))


def signbit(x: Any) -> ndarray:
    """Whether the number is under 0, or -0."""
    x = asarray(x)
    return (x < 0) | ((x == 0) & (1 / x < 0))


def copysign(x1: Any, x2: Any) -> ndarray:
    """The size of one with the sign of the other."""
    size = np.absolute(asarray(x1) * 1.0)
    return np.where(signbit(x2), -size, size)


def logaddexp(x1: Any, x2: Any) -> ndarray:
    """The logarithm of the sum of both numbers' powers of e."""
    x1, x2 = _float(x1), _float(x2)
    high, apart = np.maximum(x1, x2), np.absolute(x1 - x2)
    return np.where(x1 == x2, x1 + math.log(2), high + np.log1p(np.exp(-apart)))


def fmax(x1: Any, x2: Any) -> ndarray:
    """The larger one; NaN only if both are."""
    return _other_than_nan(np.maximum, x1, x2)


def fmin(x1: Any, x2: Any) -> ndarray:
    """The smaller one; NaN only if both are."""
    return _other_than_nan(np.minimum, x1, x2)


def _other_than_nan(function: Callable[[Any, Any], ndarray], x1: Any, x2: Any) -> ndarray:
    x1, x2 = np._operand(x1), np._operand(x2)
    return np.where(np.isnan(x1), x2, np.where(np.isnan(x2), x1, function(x1, x2)))


def mean_pool(x: Any, mask: Any) -> ndarray:
    """The means over the tokens of texts that the mask does not leave out.

    `x` is [.., tokens, width], as the last layer of an encoder gives it, and `mask` [.., tokens], 1
    for tokens and 0 for padding. A text without tokens gives 0.
    """
    weights = np.expand_dims(np.astype(mask, np.float32), -1)
    return np.sum(x * weights, axis=-2) / np.maximum(np.sum(weights, axis=-2), 1e-9)


def radians(x: Any) -> ndarray:
    """Of degrees."""
    return asarray(x) * (math.pi / 180)


def degrees(x: Any) -> ndarray:
    """Of radians."""
    return asarray(x) * (180 / math.pi)


deg2rad, rad2deg = radians, degrees


def nan_to_num(
    x: Any, copy: builtins.bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> ndarray:
    """With numbers in place of NaN and the infinities: 0 and the largest ones by default."""
    x = asarray(x)
    if x.dtype.kind != "f":
        return x
    largest = finfo(x.dtype).max
    x = np.where(np.isnan(x), nan, x)
    x = np.where(x == math.inf, largest if posinf is None else posinf, x)
    return np.where(x == -math.inf, -largest if neginf is None else neginf, x)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> ndarray:
    """For each place the choice of the first condition that is true there."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = np.where(condition, choice, found)
    return asarray(found)


# Along axes.


def average(
    a: Any, axis: Any = None, weights: Any = None, keepdims: builtins.bool = False
) -> ndarray:
    """The mean, weighted."""
    a = asarray(a)
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    w = asarray(weights)
    if a.dtype.kind != "f" and w.dtype.kind != "f":
        # Their products may not fit their dtype.
        w = w * 1.0
    if w.shape != a.shape:
        if not isinstance(axis, int) or w.ndim != 1 or w.shape[0] != a.shape[axis]:
            raise ValueError(
                "Shape of weights must be consistent with shape of a along specified axis."
            )
        (along,) = np._axes_of([axis], a.ndim)
        w = w.reshape(*[-1 if at == along else 1 for at in range(a.ndim)])
    total = np.sum(w * np.ones_like(a), axis=axis, keepdims=keepdims)
    return np.sum(a * w, axis=axis, keepdims=keepdims) / total


def ptp(a: Any, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """From the smallest to the largest."""
    a = asarray(a)
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def nansum(a: Any, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """The sum without NaN."""
    a = asarray(a)
    return np.sum(np.where(np.isnan(a), 0, a), axis=axis, keepdims=keepdims)


def nanmean(a: Any, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """The mean without NaN."""
    a = asarray(a)
    count = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims)
    found = nansum(a, axis, keepdims) / count
    return found.astype(a.dtype) if a.dtype.kind == "f" else found


def nanmax(a: Any, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """The largest number; NaN if there is none."""
    return _without_nan(np.max, a, -math.inf, axis, keepdims)


def nanmin(a: Any, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """The smallest number; NaN if there is none."""
    return _without_nan(np.min, a, math.inf, axis, keepdims)


def _without_nan(
    function: Callable[..., ndarray], a: Any, instead: float, axis: Any, keepdims: builtins.bool
) -> ndarray:
    a = asarray(a)
    if a.dtype.kind != "f":
        return function(a, axis=axis, keepdims=keepdims)
    is_nan = np.isnan(a)
    found = function(np.where(is_nan, instead, a), axis=axis, keepdims=keepdims)
    return np.where(np.all(is_nan, axis=axis, keepdims=keepdims), math.nan, found)


def diff(a: Any, n: int = 1, axis: int = -1) -> ndarray:
    """From each element to the next, `n` times."""
    found = asarray(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    (axis,) = np._axes_of([axis], found.ndim)
    around = (slice(None),) * axis
    for _ in range(n):
        after, before = found[(*around, slice(1, None))], found[(*around, slice(None, -1))]
        found = after != before if found.dtype.kind == "b" else after - before
    return found


def logsumexp(a: Any, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    """The logarithm of the sum of the powers of e: `scipy.special.logsumexp`."""
    a = asarray(a) * 1.0
    high = np.max(a, axis=axis, keepdims=True)
    high = np.where(np.isfinite(high), high, 0)
    found = np.log(np.sum(np.exp(a - high), axis=axis, keepdims=True)) + high
    return found if keepdims else np.sum(found, axis=axis)


def log_softmax(a: Any, axis: Any = -1) -> ndarray:
    """The logarithm of `softmax`."""
    a = asarray(a) * 1.0
    return a - logsumexp(a, axis, True)


def relu(x: Any) -> ndarray:
    """0 in place of what is under 0."""
    return np.maximum(x, 0)


def quantile(a: Any, q: Any, axis: int | None = None, keepdims: builtins.bool = False) -> ndarray:
    """What the part `q`, 0 to 1, of the elements is under; between two elements, linear."""
    a = asarray(a)
    if a.dtype.kind == "b":
        raise TypeError("numpy boolean subtract, the `-` operator, is not supported")
    many = isinstance(q, (list, tuple, ndarray))
    parts = asarray(q).tolist() if many else [float(q)]
    if builtins.any(not 0 <= part <= 1 for part in parts):
        raise ValueError("Quantiles must be in the range [0, 1]")
    # As in NumPy, a list is of float64, and a number takes the dtype of the array.
    ordered = np.sort(a.astype(np.float64) if many else a, axis)
    (along,) = (0,) if axis is None else np._axes_of([axis], a.ndim)
    count = ordered.shape[along]
    if count == 0:
        raise IndexError("an array without elements has no quantile")
    # NaN is the last.
    end = np.take(ordered, [count - 1], along)
    found = []
    for part in parts:
        place = part * (count - 1)
        low = builtins.min(math.floor(place), count - 1)
        high = builtins.min(low + 1, count - 1)
        first, second = np.take(ordered, [low], along), np.take(ordered, [high], along)
        share, step = place - low, second * 1.0 - first
        made = first + step * share if share < 0.5 else second - step * (1 - share)
        found.append(np.where(np.isnan(end), math.nan, made))
    shape = [1 if at == along else length for at, length in enumerate(ordered.shape)]
    if axis is None:
        shape = [1] * a.ndim if keepdims else []
    elif not keepdims:
        shape.pop(along)
    if not many:
        return found[0].reshape(shape)
    if not found:
        return np.zeros([0, *shape])
    return np.stack([one.reshape(shape) for one in found])


def percentile(a: Any, q: Any, axis: int | None = None, keepdims: builtins.bool = False) -> ndarray:
    """As `quantile`, with `q` from 0 to 100."""
    if isinstance(q, (list, tuple, ndarray)):
        found = [one / 100 for one in asarray(q).tolist()]
        if builtins.any(not 0 <= one <= 1 for one in found):
            raise ValueError("Percentiles must be in the range [0, 100]")
        return quantile(a, found, axis, keepdims)
    if not 0 <= q <= 100:
        raise ValueError("Percentiles must be in the range [0, 100]")
    return quantile(a, q / 100, axis, keepdims)


# Order and counts.


def partition(a: Any, kth: Any, axis: int | None = -1) -> ndarray:
    """In order, which is one of the orders that NumPy may give."""
    return np.sort(a, axis)


def argpartition(a: Any, kth: Any, axis: int | None = -1) -> ndarray:
    """The places in order, which is one of the orders that NumPy may give."""
    return np.argsort(a, axis)


def isin(
    element: Any,
    test_elements: Any,
    *,
    invert: builtins.bool = False,
    assume_unique: builtins.bool = False,
) -> ndarray:
    """Whether each element is one of the others."""
    a, ordered = asarray(element), np.sort(asarray(test_elements).ravel())
    count = np.searchsorted(ordered, a, "right") - np.searchsorted(ordered, a)
    found = (count > 0) & ~np.isnan(a)
    return ~found if invert else found


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: ndarray
    #: The place of the first one of each value, in the flat array.
    indices: ndarray
    #: For each element, the place of its value.
    inverse_indices: ndarray
    counts: ndarray


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: ndarray
    counts: ndarray


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: ndarray
    inverse_indices: ndarray


def unique_all(x: Any) -> UniqueAll:
    """The different elements in order, their places, and how often each is there."""
    x = asarray(x)
    flat = x.ravel()
    places = np.argsort(flat)
    values = np.unique(flat)
    first = np.searchsorted(np.take(flat, places), values)
    inverse = np.searchsorted(values, flat).reshape(x.shape)
    counts = np._make("unique_counts", (flat,))
    return UniqueAll(values, np.take(places, first), inverse, counts)


def unique_counts(x: Any) -> UniqueCounts:
    """The different elements in order, and how often each is there."""
    return UniqueCounts(*np.unique(x, return_counts=True))


def unique_inverse(x: Any) -> UniqueInverse:
    """The different elements in order, and for each element the place of its value."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def digitize(x: Any, bins: Any, right: builtins.bool = False) -> ndarray:
    """For each number the place of its bin; `bins` rise, or fall."""
    bins = asarray(bins)
    side = "left" if right else "right"
    steps = diff(bins)
    if not np.any(steps < 0):
        return np.searchsorted(bins, x, side)
    if np.any(steps > 0):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return bins.size - np.searchsorted(bins[::-1], x, side)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    """How often each of the numbers from 0 up is there."""
    x = asarray(x)
    if weights is not None:
        raise TypeError(
            "bincount takes no weights: use (np.one_hot(x, n) * weights[:, None]).sum(0)"
        )
    if x.ndim != 1:
        raise ValueError("object too deep for desired array")
    if x.size == 0:
        return np.zeros(minlength, np.int64)
    least, most = int(np.min(x)), int(np.max(x))
    if least < 0:
        raise ValueError("'list' argument must have no negative elements")
    if most > 1 << 24:
        raise ValueError(f"bincount counts numbers up to {1 << 24}, and {most} is there")
    ordered, numbers = np.sort(x), np.arange(builtins.max(most + 1, minlength))
    return np.searchsorted(ordered, numbers, "right") - np.searchsorted(ordered, numbers)


def histogram(a: Any, bins: Any = 10, range: Any = None) -> tuple[ndarray, ndarray]:
    """How many elements are in each bin, and the bins' edges."""
    a = asarray(a).ravel()
    if hasattr(bins, "__index__"):
        if bins.__index__() < 1:
            raise ValueError("`bins` must be positive, when an integer")
        low, high = 0.0, 1.0
        if range is not None:
            low, high = range
        elif a.size:
            low, high = float(np.min(a)), float(np.max(a))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"the range of the bins, {low} to {high}, is not finite")
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
        if low == high:
            low, high = low - 0.5, high + 0.5
        kind = a.dtype if a.dtype.kind == "f" else np.float64
        edges = np.linspace(low, high, bins.__index__() + 1).astype(kind)
    else:
        edges = asarray(bins)
        if np.any(diff(edges) < 0):
            raise ValueError("`bins` must increase monotonically, when an array")
    ordered = np.sort(a.astype(np.float64))
    below = np.searchsorted(ordered, edges.astype(np.float64))
    # The last bin has its upper edge.
    last = np.searchsorted(ordered, edges[-1:].astype(np.float64), "right")
    return np.concatenate([below[1:-1], last]) - below[:-1], edges


def interp(
    x: Any, xp: Any, fp: Any, left: float | None = None, right: float | None = None
) -> ndarray:
    """Between the points `xp` and their values `fp`, linear. `xp` rises."""
    x, xp, fp = (asarray(one).astype(np.float64) for one in (x, xp, fp))
    last = xp.size - 1
    if last < 0:
        raise ValueError("array of sample points is empty")
    if xp.shape != fp.shape:
        raise ValueError("fp and xp are not of the same length.")
    at = np.clip(np.searchsorted(xp, x, "right") - 1, 0, builtins.max(last - 1, 0))
    after = np.minimum(at + 1, last)
    x0, x1, y0, y1 = np.take(xp, at), np.take(xp, after), np.take(fp, at), np.take(fp, after)
    step = (y1 - y0) / (x1 - x0)
    found = np.where(x1 == x0, y0, y0 + step * (x - x0))
    # From the other end, if one is infinite.
    found = np.where(np.isnan(found), y1 + step * (x - x1), found)
    found = np.where(np.isnan(found) & (y0 == y1), y0, found)
    found = np.where(x < xp[0], fp[0] if left is None else left, found)
    found = np.where(x > xp[-1], fp[-1] if right is None else right, found)
    found = np.where(x == xp[-1], fp[-1], found)
    return np.where(np.isnan(x), x, np.where((x == x0) & (x1 != x0), y0, found))


# Products.


def inner(a: Any, b: Any) -> ndarray:
    """The product along the last axis of both."""
    a, b = asarray(a), asarray(b)
    return a * b if 0 in (a.ndim, b.ndim) else tensordot(a, b, ([-1], [-1]))


def vdot(a: Any, b: Any) -> ndarray:
    """The product of both as vectors."""
    return np.matmul(asarray(a).ravel(), asarray(b).ravel())


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> ndarray:
    """The product of vectors along an axis."""
    x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    return np.matmul(x1[..., None, :], x2[..., :, None])[..., 0, 0]


def tensordot(a: Any, b: Any, axes: Any = 2) -> ndarray:
    """The sum of products over axes: so many at the end of one and the beginning of the other."""
    a, b = asarray(a), asarray(b)
    if hasattr(axes, "__index__"):
        count = axes.__index__()
        left, right = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        left, right = (
            np._axes_of(np._ints((given,)), one.ndim)
            for given, one in zip(axes, (a, b), strict=True)
        )
    if len(left) != len(right) or builtins.any(
        a.shape[one] != b.shape[other] for one, other in zip(left, right, strict=True)
    ):
        raise ValueError("shape-mismatch for sum")
    rows = [at for at in range(a.ndim) if at not in left]
    columns = [at for at in range(b.ndim) if at not in right]
    shape = [*(a.shape[at] for at in rows), *(b.shape[at] for at in columns)]
    inside = math.prod(a.shape[at] for at in left)
    first = np.permute_dims(a, [*rows, *left]).reshape(
        math.prod(a.shape[at] for at in rows), inside
    )
    second = np.permute_dims(b, [*right, *columns])
    second = second.reshape(inside, math.prod(b.shape[at] for at in columns))
    return np.matmul(first, second).reshape(shape)


def einsum(subscripts: str, *operands: Any) -> ndarray:
    """Sums of products by the names of axes: `einsum("ij,jk->ik", a, b)`. No ellipsis."""
    text, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = text.split(",")
    if not all(term.isalpha() or term == "" for term in [*terms, result]):
        raise ValueError(f"einsum takes letters, commas and one arrow, not {subscripts!r}")
    if len(terms) != len(operands):
        raise ValueError(f"einsum has {len(terms)} terms and {len(operands)} operands")
    if not arrow:
        letters = "".join(terms)
        result = "".join(sorted(one for one in set(letters) if letters.count(one) == 1))
    if len(set(result)) < len(result) or not set(result) <= set("".join(terms)):
        raise ValueError(f"einsum cannot make {result!r} of {text!r}")
    sizes: dict[str, int] = {}
    todo = [
        _without_doubles(term, asarray(one), sizes)
        for term, one in zip(terms, operands, strict=True)
    ]
    axes, found = todo[0]
    for at, (others, other) in enumerate(todo[1:], 2):
        later = set(result).union(*(names for names, _ in todo[at:]))
        axes, found = _contracted(axes, found, others, other, later)
    axes, found = _summed(axes, found, set(result))
    return np.permute_dims(found, [axes.index(one) for one in result])


def _without_doubles(term: str, a: ndarray, sizes: dict[str, int]) -> tuple[str, ndarray]:
    """The diagonal where a name stands twice."""
    if len(term) != a.ndim:
        raise ValueError(f"einsum has {term!r} for an operand of {a.ndim} dimensions")
    for name, length in zip(term, a.shape, strict=True):
        if sizes.setdefault(name, length) != length:
            raise ValueError(
                f"einsum has the axis {name!r} with {sizes[name]} and {length} elements"
            )
    at = 0
    while at < len(term):
        again = term.find(term[at], at + 1)
        if again < 0:
            at += 1
            continue
        a = diagonal(a, 0, at, again)
        term = term[:at] + term[at + 1 : again] + term[again + 1 :] + term[at]
    return term, a


def _summed(axes: str, a: ndarray, kept: set[str]) -> tuple[str, ndarray]:
    """Summed over the axes that nothing needs."""
    gone = [at for at, name in enumerate(axes) if name not in kept]
    if gone:
        a = np.sum(a, axis=gone, dtype=a.dtype)
    return "".join(name for name in axes if name in kept), a


def _contracted(
    axes: str, a: ndarray, others: str, b: ndarray, kept: set[str]
) -> tuple[str, ndarray]:
    """The product of two operands, summed over what only both have."""
    axes, a = _summed(axes, a, kept | set(others))
    others, b = _summed(others, b, kept | set(axes))
    both = [name for name in axes if name in others]
    outer, inside = [one for one in both if one in kept], [one for one in both if one not in kept]
    rows, columns = (
        [one for one in axes if one not in both],
        [one for one in others if one not in both],
    )
    length = {**dict(zip(axes, a.shape, strict=True)), **dict(zip(others, b.shape, strict=True))}

    def matrix(a: ndarray, axes: str, first: list[str], second: list[str]) -> ndarray:
        order = [axes.index(name) for name in (*outer, *first, *second)]
        flat = [math.prod(length[name] for name in group) for group in (outer, first, second)]
        return np.permute_dims(a, order).reshape(flat)

    made = np.matmul(matrix(a, axes, rows, inside), matrix(b, others, inside, columns))
    names = [*outer, *rows, *columns]
    return "".join(names), made.reshape([length[name] for name in names])


# Dtypes.


class finfo:
    """The limits of a dtype of floats."""

    def __init__(self, type: Any) -> None:
        found = np._dtype(type.dtype if isinstance(type, ndarray) else type)
        if found.name not in _FLOATS:
            raise ValueError(f"data type {found.name!r} not inexact")
        self.dtype = found
        self.bits = 8 * found.itemsize
        exponent, digits = _FLOATS[found.name]
        self.eps = 2.0 ** (1 - digits)
        self.smallest_normal = self.tiny = 2.0 ** (2 - 2**exponent // 2)
        self.max = (2.0 - self.eps) * 2.0 ** (2 ** (exponent - 1) - 1)
        self.min = -self.max


#: The bits of the exponent, and the binary digits.
_FLOATS = {"float16": (5, 11), "bfloat16": (8, 8), "float32": (8, 24), "float64": (11, 53)}


class iinfo:
    """The limits of a dtype of integers."""

    def __init__(self, type: Any) -> None:
        found = np._dtype(type.dtype if isinstance(type, ndarray) else type)
        if found.kind not in "iu":
            raise ValueError(f"Invalid integer data type {found.kind!r}.")
        self.dtype = found
        self.bits = 8 * found.itemsize
        self.min = -(1 << (self.bits - 1)) if found.kind == "i" else 0
        self.max = (1 << (self.bits - (found.kind == "i"))) - 1


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """The dtype of a sum of these."""
    if not arrays_and_dtypes:
        raise ValueError("at least one array or dtype is required")
    plain = (builtins.bool, int, float)
    first, *others = sorted(arrays_and_dtypes, key=lambda one: type(one) in plain)
    found = _sample(first)
    for one in others:
        found = np.where(False, found, one if type(one) in plain else _sample(one))
    return found.dtype


def _sample(given: Any) -> ndarray:
    is_array = isinstance(given, ndarray)
    return (
        np.zeros((), given.dtype)
        if is_array
        else np.zeros((), given)
        if _is_type(given)
        else asarray(given)
    )


def _is_type(given: Any) -> builtins.bool:
    return isinstance(given, (dtype, str, type))


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Whether every value of one dtype is one of the other."""
    return result_type(from_, to) == np._dtype(to)


_KINDS = {
    **{"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu"},
    **{"real floating": "f", "complex floating": "", "numeric": "iuf"},
}


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind, such as `"real floating"`, or is another one."""
    found = np._dtype(dtype)
    if isinstance(kind, tuple):
        return builtins.any(isdtype(found, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"unrecognized data type kind: {kind!r}; one of {', '.join(_KINDS)}")
        return found.kind in _KINDS[kind]
    return found == np._dtype(kind)


__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value)
    and getattr(value, "__module__", None) == __name__
    and not name.startswith("_")
]

"""Arrays with NumPy's names and rules. The host holds their elements and works on them.

    from gristmill_plugin import numpy as np

    boxes = np.asarray(outputs["output0"])[0].T
    scores = boxes[:, 4:].max(axis=1)
    best = boxes[scores > 0.5]

An operation only notes what is to be done. The host does it when the result is read: by `tolist`,
`float`, `shape`, `if`, or in a `Prepared` or a `Response`. So a whole formula costs one call of the
host. A fault names the line of the operation.

Arrays are immutable: `np.where(mask, value, a)` in place of `a[mask] = value`. The guide
`numpy.md` lists the functions and the differences from NumPy.
"""

from __future__ import annotations

import builtins
import math
import sys
from array import array as _packed
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count as _counter
from operator import attrgetter as _getter
from types import CodeType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from .blob import Blob
from .host import Err, arrays, tensors
from .json import encoder_with
from .tensor import _FORMATS, Dtype, Elements, Tensor, encode

pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None

#: Longer lists become a tensor of their own.
_LITERAL_MAX = 256

#: Longer chains of operations are run before they are read.
_DEPTH_MAX = 500

#: Longer programs are run in parts.
_STEPS_MAX = 1000

#: More arrays are joined in groups.
_JOINED_MAX = 500

#: What is read stays in the plugin's memory up to so many bytes.
_KNOWN_MAX = 1 << 10

_encode = encoder_with(None)


class dtype:
    """The type of an array's elements, as `np.float32`. Called, it converts a value.

    `np.dtype("float32")` is `np.float32`.
    """

    __slots__ = ("_host", "itemsize", "kind", "name")

    def __new__(cls, name: Any, *given: Any) -> dtype:
        return super().__new__(cls) if given else _dtype(name)

    def __init__(self, name: Any, *given: Any) -> None:
        if given:
            self._fill(name, *given)

    def _fill(self, name: str, kind: str, itemsize: int, host: Dtype) -> None:
        self.name, self.kind, self.itemsize, self._host = name, kind, itemsize, host

    def __call__(self, value: Any) -> ndarray:
        return asarray(value, self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dtype):
            return self.name == other.name
        return isinstance(other, (str, type)) and other in (self.name, _PLAIN.get(self.name))

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[type[dtype], tuple[str]]:
        # For `copy.deepcopy`: there is one of each.
        return dtype, (self.name,)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"dtype('{self.name}')"


#: Python's types as dtypes.
_PLAIN = {"bool": builtins.bool, "int64": builtins.int, "float64": builtins.float}

bool_ = bool = dtype("bool", "b", 1, Dtype.BOOL)
int8 = dtype("int8", "i", 1, Dtype.INT8)
int16 = dtype("int16", "i", 2, Dtype.INT16)
int32 = dtype("int32", "i", 4, Dtype.INT32)
int64 = dtype("int64", "i", 8, Dtype.INT64)
uint8 = dtype("uint8", "u", 1, Dtype.UINT8)
uint16 = dtype("uint16", "u", 2, Dtype.UINT16)
uint32 = dtype("uint32", "u", 4, Dtype.UINT32)
uint64 = dtype("uint64", "u", 8, Dtype.UINT64)
float16 = dtype("float16", "f", 2, Dtype.FLOAT16)
float32 = dtype("float32", "f", 4, Dtype.FLOAT32)
float64 = dtype("float64", "f", 8, Dtype.FLOAT64)
_bfloat16 = dtype("bfloat16", "f", 2, Dtype.BFLOAT16)
_string = dtype("string", "U", 0, Dtype.STRING)

_BY_NAME = {
    found.name: found
    for found in (
        *(bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
        *(float16, float32, float64, _bfloat16, _string),
    )
}
_ALIASES = {
    **{f"{found.kind}{found.itemsize}": found for found in list(_BY_NAME.values())[:12]},
    **{"float": float64, "double": float64, "single": float32, "half": float16, "int": int64},
}
_BY_HOST = {found._host: found for found in _BY_NAME.values()}
_BY_PLAIN = {plain: _BY_NAME[name] for name, plain in _PLAIN.items()}

_ERRORS: dict[Any, type[Exception]] = {
    arrays.FaultKind.INVALID_VALUE: ValueError,
    arrays.FaultKind.INVALID_INDEX: IndexError,
    arrays.FaultKind.INVALID_TYPE: TypeError,
    arrays.FaultKind.INVALID_PROGRAM: RuntimeError,
}


def _dtype(found: Any) -> dtype:
    if isinstance(found, dtype):
        return found
    if isinstance(found, str):
        # Elements are little-endian.
        known = _BY_NAME.get(found) or _ALIASES.get(found.lstrip("<=|"))
    else:
        known = _BY_HOST.get(found) if isinstance(found, Dtype) else _BY_PLAIN.get(found)
    if known is None:
        raise TypeError(f"{found!r} is not a dtype: one of {', '.join(_BY_NAME)}")
    return known


def _name(found: Any) -> str | None:
    return None if found is None else _dtype(found).name


class ndarray(Elements):
    """An immutable array. `asarray`, `zeros` and the other functions make one."""

    __slots__ = (
        *("_args", "_call", "_depth", "_known", "_line", "_number", "_op", "_params", "_tensor"),
    )

    _op: str | None
    _args: tuple[ndarray, ...]
    _params: tuple[Any, ...]
    #: None until the host has made it.
    _tensor: Tensor | None
    #: The call in which it was noted; 0 while the module is loaded.
    _call: int
    #: What was read of it, if that is little.
    _known: tuple[tuple[int, ...], Dtype, bytes] | None
    #: Counts the arrays that were noted.
    _number: int
    #: The longest chain of operations that is still to be run.
    _depth: int
    #: Where the plugin's code asked for it: its code, and the place of the instruction there.
    _line: tuple[CodeType, int] | None

    # Reading.

    def __hash__(self) -> int:
        if self.shape:
            raise TypeError("an array is no key: a single element is one, as a[0] or a.argmax()")
        return hash(self.item())

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
        return self._made().shape

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        return _BY_HOST[self._made().dtype]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize

    @property
    def T(self) -> ndarray:
        """The dimensions in the opposite order."""
        return _make("permute_dims", (self,), (None,))

    @property
    def mT(self) -> ndarray:
        """The last two dimensions in place of each other."""
        return swapaxes(self, -1, -2)

    @property
    def _handle(self) -> tensors.Tensor:
        return self._made()._handle

    def tensor(self) -> Tensor:
        """The same elements as a `Tensor`."""
        return self._made()

    def tolist(self) -> Any:
        """The elements as nested lists of Python's numbers; a number if there is no dimension."""
        shape, kind, data = self._read()
        values = memoryview(data).cast("B").cast(_format(kind))
        if not shape:
            return values[0]
        if 0 in shape:
            return _empty(shape)
        return memoryview(data).cast("B").cast(_format(kind), shape).tolist()

    def tobytes(self) -> bytes:
        """The elements' bytes, little-endian and row-major."""
        return self._read()[2]

    def item(self, *index: int) -> Any:
        """The element of an array of one, or the one at these indices."""
        if index:
            return self[index].item()
        shape, kind, data = self._read()
        if math.prod(shape) != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return memoryview(data).cast("B").cast(_format(kind))[0]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __round__(self, ndigits: int | None = None) -> Any:
        return int(self.round()) if ndigits is None else self.round(ndigits)

    def __index__(self) -> int:
        value = self.item()
        if not isinstance(value, int):
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return value

    def __bool__(self) -> builtins.bool:
        if self._tensor is not None and self.size != 1:
            raise ValueError(_TRUTH)
        try:
            return builtins.bool(self.item())
        except ValueError as error:
            if "size 1" in str(error):
                raise ValueError(_TRUTH) from None
            raise

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if self.ndim < 2:
            return iter(self.tolist())
        return (self[at] for at in range(self.shape[0]))

    def __contains__(self, value: Any) -> builtins.bool:
        return builtins.bool((self == value).any())

    def __repr__(self) -> str:
        return f"array({self.tolist()}, dtype={self.dtype})"

    def __str__(self) -> str:
        return str(self.tolist())

    def __format__(self, spec: str) -> str:
        return format(self.tolist(), spec)

    # Elements and parts.

    def __getitem__(self, index: Any) -> ndarray:
        parts: list[Any] = []
        args = [self]
        for part in index if isinstance(index, tuple) else (index,):
            if part is None:
                parts.append(None)
            elif part is Ellipsis:
                parts.append("...")
            elif isinstance(part, slice):
                parts.append([_end(part.start), _end(part.stop), _end(part.step)])
            elif isinstance(part, (ndarray, Tensor, list, range, builtins.bool)):
                parts.append("array")
                args.append(_indices(part))
            elif hasattr(part, "__index__"):
                parts.append(part.__index__())
            else:
                raise IndexError(f"{part!r} is no index: use integers, slices, None, lists, arrays")
        return _make("index", tuple(args), (parts,))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("arrays are immutable: use np.where(mask, value, a), or np.concatenate")

    def astype(self, dtype: Any, *, copy: builtins.bool = True) -> ndarray:
        """The same values in another dtype, as `Tensor.cast`. `copy` means nothing here."""
        return _make("astype", (self,), (_name(dtype),))

    def reshape(self, *shape: Any) -> ndarray:
        """Another shape of as many elements. One dimension may be -1."""
        return _make("reshape", (self,), (_ints(shape),))

    def transpose(self, *axes: Any) -> ndarray:
        """The dimensions in another order."""
        return permute_dims(self, _ints(axes) if axes else None)

    def ravel(self) -> ndarray:
        """All elements along one dimension."""
        return self.reshape(-1)

    flatten = ravel

    def copy(self) -> ndarray:
        """The array itself, since it is immutable."""
        return self

    def squeeze(self, axis: Any = None) -> ndarray:
        """Without the dimensions of length 1."""
        return squeeze(self, axis)

    def swapaxes(self, first: int, second: int) -> ndarray:
        """Two dimensions in place of each other."""
        return swapaxes(self, first, second)

    def clip(self, min: Any = None, max: Any = None) -> ndarray:
        """No less than `min`, no more than `max`."""
        return clip(self, min, max)

    def round(self, decimals: int = 0) -> ndarray:
        """To so many decimals; a half goes to the even digit."""
        return round(self, decimals)

    def dot(self, other: Any) -> ndarray:
        """The product of matrices."""
        return matmul(self, other)

    def take(self, indices: Any, axis: int | None = None) -> ndarray:
        """The elements at these indices along an axis."""
        return take(self, indices, axis)

    def nonzero(self) -> tuple[ndarray, ...]:
        """The places of the elements that are not 0, one array for each dimension."""
        return nonzero(self)

    def repeat(self, repeats: int, axis: int | None = None) -> ndarray:
        """Each element so many times."""
        return repeat(self, repeats, axis)

    def sort(self, axis: int = -1) -> None:
        """Refused: arrays are immutable."""
        raise TypeError("arrays are immutable: use a = np.sort(a)")

    def argsort(
        self, axis: int | None = -1, kind: Any = None, *, descending: builtins.bool = False
    ) -> ndarray:
        """The places of the elements in sorted order; equal ones stay in their order."""
        return argsort(self, axis, kind, descending=descending)

    if TYPE_CHECKING:
        # For editors and type checkers: these are made below, by table.
        def __add__(self, other: Any) -> ndarray: ...
        def __radd__(self, other: Any) -> ndarray: ...
        def __sub__(self, other: Any) -> ndarray: ...
        def __rsub__(self, other: Any) -> ndarray: ...
        def __mul__(self, other: Any) -> ndarray: ...
        def __rmul__(self, other: Any) -> ndarray: ...
        def __truediv__(self, other: Any) -> ndarray: ...
        def __rtruediv__(self, other: Any) -> ndarray: ...
        def __floordiv__(self, other: Any) -> ndarray: ...
        def __rfloordiv__(self, other: Any) -> ndarray: ...
        def __mod__(self, other: Any) -> ndarray: ...
        def __rmod__(self, other: Any) -> ndarray: ...
        def __pow__(self, other: Any) -> ndarray: ...
        def __rpow__(self, other: Any) -> ndarray: ...
        def __and__(self, other: Any) -> ndarray: ...
        def __rand__(self, other: Any) -> ndarray: ...
        def __or__(self, other: Any) -> ndarray: ...
        def __ror__(self, other: Any) -> ndarray: ...
        def __xor__(self, other: Any) -> ndarray: ...
        def __rxor__(self, other: Any) -> ndarray: ...
        def __lshift__(self, other: Any) -> ndarray: ...
        def __rlshift__(self, other: Any) -> ndarray: ...
        def __rshift__(self, other: Any) -> ndarray: ...
        def __rrshift__(self, other: Any) -> ndarray: ...
        def __matmul__(self, other: Any) -> ndarray: ...
        def __rmatmul__(self, other: Any) -> ndarray: ...
        def __imatmul__(self, other: Any) -> ndarray: ...
        def __lt__(self, other: Any) -> ndarray: ...
        def __le__(self, other: Any) -> ndarray: ...
        def __gt__(self, other: Any) -> ndarray: ...
        def __ge__(self, other: Any) -> ndarray: ...
        def __eq__(self, other: object) -> ndarray: ...  # type: ignore[override]
        def __ne__(self, other: object) -> ndarray: ...  # type: ignore[override]
        def __neg__(self) -> ndarray: ...
        def __pos__(self) -> ndarray: ...
        def __abs__(self) -> ndarray: ...
        def __invert__(self) -> ndarray: ...
        def max(self, axis: Any = None, keepdims: builtins.bool = False) -> ndarray: ...
        def min(self, axis: Any = None, keepdims: builtins.bool = False) -> ndarray: ...
        def any(self, axis: Any = None, keepdims: builtins.bool = False) -> ndarray: ...
        def all(self, axis: Any = None, keepdims: builtins.bool = False) -> ndarray: ...
        def argmax(self, axis: Any = None, keepdims: builtins.bool = False) -> ndarray: ...
        def argmin(self, axis: Any = None, keepdims: builtins.bool = False) -> ndarray: ...
        def count_nonzero(self, axis: Any = None, keepdims: builtins.bool = False) -> ndarray: ...
        def sum(
            self, axis: Any = None, dtype: Any = None, *, keepdims: builtins.bool = False
        ) -> ndarray: ...
        def prod(
            self, axis: Any = None, dtype: Any = None, *, keepdims: builtins.bool = False
        ) -> ndarray: ...
        def mean(
            self, axis: Any = None, dtype: Any = None, *, keepdims: builtins.bool = False
        ) -> ndarray: ...
        def var(
            self, axis: Any = None, ddof: float = 0, keepdims: builtins.bool = False
        ) -> ndarray: ...
        def std(
            self, axis: Any = None, ddof: float = 0, keepdims: builtins.bool = False
        ) -> ndarray: ...
        def cumsum(self, axis: int | None = None) -> ndarray: ...
        def cumprod(self, axis: int | None = None) -> ndarray: ...

    # The host makes it.

    def _made(self) -> Tensor:
        tensor = self._tensor
        return tensor if tensor is not None else _run(self)

    def _read(self) -> tuple[tuple[int, ...], Dtype, bytes]:
        if self._known is not None:
            return self._known
        order = _order(self)
        if self._tensor is None:
            if len(order) <= _STEPS_MAX and not _live(order, self):
                inputs, numbers, steps, text = _program(order)
                try:
                    found = arrays.read(inputs, text, numbers[id(self)])
                except Err as error:
                    raise _error(error, steps) from None
                read = tuple(found.shape), found.dtype, found.data
                if len(found.data) <= _KNOWN_MAX:
                    self._known = read
                return read
            _run(self)
        tensor = self._tensor
        assert tensor is not None
        return tensor.shape, tensor.dtype, tensor.tobytes()


_TRUTH = "the truth of an array of several elements is ambiguous: use a.any() or a.all()"


def _format(kind: Dtype) -> str:
    format = _FORMATS.get(kind._name_)
    if format is None:
        raise TypeError(f"the elements of {kind.name} cannot be read: use astype(np.float32)")
    return format


def _empty(shape: tuple[int, ...]) -> list[Any]:
    return [] if shape[0] == 0 else [_empty(shape[1:]) for _ in range(shape[0])]


def _end(end: Any) -> int | None:
    return None if end is None else end.__index__()


def _indices(part: Any) -> ndarray:
    found = asarray(part)
    # An empty list has no integers, and NumPy takes it for a list of indices.
    return found.astype(int64) if isinstance(part, list) and not part else found


def _ints(given: tuple[Any, ...]) -> list[int]:
    if len(given) == 1 and not hasattr(given[0], "__index__"):
        given = tuple(given[0])
    return [int.__index__() for int in given]


def _axis(axis: Any) -> Any:
    if axis is None or type(axis) is int:
        return axis
    return list(axis) if isinstance(axis, (tuple, list)) else axis.__index__()


# Noting operations.

_next_number = _counter().__next__
_number_of = _getter("_number")


def _make(op: str, args: tuple[ndarray, ...], params: tuple[Any, ...] = ()) -> ndarray:
    # As `_new` does; each operation would take one more call.
    made = ndarray.__new__(ndarray)
    made._op, made._args, made._params = op, args, params
    made._tensor = made._known = None
    made._call, made._number = _call, _next_number()
    frame = sys._getframe(1)
    while (code := frame.f_code).co_filename in _FILES and frame.f_back is not None:
        frame = frame.f_back
    made._line = (code, frame.f_lasti)
    depth = 1
    for arg in args:
        if arg._depth >= depth:
            depth = arg._depth + 1
    made._depth = depth
    if depth > _DEPTH_MAX:
        _run(made)
    return made


#: The files of this module: a fault names the line of the plugin's code.
_FILES = {_make.__code__.co_filename}


def _new(
    op: str | None, args: tuple[ndarray, ...], params: tuple[Any, ...], tensor: Tensor | None = None
) -> ndarray:
    made = ndarray.__new__(ndarray)
    made._op, made._args, made._params = op, args, params
    made._tensor, made._known = tensor, None
    made._line, made._depth, made._call, made._number = None, 0, _call, _next_number()
    return made


def _held(tensor: Tensor) -> ndarray:
    return _new(None, (), (), tensor)


def _number(value: Any) -> ndarray:
    return _new("number", (), (_plain(value),))


def _of_bytes(shape: list[int], kind: Dtype, data: bytes) -> ndarray:
    """An array that becomes a tensor when it is needed: the module cannot make one."""
    return _new("bytes", (), (shape, kind, data))


#: The call that runs: arrays of the module, and those of earlier calls, outlive it.
_call = 0

#: Such arrays that the host has made for this call, and what they were before.
_lent: list[tuple[ndarray, Any, tuple[ndarray, ...], tuple[Any, ...], int]] = []


def begin_call() -> None:
    """For the SDK: a call begins."""
    global _call
    _call += 1


def end_call() -> None:
    """For the SDK: a call has ended. Then no array of the module keeps a tensor of it.

    An instance that keeps one serves no further call.
    """
    for one, op, args, params, depth in _lent:
        one._op, one._args, one._params, one._depth, one._tensor = op, args, params, depth, None
    _lent.clear()


def _keep(one: ndarray, tensor: Tensor) -> None:
    """The host has made it."""
    if one._call != _call:
        _lent.append((one, one._op, one._args, one._params, one._depth))
    one._tensor, one._op, one._args, one._params, one._depth = tensor, None, (), (), 0


def _plain(value: Any) -> Any:
    """A number as the program has it."""
    if isinstance(value, (ndarray, Tensor)):
        value = asarray(value).item()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise OverflowError(f"{value} is too large: integers have 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    return value


def _operand(value: Any) -> ndarray:
    if isinstance(value, ndarray):
        return value
    if isinstance(value, (builtins.bool, int, float)):
        return _number(value)
    return asarray(value)


def _order(*last: ndarray) -> list[ndarray]:
    """The arrays that are to be made for these, and they, each after those that it is made of."""
    order: list[ndarray] = []
    seen: set[int] = set()
    todo = list(last)
    while todo:
        one = todo.pop()
        if one._tensor is not None or id(one) in seen:
            continue
        if one._op == "bytes":
            _keep(one, Tensor.from_bytes(*one._params))
            continue
        seen.add(id(one))
        order.append(one)
        todo += one._args
    # An array is noted after those that it is made of.
    order.sort(key=_number_of)
    return order


def _live(order: list[ndarray], last: ndarray) -> list[ndarray]:
    """The arrays to which the plugin's code still refers."""
    uses: dict[int, int] = {}
    for one in order:
        for arg in one._args:
            uses[id(arg)] = uses.get(id(arg), 0) + 1
            # No reference of this function is to be counted.
            del arg
    live = []
    for one in order:
        # What outlives the call is made again in each.
        waits = one._op != "number" and one is not last and one._call == _call
        if waits and sys.getrefcount(one) - uses.get(id(one), 0) > _OWN_REFERENCES:
            live.append(one)
    return live


#: How many references `_live` counts to an array to which the plugin's code does not refer.
_OWN_REFERENCES = 3


def _program(
    pending: list[ndarray],
) -> tuple[list[tensors.Tensor], dict[int, int], list[ndarray], str]:
    """The tensors, the numbers of the arrays, those that are made, and the program's text."""
    found = {id(one) for one in pending}
    given: list[ndarray] = []
    made: list[ndarray] = []
    for one in pending:
        for arg in one._args:
            if id(arg) not in found:
                found.add(id(arg))
                # Numbers are written again in each part of a long program.
                (made if arg._tensor is None else given).append(arg)
    made += pending
    numbers = {id(one): at for at, one in enumerate(given + made)}
    steps = []
    for one in made:
        operands = [numbers[id(arg)] for arg in one._args]
        # To write most parameters takes less time than to ask the encoder to.
        params = one._params
        if not params:
            text = "[]"
        elif len(params) == 1 and params[0] is None:
            text = "[null]"
        else:
            text = _encode(params)
        steps.append(f'["{one._op}",{operands},{text}]')
    return [one._handle for one in given], numbers, made, f"[{','.join(steps)}]"


def _run(last: ndarray) -> Tensor:
    """Let the host make an array, and those on the way that the plugin may still read."""
    order = _order(last)
    if last._tensor is not None:
        return last._tensor
    live = {id(one) for one in _live(order, last)}
    # Long programs are run in parts. A part keeps what a later one reads.
    while len(order) > _STEPS_MAX:
        part, order = order[:_STEPS_MAX], order[_STEPS_MAX:]
        read = {id(arg) for one in order for arg in one._args} | live
        _evaluate(part, [one for one in part if id(one) in read and one._op != "number"])
    _evaluate(order, [*(one for one in order[:-1] if id(one) in live), last])
    assert last._tensor is not None
    return last._tensor


def make_together(found: Collection[object], keeps_others: builtins.bool = False) -> None:
    """For the SDK: let the host make those of these that are arrays, by one program.

    `keeps_others` keeps also those on the way that the plugin may still read. Without it these are
    what the call gives back.
    """
    last = [one for one in found if type(one) is ndarray]
    if not last:
        return
    order = _order(*last)
    # Longer ones are made one by one.
    if 0 < len(order) <= _STEPS_MAX:
        if keeps_others:
            last = [*_live(order, order[-1]), *last]
        wanted = {id(one): one for one in last if one._tensor is None}
        _evaluate(order, list(wanted.values()))


def _evaluate(pending: list[ndarray], wanted: list[ndarray]) -> None:
    inputs, numbers, steps, text = _program(pending)
    try:
        found = arrays.evaluate(inputs, text, [numbers[id(one)] for one in wanted])
    except Err as error:
        raise _error(error, steps) from None
    for one, made in zip(wanted, found, strict=True):
        tensor = Tensor(made.tensor)
        tensor._dtype, tensor._shape = made.dtype, tuple(made.shape)
        _keep(one, tensor)


def _error(error: Err[arrays.Fault], steps: list[ndarray]) -> Exception:
    """The host's fault, with the line of the operation."""
    fault = error.value
    line = steps[fault.step]._line if fault.step < len(steps) else None
    if line is None:
        return _ERRORS[fault.kind](fault.message)
    code, place = line
    lines = (line for start, end, line in code.co_lines() if start <= place < end)
    number = next(lines, None) or code.co_firstlineno
    where = f"{code.co_filename.rpartition('/')[2]}, line {number}, in {code.co_name}"
    raised: Any = _ERRORS[fault.kind](f"{fault.message} ({where})")
    raised.operation_place = (code.co_filename, number)
    return raised


# Making arrays.


def asarray(value: Any, dtype: Any = None) -> ndarray:
    """An array of a tensor, a number, nested lists, or a buffer as `array.array`."""
    if isinstance(value, ndarray):
        found = value
    elif isinstance(value, Tensor):
        found = _held(value)
    else:
        return _of_values(value, dtype)
    return found if dtype is None else found.astype(dtype)


def array(value: Any, dtype: Any = None, *, copy: Any = True, ndmin: int = 0) -> ndarray:
    """As `asarray`, with so many dimensions at least. `copy` means nothing here."""
    found = asarray(value, dtype)
    # To know its dimensions, the host has to make it.
    return found[(None,) * (ndmin - found.ndim)] if ndmin and ndmin > found.ndim else found


ascontiguousarray = asarray


def _of_values(value: Any, dtype: Any) -> ndarray:
    if isinstance(value, (_packed, memoryview, bytes, bytearray)):
        view = memoryview(value)
        known = [name for name, format in _FORMATS.items() if format == view.format]
        # `l` and `L` are of 4 or 8 bytes.
        size = view.itemsize
        known = known or {"l": [f"INT{size * 8}"], "L": [f"UINT{size * 8}"]}.get(view.format, [])
        if not known:
            raise TypeError(f"a buffer of format {view.format!r} is not an array")
        shape = view.shape or ()
        found = _of_bytes(list(shape), Dtype[known[0]], view.tobytes())
        return found if dtype is None else found.astype(dtype)
    flat: list[Any] = []
    shape: list[int] = []
    if isinstance(value, (range, tuple)):
        value = list(value)
    _flatten(value, shape, flat, 0)
    if builtins.any(isinstance(one, (ndarray, Tensor)) for one in flat):
        found = stack([asarray(one) for one in flat])
        if len(shape) > 1:
            found = found.reshape(*shape, *found.shape[1:])
        return found if dtype is None else found.astype(dtype)
    kinds = {type(one) for one in flat}
    if not kinds <= {builtins.bool, int, float}:
        wrong = next(one for one in flat if type(one) not in (builtins.bool, int, float))
        raise TypeError(f"an array of {type(wrong).__name__}: numbers only, got {wrong!r}")
    if float in kinds or not kinds:
        own = float64
    elif int in kinds:
        own = uint64 if flat and builtins.max(flat) >= 2**63 else int64
    else:
        own = bool
    made = own if dtype is None else _dtype(dtype)
    if len(flat) <= _LITERAL_MAX:
        return _make("literal", (), (made.name, shape, [_plain(one) for one in flat]))
    format = _FORMATS.get(made._host._name_)
    if format is None or (own.kind == "f" and made.kind != "f"):
        return _of_bytes(shape, own._host, encode(own._host, flat)).astype(made)
    try:
        return _of_bytes(shape, made._host, encode(made._host, flat))
    except OverflowError as error:
        raise OverflowError(f"a value is out of bounds for {made}: {error}") from None


def _flatten(value: Any, shape: list[int], flat: list[Any], depth: int) -> None:
    if not isinstance(value, (list, tuple)):
        if depth != len(shape):
            raise ValueError(f"lists of different depths: {value!r} stands beside lists")
        flat.append(value)
        return
    if depth == len(shape):
        if flat:
            raise ValueError("lists of different depths: a list stands beside numbers")
        shape.append(len(value))
    elif shape[depth] != len(value):
        raise ValueError(f"lists of different lengths: {len(value)} after {shape[depth]}")
    for one in value:
        _flatten(one, shape, flat, depth + 1)


def frombuffer(buffer: Any, dtype: Any = float64, count: int = -1, offset: int = 0) -> ndarray:
    """An array of one dimension of the bytes of a buffer, or of a `Blob`, which stay there."""
    kind = _dtype(dtype)
    is_blob = isinstance(buffer, Blob)
    data = buffer if is_blob else memoryview(buffer).cast("B")
    found = len(data)
    length = builtins.max(found - offset, 0)
    if count >= 0:
        length = builtins.min(length, count * kind.itemsize)
    if length % kind.itemsize:
        raise ValueError("buffer size must be a multiple of element size")
    shape = [length // kind.itemsize]
    if not is_blob:
        return _of_bytes(shape, kind._host, data[offset : offset + length].tobytes())
    part = data if length == found else data.slice(offset, length)
    return _held(Tensor.from_bytes(shape, kind._host, part))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> ndarray:
    """An array of one value."""
    if isinstance(fill_value, ndarray):
        fill_value = fill_value.item()
    return _make("full", (), (_plain(fill_value), _ints((shape,)), _name(dtype)))


def zeros(shape: Any, dtype: Any = float64) -> ndarray:
    """An array of zeros."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = float64) -> ndarray:
    """An array of ones."""
    return full(shape, 1, dtype)


empty = zeros


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> ndarray:
    """An array of one value, of the shape of another."""
    a = asarray(a)
    return full(a.shape, fill_value, a.dtype if dtype is None else dtype)


def zeros_like(a: Any, dtype: Any = None) -> ndarray:
    """An array of zeros, of the shape of another."""
    return full_like(a, 0, dtype)


def ones_like(a: Any, dtype: Any = None) -> ndarray:
    """An array of ones, of the shape of another."""
    return full_like(a, 1, dtype)


empty_like = zeros_like


def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None) -> ndarray:
    """Numbers from `start` up to, not including, `stop`."""
    first, last = (0, start) if stop is None else (start, stop)
    return _make("arange", (), (_plain(first), _plain(last), _plain(step), _name(dtype)))


def linspace(
    start: float, stop: float, num: int = 50, endpoint: builtins.bool = True, dtype: Any = None
) -> ndarray:
    """`num` numbers at equal distances."""
    params = (_plain(start), _plain(stop), num.__index__(), endpoint, _name(dtype))
    return _make("linspace", (), params)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float64) -> ndarray:
    """Ones on a diagonal, zeros elsewhere."""
    return _make("eye", (), (N, M, k, _name(dtype)))


def identity(n: int, dtype: Any = float64) -> ndarray:
    """The square matrix with ones on its diagonal."""
    return eye(n, dtype=dtype)


# Each element by itself.


def _unary(op: str) -> Callable[[Any], ndarray]:
    def function(x: Any) -> ndarray:
        return _make(op, (asarray(x),))

    function.__name__ = function.__qualname__ = op
    return function


def _binary(op: str) -> Callable[[Any, Any], ndarray]:
    def function(x1: Any, x2: Any) -> ndarray:
        return _make(op, (_operand(x1), _operand(x2)))

    function.__name__ = function.__qualname__ = op
    return function


negative, sign, square = _unary("negative"), _unary("sign"), _unary("square")
absolute = abs = fabs = _unary("absolute")
floor, ceil, trunc, rint = _unary("floor"), _unary("ceil"), _unary("trunc"), _unary("rint")
isnan, isinf, isfinite = _unary("isnan"), _unary("isinf"), _unary("isfinite")
logical_not, invert = _unary("logical_not"), _unary("invert")
bitwise_not = bitwise_invert = invert
exp, exp2, expm1 = _unary("exp"), _unary("exp2"), _unary("expm1")
log, log2, log10, log1p = _unary("log"), _unary("log2"), _unary("log10"), _unary("log1p")
sqrt, reciprocal, sigmoid = _unary("sqrt"), _unary("reciprocal"), _unary("sigmoid")
sin, cos, tan = _unary("sin"), _unary("cos"), _unary("tan")
arcsin = asin = _unary("arcsin")
arccos = acos = _unary("arccos")
arctan = atan = _unary("arctan")
sinh, cosh, tanh = _unary("sinh"), _unary("cosh"), _unary("tanh")

add, subtract, multiply = _binary("add"), _binary("subtract"), _binary("multiply")
divide = true_divide = _binary("divide")
floor_divide = _binary("floor_divide")
remainder = mod = _binary("remainder")
power = pow = _binary("power")
minimum, maximum, hypot = _binary("minimum"), _binary("maximum"), _binary("hypot")
arctan2 = atan2 = _binary("arctan2")
equal, not_equal, less = _binary("equal"), _binary("not_equal"), _binary("less")
less_equal, greater = _binary("less_equal"), _binary("greater")
greater_equal = _binary("greater_equal")
logical_and, logical_or = _binary("logical_and"), _binary("logical_or")
logical_xor = _binary("logical_xor")
bitwise_and, bitwise_or, bitwise_xor = (
    _binary("bitwise_and"),
    _binary("bitwise_or"),
    _binary("bitwise_xor"),
)
left_shift = bitwise_left_shift = _binary("left_shift")
right_shift = bitwise_right_shift = _binary("right_shift")


#: The kinds of dtypes. One takes those before it in place.
_KINDS = "buif"


def _in_place(function: Callable[[Any, Any], ndarray]) -> Callable[[ndarray, Any], ndarray]:
    """`a += b`: another array, which has the dtype of `a` if `b` is an array, as in NumPy."""

    def operate(a: ndarray, b: Any) -> ndarray:
        made = function(a, b)
        # To know the dtypes, the host has to make both. A number leaves the usual array's as it is.
        if isinstance(b, (builtins.bool, int, float)):
            return made
        given, own = made.dtype, a.dtype
        if given == own:
            return made
        if _KINDS.index(given.kind) > _KINDS.index(own.kind):
            raise TypeError(
                f"an array of {own} cannot take {given} in place: use astype, or a = a + b"
            )
        return made.astype(own)

    return operate


def _operators() -> None:
    both = {
        **{"add": add, "sub": subtract, "mul": multiply, "truediv": divide},
        **{"floordiv": floor_divide, "mod": remainder, "pow": power},
        **{"and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor},
        **{"lshift": left_shift, "rshift": right_shift},
    }
    compared = {
        **{"eq": equal, "ne": not_equal, "lt": less, "le": less_equal},
        **{"gt": greater, "ge": greater_equal},
    }
    for name, function in both.items():
        setattr(ndarray, f"__{name}__", lambda a, b, f=function: f(a, b))
        setattr(ndarray, f"__r{name}__", lambda a, b, f=function: f(b, a))
        setattr(ndarray, f"__i{name}__", _in_place(function))
    for name, function in compared.items():
        # Anything else is not equal.
        setattr(
            ndarray,
            f"__{name}__",
            lambda a, b, f=function: NotImplemented if b is None or type(b) is str else f(a, b),
        )
    for name, single in {"neg": negative, "abs": absolute, "invert": invert}.items():
        setattr(ndarray, f"__{name}__", lambda a, f=single: f(a))
    ndarray.__pos__ = lambda a: a
    ndarray.__matmul__ = lambda a, b: matmul(a, b)
    ndarray.__rmatmul__ = lambda a, b: matmul(b, a)
    ndarray.__imatmul__ = _in_place(ndarray.__matmul__)


_operators()


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`x` where the condition is true, `y` elsewhere. Without them, as `nonzero`."""
    if x is None and y is None:
        return nonzero(condition)
    return _make("where", (asarray(condition), _operand(x), _operand(y)))


def clip(a: Any, min: Any = None, max: Any = None) -> ndarray:
    """No less than `min`, no more than `max`."""
    found = asarray(a)
    if min is not None:
        found = maximum(found, min)
    return found if max is None else minimum(found, max)


def round(a: Any, decimals: int = 0) -> ndarray:
    """To so many decimals; a half goes to the even digit."""
    return _make("round", (asarray(a),), (decimals,))


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> ndarray:
    """Whether each pair is nearly equal."""
    a, b = asarray(a), asarray(b)
    is_near = absolute(a - b.astype(float64)) <= atol + rtol * absolute(b)
    return (is_near & isfinite(b)) | (a == b)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> builtins.bool:
    """Whether all pairs are nearly equal."""
    return builtins.bool(isclose(a, b, rtol, atol).all())


def array_equal(a: Any, b: Any) -> builtins.bool:
    """Whether both have the same shape and elements."""
    a, b = asarray(a), asarray(b)
    return a.shape == b.shape and builtins.bool((a == b).all())


# Along axes.


def _reduction(op: str) -> Callable[..., ndarray]:
    def function(a: Any, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
        return _make(op, (asarray(a),), (_axis(axis), keepdims))

    function.__name__ = function.__qualname__ = op
    setattr(ndarray, op, function)
    return function


def _sum(op: str) -> Callable[..., ndarray]:
    def function(
        a: Any, axis: Any = None, dtype: Any = None, *, keepdims: builtins.bool = False
    ) -> ndarray:
        made = _make(op, (asarray(a, dtype),), (_axis(axis), keepdims))
        return made if dtype is None else made.astype(dtype)

    function.__name__ = function.__qualname__ = op
    setattr(ndarray, op, function)
    return function


sum, prod, mean = _sum("sum"), _sum("prod"), _sum("mean")
max, min = _reduction("max"), _reduction("min")
amax, amin = max, min
any, all = _reduction("any"), _reduction("all")
argmax, argmin = _reduction("argmax"), _reduction("argmin")
count_nonzero = _reduction("count_nonzero")


def _deviation(op: str) -> Callable[..., ndarray]:
    def function(
        a: Any, axis: Any = None, ddof: float = 0, keepdims: builtins.bool = False
    ) -> ndarray:
        return _make(op, (asarray(a),), (_axis(axis), keepdims, ddof))

    function.__name__ = function.__qualname__ = op
    setattr(ndarray, op, function)
    return function


var, std = _deviation("var"), _deviation("std")


def cumsum(a: Any, axis: int | None = None) -> ndarray:
    """The sums of all elements up to each."""
    return _make("cumulative_sum", (asarray(a),), (_axis(axis),))


def cumprod(a: Any, axis: int | None = None) -> ndarray:
    """The products of all elements up to each."""
    return _make("cumulative_prod", (asarray(a),), (_axis(axis),))


cumulative_sum, cumulative_prod = cumsum, cumprod
ndarray.cumsum = cumsum
ndarray.cumprod = cumprod


def softmax(a: Any, axis: Any = -1) -> ndarray:
    """1, divided among the elements along an axis by their powers of e."""
    return _make("softmax", (asarray(a),), (_axis(axis),))


def normalize(a: Any, axis: Any = -1) -> ndarray:
    """Divided by the Euclidean length along an axis. What has length 0 stays as it is."""
    return _make("normalize", (asarray(a),), (_axis(axis),))


def median(a: Any, axis: int | None = None) -> ndarray:
    """The middle of the sorted elements, or the mean of the two in the middle."""
    ordered = sort(a, axis)
    along = -1 if axis is None else axis
    count = ordered.shape[along]
    middle = mean(take(ordered, [(count - 1) // 2, count // 2], along), axis=along)
    # NaN is the last.
    return where(isnan(take(ordered, count - 1, along)), nan, middle)


# Order.


def sort(
    a: Any, axis: int | None = -1, kind: Any = None, *, descending: builtins.bool = False
) -> ndarray:
    """The elements in order along an axis; NaN comes last."""
    return _make("sort", (asarray(a),), (_axis(axis), descending))


def argsort(
    a: Any, axis: int | None = -1, kind: Any = None, *, descending: builtins.bool = False
) -> ndarray:
    """The places of the elements in sorted order; equal ones stay in their order."""
    return _make("argsort", (asarray(a),), (_axis(axis), descending))


def top_k(a: Any, k: int, axis: int = -1) -> tuple[ndarray, ndarray]:
    """The `k` largest elements along an axis, largest first, and their places."""
    found = asarray(a)
    places = _make("argtopk", (found,), (_axis(axis), k))
    return take_along_axis(found, places, axis), places


def unique(
    a: Any,
    return_index: builtins.bool = False,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
) -> Any:
    """The different elements in order, and what else is asked for, as NumPy gives it."""
    found = asarray(a)
    if not (return_index or return_inverse):
        values = _make("unique_values", (found,))
        return (values, _make("unique_counts", (found,))) if return_counts else values
    values, indices, inverse, counts = unique_all(found)
    more = ((return_index, indices), (return_inverse, inverse), (return_counts, counts))
    return (values, *(one for wanted, one in more if wanted))


unique_values = unique


def searchsorted(a: Any, v: Any, side: str = "left") -> ndarray:
    """Where in a sorted array each value would be put in."""
    op = "searchsorted_right" if side == "right" else "searchsorted"
    return _make(op, (asarray(a), asarray(v)))


def nonzero(a: Any) -> tuple[ndarray, ...]:
    """The places of the elements that are not 0, one array for each dimension."""
    found = _make("nonzero", (asarray(a),))
    return tuple(found[axis] for axis in range(found.shape[0]))


def flatnonzero(a: Any) -> ndarray:
    """The places of the elements that are not 0, in the flat array."""
    return _make("nonzero", (asarray(a).ravel(),))[0]


def argwhere(a: Any) -> ndarray:
    """The places of the elements that are not 0, one row for each."""
    return _make("nonzero", (asarray(a),)).T


# Places and shapes.


def take(a: Any, indices: Any, axis: int | None = None) -> ndarray:
    """The elements at these indices along an axis; without one, of the flat array."""
    return _make("take", (asarray(a), asarray(indices)), (_axis(axis),))


def take_along_axis(a: Any, indices: Any, axis: int | None = -1) -> ndarray:
    """For each place of `indices`, the element that it names along the axis."""
    return _make("take_along_axis", (asarray(a), asarray(indices)), (_axis(axis),))


def concatenate(arrays: Sequence[Any], axis: int | None = 0) -> ndarray:
    """One after another along an axis; without one, all flat."""
    return _joined("concat", [asarray(a) for a in arrays], axis)


def _joined(op: str, arrays: list[ndarray], axis: Any) -> ndarray:
    if len(arrays) <= _JOINED_MAX:
        return _make(op, tuple(arrays), (_axis(axis),))
    groups = range(0, len(arrays), _JOINED_MAX)
    return concatenate([_joined(op, arrays[at : at + _JOINED_MAX], axis) for at in groups], axis)


concat = concatenate


def stack(arrays: Sequence[Any], axis: int = 0) -> ndarray:
    """Along a new axis."""
    return _joined("stack", [asarray(a) for a in arrays], axis)


def vstack(arrays: Sequence[Any]) -> ndarray:
    """Rows, one after another."""
    return concatenate([atleast_2d(a) for a in arrays])


def hstack(arrays: Sequence[Any]) -> ndarray:
    """Columns beside each other; arrays of one dimension one after another."""
    found = [asarray(a) for a in arrays]
    return concatenate(found, 0 if found and found[0].ndim < 2 else 1)


def column_stack(arrays: Sequence[Any]) -> ndarray:
    """Arrays of one dimension as columns."""
    found = [asarray(a) for a in arrays]
    return concatenate([a[:, None] if a.ndim == 1 else a for a in found], 1)


def atleast_2d(a: Any) -> ndarray:
    """With two dimensions at least."""
    found = asarray(a)
    return found.reshape(1, -1) if found.ndim < 2 else found


def expand_dims(a: Any, axis: Any) -> ndarray:
    """With one more dimension of length 1, or one for each of several axes."""
    if not hasattr(axis, "__index__"):
        found, axes = asarray(a), list(axis)
        for one in sorted(_axes_of(axes, found.ndim + len(axes))):
            found = expand_dims(found, one)
        return found
    around = [slice(None)] * (axis if axis >= 0 else -axis - 1)
    index = (*around, None) if axis >= 0 else (Ellipsis, None, *around)
    return asarray(a)[index]


def squeeze(a: Any, axis: Any = None) -> ndarray:
    """Without these dimensions, or all, of length 1."""
    found = asarray(a)
    shape = found.shape
    named = range(len(shape)) if axis is None else _axes_of(_ints((axis,)), len(shape))
    if axis is not None and builtins.any(shape[at] != 1 for at in named):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    kept = [size for at, size in enumerate(shape) if not (at in named and size == 1)]
    return _make("reshape", (found,), (kept,))


def _axes_of(axes: list[int], ndim: int) -> list[int]:
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise ValueError(f"axis {axis} is out of bounds for an array of {ndim} dimensions")
    return [axis % ndim for axis in axes]


def reshape(a: Any, shape: Any) -> ndarray:
    """Another shape of as many elements. One dimension may be -1."""
    return asarray(a).reshape(shape)


def ravel(a: Any) -> ndarray:
    """All elements along one dimension."""
    return asarray(a).ravel()


def permute_dims(a: Any, axes: Any = None) -> ndarray:
    """The dimensions in another order; without axes, in the opposite one."""
    return _make("permute_dims", (asarray(a),), (None if axes is None else list(axes),))


transpose = permute_dims


def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """Two dimensions in place of each other."""
    found = asarray(a)
    order = list(range(found.ndim))
    axis1, axis2 = _axes_of([axis1, axis2], found.ndim)
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return permute_dims(found, order)


def moveaxis(a: Any, source: Any, destination: Any) -> ndarray:
    """Dimensions at other places."""
    found = asarray(a)
    moved = _axes_of(_ints((source,)), found.ndim)
    places = _axes_of(_ints((destination,)), found.ndim)
    if len(moved) != len(places) or len(set(moved)) < len(moved) or len(set(places)) < len(places):
        raise ValueError(f"moveaxis cannot move {source!r} to {destination!r}")
    order = [axis for axis in range(found.ndim) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return permute_dims(found, order)


def broadcast_to(a: Any, shape: Any) -> ndarray:
    """Repeated along new dimensions and those of length 1."""
    return _make("broadcast_to", (asarray(a),), (_ints((shape,)),))


def repeat(a: Any, repeats: int, axis: int | None = None) -> ndarray:
    """Each element so many times along an axis; without one, of the flat array."""
    return _make("repeat", (asarray(a),), (repeats, _axis(axis)))


def tile(a: Any, reps: Any) -> ndarray:
    """The array so many times along each dimension."""
    found = asarray(a)
    times = _ints((reps,))
    shape = [1] * (len(times) - found.ndim) + list(found.shape)
    times = [1] * (len(shape) - len(times)) + times
    apart = [part for size in shape for part in (1, size)]
    wide = [part for pair in zip(times, shape, strict=True) for part in pair]
    whole = [time * size for time, size in zip(times, shape, strict=True)]
    return broadcast_to(found.reshape(apart), wide).reshape(whole)


def flip(a: Any, axis: Any = None) -> ndarray:
    """In the opposite order along an axis, or along all."""
    return _make("flip", (asarray(a),), (_axis(axis),))


# Products, classes, boxes.


def matmul(x1: Any, x2: Any) -> ndarray:
    """The product of matrices; a vector is a row on the left and a column on the right."""
    return _make("matmul", (asarray(x1), asarray(x2)))


def dot(a: Any, b: Any) -> ndarray:
    """As `matmul`, and as `multiply` for a number."""
    return _make("matmul", (asarray(a), asarray(b)), (True,))


def outer(a: Any, b: Any) -> ndarray:
    """The product of each element of one with each of the other."""
    return asarray(a).ravel()[:, None] * asarray(b).ravel()


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: builtins.bool = False) -> ndarray:
    found = asarray(x)
    if ord not in (None, "fro") and not (ord == 2 and (axis is not None or found.ndim == 1)):
        raise ValueError(f"ord is {ord!r}: only the Euclidean norm is here")
    # Squares of integers may not fit their dtype.
    found = found * (1 if found.dtype.kind == "f" else 1.0)
    return sqrt(sum(found * found, axis=axis, keepdims=keepdims))


#: What some users of NumPy look for, and what is in its place.
_INSTEAD = {
    "apply_along_axis": "functions take an axis, as np.sum(a, axis=0)",
    "errstate": "no operation warns",
    "load": "gristmill_plugin.tables reads files .npy",
    "random": "Python's module random has random numbers",
    "vectorize": "functions work on whole arrays",
}


def _absent(module: str, name: str) -> AttributeError:
    instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
    return AttributeError(
        f"{module} has no {name}{instead}; sdk/guides/numpy.md lists what it has"
    )


def __getattr__(name: str) -> Any:
    raise _absent(__name__, name)


class _Linalg(SimpleNamespace):
    def __getattr__(self, name: str) -> Any:
        raise _absent(f"{__name__}.linalg", name)


linalg = _Linalg(norm=_norm, matmul=matmul)


def one_hot(indices: Any, num_classes: int, dtype: Any = float32) -> ndarray:
    """1 at each index along a new last axis, 0 elsewhere."""
    return _make("one_hot", (asarray(indices),), (num_classes, _name(dtype)))


def nms(
    boxes: Any,
    scores: Any,
    iou_threshold: float = 0.5,
    score_threshold: float | None = None,
    max_output: int | None = None,
) -> ndarray:
    """Which boxes `[n, 4]` (x1, y1, x2, y2) stay, best first: as `torchvision.ops.nms`.

    A box goes if it overlaps a better one that stays by more than `iou_threshold`: by the area
    that both share over the area that they cover.
    """
    params = (iou_threshold, score_threshold, max_output)
    return _make("nms", (asarray(boxes), asarray(scores)), params)


def _check_own_references() -> None:
    """Count the references to an array that only an operation refers to."""
    global _OWN_REFERENCES
    last = negative(negative(_held(Tensor.__new__(Tensor))))
    order = _order(last)
    _OWN_REFERENCES = 0
    counts = [sys.getrefcount(one) - 1 for one in order if one is not last]
    _OWN_REFERENCES = counts[0]


_check_own_references()

from .numpy_composed import *  # noqa: E402, F403
from .numpy_composed import unique_all  # noqa: E402

_FILES.add(unique_all.__code__.co_filename)

"""Tensors: values in, values out. The host holds them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Any

from . import checks
from .blob import Blob
from .failure import Internal
from .host import Err, tensors

Dtype = tensors.Dtype
Scored = tensors.Scored

__all__ = ["Dtype", "Scored", "Tensor", "View", "shortest_float32"]

#: The format of an element in `struct`, `array` and `memoryview`.
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
    "FLOAT32": "f",
    "FLOAT64": "d",
}

_FLOAT32 = Struct("f")

#: Reads the length before a text.
_LENGTH = Struct("<I").unpack_from

#: Dtypes that Python has no format for. They are read and written as float32.
_AS_FLOAT32 = (Dtype.FLOAT16, Dtype.BFLOAT16)


class Elements:
    """What the host holds the elements of: a `Tensor`, and an array of `numpy`."""

    __slots__ = ()

    _handle: Any


class Tensor(Elements):
    """An immutable n-dimensional array, row-major. The host holds its elements.

    Making one copies the elements to the host; `view`, `tobytes` and `strings` copy them back.
    The other methods run on the host, at native speed. A tensor can be made in a call only, not
    while the module is imported.
    """

    __slots__ = ("_dtype", "_handle", "_shape")

    def __init__(self, handle: tensors.Tensor) -> None:
        """For the SDK itself. Use `from_values` or `from_bytes`."""
        self._handle = handle
        # Asked of the host once, unless they are known.
        self._dtype: Dtype | None = None
        self._shape: tuple[int, ...] | None = None

    @classmethod
    def from_values(
        cls, shape: Sequence[int], dtype: Dtype, values: Iterable[float] | Iterable[str]
    ) -> Tensor:
        """A tensor of `shape` with these elements, row-major.

        `values` is a flat iterable: a list, an `array.array` or a `memoryview`. An array or view
        whose format is the dtype's is copied in one piece. For BOOL the values are booleans, for
        STRING they are texts. FLOAT16 and BFLOAT16 take floats; the host rounds them.

        Raises `Internal` if the shape needs another number of elements, and `TypeError`,
        `ValueError` or `OverflowError` if a value is not of the dtype.
        """
        if dtype is not Dtype.FLOAT32 and dtype in _AS_FLOAT32:
            return cls.from_values(shape, Dtype.FLOAT32, values).cast(dtype)
        return cls.from_bytes(shape, dtype, encode(dtype, values))

    @classmethod
    def from_bytes(
        cls, shape: Sequence[int], dtype: Dtype, data: bytes | bytearray | memoryview | Blob
    ) -> Tensor:
        """A tensor of `shape`, at most 32 dimensions, from its elements' bytes.

        The elements are little-endian and row-major, without padding. A BOOL is one byte, 0 or 1.
        A STRING is its length in bytes, a u32, and its text in UTF-8. The bytes of a `Blob`, such as
        `request.body`, stay on the host.

        Raises `Internal` if the data do not fit dtype and shape, or are over the host's limit.
        """
        checks.case("dtype", dtype, Dtype)
        dimensions = checks.u32s("shape", shape)
        try:
            if isinstance(data, Blob):
                handle = data._handle.tensor(dtype, dimensions)
            else:
                if type(data) is not bytes:
                    data = memoryview(data).tobytes()
                handle = tensors.Tensor.create(dtype, dimensions, data)
        except Err as error:
            raise _internal(error) from None
        made = cls(handle)
        made._dtype, made._shape = dtype, tuple(dimensions)
        return made

    @classmethod
    def concat(cls, parts: Iterable[Tensor], axis: int = 0) -> Tensor:
        """The tensors one after another along dimension `axis`. At least one.

        They have the same dtype, and the same shape apart from that dimension. Raises `Internal`
        if they have not, or there is no such dimension.
        """
        try:
            return cls(
                tensors.Tensor.concat([part._handle for part in parts], checks.u32("axis", axis))
            )
        except Err as error:
            raise _internal(error) from None

    @classmethod
    def stack(cls, parts: Iterable[Tensor], axis: int = 0) -> Tensor:
        """The tensors along a new dimension `axis`. At least one.

        They have the same dtype and the same shape. Raises `Internal` if they have not, or `axis`
        is over the number of dimensions.
        """
        try:
            return cls(
                tensors.Tensor.stack([part._handle for part in parts], checks.u32("axis", axis))
            )
        except Err as error:
            raise _internal(error) from None

    @property
    def dtype(self) -> Dtype:
        """The element type."""
        dtype = self._dtype
        if dtype is None:
            dtype = self._dtype = self._handle.dtype()
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions; dimension 0 is rows."""
        shape = self._shape
        if shape is None:
            shape = self._shape = tuple(self._handle.shape())
        return shape

    def tobytes(self) -> bytes:
        """All elements' bytes, copied from the host."""
        return self._handle.data()

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from byte `offset` on. Shorter at the end, empty past it."""
        return self._handle.read(checks.u64("offset", offset), checks.u64("length", length))

    def view(self) -> View:
        """The elements, copied from the host. FLOAT16 and BFLOAT16 become float32.

        Raises `Internal` if the dtype is STRING: use `strings`.
        """
        return self._view(self.dtype)

    def _view(self, dtype: Dtype) -> View:
        if dtype is not Dtype.FLOAT32 and dtype in _AS_FLOAT32:
            return self.cast(Dtype.FLOAT32)._view(Dtype.FLOAT32)
        format = _FORMATS.get(dtype._name_)
        if format is None:
            raise Internal(f"a tensor of dtype {dtype.name} has no view: use strings()")
        data: Any = memoryview(self._handle.data())
        return View(self.shape, data.cast(format))

    def strings(self) -> list[str]:
        """All elements of a tensor of dtype STRING, copied from the host.

        Raises `Internal` if the tensor has another dtype.
        """
        dtype = self.dtype
        if dtype is not Dtype.STRING:
            raise Internal(f"tensor is {dtype.name}, wanted STRING")
        data = self._handle.data()
        found = []
        at, end = 0, len(data)
        while at < end:
            begin = at + 4
            at = begin + _LENGTH(data, at)[0]
            found.append(data[begin:at].decode())
        return found

    def argmax(self) -> list[Scored]:
        """The largest element of each row, the first one of equal elements.

        A row is everything after the first dimension. The list is empty if the dtype is not
        FLOAT32 or a row has no elements.
        """
        return self._handle.argmax()

    def top_k(self, k: int, row: int = 0) -> list[Scored]:
        """The `k` largest elements of row `row`, largest first.

        The list is empty if the dtype is not FLOAT32 or there is no such row.
        """
        return self._handle.top_k(checks.u32("row", row), checks.u32("k", k))

    def softmax(self) -> Tensor:
        """The softmax over each row, as a new tensor of the same shape.

        Raises `Internal` if the dtype is not FLOAT32.
        """
        found = self._handle.softmax()
        if found is None:
            raise Internal(f"softmax of a tensor of dtype {self.dtype.name}, wanted FLOAT32")
        made = Tensor(found)
        made._dtype, made._shape = self._dtype, self._shape
        return made

    def slice(self, start: int, end: int, axis: int = 0) -> Tensor:
        """The part from `start` up to, not including, `end` along dimension `axis`.

        Raises `Internal` if the part is not within the tensor.
        """
        axis = checks.u32("axis", axis)
        start, end = checks.u32("start", start), checks.u32("end", end)
        try:
            return Tensor(self._handle.slice(axis, start, end))
        except Err as error:
            raise _internal(error) from None

    def cast(self, dtype: Dtype) -> Tensor:
        """The same values in another dtype.

        A float becomes an integer by dropping its fraction; a value out of range becomes the
        nearest in range, and NaN becomes 0. A number becomes true if it is not 0. Raises
        `Internal` for strings.
        """
        checks.case("dtype", dtype, Dtype)
        try:
            return Tensor(self._handle.cast(dtype))
        except Err as error:
            raise _internal(error) from None

    def __repr__(self) -> str:
        return f"Tensor(shape={self.shape}, dtype={self.dtype.name})"


class View:
    """A tensor's elements in the plugin's memory.

    `shape` are the dimensions. `values` is a flat `memoryview` over all elements, row-major: it
    has an index, slices and `tolist`.
    """

    __slots__ = ("shape", "values")

    def __init__(self, shape: tuple[int, ...], values: memoryview) -> None:
        self.shape = shape
        self.values = values

    def rows(self) -> list[memoryview]:
        """The rows: views of all dimensions after the first, flat."""
        if not self.shape or not self.shape[0]:
            return []
        values = self.values
        width = len(values) // self.shape[0]
        return [values[row * width : (row + 1) * width] for row in range(self.shape[0])]

    def shortest(self) -> list[float]:
        """All values of a float32 view, flat, each with the fewest digits that mean the same.

        The float32 nearest to 0.1 is 0.10000000149011612 in `values` and 0.1 here. JSON with these
        is shorter and faster to write.
        """
        return [shortest_float32(value) for value in self.values]

    def tolist(self) -> list[Any]:
        """The elements as nested lists, as NumPy's `tolist`. A flat list if a dimension is 0."""
        if 0 in self.shape or not self.shape:
            return self.values.tolist()
        data: Any = self.values.cast("B")
        nested: list[Any] = data.cast(self.values.format, self.shape).tolist()
        return nested

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> float:
        value: float = self.values[index]
        return value

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    def __repr__(self) -> str:
        return f"View(shape={self.shape}, format={self.values.format!r})"


def shortest_float32(value: float) -> float:
    """The float with the fewest decimal digits that is nearest to the same float32 as `value`.

    NaN and infinity stay as they are. A float32 has 7 digits that always count, and is known from
    9.
    """
    short = float(f"{value:.7g}")
    if _FLOAT32.unpack(_FLOAT32.pack(short))[0] == value:
        return short
    short = float(f"{value:.8g}")
    if _FLOAT32.unpack(_FLOAT32.pack(short))[0] == value:
        return short
    return float(f"{value:.9g}")


def encode(dtype: Dtype, values: Iterable[float] | Iterable[str]) -> bytes:
    """The elements' bytes. Raises as `Tensor.from_values`."""
    checks.case("dtype", dtype, Dtype)
    if dtype is Dtype.STRING:
        texts = [text.encode() for text in values]  # type: ignore[union-attr]
        return b"".join([len(text).to_bytes(4, "little") + text for text in texts])
    if dtype is Dtype.BOOL:
        return bytes(map(bool, values))
    format = _FORMATS[dtype._name_]
    if isinstance(values, array):
        if values.typecode == format:
            return values.tobytes()
    elif isinstance(values, memoryview) and values.format == format:
        return values.tobytes()
    return array(format, values).tobytes()


def _internal(error: Err[tensors.TensorError]) -> Internal:
    """A tensor that cannot be made is the plugin's fault."""
    why = error.value
    if isinstance(why, tensors.TensorError_LengthMismatch):
        lengths = why.value
        return Internal(
            f"tensor data is {lengths.actual} bytes long, "
            f"but dtype and shape need {lengths.expected}"
        )
    return Internal(why.value)

"""Reading a request and the circumstances of its call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import checks, json
from .blob import Blob
from .failure import Internal, InvalidInput
from .host import Err, types
from .tensor import Dtype, Tensor

#: Says that a value has no default.
_REQUIRED: Any = object()


class Part:
    """One part of a `multipart/form-data` body."""

    __slots__ = ("body", "content_type", "filename", "name")

    def __init__(self, part: types.Part) -> None:
        """For the SDK itself."""
        #: The form field's name. It is empty if the part has none.
        self.name: str = part.name
        #: The file's name, if the part has one.
        self.filename: str | None = part.filename
        #: The part's own content type, if it has one.
        self.content_type: str | None = part.content_type
        #: The part's bytes.
        self.body = Blob(part.body)


class Fields(Mapping[str, str]):
    """Named values, in order. A name that comes several times has its first value."""

    __slots__ = ("_fields",)

    def __init__(self, fields: list[types.Field]) -> None:
        """For the SDK itself."""
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        for field in self._fields:
            if field.name == name:
                return field.value
        raise KeyError(name)

    def get_all(self, name: str) -> list[str]:
        """All values of this name, in order."""
        return [field.value for field in self._fields if field.name == name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(field.name for field in self._fields))

    def __len__(self) -> int:
        return len({field.name for field in self._fields})

    def __repr__(self) -> str:
        return f"Fields({[(field.name, field.value) for field in self._fields]})"


class Request:
    """One request. It is read from the host when it is asked for, so keep a value used twice.

    It is valid during its call only.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: types.Request) -> None:
        """For the SDK itself. In a test use `gristmill_plugin.testing.request`."""
        self._handle = handle

    @property
    def content_type(self) -> str | None:
        """The media type in lower case, without its parameters. None if the client sent none."""
        return self._handle.content_type()

    @property
    def headers(self) -> Fields:
        """The headers that a plugin may see, with names in lower case.

        They are `accept`, `accept-language`, `user-agent` and all that begin with `x-`.
        """
        return Fields(self._handle.headers())

    @property
    def query(self) -> Fields:
        """The query string's parameters."""
        return Fields(self._handle.query())

    @property
    def body(self) -> Blob:
        """The whole body. For a multipart request its parts are in `parts`, and this is empty."""
        return Blob(self._handle.body())

    @property
    def parts(self) -> list[Part]:
        """The parts of a `multipart/form-data` body, in order. Empty for any other."""
        return [Part(part) for part in self._handle.parts()]

    def file(self, name: str) -> Part:
        """The first part of a `multipart/form-data` body with this name.

        Raises `InvalidInput` if there is none; it says which parts there are.
        """
        parts = self.parts
        for part in parts:
            if part.name == name:
                return part
        if not parts:
            raise InvalidInput(f"the body is not a form with a part {name!r}")
        names = ", ".join(repr(part.name) for part in parts[:10])
        raise InvalidInput(f"the form has no part {name!r}, but {names}")

    def json(self, pointer: str = "", default: Any = _REQUIRED) -> Any:
        """The body as JSON, or the value at `pointer` in it: `request.json("/threshold", 0.5)`.

        `pointer` is a JSON Pointer (RFC 6901): `/instances/0`. With one, only that value is copied
        into the plugin and parsed. `default` is the result if there is no such value.

        Raises `InvalidInput` if the body is not JSON, or there is neither a value nor a default; it
        says where.
        """
        try:
            data = self._handle.json_value(checks.text("pointer", pointer))
        except Err as error:
            raise _json_fault(error) from None
        if data is None:
            if default is _REQUIRED:
                raise InvalidInput(f"invalid JSON: {pointer} is missing")
            return default
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"invalid JSON: {error}") from None

    def json_tensor(
        self, pointer: str = "", dtype: Dtype = Dtype.FLOAT32, *, keys: Iterable[str] = ()
    ) -> Tensor:
        """The values at `pointer` of a JSON body as a tensor, read by the host.

        Nothing of it is copied into the plugin or parsed there, so this is many times faster than
        `json`. Lists of lists are dimensions: `[[1, 2, 3], [4, 5, 6]]` has the shape [2, 3].

        With `keys` the value is a list of objects, and each makes a row of its values at these
        keys, in their order: `[{"age": 31, "income": 2.5}, ..]` with `keys=["age", "income"]` has
        the shape [rows, 2]. A value may be a flat list; its values stand in the row one after
        another.

        Dtypes of floats take numbers, which are rounded to the nearest. Dtypes of integers take
        integers in their range, BOOL takes true and false, STRING takes texts.

        Raises `InvalidInput` if the body is something else; it says where and what is there.
        Raises `Internal` if `pointer` is not a JSON Pointer or a key is given twice.
        """
        checks.case("dtype", dtype, Dtype)
        if isinstance(keys, str):
            raise TypeError(f"keys is the text {keys!r}, not a list of texts")
        names = [checks.text("a key", key) for key in keys]
        try:
            found = Tensor(self._handle.json_tensor(checks.text("pointer", pointer), names, dtype))
        except Err as error:
            raise _json_fault(error) from None
        found._dtype = dtype
        return found

    def json_blob(self, pointer: str) -> Blob:
        """The bytes of the text in base64 at `pointer` of a JSON body, as `Blob.from_base64` reads it.

        Neither the text nor the bytes are copied into the plugin.

        Raises `InvalidInput` if there is no such text; it says where and what is there.
        """
        try:
            return Blob(self._handle.json_blob(checks.text("pointer", pointer)))
        except Err as error:
            raise _json_fault(error) from None


def _json_fault(error: Err[types.JsonError]) -> InvalidInput | Internal:
    why = error.value
    if isinstance(why, types.JsonError_InvalidJson):
        return InvalidInput(why.value)
    return Internal(why.value)


class Context:
    """The circumstances of a call. Each call of a request gets one. Valid during the call only."""

    __slots__ = ("_handle", "_settings")

    def __init__(self, handle: types.Context) -> None:
        """For the SDK itself. In a test use `gristmill_plugin.testing.context`."""
        self._handle = handle
        self._settings: Any = None

    @property
    def tenant(self) -> str:
        """The name of the tenant."""
        return self._handle.tenant()

    @property
    def pipeline(self) -> str:
        """The name of the pipeline."""
        return self._handle.pipeline()

    @property
    def model(self) -> str:
        """The name of the pipeline's model; in a handler that of the first one."""
        return self._handle.model()

    @property
    def request_id(self) -> str:
        """The request's id, as in the server's log and in the answer's header `x-request-id`."""
        return self._handle.request_id()

    @property
    def settings(self) -> Any:
        """The pipeline's settings, parsed at the first use. `{}` if the pipeline has none.

        Raises `Internal` if they are not JSON.
        """
        if self._settings is None:
            try:
                self._settings = json.loads(self._handle.settings().encode())
            except (ValueError, RecursionError) as error:
                raise Internal(f"the pipeline's settings: {error}") from None
        return self._settings

    @property
    def time_left_ms(self) -> int:
        """Milliseconds until the request's deadline; 0 if it has passed."""
        return self._handle.time_left()

"""Reading a request and the circumstances of its call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import checks, json
from .failure import Internal, InvalidInput
from .host import Err, types

#: The longest read: all bytes.
_ALL = 2**64 - 1


class Blob:
    """Bytes held by the host: a request body, one part of it, or bytes of the plugin.

    `Pixels.decode` takes a blob as it is, so a picture is never copied into the plugin. `bytes`
    copies it.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: types.Blob) -> None:
        """For the SDK itself."""
        self._handle = handle

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Blob:
        """A blob of these bytes. They are copied to the host."""
        return cls(types.Blob.from_bytes(memoryview(data).tobytes()))

    @classmethod
    def from_base64(cls, text: str) -> Blob:
        """The bytes that a text in base64 stands for, decoded by the host.

        The text may be a data URL, as `data:image/png;base64,iVBO..`. Both alphabets are read,
        white space is left out, and padding may be missing.

        Raises `InvalidInput` if it is not a text in base64; it says where.
        """
        if not isinstance(text, str):
            raise InvalidInput(f"base64 is a text, not {type(text).__name__}")
        if not text.isascii():
            # JSON may have half of a surrogate pair, for which the bindings end the call.
            text = text.encode(errors="replace").decode()
        try:
            return cls(types.Blob.from_base64(text))
        except Err as error:
            raise InvalidInput(error.value.value) from None

    def slice(self, offset: int = 0, length: int = _ALL) -> Blob:
        """Up to `length` bytes from `offset` on, as a blob of the same memory."""
        return Blob(self._handle.slice(checks.u64("offset", offset), checks.u64("length", length)))

    def read(self, offset: int = 0, length: int = _ALL) -> bytes:
        """Up to `length` bytes from `offset` on. Shorter at the end of the blob, empty past it."""
        return self._handle.read(checks.u64("offset", offset), checks.u64("length", length))

    def __bytes__(self) -> bytes:
        return self._handle.read(0, _ALL)

    def __len__(self) -> int:
        return self._handle.len()


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

    def json(self) -> Any:
        """The body as JSON.

        Raises `InvalidInput` if it is not JSON; it says where.
        """
        try:
            return json.loads(self._handle.body().read(0, _ALL))
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"invalid JSON: {error}") from None


class Context:
    """The circumstances of a call. Both calls of a request get one. Valid during the call only."""

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
        """The name of the pipeline's model."""
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

"""Bytes that stay on the host until they are read."""

from __future__ import annotations

from . import checks
from .failure import InvalidInput
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
        try:
            # JSON may have half of a surrogate pair.
            return cls(types.Blob.from_base64(checks.text("base64", text)))
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

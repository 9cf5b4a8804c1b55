"""The interface `types`."""

from __future__ import annotations

from dataclasses import dataclass

from . import base64
from .result import Err


@dataclass
class BlobError_InvalidBase64:
    value: str


BlobError = BlobError_InvalidBase64


class Blob:
    """Bytes held by the host."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @classmethod
    def from_bytes(cls, data: bytes) -> Blob:
        return cls(data)

    @classmethod
    def from_base64(cls, text: str) -> Blob:
        try:
            return cls(base64.decode(text))
        except ValueError as error:
            raise Err(BlobError_InvalidBase64(str(error))) from None

    def slice(self, offset: int, length: int) -> Blob:
        return Blob(self._data[offset : offset + length])

    def len(self) -> int:
        return len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]


@dataclass
class Field:
    name: str
    value: str


@dataclass
class Part:
    name: str
    filename: str | None
    content_type: str | None
    body: Blob


class Context:
    """The circumstances of a call."""

    def __init__(
        self,
        *,
        tenant: str,
        pipeline: str,
        model: str,
        request_id: str,
        settings: str,
        time_left: int,
    ) -> None:
        self._tenant = tenant
        self._pipeline = pipeline
        self._model = model
        self._request_id = request_id
        self._settings = settings
        self._time_left = time_left

    def tenant(self) -> str:
        return self._tenant

    def pipeline(self) -> str:
        return self._pipeline

    def model(self) -> str:
        return self._model

    def request_id(self) -> str:
        return self._request_id

    def settings(self) -> str:
        return self._settings

    def time_left(self) -> int:
        return self._time_left


class Request:
    """A request."""

    def __init__(
        self,
        *,
        content_type: str | None,
        headers: list[Field],
        query: list[Field],
        body: bytes,
        parts: list[Part],
    ) -> None:
        self._content_type = content_type
        self._headers = headers
        self._query = query
        self._body = body
        self._parts = parts

    def content_type(self) -> str | None:
        return self._content_type

    def headers(self) -> list[Field]:
        return self._headers

    def query(self) -> list[Field]:
        return self._query

    def body(self) -> Blob:
        return Blob(self._body)

    def parts(self) -> list[Part]:
        return self._parts


@dataclass
class Response:
    status: int
    content_type: str
    headers: list[Field]
    body: bytes


@dataclass
class Failure_InvalidInput:
    value: str


@dataclass
class Failure_UnsupportedMediaType:
    value: str


@dataclass
class Failure_Unprocessable:
    value: str


@dataclass
class Failure_Internal:
    value: str


Failure = (
    Failure_InvalidInput | Failure_UnsupportedMediaType | Failure_Unprocessable | Failure_Internal
)

"""The interface `types`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import base64, pointer
from .result import Err
from .tensors import Dtype, Tensor


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

    def tensor(self, dtype: Dtype, shape: list[int]) -> Tensor:
        return Tensor.create(dtype, shape, self._data)

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


@dataclass
class JsonError_InvalidJson:
    value: str


@dataclass
class JsonError_InvalidArgument:
    value: str


JsonError = JsonError_InvalidJson | JsonError_InvalidArgument


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

    def json_tensor(self, at: str, keys: list[str], dtype: Dtype) -> Tensor:
        names = _names(at)
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise Err(JsonError_InvalidArgument(f'the key "{twice}" is given twice'))
        value = self._required(at, names)
        try:
            shape, parts = pointer.elements(value, keys, dtype.name, at)
        except ValueError as error:
            raise _invalid(error) from None
        return Tensor(dtype, shape, parts)

    def json_blob(self, at: str) -> Blob:
        value = self._required(at, _names(at))
        place = at or "the body"
        if not isinstance(value, str):
            raise _invalid(f"{place} is {pointer.kind(value)}, not a text in base64")
        try:
            return Blob(base64.decode(value))
        except ValueError as error:
            raise _invalid(f"{place}: {error}") from None

    def json_value(self, at: str) -> bytes | None:
        found = self._at(_names(at))
        return None if found is pointer.NOTHING else pointer.dumps(found)

    def _at(self, names: list[str]) -> Any:
        try:
            return pointer.find(self._body, names)
        except (ValueError, RecursionError) as error:
            raise _invalid(error) from None

    def _required(self, at: str, names: list[str]) -> Any:
        found = self._at(names)
        if found is pointer.NOTHING:
            raise _invalid(f"{at} is missing")
        return found


def _names(at: str) -> list[str]:
    try:
        return pointer.parse(at)
    except ValueError as error:
        raise Err(JsonError_InvalidArgument(str(error))) from None


def _invalid(why: object) -> Err[JsonError]:
    return Err(JsonError_InvalidJson(f"invalid JSON: {why}"))


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

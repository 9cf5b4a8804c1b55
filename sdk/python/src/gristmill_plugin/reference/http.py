"""The interface `http`: services are functions that a test has made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .result import Err
from .types import Blob, Field


@dataclass
class HttpError_NotGranted:
    value: str


@dataclass
class HttpError_InvalidArgument:
    value: str


@dataclass
class HttpError_ProhibitedAddress:
    value: str


@dataclass
class HttpError_Connection:
    value: str


@dataclass
class HttpError_TimedOut:
    value: str


@dataclass
class HttpError_TooLarge:
    value: str


HttpError = (
    HttpError_NotGranted
    | HttpError_InvalidArgument
    | HttpError_ProhibitedAddress
    | HttpError_Connection
    | HttpError_TimedOut
    | HttpError_TooLarge
)


@dataclass
class HttpRequest:
    method: str
    url: str
    headers: list[Field]
    body: Blob | None
    timeout_ms: int | None


@dataclass
class HttpResponse:
    status: int
    headers: list[Field]
    body: Blob


#: The services by the begin of their URLs, up to the host or the port.
services: dict[str, Callable[[HttpRequest], HttpResponse]] = {}


def send(request: HttpRequest) -> HttpResponse:
    for origin, answer in services.items():
        if request.url.startswith(origin) and request.url[len(origin) :][:1] in ("", "/", "?", "#"):
            return answer(request)
    text = f"this test has no service for {request.url!r}: make one with testing.service"
    raise Err(HttpError_NotGranted(text))

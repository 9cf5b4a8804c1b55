"""Requests over HTTP to other services, with the names of `requests` and `httpx`.

    from gristmill_plugin import http

    rates = http.get("https://api.example.com/rates", timeout=0.5).raise_for_status().json()
    http.post("https://api.example.com/events", json={"user": 7})

The tenant's document grants each service, as in
`"http": [{"scheme": "https", "host": "api.example.com"}]`. A call sends at most 64 requests, one
after another; bodies have at most 16 MiB each way. A redirect is an answer as any other: nothing
follows it. While a call waits for an answer it uses no CPU time. Write a `Handler` for it: a call
of a pair keeps its place among the tenant's calls meanwhile.

In a trial, such as a sample or a shadow, only GET and HEAD are sent.

A plugin that can do without an answer catches `HttpError`. Under pytest `testing.service` stands in
for a service.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any, NoReturn, TypeVar

from . import checks, host
from . import json as plugin_json
from .blob import Blob
from .failure import Internal
from .request import Fields
from .response import write_json

__all__ = [
    "ConnectionFailed",
    "HttpError",
    "HttpResponse",
    "InvalidArgument",
    "NotGranted",
    "ProhibitedAddress",
    "StatusError",
    "TimedOut",
    "TooLarge",
    "get",
    "post",
    "request",
]

_Value = TypeVar("_Value")


class HttpError(Internal):
    """Why there is no answer. If nothing catches it: 500, with the text in the log only."""


class NotGranted(HttpError):
    """The tenant's document does not grant the service, or a trial wanted to change something.

    The text has the grant that is missing.
    """


class InvalidArgument(HttpError):
    """The method, the URL or a header cannot be sent."""


class ProhibitedAddress(HttpError):
    """The host has an address that is not public, and that the grant does not name."""


class ConnectionFailed(HttpError):
    """The service cannot be reached, or the connection ended before the whole answer was there."""


class TimedOut(HttpError):
    """There was no whole answer in time."""


class TooLarge(HttpError):
    """A body or the headers are over a limit, or the call has sent 64 requests already."""


class StatusError(HttpError):
    """The answer has the status of an error. `HttpResponse.raise_for_status` raises it."""


class HttpResponse:
    """The answer of a service."""

    __slots__ = ("body", "headers", "status_code")

    def __init__(self, response: host.http.HttpResponse) -> None:
        """For the SDK itself."""
        #: The status. Those of errors, such as 404, are answers, too.
        self.status_code: int = response.status
        #: The headers, with names in lower case.
        self.headers = Fields(response.headers)
        #: The body as it came. It stays on the host: `Pixels.decode` takes it as it is.
        self.body = Blob(response.body)

    @property
    def ok(self) -> bool:
        """Whether the status is below 400."""
        return self.status_code < 400

    @property
    def content(self) -> bytes:
        """The body's bytes, which are copied into the plugin."""
        return bytes(self.body)

    @property
    def text(self) -> str:
        """The body as UTF-8, in which wrong bytes are question marks."""
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        """The value that the body has as JSON. Raises `HttpError` if it is not JSON."""
        try:
            return plugin_json.loads(self.content)
        except ValueError as error:
            raise HttpError(f"the service's answer is not JSON: {error}") from None

    def raise_for_status(self) -> HttpResponse:
        """The answer itself. Raises `StatusError` if its status is 400 or more."""
        if not self.ok:
            raise StatusError(f"the service answered {self.status_code}")
        return self


def get(
    url: str,
    *,
    params: Mapping[str, object] | Iterable[tuple[str, object]] = (),
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    timeout: float | None = None,
) -> HttpResponse:
    """Ask for a URL: `request` with the method GET."""
    return request("GET", url, params=params, headers=headers, timeout=timeout)


def post(
    url: str,
    *,
    params: Mapping[str, object] | Iterable[tuple[str, object]] = (),
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    data: bytes | str | Blob | None = None,
    json: object = None,
    timeout: float | None = None,
) -> HttpResponse:
    """Send a body to a URL: `request` with the method POST."""
    return request(
        "POST", url, params=params, headers=headers, data=data, json=json, timeout=timeout
    )


def request(
    method: str,
    url: str,
    *,
    params: Mapping[str, object] | Iterable[tuple[str, object]] = (),
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    data: bytes | str | Blob | None = None,
    json: object = None,
    timeout: float | None = None,
) -> HttpResponse:
    """Send a request, and wait for the whole answer. A status such as 404 is an answer.

    `params` become the URL's query. The body is `data`, or `json` as JSON with its content type:
    tensors, arrays and blobs may stand in it, as in `Response.json`. A blob is sent as it is,
    without passing through the plugin. `timeout` is the time for all of it, in seconds. Without
    one, and at the latest, all ends at the deadline of the plugin's own request.

    Raises an `HttpError` if there is no answer: `NotGranted`, `InvalidArgument`,
    `ProhibitedAddress`, `ConnectionFailed`, `TimedOut` or `TooLarge`.
    """
    fields = _pairs(headers)
    if json is not None:
        if data is not None:
            raise TypeError("both data and json are given: a request has one body")
        data = write_json(json)
        if all(name.lower() != "content-type" for name, _ in fields):
            fields.append(("content-type", "application/json"))
    body = None if data is None else _blob(data)
    asked = host.http.HttpRequest(
        checks.text("method", method).upper(),
        _url(checks.text("url", url), _pairs(params)),
        [
            host.types.Field(checks.text("a header's name", name), checks.text(name, value))
            for name, value in fields
        ],
        None if body is None else body._handle,
        None if timeout is None else _milliseconds(timeout),
    )
    try:
        return HttpResponse(host.http.send(asked))
    except host.Err as error:
        _raise(error)


def _pairs(
    given: Mapping[str, _Value] | Iterable[tuple[str, _Value]],
) -> list[tuple[str, _Value]]:
    return list(given.items() if isinstance(given, Mapping) else given)


def _blob(data: bytes | str | Blob) -> Blob:
    if isinstance(data, Blob):
        return data
    return Blob.from_bytes(data.encode() if isinstance(data, str) else data)


def _milliseconds(timeout: float) -> int:
    seconds = checks.f32("timeout", timeout)
    if not 0 < seconds < 2**32:
        raise ValueError(f"timeout is {timeout!r}, not a time in seconds")
    return ceil(seconds * 1000)


#: The bytes of a URL that stand for themselves in a name or a value of its query.
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


def _url(url: str, params: list[tuple[str, object]]) -> str:
    """The URL with these parameters. What a URL cannot have is written as %XX."""
    if params:
        path, mark, fragment = url.partition("#")
        query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in params)
        url = f"{path}{'&' if '?' in path else '?'}{query}{mark}{fragment}"
    if url.isascii() and " " not in url:
        return url
    return "".join(chr(byte) if 32 < byte < 127 else f"%{byte:02X}" for byte in url.encode())


def _quoted(value: object) -> str:
    content = checks.text("a parameter", value if isinstance(value, str) else str(value)).encode()
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in content)


_ERRORS: dict[str, type[HttpError]] = {
    "NotGranted": NotGranted,
    "InvalidArgument": InvalidArgument,
    "ProhibitedAddress": ProhibitedAddress,
    "Connection": ConnectionFailed,
    "TimedOut": TimedOut,
    "TooLarge": TooLarge,
}


def _raise(error: host.Err[host.http.HttpError]) -> NoReturn:
    case = type(error.value).__name__.removeprefix("HttpError_")
    raise _ERRORS[case](error.value.value) from None


def lower_error(error: HttpError) -> Any:
    """For the SDK: an exception as the host knows it."""
    for case, kind in _ERRORS.items():
        if isinstance(error, kind):
            return getattr(host.http, f"HttpError_{case}")(checks.text("the text", error.text))
    raise TypeError(f"a service does not raise {type(error).__name__}")

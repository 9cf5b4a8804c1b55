"""Run a plugin in a test, on the reference host: no server, no WebAssembly.

    def test_a_row():
        plugin = Doubler()
        prepared = plugin.preprocess(testing.context(), testing.request(json=[1, 2]))
        assert prepared.inputs["input"].shape == (2, 1)

`preprocess`, `postprocess` and `handle` of this module call a plugin as the server does: with
checked types, failures as values and exceptions in the log. `model` is a model of a handler's test.
"""

from __future__ import annotations

import json as standard_json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any

from . import checks
from .failure import InferError
from .http import HttpError
from .http import lower_error as lower_http_error
from .models import lower_error
from .outputs import Prepared
from .plugin import (
    Handler,
    Postprocessor,
    Preprocessor,
    _handle_of,
    _postprocess_of,
    _preprocess_of,
)
from .reference import assets as reference_assets
from .reference import http as reference_http
from .reference import log as reference_log
from .reference import models, tensors, types
from .reference import store as reference_store
from .reference import tables as reference_tables
from .reference import tokenizer as reference_tokenizer
from .reference.result import Err
from .request import Context, Request
from .response import Response
from .tensor import Elements, Tensor

LogLine = reference_log.Line
Bucket = reference_store.Bucket

__all__ = [
    "Bucket",
    "Failed",
    "LogLine",
    "Part",
    "ServiceRequest",
    "asset",
    "captured_log",
    "context",
    "handle",
    "model",
    "postprocess",
    "preprocess",
    "request",
    "service",
    "store",
    "table",
    "tokenizer",
]


@dataclass(frozen=True)
class Part:
    """One part of a multipart request."""

    body: bytes
    name: str = ""
    filename: str | None = None
    content_type: str | None = None


@dataclass(frozen=True)
class Failed:
    """The server's answer if the plugin gives none."""

    status: int
    text: str


@dataclass(frozen=True)
class ServiceRequest:
    """A request that a plugin sends to a service of a test."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    timeout: float | None

    def json(self) -> Any:
        """The value that the body has as JSON."""
        return standard_json.loads(self.body)


_Fields = Mapping[str, str] | Iterable[tuple[str, str]]


def request(
    body: bytes = b"",
    *,
    json: object = None,
    content_type: str | None = None,
    headers: _Fields = (),
    query: _Fields = (),
    parts: Iterable[Part] = (),
) -> Request:
    """A request. `json` is a value that becomes the body and sets the content type."""
    if json is not None:
        body = standard_json.dumps(json).encode()
        content_type = content_type or "application/json"
    listed = [
        types.Part(part.name, part.filename, part.content_type, types.Blob(part.body))
        for part in parts
    ]
    if listed:
        content_type = content_type or "multipart/form-data"
    return Request(
        types.Request(
            content_type=content_type,
            headers=_fields(headers),
            query=_fields(query),
            body=body,
            parts=listed,
        )
    )


def context(
    *,
    settings: object = None,
    tenant: str = "tenant",
    pipeline: str = "pipeline",
    model: str = "model",
    request_id: str = "request-1",
    time_left_ms: int = 30_000,
) -> Context:
    """The circumstances of a call. `settings` is a value that JSON has a form for."""
    return Context(
        types.Context(
            tenant=tenant,
            pipeline=pipeline,
            model=model,
            request_id=request_id,
            settings=standard_json.dumps({} if settings is None else settings),
            time_left=time_left_ms,
        )
    )


@contextmanager
def captured_log() -> Iterator[list[LogLine]]:
    """The lines that are logged within the `with` block."""
    lines: list[LogLine] = []
    reference_log.captures.append(lines)
    try:
        yield lines
    finally:
        reference_log.captures.remove(lines)


@contextmanager
def model(
    name: str, function: Callable[[dict[str, Tensor]], Mapping[str, Elements]]
) -> Iterator[None]:
    """Within the `with` block, `function` is the model of this name.

    It takes the inputs by name and returns the outputs by name. It may raise an `InferError`, as
    `ModelOverloaded("busy")`.

        with testing.model("classifier", lambda inputs: {"scores": scores}):
            response = Plugin().handle(testing.context(), testing.request(photo))
    """

    def run(inputs: list[tuple[str, tensors.Tensor]]) -> list[tensors.NamedTensor]:
        try:
            outputs = function({name: Tensor(tensor) for name, tensor in inputs})
        except InferError as error:
            raise Err(lower_error(error)) from None
        named = []
        for output, tensor in outputs.items():
            if not isinstance(tensor, Elements):
                checks.instance(f"output {output!r} of the test's model {name!r}", tensor, Tensor)
            named.append(tensors.NamedTensor(output, tensor._handle))
        return named

    before = models.registered.get(name)
    models.registered[name] = run
    try:
        yield
    finally:
        if before is None:
            del models.registered[name]
        else:
            models.registered[name] = before


@contextmanager
def store(
    name: str, values: Mapping[str, bytes] = MappingProxyType({}), *, read_only: bool = False
) -> Iterator[Bucket]:
    """A store with these values within the `with` block. `fault` makes it unavailable.

    with testing.store("features", {"user:7": row.tobytes()}) as features:
        plugin.preprocess(testing.context(), request)
        features.fault = "no answer"
    """
    before = reference_store.buckets.get(name)
    bucket = reference_store.Bucket(dict(values), read_only)
    reference_store.buckets[name] = bucket
    try:
        yield bucket
    finally:
        del reference_store.buckets[name]
        if before is not None:
            reference_store.buckets[name] = before


@contextmanager
def service(origin: str, function: Callable[[ServiceRequest], Response]) -> Iterator[None]:
    """Within the `with` block, `function` answers the requests to URLs of this origin.

    It gets names of headers in lower case, and may raise an `HttpError`, as `TimedOut("slow")`.

        with testing.service("https://api.example.com", lambda asked: Response.json({"eur": 1.1})):
            response = Plugin().handle(testing.context(), testing.request(photo))
    """

    def answer(asked: reference_http.HttpRequest) -> reference_http.HttpResponse:
        body = b"" if asked.body is None else asked.body.read(0, asked.body.len())
        headers = {field.name.lower(): field.value for field in asked.headers}
        timeout = None if asked.timeout_ms is None else asked.timeout_ms / 1000
        try:
            found = function(ServiceRequest(asked.method, asked.url, headers, body, timeout))
        except HttpError as error:
            raise Err(lower_http_error(error)) from None
        fields = [(name.lower(), value) for name, value in found.headers.items()]
        if found.content_type:
            fields.append(("content-type", found.content_type))
        return reference_http.HttpResponse(found.status, _fields(fields), types.Blob(found.body))

    services = reference_http.services
    before = services.get(origin)
    services[origin] = answer
    try:
        yield
    finally:
        del services[origin]
        if before is not None:
            services[origin] = before


@contextmanager
def asset(name: str, content: bytes | str) -> Iterator[None]:
    """Within the `with` block, the pipeline names a file of this name with this content.

        with testing.asset("prices.json", '{"apple": 3}'):
            plugin.preprocess(testing.context(), request)
    """
    files = reference_assets.files
    before = files.get(name)
    files[name] = content.encode() if isinstance(content, str) else bytes(content)
    try:
        yield
    finally:
        del files[name]
        if before is not None:
            files[name] = before


@contextmanager
def table(
    asset: str, rows: Mapping[str | int, Iterable[float]], columns: Iterable[str] = ()
) -> Iterator[None]:
    """Within the `with` block, the asset of this name is a table with these rows by their keys.

    All rows have the same number of columns. `columns` are their names, if they have some.

        with testing.table("products.csv", {7: [9.5, 4]}, ["price", "rating"]):
            plugin.preprocess(testing.context(), testing.request(json={"productIds": [7]}))
    """
    listed = {str(key): [float(number) for number in row] for key, row in rows.items()}
    names = list(columns)
    for key, row in listed.items():
        width = len(names) or len(next(iter(listed.values())))
        if len(row) != width:
            raise ValueError(f"the row {key!r} has {len(row)} numbers, not {width}")
    before = reference_tables.files.get(asset)
    reference_tables.files[asset] = reference_tables.Table(listed, names)
    try:
        yield
    finally:
        del reference_tables.files[asset]
        if before is not None:
            reference_tables.files[asset] = before


@contextmanager
def tokenizer(asset: str, path: str | PathLike[str]) -> Iterator[None]:
    """Within the `with` block, the `tokenizer.json` at `path` is the asset of this name.

    It needs the package `tokenizers`, which gives the ids that the server gives.

        with testing.tokenizer("tokenizer.json", "tokenizer.json"):
            plugin.preprocess(testing.context(), testing.request(json=["a text"]))
    """
    from tokenizers import Tokenizer

    before = reference_tokenizer.files.get(asset)
    reference_tokenizer.files[asset] = Tokenizer.from_file(fspath(path))
    try:
        yield
    finally:
        del reference_tokenizer.files[asset]
        if before is not None:
            reference_tokenizer.files[asset] = before


def preprocess(plugin: Preprocessor, context: Context, request: Request) -> Prepared | Failed:
    """Call `plugin.preprocess` as the server does."""
    call: Any = _preprocess_of(plugin)
    try:
        found = call(None, context._handle, request._handle)
    except Err as error:
        return _failed(error)
    return Prepared({each.name: Tensor(each.tensor) for each in found.inputs}, found.state)


def postprocess(
    plugin: Postprocessor, context: Context, outputs: Mapping[str, Tensor], state: bytes = b""
) -> Response | Failed:
    """Call `plugin.postprocess` as the server does."""
    call: Any = _postprocess_of(plugin)
    named = [tensors.NamedTensor(name, tensor._handle) for name, tensor in outputs.items()]
    try:
        found = call(None, context._handle, named, state)
    except Err as error:
        return _failed(error)
    return _response(found)


def handle(plugin: Handler, context: Context, request: Request) -> Response | Failed:
    """Call `plugin.handle` as the server does. Its models are those of `model`."""
    call: Any = _handle_of(plugin)
    try:
        found = call(None, context._handle, request._handle)
    except Err as error:
        return _failed(Err(error.value.value))
    return _response(found)


def _response(found: types.Response) -> Response:
    headers = {field.name: field.value for field in found.headers}
    return Response(found.body, found.content_type, found.status, headers)


def _fields(fields: _Fields) -> list[types.Field]:
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    return [types.Field(name, value) for name, value in pairs]


_STATUSES: dict[type, int] = {
    types.Failure_InvalidInput: 400,
    types.Failure_UnsupportedMediaType: 415,
    types.Failure_Unprocessable: 422,
    types.Failure_Internal: 500,
    models.InferError_NotGranted: 500,
    models.InferError_InvalidInput: 500,
    models.InferError_Overloaded: 503,
    models.InferError_Unavailable: 503,
    models.InferError_Failed: 500,
}


def _failed(error: Err[types.Failure | models.InferError]) -> Failed:
    return Failed(_STATUSES[type(error.value)], error.value.value)

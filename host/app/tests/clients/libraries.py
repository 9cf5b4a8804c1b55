"""The tritonclient libraries behind one interface, so that the cases are written once.

Every call is awaited, whether or not the library is asynchronous, and carries the tenant's key.
"""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http.client import HTTPConnection
from queue import Queue
from types import ModuleType
from typing import Any, ClassVar, Self

import grpc
import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from server import GRPC, GRPC_TLS, HTTP, KEY, PATIENCE_S, bearer

# Requests at once of the library that has no asynchronous client.
CONNECTIONS = 8

# A result, or an error instead of it.
Answered = tuple[Any, InferenceServerException | None]


class Library:
    """A library: its module, and one of its clients."""

    protocol: ClassVar[str]
    # The arguments of `infer` about compression.
    compressions: ClassVar[list[dict[str, str | None]]]

    def __init__(self, module: ModuleType, client: Any) -> None:
        self.module, self.client = module, client

    def status(self, status: int) -> str:
        """The library's name of an HTTP status."""
        raise NotImplementedError

    def response(self, result: Any) -> dict[str, Any]:
        """A result without the bytes of its tensors."""
        raise NotImplementedError

    async def infer_many(self, model: str, batches: Sequence[np.ndarray]) -> list[Any]:
        """The answers to many requests at once."""
        raise NotImplementedError

    def under_way(self, model: str, array: np.ndarray) -> AbstractAsyncContextManager[None]:
        """A request under way, which is cancelled at the end."""
        raise NotImplementedError

    async def call(
        self,
        method: str,
        *args: Any,
        key: str | None = KEY,
        headers: Mapping[str, str] = {},
        **options: Any,
    ) -> Any:
        """The answer of the client's method."""
        sent = bearer(key) | dict(headers)
        answer = getattr(self.client, method)(*args, headers=sent, **options)
        return await answer if inspect.isawaitable(answer) else answer

    async def document(self, method: str, *args: Any, **options: Any) -> Any:
        """The same as a dict or list."""
        return await self.call(method, *args, **options)

    async def entries(self, key: str | None = KEY) -> list[dict[str, Any]]:
        """The entries of the index."""
        raise NotImplementedError

    async def index(self) -> dict[str, dict[str, Any]]:
        """The entries of the index by name."""
        return {model["name"]: model for model in await self.entries()}

    async def config(self, model: str) -> dict[str, Any]:
        """The model's configuration."""
        document = await self.document("get_model_config", model)
        return document.get("config", document)

    async def refused(
        self, statuses: int | tuple[int, ...], method: str, *args: Any, **options: Any
    ) -> str:
        """The message of a call that must fail with one of these HTTP statuses, or gRPC's for it."""
        expected = {self.status(status) for status in np.atleast_1d(statuses)}
        try:
            answer = await self.call(method, *args, **options)
        except InferenceServerException as error:
            assert error.status() in expected, f"{error}: {expected} was expected"
            assert error.message(), error
            return error.message()
        raise AssertionError(f"{method}{args} was not refused: {answer}")

    async def ready(self, model: str, version: str = "") -> bool:
        """Whether the model is ready. The libraries report a missing model in two ways."""
        try:
            return await self.call("is_model_ready", model, version)
        except InferenceServerException as error:
            assert error.status() == self.status(404), error
            return False

    async def infer(
        self, model: str, *arrays: np.ndarray, name: str = "input", **options: Any
    ) -> Any:
        """The model's answer to one array, or to several inputs of that name."""
        inputs = [self.input(name, array) for array in arrays]
        return await self.call("infer", model, inputs, **options)

    def input(self, name: str, array: np.ndarray, **options: Any) -> Any:
        tensor = self.module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array, **options)
        return tensor

    async def close(self) -> None:
        closed = self.client.close()
        if inspect.isawaitable(closed):
            await closed


class HttpLibrary(Library):
    protocol = "http"
    compressions = [
        {"request_compression_algorithm": request, "response_compression_algorithm": response}
        for request in (None, "gzip", "deflate")
        for response in (None, "gzip", "deflate")
    ]

    def status(self, status: int) -> str:
        return str(status)

    def response(self, result: Any) -> dict[str, Any]:
        return result.get_response()

    async def entries(self, key: str | None = KEY) -> list[dict[str, Any]]:
        return await self.document("get_model_repository_index", key=key)

    def at(self, path: str) -> Self:
        """The same library below another path."""
        return type(self)(self.module, self.module.InferenceServerClient(HTTP + path))


class GrpcLibrary(Library):
    protocol = "grpc"
    compressions = [{"compression_algorithm": name} for name in (None, "gzip", "deflate")]
    STATUSES = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        # tonic's error for a message over its limit.
        413: "OUT_OF_RANGE",
        415: "INVALID_ARGUMENT",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        501: "UNIMPLEMENTED",
        503: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    }

    def status(self, status: int) -> str:
        return f"StatusCode.{self.STATUSES[status]}"

    async def document(self, method: str, *args: Any, **options: Any) -> Any:
        return plain(await self.call(method, *args, **options))

    def response(self, result: Any) -> dict[str, Any]:
        return plain(result.get_response())

    async def entries(self, key: str | None = KEY) -> list[dict[str, Any]]:
        return (await self.document("get_model_repository_index", key=key))["models"]

    async def stream(
        self, requests: Sequence[dict[str, Any]], key: str | None = KEY
    ) -> list[Answered]:
        """The result of each request of one stream."""
        raise NotImplementedError


def plain(message: Message) -> dict[str, Any]:
    """A message as a dict, with its empty fields. 64-bit integers are strings."""
    return MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


class Asynchronous(Library):
    """The methods that the asynchronous libraries have in common."""

    async def infer_many(self, model: str, batches: Sequence[np.ndarray]) -> list[Any]:
        return await asyncio.gather(*(self.infer(model, batch) for batch in batches))

    @asynccontextmanager
    async def under_way(self, model: str, array: np.ndarray) -> AsyncIterator[None]:
        task = asyncio.create_task(self.infer(model, array))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


class TritonHttp(HttpLibrary):
    """tritonclient.http."""

    def __init__(self, module: ModuleType = tritonclient.http, client: Any = None) -> None:
        super().__init__(module, client or module.InferenceServerClient(HTTP))

    async def infer_many(self, model: str, batches: Sequence[np.ndarray]) -> list[Any]:
        with self.module.InferenceServerClient(HTTP, concurrency=CONNECTIONS) as client:
            calls = [
                client.async_infer(model, [self.input("input", batch)], headers=bearer(KEY))
                for batch in batches
            ]
            return [call.get_result() for call in calls]

    @asynccontextmanager
    async def under_way(self, model: str, array: np.ndarray) -> AsyncIterator[None]:
        # This library cannot cancel a request, so the request is sent on a separate connection.
        body, length = self.client.generate_request_body([self.input("input", array)])
        headers = {**bearer(KEY), "inference-header-content-length": str(length)}
        connection = HTTPConnection(HTTP)
        connection.request("POST", f"/v2/models/{model}/infer", body, headers)
        try:
            yield
        finally:
            connection.close()


class TritonHttpAio(Asynchronous, HttpLibrary):
    """tritonclient.http.aio."""

    def __init__(self, module: ModuleType = tritonclient.http.aio, client: Any = None) -> None:
        super().__init__(module, client or module.InferenceServerClient(HTTP))


class TritonGrpc(GrpcLibrary):
    """tritonclient.grpc."""

    def __init__(self) -> None:
        module = tritonclient.grpc
        super().__init__(module, module.InferenceServerClient(GRPC, **GRPC_TLS))

    async def infer_many(self, model: str, batches: Sequence[np.ndarray]) -> list[Any]:
        answers: list[Queue[Answered]] = [Queue() for _ in batches]
        for batch, answer in zip(batches, answers, strict=True):
            inputs = [self.input("input", batch)]
            self.client.async_infer(model, inputs, callback=putting(answer), headers=bearer(KEY))
        answered = [answer.get(timeout=PATIENCE_S) for answer in answers]
        assert not any(error for _, error in answered), answered
        return [result for result, _ in answered]

    @asynccontextmanager
    async def under_way(self, model: str, array: np.ndarray) -> AsyncIterator[None]:
        inputs = [self.input("input", array)]
        call = self.client.async_infer(model, inputs, putting(Queue()), headers=bearer(KEY))
        try:
            yield
        finally:
            call.cancel()

    async def stream(
        self, requests: Sequence[dict[str, Any]], key: str | None = KEY
    ) -> list[Answered]:
        answers: Queue[Answered] = Queue()
        self.client.start_stream(putting(answers), headers=bearer(key))
        try:
            for request in requests:
                self.client.async_stream_infer(**request)
        except InferenceServerException:
            pass  # The stream has ended. The callback has the error.
        try:
            return [answers.get(timeout=PATIENCE_S) for _ in requests]
        finally:
            self.client.stop_stream(cancel_requests=True)


def putting(answers: "Queue[Answered]") -> Callable[[Any, Any], None]:
    """A callback that puts its arguments into the queue."""
    return lambda result, error: answers.put((result, error))


class TritonGrpcAio(Asynchronous, GrpcLibrary):
    """tritonclient.grpc.aio, whose types are those of tritonclient.grpc."""

    def __init__(self) -> None:
        client = tritonclient.grpc.aio.InferenceServerClient(GRPC, **GRPC_TLS)
        super().__init__(tritonclient.grpc, client)

    async def stream(
        self, requests: Sequence[dict[str, Any]], key: str | None = KEY
    ) -> list[Answered]:
        async def each() -> AsyncIterator[dict[str, Any]]:
            for request in requests:
                yield request

        answers: list[Answered] = []
        try:
            async for answer in self.client.stream_infer(each(), headers=bearer(key)):
                answers.append(answer)
        except grpc.RpcError as error:
            status = str(error.code())
            answers.append((None, InferenceServerException(error.details(), status)))
        return answers


def error_of(answer: tuple[int, Mapping[str, str], bytes], status: int) -> str:
    """The text of an error that came over HTTP without a library."""
    got, headers, body = answer
    assert got == status, (got, body)
    # Exactly this text, because a client looks for it.
    assert headers["content-type"] == "application/json", headers
    document = json.loads(body)
    assert list(document) == ["error"] and document["error"], document
    return document["error"]


TRITON: dict[str, type[Library]] = {
    "tritonclient.http": TritonHttp,
    "tritonclient.http.aio": TritonHttpAio,
    "tritonclient.grpc": TritonGrpc,
    "tritonclient.grpc.aio": TritonGrpcAio,
}

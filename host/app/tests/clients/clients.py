"""The tritonclient libraries, what they do differently evened out, so that the cases are written once.

Every call is awaited, whether or not the library is asynchronous, and carries the tenant's key.
"""

import asyncio
import inspect
import json
import os
import traceback
from http.client import HTTPConnection

import numpy as np
from google.protobuf.json_format import MessageToDict
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

HTTP = os.environ["GRISTMILL_HTTP"]
GRPC = os.environ["GRISTMILL_GRPC"]
ADMIN = os.environ["GRISTMILL_ADMIN"]
KEY = os.environ["GRISTMILL_KEY"]
OTHERS_KEY = os.environ["GRISTMILL_OTHERS_KEY"]
ADMIN_TOKEN = os.environ["GRISTMILL_ADMIN_TOKEN"]


def bearer(key):
    return {"authorization": f"Bearer {key}"} if key else {}


def send(method, path, body=None, headers=(), host=HTTP, key=KEY):
    """The status, headers and body that come back, without any of the libraries."""
    connection = HTTPConnection(host, timeout=60)
    try:
        connection.request(method, path, body, {**bearer(key), **dict(headers)})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def administer(method, path, body=None):
    """What the admin API answers."""
    status, _, answer = send(method, f"/admin/v1/{path}", body, host=ADMIN, key=ADMIN_TOKEN)
    assert status == 200, answer
    return json.loads(answer)


class Library:
    """A library: its module, and a client of its."""

    def __init__(self, module, client):
        self.module, self.client = module, client

    async def call(self, method, *args, key=KEY, headers=(), **options):
        """What the client's method answers."""
        headers = bearer(key) | dict(headers)
        answer = getattr(self.client, method)(*args, headers=headers, **options)
        return await answer if inspect.isawaitable(answer) else answer

    async def document(self, method, *args, **options):
        """The same as a dict or list."""
        return await self.call(method, *args, **options)

    async def refused(self, statuses, method, *args, **options):
        """The message of a call that must fail with one of these HTTP statuses, or gRPC's for it."""
        expected = {self.status(status) for status in np.atleast_1d(statuses)}
        try:
            answer = await self.call(method, *args, **options)
        except InferenceServerException as error:
            assert error.status() in expected, f"{error}: {expected} was expected"
            assert error.message(), error
            return error.message()
        raise AssertionError(f"{method}{args} was not refused: {answer}")

    async def ready(self, model, version=""):
        """Whether the model is ready. Libraries tell a model that is not there in two ways."""
        try:
            return await self.call("is_model_ready", model, version)
        except InferenceServerException as error:
            assert error.status() == self.status(404), error
            return False

    async def infer(self, model, *arrays, name="input", **options):
        """The model's answer to one array, or to several inputs of that name."""
        inputs = [self.input(name, array) for array in arrays]
        return await self.call("infer", model, inputs, **options)

    def input(self, name, array, **options):
        tensor = self.module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array, **options)
        return tensor

    async def close(self):
        closed = self.client.close()
        if inspect.isawaitable(closed):
            await closed


class HttpLibrary(Library):
    protocol = "http"
    # What `infer` can be told about compression.
    compressions = [
        {"request_compression_algorithm": request, "response_compression_algorithm": response}
        for request in (None, "gzip", "deflate")
        for response in (None, "gzip", "deflate")
    ]

    def status(self, status):
        return str(status)

    def response(self, result):
        return result.get_response()

    def at(self, path):
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
        # What tonic says of a message over its limit.
        413: "OUT_OF_RANGE",
        415: "INVALID_ARGUMENT",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        501: "UNIMPLEMENTED",
        503: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    }

    def status(self, status):
        return f"StatusCode.{self.STATUSES[status]}"

    async def document(self, method, *args, **options):
        return plain(await self.call(method, *args, **options))

    def response(self, result):
        return plain(result.get_response())


def plain(message):
    """A message as a dict, fields of no value among them; 64-bit integers are strings."""
    return MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def run(make_library, cases):
    """Run the cases one after the other; the first that fails ends the process."""

    async def all_cases():
        library = make_library()
        try:
            for case in cases:
                await case(library)
                print(f"ok {case.__name__}", flush=True)
        finally:
            await library.close()

    try:
        asyncio.run(all_cases())
    except BaseException:
        traceback.print_exc()
        # Without waiting for what the libraries left running.
        os._exit(1)

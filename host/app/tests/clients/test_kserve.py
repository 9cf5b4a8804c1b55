"""kserve's clients of REST and gRPC."""

import asyncio
import json
import logging
from collections.abc import Iterator
from itertools import product
from typing import Any

import grpc
import httpx
import numpy as np
import pytest
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

from server import GRPC, HTTP, KEY, NOBODYS, bearer
from values import BINARY_ONLY, NUMPY_TYPES, batches, features, flat, picture, ranking

URL = f"http://{HTTP}"
# kserve has no BF16.
DATATYPES = NUMPY_TYPES.keys() - {"BF16"}


class Library:
    """Both of its clients."""

    def __init__(self) -> None:
        self.rest = InferenceRESTClient(RESTConfig(protocol="v2"))
        self.grpc = InferenceGRPCClient(GRPC, retries=0)

    async def infer(
        self, protocol: str, request: InferRequest, key: str | None = KEY, url: str = URL
    ) -> Any:
        if protocol == "rest":
            return await self.rest.infer(url, request, request.model_name, headers=bearer(key))
        return await self.grpc.infer(request, headers=tuple(bearer(key).items()))

    async def close(self) -> None:
        await self.rest.close()
        await self.grpc.close()


@pytest.fixture(scope="session")
def library(runner: asyncio.Runner) -> Iterator[Library]:
    # Each refusal would be there a second time, as an error.
    logging.disable()

    async def make() -> Library:
        return Library()

    library = runner.run(make())
    yield library
    runner.run(library.close())


def request(
    model: str,
    array: np.ndarray,
    binary: bool = True,
    name: str = "input",
    datatype: str = "FP32",
    **options: Any,
) -> InferRequest:
    """One input, as raw bytes, or in JSON and gRPC's typed contents."""
    tensor = InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    return InferRequest(model, [tensor], **options)


def assert_same(response: Any, sent: np.ndarray) -> None:
    [output] = response.outputs
    got = output.as_numpy()
    assert got.shape == sent.shape and flat(got) == flat(sent), (got, sent)


async def test_health(library: Library) -> None:
    assert await library.rest.is_server_live(URL) is True
    assert await library.rest.is_server_ready(URL) is True
    assert await library.grpc.is_server_live() is True
    assert await library.grpc.is_server_ready() is True


async def test_models_are_ready(library: Library) -> None:
    headers = bearer(KEY)
    for model in ("ranker", "pipeline:digits"):
        assert await library.rest.is_model_ready(URL, model, headers=headers) is True
        assert await library.grpc.is_model_ready(model, headers=tuple(headers.items())) is True
    assert await library.rest.is_model_ready(URL, "nothing", headers=headers) is False
    try:
        assert not await library.grpc.is_model_ready("nothing", headers=tuple(headers.items()))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.NOT_FOUND, error


async def test_every_datatype_comes_back_as_it_was_sent(library: Library) -> None:
    for datatype in DATATYPES:
        model = f"identity-{datatype.lower()}"
        for batch in batches(datatype):
            binary = {"binary_data_output": True}
            sent = request(model, batch, datatype=datatype, parameters=binary)
            assert_same(await library.infer("rest", sent), batch)
            sent = request(model, batch, datatype=datatype)
            assert_same(await library.infer("grpc", sent), batch)


async def test_json_and_typed_contents_are_taken(library: Library) -> None:
    for datatype in DATATYPES - BINARY_ONLY:
        model = f"identity-{datatype.lower()}"
        for batch in batches(datatype, finite=True):
            for protocol in ("rest", "grpc"):
                sent = request(model, batch, binary=False, datatype=datatype)
                assert_same(await library.infer(protocol, sent), batch)


async def test_several_inputs_go_by_their_names(library: Library) -> None:
    one = np.arange(32, dtype=np.int32).reshape(2, 16)
    for protocol, binary, step in product(("rest", "grpc"), (True, False), (1, -1)):
        tensors = [
            request("simple", array, binary, name, "INT32").inputs[0]
            for name, array in (("INPUT0", one), ("INPUT1", one * 3))
        ]
        response = await library.infer(protocol, InferRequest("simple", tensors[::step]))
        got = {output.name: output.as_numpy() for output in response.outputs}
        assert (got["OUTPUT0"] == one * 4).all() and (got["OUTPUT1"] == one * -2).all(), got


async def test_json_may_be_nested(library: Library) -> None:
    for rows in (features(1), features(5)):
        tensor = InferInput("input", list(rows.shape), "FP32", data=rows.tolist())
        assert_same(await library.infer("rest", InferRequest("identity-fp32", [tensor])), rows)


async def test_ids_and_names_come_back(library: Library) -> None:
    for protocol in ("rest", "grpc"):
        sent = request("ranker", features(2), request_id="order-66")
        response = await library.infer(protocol, sent)
        assert (response.id, response.model_name) == ("order-66", "ranker"), response
        assert response.outputs[0].name == "output" and response.outputs[0].shape == [2, 1]


async def test_a_pipeline_answers(library: Library) -> None:
    for protocol in ("rest", "grpc"):
        for model, sent in (("pipeline:digits", picture(7)), ("pipeline:ranker", ranking())):
            response = await library.infer(
                protocol, request(model, sent, name="REQUEST", datatype="BYTES")
            )
            answer = json.loads(response.outputs[0].as_numpy()[0])
            assert answer["label"] == 7 if model.endswith("digits") else answer["items"], answer


async def test_a_tenant_may_stand_in_the_url(library: Library) -> None:
    url = f"{URL}/v1/acme"
    assert await library.rest.is_server_ready(url) is True
    assert_same(
        await library.infer("rest", request("identity-fp32", features(5)), url=url), features(5)
    )


async def test_wrong_requests_are_refused(library: Library) -> None:
    cases = [
        (404, "NOT_FOUND", "nothing", request("nothing", features(1)), KEY),
        (404, "NOT_FOUND", "digits", request("digits", features(1)), KEY),
        (400, "INVALID_ARGUMENT", "inptu", request("ranker", features(1), name="inptu"), KEY),
        (400, "INVALID_ARGUMENT", "32", request("ranker", features(1)[:, :31]), KEY),
        (401, "UNAUTHENTICATED", "", request("ranker", features(1)), None),
        (403, "PERMISSION_DENIED", "", request("ranker", features(1)), NOBODYS),
    ]
    for status, code, named, sent, key in cases:
        try:
            await library.infer("rest", sent, key=key)
        except httpx.HTTPStatusError as error:
            assert error.response.status_code == status, error
            # The client shows the server's text only if it came as application/json.
            words = error.response.json()["error"]
            assert words and words in str(error) and named in words, error
        else:
            raise AssertionError(f"REST: {code} was expected")
        try:
            await library.infer("grpc", sent, key=key)
        except grpc.RpcError as error:
            assert error.code().name == code and named in error.details(), error
        else:
            raise AssertionError(f"gRPC: {code} was expected")


async def test_typed_contents_that_do_not_fit_are_refused(library: Library) -> None:
    for values, datatype in (([1.0] * 31, "FP32"), ([1] * 32, "INT32")):
        tensor = InferInput("input", [1, 32], datatype, data=values)
        try:
            await library.infer("grpc", InferRequest("ranker", [tensor]))
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
        else:
            raise AssertionError(f"{len(values)} {datatype} fit [1, 32] FP32")
    # Typed contents hold 32 bits, the tensor's elements 8.
    tensor = InferInput("input", [1, 1], "UINT8", data=[256])
    try:
        response = await library.infer("grpc", InferRequest("identity-uint8", [tensor]))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
    else:
        raise AssertionError(f"256 went through as {response.outputs[0].as_numpy()}")

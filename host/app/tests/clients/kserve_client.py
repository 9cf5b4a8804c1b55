"""kserve's clients of REST and gRPC."""

import json
import logging
from itertools import product

import grpc
import httpx
import numpy as np
from cases import BINARY_ONLY, NOBODYS, NUMPY_TYPES, batches, features, flat, picture, ranking
from clients import GRPC, HTTP, KEY, bearer, run
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

URL = f"http://{HTTP}"
# kserve has no BF16.
DATATYPES = NUMPY_TYPES.keys() - {"BF16"}


class Library:
    """Both of its clients."""

    def __init__(self):
        self.rest = InferenceRESTClient(RESTConfig(protocol="v2"))
        self.grpc = InferenceGRPCClient(GRPC, retries=0)

    async def infer(self, protocol, request, key=KEY, url=URL):
        if protocol == "rest":
            return await self.rest.infer(url, request, request.model_name, headers=bearer(key))
        return await self.grpc.infer(request, headers=tuple(bearer(key).items()))

    async def close(self):
        await self.rest.close()
        await self.grpc.close()


def request(model, array, binary=True, name="input", datatype="FP32", **options):
    """One input, as raw bytes, or in JSON and gRPC's typed contents."""
    tensor = InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    return InferRequest(model, [tensor], **options)


def assert_same(response, sent):
    [output] = response.outputs
    got = output.as_numpy()
    assert got.shape == sent.shape and flat(got) == flat(sent), (got, sent)


async def health(library):
    assert await library.rest.is_server_live(URL) is True
    assert await library.rest.is_server_ready(URL) is True
    assert await library.grpc.is_server_live() is True
    assert await library.grpc.is_server_ready() is True


async def models_are_ready(library):
    headers = bearer(KEY)
    for model in ("ranker", "pipeline:digits"):
        assert await library.rest.is_model_ready(URL, model, headers=headers) is True
        assert await library.grpc.is_model_ready(model, headers=tuple(headers.items())) is True
    assert await library.rest.is_model_ready(URL, "nothing", headers=headers) is False
    try:
        assert not await library.grpc.is_model_ready("nothing", headers=tuple(headers.items()))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.NOT_FOUND, error


async def every_datatype_comes_back_as_it_was_sent(library):
    for datatype in DATATYPES:
        model = f"identity-{datatype.lower()}"
        for batch in batches(datatype):
            binary = {"binary_data_output": True}
            sent = request(model, batch, datatype=datatype, parameters=binary)
            assert_same(await library.infer("rest", sent), batch)
            sent = request(model, batch, datatype=datatype)
            assert_same(await library.infer("grpc", sent), batch)


async def json_and_typed_contents_are_taken(library):
    for datatype in DATATYPES - BINARY_ONLY:
        model = f"identity-{datatype.lower()}"
        for batch in batches(datatype, finite=True):
            for protocol in ("rest", "grpc"):
                sent = request(model, batch, binary=False, datatype=datatype)
                assert_same(await library.infer(protocol, sent), batch)


async def several_inputs_go_by_their_names(library):
    one = np.arange(32, dtype=np.int32).reshape(2, 16)
    for protocol, binary, step in product(("rest", "grpc"), (True, False), (1, -1)):
        tensors = [
            request("simple", array, binary, name, "INT32").inputs[0]
            for name, array in (("INPUT0", one), ("INPUT1", one * 3))
        ]
        response = await library.infer(protocol, InferRequest("simple", tensors[::step]))
        got = {output.name: output.as_numpy() for output in response.outputs}
        assert (got["OUTPUT0"] == one * 4).all() and (got["OUTPUT1"] == one * -2).all(), got


async def json_may_be_nested(library):
    for rows in (features(1), features(5)):
        tensor = InferInput("input", list(rows.shape), "FP32", data=rows.tolist())
        assert_same(await library.infer("rest", InferRequest("identity-fp32", [tensor])), rows)


async def ids_and_names_come_back(library):
    for protocol in ("rest", "grpc"):
        sent = request("ranker", features(2), request_id="order-66")
        response = await library.infer(protocol, sent)
        assert (response.id, response.model_name) == ("order-66", "ranker"), response
        assert response.outputs[0].name == "output" and response.outputs[0].shape == [2, 1]


async def a_pipeline_answers(library):
    for protocol in ("rest", "grpc"):
        for model, sent in (("pipeline:digits", picture(7)), ("pipeline:ranker", ranking())):
            response = await library.infer(protocol, request(model, sent, name="REQUEST", datatype="BYTES"))
            answer = json.loads(response.outputs[0].as_numpy()[0])
            assert answer["label"] == 7 if model.endswith("digits") else answer["items"], answer


async def a_tenant_may_stand_in_the_url(library):
    url = f"{URL}/v1/acme"
    assert await library.rest.is_server_ready(url) is True
    assert_same(await library.infer("rest", request("identity-fp32", features(5)), url=url), features(5))


async def wrong_requests_are_refused(library):
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
            # The client quotes the server's words only where they came as application/json.
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


async def typed_contents_that_do_not_fit_are_refused(library):
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


# Each refusal would be there a second time, as an error.
logging.disable()
run(
    Library,
    [
        health,
        models_are_ready,
        every_datatype_comes_back_as_it_was_sent,
        json_and_typed_contents_are_taken,
        several_inputs_go_by_their_names,
        json_may_be_nested,
        ids_and_names_come_back,
        a_pipeline_answers,
        a_tenant_may_stand_in_the_url,
        wrong_requests_are_refused,
        typed_contents_that_do_not_fit_are_refused,
    ],
)

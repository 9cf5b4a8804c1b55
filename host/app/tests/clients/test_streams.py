"""gRPC's streams."""

import asyncio
import json
import queue
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from libraries import GrpcLibrary
from marks import changes_the_server, once_over_grpc, over_grpc
from server import KEY, NOBODYS, PATIENCE_S, administer, grpc_channel
from values import assert_same, features


def request(
    library: GrpcLibrary, model: str, array: np.ndarray, request_id: str, name: str = "input"
) -> dict[str, Any]:
    """A request of a stream."""
    inputs = [library.input(name, array)]
    return {"model_name": model, "inputs": inputs, "request_id": request_id}


@over_grpc
async def test_a_stream_answers_every_request(library: GrpcLibrary) -> None:
    sent = {str(index): np.full((1 + index % 3, 4), index, dtype=np.int64) for index in range(32)}
    requests = [request(library, "identity-int64", array, id) for id, array in sent.items()]
    answers = await library.stream(requests)
    results = {library.response(result)["id"]: result for result, error in answers if not error}
    assert len(answers) == len(sent) and results.keys() == sent.keys(), answers
    for id, array in sent.items():
        assert_same(results[id], array)
        parameters = library.response(results[id])["parameters"]
        assert parameters["triton_final_response"]["bool_param"] is True, parameters


@over_grpc
async def test_what_fails_in_a_stream_fails_alone(library: GrpcLibrary) -> None:
    requests = [
        request(library, "ranker", features(1), "first"),
        request(library, "nothing", features(1), "unknown-model"),
        request(library, "ranker", features(1), "wrong-name", name="inptu"),
        request(library, "ranker", features(2), "last"),
    ]
    answers = await library.stream(requests)
    errors = [str(error) for _, error in answers if error]
    results = {library.response(result)["id"]: result for result, error in answers if not error}
    assert results.keys() == {"first", "last"} and len(errors) == 2, answers
    assert results["last"].as_numpy("output").shape == (2, 1)
    assert any("nothing" in error for error in errors), errors
    assert any("inptu" in error for error in errors), errors


@over_grpc
async def test_a_stream_needs_a_key(library: GrpcLibrary) -> None:
    for key, status in ((None, 401), (NOBODYS, 403)):
        # What grpc.aio says, in place of the answer, where it was still writing when it came.
        error = "Internal error from Core"
        while "Internal error from Core" in str(error):
            requests = [request(library, "ranker", features(1), "1")]
            [(result, error)] = await library.stream(requests, key=key)
        assert result is None and error.status() == library.status(status), error


@over_grpc
async def test_a_streams_deadline_is_that_of_all_its_requests(library: GrpcLibrary) -> None:
    def message(model: str, request_id: str) -> Any:
        array = features(1)
        inputs = [{"name": "input", "datatype": "FP32", "shape": array.shape}]
        raw = [array.tobytes()]
        return service_pb2.ModelInferRequest(
            model_name=model, id=request_id, inputs=inputs, raw_input_contents=raw
        )

    def talk() -> Iterator[Any]:
        asked = queue.SimpleQueue()
        metadata = [("authorization", f"Bearer {KEY}"), ("grpc-timeout", "300m")]
        with grpc_channel() as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            answers = stub.ModelStreamInfer(iter(asked.get, None), metadata=metadata)
            for model in ("waits", "ranker"):
                asked.put(message(model, model))
                yield next(answers)
            asked.put(None)

    # The waiting request or the queue finds that the deadline has passed.
    late = ("no answer within ", "the deadline passed ")
    for answer in await asyncio.to_thread(lambda: list(talk())):
        assert answer.error_message.startswith(late), answer


@once_over_grpc
@changes_the_server
async def test_a_key_that_is_revoked_is_refused_at_the_next_request(library: GrpcLibrary) -> None:
    """On a connection and on a stream that were opened while the key was good."""
    tenant = {"models": ["ranker"]}
    kept, revoked = "the-key-that-is-kept", "the-key-that-is-revoked"

    def message(request_id: str) -> Any:
        array = features(1)
        inputs = [{"name": "input", "datatype": "FP32", "shape": array.shape}]
        raw = [array.tobytes()]
        return service_pb2.ModelInferRequest(
            model_name="ranker", id=request_id, inputs=inputs, raw_input_contents=raw
        )

    def talk() -> None:
        metadata = [("authorization", f"Bearer {revoked}")]
        asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with grpc_channel() as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            answers = stub.ModelStreamInfer(
                iter(asked.get, None), metadata=metadata, timeout=PATIENCE_S
            )
            asked.put(message("first"))
            assert next(answers).infer_response.id == "first"
            assert stub.ModelInfer(message("alone"), metadata=metadata).id == "alone"
            administer("PUT", "tenants/revoking", json.dumps(tenant | {"api_keys": [kept]}))
            with pytest.raises(grpc.RpcError) as refused:
                stub.ModelInfer(message("alone"), metadata=metadata)
            assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED, refused.value
            asked.put(message("second"))
            answer = next(answers)
            assert "key opens no tenant" in answer.error_message, answer
            assert not answer.infer_response.outputs, answer
            asked.put(None)

    administer("PUT", "tenants/revoking", json.dumps(tenant | {"api_keys": [kept, revoked]}))
    try:
        await asyncio.to_thread(talk)
    finally:
        administer("DELETE", "tenants/revoking")

"""Cases of gRPC's streams, for the libraries that have `stream`: a list of requests in, a list of results
and errors out."""

import asyncio
import queue

import grpc
import numpy as np
from cases import KEY, NOBODYS, assert_same, features
from clients import GRPC
from tritonclient.grpc import service_pb2, service_pb2_grpc


def request(library, model, array, request_id, name="input"):
    inputs = [library.input(name, array)]
    return {"model_name": model, "inputs": inputs, "request_id": request_id}


async def a_stream_answers_every_request(library):
    sent = {str(index): np.full((1 + index % 3, 4), index, dtype=np.int64) for index in range(32)}
    requests = [request(library, "identity-int64", array, id) for id, array in sent.items()]
    answers = await library.stream(requests)
    results = {library.response(result)["id"]: result for result, error in answers if not error}
    assert len(answers) == len(sent) and results.keys() == sent.keys(), answers
    for id, array in sent.items():
        assert_same(results[id], array)
        parameters = library.response(results[id])["parameters"]
        assert parameters["triton_final_response"]["bool_param"] is True, parameters


async def what_fails_in_a_stream_fails_alone(library):
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


async def a_stream_needs_a_key(library):
    for key, status in ((None, 401), (NOBODYS, 403)):
        # What grpc.aio says, in place of the answer, where it was still writing when it came.
        error = "Internal error from Core"
        while "Internal error from Core" in str(error):
            requests = [request(library, "ranker", features(1), "1")]
            [(result, error)] = await library.stream(requests, key=key)
        assert result is None and error.status() == library.status(status), error


async def a_streams_deadline_is_that_of_all_its_requests(library):
    def message(model, request_id):
        array = features(1)
        inputs = [{"name": "input", "datatype": "FP32", "shape": array.shape}]
        raw = [array.tobytes()]
        return service_pb2.ModelInferRequest(
            model_name=model, id=request_id, inputs=inputs, raw_input_contents=raw
        )

    def talk():
        asked = queue.SimpleQueue()
        metadata = [("authorization", f"Bearer {KEY}"), ("grpc-timeout", "300m")]
        with grpc.insecure_channel(GRPC) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            answers = stub.ModelStreamInfer(iter(asked.get, None), metadata=metadata)
            for model in ("waits", "ranker"):
                asked.put(message(model, model))
                yield next(answers)
            asked.put(None)

    # The deadline is found to be over by the one who waits, or by the queue.
    late = ("no answer within ", "the deadline passed ")
    for answer in await asyncio.to_thread(lambda: list(talk())):
        assert answer.error_message.startswith(late), answer


CASES = [a_stream_answers_every_request, what_fails_in_a_stream_fails_alone, a_stream_needs_a_key, a_streams_deadline_is_that_of_all_its_requests]

"""tritonclient.grpc, and gRPC's own health service."""

from contextlib import asynccontextmanager
from queue import Queue

import grpc
import numpy as np
import streams
import tritonclient.grpc as triton
from cases import COMMON, GRANTED, OVER_GRPC, PIPELINES
from clients import ADMIN_TOKEN, GRPC, KEY, GrpcLibrary, bearer, run
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

PATIENCE_S = 60


class Library(GrpcLibrary):
    async def infer_many(self, model, batches):
        answers = [Queue() for _ in batches]
        for batch, answer in zip(batches, answers, strict=True):
            callback = lambda result, error, answer=answer: answer.put((result, error))
            inputs = [self.input("input", batch)]
            self.client.async_infer(model, inputs, callback=callback, headers=bearer(KEY))
        answers = [answer.get(timeout=PATIENCE_S) for answer in answers]
        assert not any(error for _, error in answers), answers
        return [result for result, _ in answers]

    @asynccontextmanager
    async def under_way(self, model, array):
        inputs, ignored = [self.input("input", array)], lambda result, error: None
        call = self.client.async_infer(model, inputs, ignored, headers=bearer(KEY))
        try:
            yield
        finally:
            call.cancel()

    async def stream(self, requests, key=KEY):
        answers = Queue()
        callback = lambda result, error: answers.put((result, error))
        self.client.start_stream(callback, headers=bearer(key))
        try:
            for request in requests:
                self.client.async_stream_infer(**request)
        except InferenceServerException:
            pass  # The stream has ended, as the callback has been told.
        try:
            return [answers.get(timeout=PATIENCE_S) for _ in requests]
        finally:
            self.client.stop_stream(cancel_requests=True)


async def the_health_service_says_serving(_):
    with grpc.insecure_channel(GRPC) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        # The messages by hand: an empty one asks for the server, field 1 of the answer is SERVING.
        assert check(b"", timeout=PATIENCE_S) == b"\x08\x01"
        service = b"inference.GRPCInferenceService"
        assert check(b"\x0a" + bytes([len(service)]) + service, timeout=PATIENCE_S) == b"\x08\x01"
        try:
            check(b"\x0a\x07nothing", timeout=PATIENCE_S)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND, error
        else:
            raise AssertionError("a service that is not there is healthy")


async def the_index_may_be_of_what_is_ready(library):
    await library.call("unload_model", "identity-int16", key=ADMIN_TOKEN)
    with grpc.insecure_channel(GRPC) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for ready, missing in ((True, {"identity-int16"}), (False, set())):
            request = service_pb2.RepositoryIndexRequest(ready=ready)
            index = stub.RepositoryIndex(request, metadata=tuple(bearer(KEY).items()))
            names = {model.name for model in index.models}
            assert names == (GRANTED | PIPELINES) - missing, names
    await library.call("load_model", "identity-int16", key=ADMIN_TOKEN)


async def raw_contents_belong_to_the_inputs_one_by_one(_):
    row = np.arange(16, dtype=np.int32)
    inputs = [
        {"name": name, "datatype": "INT32", "shape": [1, 16]} for name in ("INPUT0", "INPUT1")
    ]
    typed = [tensor | {"contents": {"int_contents": row}} for tensor in inputs]
    raw = row.tobytes()
    with grpc.insecure_channel(GRPC) as channel:

        def infer(tensors, contents):
            request = service_pb2.ModelInferRequest(
                model_name="simple", inputs=tensors, raw_input_contents=contents
            )
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            return stub.ModelInfer(request, metadata=tuple(bearer(KEY).items()))

        for tensors, contents in ((inputs, [raw, raw]), (typed, [])):
            answer = infer(tensors, contents)
            assert list(answer.raw_output_contents) == [(row * 2).tobytes(), bytes(64)], answer
        wrong = [[], [raw], [raw, raw, raw], [raw, raw[:-4]], [raw + raw, b""]]
        for tensors, contents in [(inputs, contents) for contents in wrong] + [(typed, [raw, raw])]:
            try:
                answer = infer(tensors, contents)
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            else:
                raise AssertionError(f"{len(contents)} contents were taken: {answer}")


run(
    lambda: Library(triton, triton.InferenceServerClient(GRPC)),
    [
        the_health_service_says_serving,
        the_index_may_be_of_what_is_ready,
        raw_contents_belong_to_the_inputs_one_by_one,
    ]
    + OVER_GRPC
    + streams.CASES
    + COMMON,
)

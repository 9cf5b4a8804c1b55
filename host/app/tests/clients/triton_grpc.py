"""tritonclient.grpc, and gRPC's own health service."""

from queue import Queue

import grpc
import streams
import tritonclient.grpc as triton
from cases import COMMON
from clients import GRPC, KEY, GrpcLibrary, bearer, run
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


run(
    lambda: Library(triton, triton.InferenceServerClient(GRPC)),
    [the_health_service_says_serving] + streams.CASES + COMMON,
)

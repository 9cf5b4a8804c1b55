"""tritonclient.grpc.aio."""

import grpc
import streams
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from cases import COMMON, OVER_GRPC, gathered, in_a_task
from clients import GRPC, KEY, GrpcLibrary, bearer, run
from tritonclient.utils import InferenceServerException


class Library(GrpcLibrary):
    infer_many = gathered
    under_way = in_a_task

    async def stream(self, requests, key=KEY):
        async def each():
            for request in requests:
                yield request

        answers = []
        try:
            async for answer in self.client.stream_infer(each(), headers=bearer(key)):
                answers.append(answer)
        except grpc.RpcError as error:
            status = str(error.code())
            answers.append((None, InferenceServerException(error.details(), status)))
        return answers


run(
    lambda: Library(triton, triton_aio.InferenceServerClient(GRPC)),
    OVER_GRPC + streams.CASES + COMMON,
)

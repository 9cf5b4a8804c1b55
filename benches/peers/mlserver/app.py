"""The benchmark services on MLServer, with its adaptive batching.

    mlserver start .

A request is one of the Open Inference Protocol: its input `body` has the bytes of the request as one string, in
base64, and its output `answer` is the JSON answer.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import orjson
import work
from mlserver import MLModel
from mlserver.codecs import Base64Codec, StringCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceRequest, InferenceResponse


def bodies(payload: InferenceRequest) -> list[bytes]:
    """The bodies of the requests of a batch."""
    return Base64Codec.decode_input(payload.inputs[0])


def prepare(function, *arguments):
    """Call the function; a refused request gets an error."""
    try:
        return function(*arguments)
    except work.Refused as refused:
        raise InferenceError(str(refused)) from None


class Model(MLModel):
    def respond(self, answers: list[dict]) -> InferenceResponse:
        texts = [orjson.dumps(answer).decode() for answer in answers]
        output = StringCodec.encode_output("answer", texts, use_bytes=False)
        return InferenceResponse(model_name=self.name, outputs=[output])


class Ranker(Model):
    async def load(self) -> bool:
        self.session = work.load_ranker()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        requests = [prepare(work.ranker_rows, prepare(work.parse_json, body)) for body in bodies(payload)]
        output = work.infer(self.session, np.concatenate([rows for _, rows in requests]))
        ends = np.cumsum([len(rows) for _, rows in requests])
        outputs = np.split(output, ends[:-1])
        return self.respond(
            [work.ranking(ids, own) for (ids, _), own in zip(requests, outputs, strict=True)]
        )


class Photos(Model):
    async def load(self) -> bool:
        self.session = work.load_photos()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        rows = np.concatenate([prepare(work.photo_row, body) for body in bodies(payload)])
        return self.respond([work.classification(logits) for logits in work.infer(self.session, rows)])

"""The picture classifier in Triton's Python backend: a JPEG in, one model run for a batch of requests, JSON out."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

import numpy as np
import orjson
import triton_python_backend_utils as pb_utils
import work


class TritonPythonModel:
    def initialize(self, _args):
        self.session = work.load_photos()

    def execute(self, requests):
        answers = [None] * len(requests)
        accepted = []
        for position, request in enumerate(requests):
            body = pb_utils.get_input_tensor_by_name(request, "body").as_numpy().item()
            try:
                accepted.append((position, work.photo_row(body)))
            except work.Refused as refused:
                answers[position] = pb_utils.InferenceResponse(error=pb_utils.TritonError(str(refused)))
        if accepted:
            output = work.infer(self.session, np.concatenate([row for _, row in accepted]))
            for (position, _), logits in zip(accepted, output, strict=True):
                answer = orjson.dumps(work.classification(logits))
                tensor = pb_utils.Tensor("answer", np.array([[answer]], dtype=np.object_))
                answers[position] = pb_utils.InferenceResponse([tensor])
        return answers

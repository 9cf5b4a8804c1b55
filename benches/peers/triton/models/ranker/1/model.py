"""The ranker in Triton's Python backend: JSON in, one model run for a batch of requests, JSON out."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

import numpy as np
import orjson
import triton_python_backend_utils as pb_utils
import work


class TritonPythonModel:
    def initialize(self, _args):
        self.session = work.load_ranker()

    def execute(self, requests):
        answers = [None] * len(requests)
        accepted = []
        for position, request in enumerate(requests):
            body = pb_utils.get_input_tensor_by_name(request, "body").as_numpy().item()
            try:
                ids, rows = work.ranker_rows(work.parse_json(body))
            except work.Refused as refused:
                answers[position] = pb_utils.InferenceResponse(error=pb_utils.TritonError(str(refused)))
                continue
            accepted.append((position, ids, rows))
        if accepted:
            output = work.infer(self.session, np.concatenate([rows for _, _, rows in accepted]))
            start = 0
            for position, ids, rows in accepted:
                end = start + len(rows)
                answer = orjson.dumps(work.ranking(ids, output[start:end]))
                tensor = pb_utils.Tensor("answer", np.array([[answer]], dtype=np.object_))
                answers[position] = pb_utils.InferenceResponse([tensor])
                start = end
        return answers

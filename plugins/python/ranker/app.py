"""Items in, the same items ordered by score out, the best first.

A request is `{"items":[{"id":..,"features":[32 numbers]}..]}`. The model takes a tensor
[items, 32]. The state has the ids.
"""

from operator import itemgetter

from gristmill_plugin import (
    Context,
    Dtype,
    InvalidInput,
    Outputs,
    Prepared,
    Processor,
    Request,
    Response,
    Tensor,
    export,
)

FEATURES = 32


@export
class Ranker(Processor):
    def preprocess(self, context: Context, request: Request) -> Prepared:
        features = request.json_tensor("/items", keys=["features"])
        items, found = features.shape
        if not items:
            raise InvalidInput("items is empty: at least one is needed")
        if found != FEATURES:
            raise InvalidInput(f"items[0].features has {found} numbers, not {FEATURES}")
        ids = request.json_tensor("/items", Dtype.STRING, keys=["id"])
        return Prepared({"input": features}, ids.tobytes())

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        scores = outputs.view("output", [None, 1])
        ids = Tensor.from_bytes(scores.shape, Dtype.STRING, state).strings()
        scored = sorted(zip(ids, scores.shortest(), strict=True), key=itemgetter(1), reverse=True)
        return Response.json({"items": [{"id": id, "score": score} for id, score in scored]})

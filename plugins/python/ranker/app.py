"""Items in, the same items ordered by score out, the best first.

A request is `{"items":[{"id":..,"features":[32 numbers]}..]}`. The model takes a tensor
[items, 32]. The state has the ids.
"""

from operator import itemgetter
from typing import Any

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
    json,
)

FEATURES = 32
NUMBERS = {int, float}


@export
class Ranker(Processor):
    def preprocess(self, context: Context, request: Request) -> Prepared:
        items = field(request.json(), "items", list, "")
        if not items:
            raise InvalidInput("items is empty: at least one is needed")
        ids = []
        values: list[float] = []
        for index, item in enumerate(items):
            features = field(item, "features", list, f"items[{index}]")
            if len(features) != FEATURES:
                count = len(features)
                raise InvalidInput(f"items[{index}].features has {count} numbers, not {FEATURES}")
            values += features
            ids.append(field(item, "id", str, f"items[{index}]"))
        check_numbers(values)
        try:
            input = Tensor.from_values([len(ids), FEATURES], Dtype.FLOAT32, values)
        except OverflowError:
            raise InvalidInput("invalid JSON: a feature is out of range") from None
        return Prepared({"input": input}, json.dumps(ids))

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        ids = json.loads(state)
        scores = outputs.view("output", [len(ids), 1])
        scored = sorted(zip(ids, scores.shortest(), strict=True), key=itemgetter(1), reverse=True)
        return Response.json({"items": [{"id": id, "score": score} for id, score in scored]})


def field(record: Any, name: str, wanted: type, where: str) -> Any:
    """The field `name` of a JSON object, which is at `where` in the body."""
    try:
        value = record[name]
    except KeyError:
        raise InvalidInput(f"invalid JSON: {path(where, name)} is missing") from None
    except (TypeError, IndexError):
        raise InvalidInput(f"invalid JSON: {where or 'the body'} is not an object") from None
    if type(value) is not wanted:
        kind = "an array" if wanted is list else "a string"
        raise InvalidInput(f"invalid JSON: {path(where, name)} is not {kind}")
    return value


def path(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def check_numbers(values: list[Any]) -> None:
    """Raises `InvalidInput` if one of the features of all items is not a number."""
    if set(map(type, values)) <= NUMBERS:
        return
    for at, value in enumerate(values):
        if type(value) not in NUMBERS:
            where = f"items[{at // FEATURES}].features[{at % FEATURES}]"
            raise InvalidInput(f"invalid JSON: {where} is not a number")

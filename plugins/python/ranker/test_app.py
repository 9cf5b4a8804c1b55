import pytest
from gristmill_plugin import Dtype, Internal, InvalidInput, Outputs, Tensor, testing

from app import Ranker


def item(id, *features):
    return {"id": id, "features": [*features, *[0] * (32 - len(features))]}


def preprocess(body):
    return Ranker().preprocess(testing.context(), testing.request(json=body))


def postprocess(scores, ids):
    output = Tensor.from_values([len(scores), 1], Dtype.FLOAT32, scores)
    state = Tensor.from_values([len(ids)], Dtype.STRING, ids).tobytes()
    response = Ranker().postprocess(testing.context(), Outputs({"output": output}), state)
    return response.body.decode()


def test_items_become_rows_and_their_ids_the_state():
    prepared = preprocess({"items": [item("a", 1, 2.5), item("b", -1)]})
    rows = prepared.inputs["input"].view().rows()
    assert prepared.inputs["input"].shape == (2, 32)
    assert [row[:2].tolist() for row in rows] == [[1, 2.5], [-1, 0]]
    assert Tensor.from_bytes([2], Dtype.STRING, prepared.state).strings() == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"items": []}, "items is empty: at least one is needed"),
        ({"items": [item("a"), {"id": "b", "features": [1]}]}, "/items/1/features has 1 values, not 32"),
        ({}, "invalid JSON: /items is missing"),
        ([1], "invalid JSON: /items is missing"),
        ({"items": {}}, "invalid JSON: /items is an object, not a list"),
        ({"items": ["a"]}, "invalid JSON: /items/0 is a text, not an object"),
        ({"items": [{"id": "a"}]}, "invalid JSON: /items/0/features is missing"),
        ({"items": [item(1)]}, "invalid JSON: /items/0/id is a number, not a text"),
        ({"items": [item("a", 1, "2")]}, "/items/0/features/1 is a text, not a number"),
        ({"items": [item("a"), item("b", True)]}, "/items/1/features/0 is a boolean, not a number"),
        ({"items": [item("a", 10**400)]}, "/items/0/features/0 is out of FP32's range"),
    ],
)
def test_a_body_that_does_not_fit_is_refused(body, text):
    with pytest.raises(InvalidInput) as refused:
        preprocess(body)
    assert text in refused.value.text


def test_the_best_item_comes_first_and_equals_stay_in_order():
    assert postprocess([0.1, 0.9999883, 0.1], ["a", "b", "c"]) == (
        '{"items":[{"id":"b","score":0.9999883},{"id":"a","score":0.1},{"id":"c","score":0.1}]}'
    )


def test_a_model_of_another_shape_is_named():
    output = Tensor.from_values([1, 2], Dtype.FLOAT32, [0.1, 0.2])
    with pytest.raises(Internal, match=r"'output' has shape \[1, 2\], wanted \[None, 1\]"):
        Ranker().postprocess(testing.context(), Outputs({"output": output}), b"")

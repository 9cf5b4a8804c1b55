import struct

import pytest
from gristmill_plugin import (
    Dtype,
    Internal,
    InvalidInput,
    Outputs,
    Tensor,
    Unprocessable,
    store,
    testing,
)

from app import FEATURES, PRODUCTS_MAX, Recommend


def row(*values):
    return struct.pack(f"<{FEATURES}f", *values, *[0] * (FEATURES - len(values)))


FEATURES_OF = {
    "user:1": row(1, 2),
    "user:short": row()[4:],
    "product:7": row(7),
    "product:8": row(8),
}


@pytest.fixture
def features():
    with testing.store("features", FEATURES_OF, read_only=True) as bucket:
        yield bucket


def preprocess(body, **settings):
    return Recommend().preprocess(testing.context(settings=settings), testing.request(json=body))


def first_numbers(tensor):
    return [numbers[:2].tolist() for numbers in tensor.view().rows()]


def test_the_user_and_the_products_become_rows(features):
    prepared = preprocess({"userId": 1, "productIds": [8, 9, 7]})
    assert prepared.inputs["user"].shape == prepared.inputs["product"].shape == (3, FEATURES)
    assert first_numbers(prepared.inputs["user"]) == [[1, 2]] * 3
    assert first_numbers(prepared.inputs["product"]) == [[8, 0], [0, 0], [7, 0]]
    assert memoryview(prepared.state).cast("q").tolist() == [8, 9, 7]


def test_products_can_be_in_a_table(features):
    table = {"7": [70.0] * FEATURES, "8": [80.0] * FEATURES}
    with testing.table("products.csv", table):
        prepared = preprocess({"userId": 1, "productIds": [8, 9]}, table="products.csv")
    assert first_numbers(prepared.inputs["product"]) == [[80, 80], [0, 0]]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"userId": 1, "productIds": []}, "productIds has 0 ids: must be 1 to 1000"),
        ({"userId": 1, "productIds": [7] * (PRODUCTS_MAX + 1)}, "productIds has 1001 ids"),
        ({"userId": 1, "productIds": [[7]]}, "productIds has no flat list of ids"),
        ({"userId": 1, "productIds": [7.5]}, "/productIds/0 is"),
        ({"userId": 1}, "invalid JSON: /productIds is missing"),
        ({"productIds": [7]}, "invalid JSON: /userId is missing"),
        ({"userId": "1", "productIds": [7]}, "userId is '1', not an integer"),
        ({"userId": True, "productIds": [7]}, "userId is True, not an integer"),
        ({"userId": -1, "productIds": [7]}, "userId is -1, not an integer from 0 to 2^63 - 1"),
        ({"userId": 10**99, "productIds": [7]}, "00, not an integer from 0"),
    ],
)
def test_a_body_that_does_not_fit_is_refused(features, body, text):
    with pytest.raises(InvalidInput) as refused:
        preprocess(body)
    assert text in refused.value.text


def test_an_unknown_user_is_told_apart_from_a_store_that_fails(features):
    with pytest.raises(Unprocessable, match="userId is 2: this user has no features"):
        preprocess({"userId": 2, "productIds": [7]})
    features.values["user:3"] = features.values["user:short"]
    with pytest.raises(Internal, match="user:3 has 60 bytes, not 16 float32"):
        preprocess({"userId": 3, "productIds": [7]})
    features.fault = "no answer within 50 ms"
    with pytest.raises(store.Unavailable, match="within 50 ms"):
        preprocess({"userId": 1, "productIds": [7]})


def test_the_best_product_comes_first_and_equals_stay_in_order():
    score = Tensor.from_values([3, 1], Dtype.FLOAT32, [0.1, 0.9999883, 0.1])
    state = struct.pack("<3q", 7, 8, 9)
    response = Recommend().postprocess(testing.context(), Outputs({"score": score}), state)
    assert response.body.decode() == (
        '{"items":[{"productId":8,"score":0.9999883},'
        '{"productId":7,"score":0.1},{"productId":9,"score":0.1}]}'
    )

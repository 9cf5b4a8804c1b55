import base64
from pathlib import Path

import pytest
from gristmill_plugin import (
    Dtype,
    InvalidInput,
    ModelOverloaded,
    Tensor,
    UnsupportedMediaType,
    json,
    testing,
)

from app import IMAGES_MAX, Number

SAMPLES = Path(__file__).parents[3] / "models/digits/samples"
REQUESTS = Path(__file__).parent / "requests"


def photo(name):
    return base64.b64encode((SAMPLES / name).read_bytes()).decode()


def handle(body):
    return testing.handle(Number(), testing.context(), testing.request(json=body))


class Model:
    """Reads one digit after the other, whatever the photos show."""

    def __init__(self, *digits):
        self.digits = list(digits)
        self.inputs = []

    def __call__(self, inputs):
        self.inputs.append(inputs["input"])
        digit = self.digits.pop(0)
        logits = [9.0 if label == digit else 0.5 for label in range(10)]
        return {"output": Tensor.from_values([1, 10], Dtype.FLOAT32, logits)}


def test_each_photo_is_a_digit_of_the_number():
    pytest.importorskip("PIL")
    model = Model(7, 0, 3)
    body = {"images": [photo("7.png"), photo("0.png"), photo("three.jpg")]}
    with testing.model("digits", model):
        response = handle(body)
    assert json.loads(response.body) == {"digits": [7, 0, 3], "text": "703"}
    assert len(model.inputs) == 3
    for input in model.inputs:
        assert (input.shape, input.dtype) == ((1, 1, 28, 28), Dtype.FLOAT32)
        ink = input.view().values
        assert (min(ink), max(ink)) == pytest.approx((0, 1))
        # The corner has no ink, also in the photo of dark ink on paper.
        assert ink[0] < 0.3


def test_the_sample_is_a_request():
    pytest.importorskip("PIL")
    with testing.model("digits", Model(1, 2, 3, 4)):
        response = handle(json.loads((REQUESTS / "1234.json").read_bytes()))
    expected = json.loads((REQUESTS / "1234.expected.json").read_bytes())
    assert json.loads(response.body) == expected["json"]


def test_a_digit_that_the_model_does_not_read_fails_the_request():
    pytest.importorskip("PIL")
    model = Model(1)

    def busy_after_one(inputs):
        if model.digits:
            return model(inputs)
        raise ModelOverloaded("the model is too busy")

    with testing.model("digits", busy_after_one):
        failed = handle({"images": [photo("1.png"), photo("2.png")]})
    assert failed == testing.Failed(503, "the model is too busy")


@pytest.mark.parametrize("images", [[], ["QQ=="] * (IMAGES_MAX + 1), [["QQ=="]], "QQ=="])
def test_a_number_has_at_least_a_digit_and_not_too_many(images):
    failed = handle({"images": images})
    assert failed == testing.Failed(400, "images is not a list of 1 to 32 texts in base64")


def test_what_is_not_a_photo_is_refused():
    pytest.importorskip("PIL")
    number, context = Number(), testing.context()
    for images, kind, text in [
        (["?"], InvalidInput, "/images/0"),
        ([1], InvalidInput, "/images/0 is a number, not a text"),
        (["QUJD"], UnsupportedMediaType, "not a JPEG, PNG, WebP, BMP or GIF"),
    ]:
        with pytest.raises(kind, match=text):
            number.handle(context, testing.request(json={"images": images}))
    with pytest.raises(InvalidInput, match="/images is missing"):
        number.handle(context, testing.request(json={}))

from pathlib import Path

import pytest
from gristmill_plugin import (
    Dtype,
    Internal,
    InvalidInput,
    Outputs,
    Tensor,
    UnsupportedMediaType,
    json,
    testing,
)
from gristmill_plugin.image import Color, Pixels

from app import Digits, to_ink

SEVEN = Path(__file__).parents[3] / "models/digits/samples/seven.png"


def preprocess(request):
    return Digits().preprocess(testing.context(), request)


def postprocess(logits):
    output = Tensor.from_values([1, len(logits)], Dtype.FLOAT32, logits)
    outputs = Outputs({"output": output})
    response = Digits().postprocess(testing.context(), outputs, b"")
    return json.loads(response.body)


def test_a_photo_becomes_ink_from_0_to_1():
    pytest.importorskip("PIL")
    photo = SEVEN.read_bytes()
    input = preprocess(testing.request(photo)).inputs["input"]
    assert (input.shape, input.dtype) == ((1, 1, 28, 28), Dtype.FLOAT32)
    ink = input.view().values
    assert (min(ink), max(ink)) == pytest.approx((0, 1))
    assert ink[0] < 0.2
    part = preprocess(testing.request(parts=[testing.Part(photo)])).inputs["input"]
    assert part.tobytes() == input.tobytes()


@pytest.mark.parametrize(
    ("luma", "ink"),
    [
        ([0, 0, 0, 51], [0, 0, 0, 1]),
        ([10, 20, 20, 110], [0, 0.1, 0.1, 1]),
        ([255, 255, 155, 205], [0, 0, 1, 0.5]),
        ([51, 51, 51, 51], [0.2, 0.2, 0.2, 0.2]),
        ([204, 204, 204, 204], [0.2, 0.2, 0.2, 0.2]),
    ],
)
def test_dark_ink_on_paper_is_inverted(luma, ink):
    pytest.importorskip("PIL")
    picture = Pixels.from_bytes(2, 2, Color.GRAY, bytes(luma))
    assert to_ink(picture).view().values.tolist() == pytest.approx(ink, abs=1e-6)


def test_what_is_not_a_photo_is_refused():
    pytest.importorskip("PIL")
    with pytest.raises(UnsupportedMediaType, match="not a JPEG, PNG, WebP, BMP or GIF"):
        preprocess(testing.request(b"not a picture"))
    with pytest.raises(InvalidInput, match="malformed image: "):
        preprocess(testing.request(SEVEN.read_bytes()[:200]))


def test_logits_become_the_three_best_labels():
    reading = postprocess([0, 0, 1, 0, 0, 0, 0, 9, 0, 2])
    assert reading["label"] == 7
    assert [candidate["label"] for candidate in reading["top"]] == [7, 9, 2]
    assert reading["probability"] == reading["top"][0]["probability"]
    assert reading["probability"] == pytest.approx(0.9978, abs=1e-4)


def test_a_model_of_another_shape_is_named():
    with pytest.raises(Internal, match=r"'output' has shape \[1, 9\], wanted \[1, 10\]"):
        postprocess([0] * 9)

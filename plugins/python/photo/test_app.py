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

from app import Photo

PHOTO = Path(__file__).parents[3] / "benches/scenarios/photo.jpg"


def preprocess(request):
    return Photo().preprocess(testing.context(), request)


def postprocess(logits):
    output = Tensor.from_values([1, len(logits)], Dtype.FLOAT32, logits)
    response = Photo().postprocess(testing.context(), Outputs({"logits": output}), b"")
    return json.loads(response.body)


def test_a_photo_becomes_values_from_minus_1_to_1():
    pytest.importorskip("PIL")
    photo = PHOTO.read_bytes()
    images = preprocess(testing.request(photo)).inputs["images"]
    assert (images.shape, images.dtype) == ((1, 3, 224, 224), Dtype.FLOAT32)
    values = images.view().values
    assert -127 / 128 <= min(values) < 0 < max(values) <= 1
    parts = [testing.Part(b"x", name="note"), testing.Part(photo, name="image")]
    form = preprocess(testing.request(parts=parts)).inputs["images"]
    assert form.tobytes() == images.tobytes()


def test_what_is_not_a_photo_is_refused():
    pytest.importorskip("PIL")
    with pytest.raises(UnsupportedMediaType, match="not a JPEG, PNG, WebP, BMP or GIF"):
        preprocess(testing.request(b"photo"))
    with pytest.raises(InvalidInput, match="the form has no part 'image', but 'photo'"):
        preprocess(testing.request(parts=[testing.Part(b"", name="photo")]))
    with pytest.raises(InvalidInput, match="/image is missing"):
        preprocess(testing.request(json={"picture": ""}))


def test_logits_become_the_five_best_labels():
    with testing.asset("labels.txt", "tench\ncat\ndog\ncup\ncar\nbus\n"):
        answer = postprocess([0, 9, 1, 8, 2, 3])
    assert [one["label"] for one in answer["top"]] == ["cat", "cup", "bus", "car", "dog"]
    assert answer["prediction"] == "cat"
    assert answer["probability"] == answer["top"][0]["probability"]
    assert answer["probability"] == pytest.approx(0.729, abs=1e-3)


def test_labels_that_do_not_fit_the_model_are_named():
    fault = r"labels.txt has 2 lines, but the logits have shape \[1, 3\]"
    wrong = pytest.raises(Internal, match=fault)
    with testing.asset("labels.txt", "tench\ncat\n"), wrong:
        postprocess([0, 1, 2])

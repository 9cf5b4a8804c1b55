import pytest

from gristmill_plugin import Dtype, Internal, Outputs, Tensor


@pytest.fixture
def outputs():
    scores = Tensor.from_values([1, 2], Dtype.FLOAT32, [1, 2])
    labels = Tensor.from_values([1], Dtype.INT64, [7])
    return Outputs({"scores": scores, "labels": labels})


def test_outputs_are_a_mapping_in_the_models_order(outputs):
    assert list(outputs) == ["scores", "labels"]
    assert [tensor.dtype for tensor in outputs.values()] == [Dtype.FLOAT32, Dtype.INT64]
    assert "labels" in outputs and "boxes" not in outputs and outputs.get("boxes") is None


def test_a_missing_output_is_named_with_those_there(outputs):
    with pytest.raises(Internal, match=r"no output 'boxes', it has \['scores', 'labels'\]"):
        outputs["boxes"]


def test_a_view_checks_shape_and_dtype(outputs):
    assert list(outputs.view("scores", [None, 2])) == [1, 2]
    assert list(outputs.view("labels", [1], Dtype.INT64)) == [7]
    with pytest.raises(Internal, match=r"'scores' has shape \[1, 2\], wanted \[None, 3\]"):
        outputs.view("scores", [None, 3])
    with pytest.raises(Internal, match=r"'scores' has shape \[1, 2\], wanted \[2\]"):
        outputs.view("scores", [2])
    with pytest.raises(Internal, match="'labels' is INT64, wanted FLOAT32"):
        outputs.tensor("labels", [1])

from pathlib import Path

import pytest
from app import Plugin

from gristmill_plugin import Dtype, InvalidInput, Outputs, Tensor, json, testing

SAMPLE = Path(__file__).parent / "requests/rows.json"


def preprocess(body: bytes):
    return Plugin().preprocess(testing.context(), testing.request(body))


def test_rows_become_the_models_input():
    input = preprocess(SAMPLE.read_bytes()).inputs["input"]
    assert input.shape == (2, 4)
    assert input.view().tolist()[1] == [5, 6, 7, 8]


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"[[1], [2, 3]]", b'[["x"]]'])
def test_any_other_body_is_refused(body):
    with pytest.raises(InvalidInput):
        preprocess(body)


def test_outputs_become_lists():
    outputs = Outputs({"output": Tensor.from_values([2, 1], Dtype.FLOAT32, [0.5, 0.25])})
    response = Plugin().postprocess(testing.context(), outputs, b"")
    assert json.loads(response.body) == {"outputs": [[0.5], [0.25]]}

import base64
import math
import struct
from pathlib import Path

import pytest
from gristmill_plugin import Dtype, Outputs, Tensor, json, testing

from app import WIDTH, Embed

WORDS = Path(__file__).parents[3] / "host/text/tests/fixtures/byte_fallback.json"


@pytest.fixture(autouse=True)
def tokenizer():
    pytest.importorskip("tokenizers")
    with testing.tokenizer("tokenizer.json", WORDS):
        yield


def preprocess(body):
    return testing.preprocess(Embed(), testing.context(), testing.request(json=body))


def answer(body, *rows):
    """The answer to `body` if the model gives these rows, whose other numbers are 0."""
    values = [value for row in rows for value in [*row, *[0] * (WIDTH - len(row))]]
    vectors = Tensor.from_values([len(rows), WIDTH], Dtype.FLOAT32, values)
    outputs, state = Outputs({"vectors": vectors}), preprocess(body).state
    return json.loads(Embed().postprocess(testing.context(), outputs, state).body)


def test_texts_become_tokens_without_special_ones_and_a_mask():
    inputs = preprocess({"texts": ["the the", "", "the"]}).inputs
    ids, mask = (inputs[name].view().tolist() for name in ("input_ids", "attention_mask"))
    assert mask == [[1] * 5, [0] * 5, [1, 1, 1, 0, 0]]
    # "\u2581", "th", "e\u2581", "th", "e"
    assert ids[0][:2] == ids[2][:2] and ids[0][4] == ids[2][2]


def test_vectors_are_those_of_the_model_or_have_length_1():
    [vector] = answer({"texts": ["the"]}, [3, 4])["vectors"]
    assert vector[:3] == [3, 4, 0]
    pytest.importorskip("numpy")
    vectors = answer({"texts": ["the", ""], "norm": True}, [3, 4], [0])["vectors"]
    assert vectors[0][:2] == pytest.approx([0.6, 0.8])
    assert vectors[1] == [0] * WIDTH


@pytest.mark.parametrize("form", [None, "float", "base64"])
def test_clients_of_openai_get_its_answer(form):
    pytest.importorskip("numpy")
    body = {"input": ["the the", "the"], "model": "m"}
    found = answer(body if form is None else {**body, "encoding_format": form}, [3, 4], [0, -2])
    assert (found["object"], found["usage"]) == ("list", {"prompt_tokens": 8, "total_tokens": 8})
    assert [(item["object"], item["index"]) for item in found["data"]] == [
        ("embedding", 0),
        ("embedding", 1),
    ]
    for item, expected in zip(found["data"], [[0.6, 0.8], [0, -1]], strict=True):
        vector = item["embedding"]
        if form == "base64":
            vector = struct.unpack(f"<{WIDTH}f", base64.b64decode(vector))
        assert vector[:2] == pytest.approx(expected)
        assert math.fsum(value * value for value in vector) == pytest.approx(1)


def test_input_may_be_one_text():
    assert preprocess({"input": "the"}).inputs["input_ids"].shape == (1, 3)


def test_null_is_as_good_as_nothing():
    pytest.importorskip("numpy")
    body = {"input": "the", "dimensions": None, "encoding_format": None}
    assert answer(body, [3, 4])["data"][0]["embedding"][:2] == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({}, 400, "/input is missing"),
        ([], 400, "/input is missing"),
        ({"texts": "the"}, 400, "texts is not a list of texts"),
        ({"texts": [["the"]]}, 400, "texts is not a list of texts"),
        ({"texts": ["the", 1]}, 400, "/texts/1 is a number, not a text"),
        ({"input": [[1, 2]]}, 400, "/input/0/0 is a number, not a text"),
        ({"texts": ["the"], "norm": 1}, 400, "norm is 1, not true or false"),
        ({"input": "the", "encoding_format": "int8"}, 400, "encoding_format is 'int8', not"),
        ({"input": "the", "dimensions": 64}, 422, "dimensions is 64; this model's vectors have"),
        ({"texts": []}, 422, "texts has 0 texts; a request may have 1 to 2048"),
        ({"input": ["the"] * 2049}, 422, "input has 2049 texts; a request may have 1 to 2048"),
        ({"texts": ["", "the " * 4096]}, 422, "texts/1 has 8193 tokens; a text may have 8192"),
        ({"input": ["", "the " * 300] * 500}, 422, "1000 texts as long as input/1, the longest"),
    ],
)
def test_what_does_not_fit_is_refused(body, status, text):
    failed = preprocess(body)
    assert failed.status == status
    assert text in failed.text

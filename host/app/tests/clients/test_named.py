"""A pipeline with named inputs and outputs, called as a model of another server was."""

import base64
from typing import Any

import numpy as np
import tritonclient.http as httpclient

from libraries import HttpLibrary, Library
from marks import once_over_http, over_http
from server import CA_FILE, HTTP, KEY, NAMED, bearer
from values import MODELS, dims


def photo(digit: int) -> bytes:
    return (MODELS / f"digits/samples/{digit}.png").read_bytes()


def photos(*digits: int) -> np.ndarray:
    """Rows of photos in base64."""
    rows = [[base64.b64encode(photo(digit)).decode()] for digit in digits]
    return np.array(rows, dtype=np.object_)


def request_triton(image: bytes) -> tuple[Any, Any]:
    """What a web application in front of Triton does with a picture that somebody has sent."""
    triton_client = httpclient.InferenceServerClient(url=HTTP)
    inputs = [httpclient.InferInput("INPUT_IMAGE", [1, 1], "BYTES")]
    encoded = base64.b64encode(image).decode("utf-8")
    inputs[0].set_data_from_numpy(np.array([[encoded]], dtype=object))
    outputs = [
        httpclient.InferRequestedOutput("DIGIT", binary_data=False),
        httpclient.InferRequestedOutput("PROBABILITY", binary_data=False),
    ]
    results = triton_client.infer(
        model_name=NAMED, inputs=inputs, outputs=outputs, headers=bearer(KEY)
    )
    return results.as_numpy("DIGIT")[0, 0], results.as_numpy("PROBABILITY")[0, 0]


@once_over_http
async def test_an_application_of_triton_stays_as_it_is() -> None:
    assert not CA_FILE
    for digit in range(10):
        label, probability = request_triton(photo(digit))
        assert label == digit and 0.5 < probability <= 1, (label, probability)


async def test_each_row_is_answered(library: Library) -> None:
    for name in (NAMED, f"pipeline:{NAMED}"):
        result = await library.infer(name, photos(7, 1, 4), name="INPUT_IMAGE")
        labels, probabilities = result.as_numpy("DIGIT"), result.as_numpy("PROBABILITY")
        assert labels.dtype == np.int64 and labels.tolist() == [[7], [1], [4]], labels
        assert probabilities.dtype == np.float32 and probabilities.shape == (3, 1)
        assert (probabilities > 0.5).all(), probabilities


async def test_it_says_what_it_takes(library: Library) -> None:
    assert await library.ready(NAMED)
    document = await library.document("get_model_metadata", NAMED)
    [image] = document["inputs"]
    assert (image["name"], image["datatype"], dims(image)) == ("INPUT_IMAGE", "BYTES", [-1, 1])
    named = [(tensor["name"], tensor["datatype"], dims(tensor)) for tensor in document["outputs"]]
    assert named == [("DIGIT", "INT64", [-1, 1]), ("PROBABILITY", "FP32", [-1, 1])]
    config = await library.config(NAMED)
    assert int(config["max_batch_size"]) == 64, config
    [image] = config["input"]
    assert [int(size) for size in image["dims"]] == [1], config


async def test_a_row_that_fails_is_named(library: Library) -> None:
    rows = photos(1, 2, 3)
    rows[2][0] = base64.b64encode(b"no picture").decode()
    inputs = [library.input("INPUT_IMAGE", rows)]
    message = await library.refused((400, 415), "infer", NAMED, inputs)
    assert "row 2: " in message, message
    inputs = [library.input("INPUT_IMAGE", photos(1)[0])]
    message = await library.refused(400, "infer", NAMED, inputs)
    assert "the pipeline takes [-1, 1]" in message, message
    outputs = [library.module.InferRequestedOutput("FOOD_LABEL")]
    inputs = [library.input("INPUT_IMAGE", photos(1))]
    message = await library.refused(400, "infer", NAMED, inputs, outputs=outputs)
    assert "unknown output" in message, message


@over_http
async def test_it_speaks_json_too(library: HttpLibrary) -> None:
    outputs = [library.module.InferRequestedOutput("PROBABILITY", binary_data=False)]
    inputs = [library.input("INPUT_IMAGE", photos(8, 0), binary_data=False)]
    result = await library.call("infer", NAMED, inputs, outputs=outputs)
    assert result.as_numpy("PROBABILITY").shape == (2, 1)
    assert result.as_numpy("DIGIT") is None

"""The classes of outputs: the places of their largest elements, with labels."""

from typing import Any

import numpy as np

from libraries import Library
from values import features

ROWS = np.array([[0.25, 0.75, 0.5], [3, -1, 2]], dtype=np.float32)


async def classes(library: Library, model: str, rows: np.ndarray, count: int) -> Any:
    """The classes of an identity model's output."""
    outputs = [library.module.InferRequestedOutput("output", class_count=count)]
    inputs = [library.input("input", rows)]
    result = await library.call("infer", model, inputs, outputs=outputs)
    [output] = library.response(result)["outputs"]
    assert (output["name"], output["datatype"]) == ("output", "BYTES"), output
    return result.as_numpy("output")


async def test_classes_are_of_each_row_the_largest_first(library: Library) -> None:
    expected = [[b"0.750000:1:dog", b"0.500000:2"], [b"3.000000:0:cat", b"2.000000:2"]]
    got = await classes(library, "identity-fp32", ROWS, 2)
    assert got.tolist() == expected, got
    # No more than a row has.
    got = await classes(library, "identity-fp32", ROWS[:1], 1000)
    assert got.tolist() == [[b"0.750000:1:dog", b"0.500000:2", b"0.250000:0:cat"]], got
    # A model without labels.
    got = await classes(library, "identity-int32", np.array([[7, -9, 8]], dtype=np.int32), 2)
    assert got.tolist() == [[b"8:2", b"7:0"]], got


async def test_a_model_without_rows_has_one_row(library: Library) -> None:
    rows = np.array([[0, 5, 1], [4, 3, 2]], dtype=np.float32)
    got = await classes(library, "fixed-rows", rows, 2)
    assert got.tolist() == [b"5.000000:1", b"4.000000:3"], got


async def test_classes_of_many_rows_are_made(library: Library) -> None:
    rows = np.tile(np.arange(1000, dtype=np.float32), (200, 1))
    got = await classes(library, "identity-fp32", rows, 2)
    assert got.shape == (200, 2) and set(got[:, 0]) == {b"999.000000:999"}, got


async def test_pipelines_have_no_classes(library: Library) -> None:
    outputs = [library.module.InferRequestedOutput("RESPONSE", class_count=1)]
    inputs = [library.input("REQUEST", np.array([b"{}"], dtype=np.object_))]
    message = await library.refused(400, "infer", "pipeline:ranker", inputs, outputs=outputs)
    assert "no classes" in message, message
    assert (await library.infer("ranker", features(1))).as_numpy("output").shape == (1, 1)


async def test_the_configuration_names_labels_and_formats(library: Library) -> None:
    config = await library.config("identity-fp32")
    assert config["output"][0]["label_filename"] == "labels.txt", config
    assert config["input"][0]["format"] == "FORMAT_NONE", config
    config = await library.config("identity-int32")
    assert config["output"][0]["label_filename"] == "", config

"""Pipelines as models."""

from typing import Any

import numpy as np

from libraries import HttpLibrary, Library
from marks import over_http
from server import NAMED, PIPELINES
from values import answer_of, dims, picture, ranking


async def test_a_pipeline_is_a_model_of_bytes(library: Library) -> None:
    for name in PIPELINES - {f"pipeline:{NAMED}"}:
        assert await library.ready(name)
        document = await library.document("get_model_metadata", name)
        for tensors, tensor in (("inputs", "REQUEST"), ("outputs", "RESPONSE")):
            [tensors] = document[tensors]
            assert (tensors["name"], tensors["datatype"]) == (tensor, "BYTES"), document
            assert dims(tensors) == [1], document
        document = await library.config(name)
        assert int(document["max_batch_size"]) == 0, document
        [tensor] = document["input"]
        assert (tensor["name"], tensor["data_type"]) == ("REQUEST", "TYPE_STRING"), document
        assert [int(size) for size in tensor["dims"]] == [1], document
        [statistics] = (await library.document("get_inference_statistics", name))["model_stats"]
        assert statistics["name"] == name


async def test_a_pipeline_answers(library: Library) -> None:
    for digit in range(10):
        result = await library.infer("pipeline:digits", picture(digit), name="REQUEST")
        assert answer_of(result)["label"] == digit
    result = await library.infer("pipeline:ranker", ranking(), name="REQUEST")
    assert [item["id"] for item in answer_of(result)["items"]] == ["a"]


async def test_what_a_pipeline_cannot_take_is_refused(library: Library) -> None:
    def request(name: str, array: np.ndarray) -> list[Any]:
        return [library.input(name, array)]

    garbage = np.array([b"\xff\x00 no picture"], dtype=np.object_)
    two = np.array([b"", b""], dtype=np.object_)
    number = np.array([1], dtype=np.int32)
    await library.refused((400, 415), "infer", "pipeline:digits", request("REQUEST", garbage))
    await library.refused(400, "infer", "pipeline:digits", request("REQUEST", two))
    await library.refused(400, "infer", "pipeline:digits", request("REQUEST", number))
    await library.refused(400, "infer", "pipeline:digits", request("input", picture(7)))
    await library.refused(400, "infer", "pipeline:digits", [])
    await library.refused(404, "infer", "pipeline:nothing", request("REQUEST", picture(7)))


@over_http
async def test_a_pipeline_speaks_json_too(library: HttpLibrary) -> None:
    outputs = [library.module.InferRequestedOutput("RESPONSE", binary_data=False)]
    inputs = [library.input("REQUEST", ranking(), binary_data=False)]
    result = await library.call("infer", "pipeline:ranker", inputs, outputs=outputs)
    assert [item["id"] for item in answer_of(result)["items"]] == ["a"]

"""Requests to models and their answers."""

import json

import numpy as np

from libraries import HttpLibrary, Library
from marks import over_http
from server import GRANTED, PIPELINES
from values import MODELS, NUMPY_TYPES, TEXTS, answer_of, assert_same, batches, features, picture


async def test_several_inputs_and_outputs_go_by_their_names(library: Library) -> None:
    document = await library.document("get_model_metadata", "simple")
    both, turned = ["OUTPUT0", "OUTPUT1"], ["OUTPUT1", "OUTPUT0"]
    for tensors, names in (("inputs", ["INPUT0", "INPUT1"]), ("outputs", both)):
        assert [tensor["name"] for tensor in document[tensors]] == names, document
    one, two = (np.arange(48, dtype=np.int32).reshape(3, 16) * factor for factor in (1, 1000))
    expected = {"OUTPUT0": one + two, "OUTPUT1": one - two}
    inputs = [library.input("INPUT0", one), library.input("INPUT1", two)]
    for asked in (None, both, turned, both[:1], both[1:]):
        outputs = asked and [library.module.InferRequestedOutput(name) for name in asked]
        names = asked or both
        for sent in (inputs, inputs[::-1]):
            result = await library.call("infer", "simple", sent, outputs=outputs)
            assert [output["name"] for output in library.response(result)["outputs"]] == names
            for name in names:
                assert (result.as_numpy(name) == expected[name]).all(), (names, name)
    short = library.input("INPUT1", two[:2])
    for wrong in (inputs[:1], [inputs[0], short], [*inputs, library.input("INPUT2", one)]):
        assert "INPUT" in await library.refused(400, "infer", "simple", wrong)


async def test_every_datatype_comes_back_as_it_was_sent(library: Library) -> None:
    for datatype in NUMPY_TYPES:
        for batch in batches(datatype):
            assert_same(await library.infer(f"identity-{datatype.lower()}", batch), batch)


async def test_outputs_may_be_asked_for_by_name(library: Library) -> None:
    outputs = [library.module.InferRequestedOutput("output")]
    for datatype in NUMPY_TYPES:
        [batch, *_] = batches(datatype)
        result = await library.infer(f"identity-{datatype.lower()}", batch, outputs=outputs)
        assert_same(result, batch)
        [output] = library.response(result)["outputs"]
        assert (output["name"], output["datatype"]) == ("output", datatype)


async def test_more_rows_than_a_batch_holds_are_answered_in_order(library: Library) -> None:
    rows = np.arange(1800, dtype=np.int32).reshape(600, 3)
    assert_same(await library.infer("identity-int32", rows), rows)


async def test_tensors_of_megabytes_go_through(library: Library) -> None:
    rows = np.arange(16 * 100_000, dtype=np.float32).reshape(16, 100_000)
    assert_same(await library.infer("identity-fp32", rows), rows)


async def test_tensors_may_have_no_elements(library: Library) -> None:
    empty = np.zeros((1, 0), dtype=np.float32)
    assert_same(await library.infer("identity-fp32", empty), empty)


async def test_many_requests_at_once_get_their_own_answers(library: Library) -> None:
    batches = [np.full((1 + index % 3, 4), index, dtype=np.int64) for index in range(64)]
    results = await library.infer_many("identity-int64", batches)
    for result, batch in zip(results, batches, strict=True):
        assert_same(result, batch)


async def test_bodies_may_be_compressed(library: Library) -> None:
    rows = np.zeros((8, 1024), dtype=np.float32)
    texts = np.array([TEXTS] * 50, dtype=np.object_)
    for compression in library.compressions:
        assert_same(await library.infer("identity-fp32", rows, **compression), rows)
        assert_same(await library.infer("identity-bytes", texts, **compression), texts)


async def test_ids_come_back(library: Library) -> None:
    for request_id in ("order-66", 'grüße "😀"', "x" * 200):
        result = await library.infer("ranker", features(1), request_id=request_id)
        assert library.response(result)["id"] == request_id
        result = await library.infer(
            "pipeline:digits", picture(7), name="REQUEST", request_id=request_id
        )
        assert library.response(result)["id"] == request_id


async def test_parameters_are_taken(library: Library) -> None:
    result = await library.infer(
        "ranker",
        features(3),
        priority=1,
        timeout=30_000_000,
        parameters={"of-my-own": "text", "count": 3, "flag": True},
    )
    assert result.as_numpy("output").shape == (3, 1)


async def test_a_level_that_the_model_has_not_is_its_default_level(library: Library) -> None:
    for model in ("ranker", "configured"):
        result = await library.infer(model, features(1), priority=9)
        assert result.as_numpy("output").shape == (1, 1)


async def test_the_ranker_gives_its_recorded_scores(library: Library) -> None:
    for case in json.loads((MODELS / "ranker/golden.json").read_text())["cases"]:
        rows, scores = (
            np.array(tensor["data"], dtype=np.float32).reshape(tensor["shape"])
            for tensor in (case["inputs"][0], case["outputs"][0])
        )
        got = (await library.infer("ranker", rows)).as_numpy("output")
        assert got.shape == scores.shape and np.abs(got - scores).max() < 1e-4


@over_http
async def test_a_tenant_may_stand_in_the_path(library: HttpLibrary) -> None:
    below = library.at("/v1/acme")
    try:
        assert await below.call("is_server_live") and await below.call("is_server_ready")
        assert (await below.document("get_server_metadata"))["name"]
        assert await below.ready("ranker")
        assert set(await below.index()) == GRANTED | PIPELINES
        assert_same(await below.infer("identity-fp32", features(5)), features(5))
        result = await below.infer("pipeline:digits", picture(7), name="REQUEST")
        assert answer_of(result)["label"] == 7
        inputs = [below.input("input", features(1))]
        await below.refused(401, "infer", "ranker", inputs, key=None)
    finally:
        await below.close()
    other = library.at("/v1/other")
    try:
        inputs = [other.input("input", features(1))]
        await other.refused(401, "infer", "ranker", inputs)
        await other.refused(401, "get_model_repository_index")
    finally:
        await other.close()

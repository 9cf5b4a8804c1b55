"""Metadata of the server and of its models."""

import json

import grpc
import numpy as np

from libraries import Library
from marks import once_over_grpc
from server import ADMIN_TOKEN, GRANTED, OTHERS, OTHERS_KEY, PATIENCE_S, PIPELINES, grpc_channel
from values import NUMPY_TYPES, assert_same, dims, features


async def test_health_needs_no_key(library: Library) -> None:
    assert await library.call("is_server_live", key=None) is True
    assert await library.call("is_server_ready", key=None) is True


async def test_the_server_says_what_it_can(library: Library) -> None:
    document = await library.document("get_server_metadata")
    assert document["name"] and document["version"], document
    extensions = set(document["extensions"])
    offered = {"classification", "model_configuration", "model_repository", "statistics"}
    offered |= {"binary_tensor_data"} if library.protocol == "http" else set()
    assert offered <= extensions, extensions
    refused = {"system_shared_memory", "cuda_shared_memory", "sequence", "trace"}
    assert not refused & extensions, extensions


async def test_models_say_what_they_take(library: Library) -> None:
    for datatype in NUMPY_TYPES:
        name = f"identity-{datatype.lower()}"
        assert await library.ready(name)
        document = await library.document("get_model_metadata", name)
        assert document["name"] == name and document["platform"], document
        for tensors, tensor in (("inputs", "input"), ("outputs", "output")):
            [tensors] = document[tensors]
            assert (tensors["name"], tensors["datatype"]) == (tensor, datatype), document
            assert dims(tensors) == [-1, -1], document
    document = await library.document("get_model_metadata", "ranker")
    assert (dims(document["inputs"][0]), dims(document["outputs"][0])) == ([-1, 32], [-1, 1])


async def test_models_say_how_they_are_configured(library: Library) -> None:
    document = await library.config("ranker")
    assert document["name"] == "ranker" and int(document["max_batch_size"]) > 1, document
    assert "dynamic_batching" in document and "sequence_batching" not in document, document
    assert document["platform"] or document["backend"], document
    # Triton's form, without the dimension of the batch.
    for tensors, name, sizes in (("input", "input", [32]), ("output", "output", [1])):
        [tensor] = document[tensors]
        assert (tensor["name"], tensor["data_type"]) == (name, "TYPE_FP32"), document
        assert [int(size) for size in tensor["dims"]] == sizes, document


async def test_a_configuration_is_told_in_tritons_words(library: Library) -> None:
    document = await library.document("get_model_config", "configured")
    # gRPC's messages have 64-bit numbers as texts, and numbers as keys.
    document = json.loads(json.dumps(document.get("config", document)))
    batching, [group] = document["dynamic_batching"], document["instance_group"]
    assert document["max_batch_size"] == 16 and group["count"] == 2, document
    assert (group["name"], group["kind"]) == ("configured", "KIND_CPU"), document
    assert batching["preferred_batch_size"] == [4, 8], batching
    numbers = ("max_queue_delay_microseconds", "priority_levels", "default_priority_level")
    assert [int(batching[name]) for name in numbers] == [1500, 3, 3], batching
    # Action, timeout, whether a request may shorten it, and requests: the first level's own, and
    # the default.
    policies = {
        level: (
            policy["timeout_action"],
            int(policy["default_timeout_microseconds"]),
            policy["allow_timeout_override"],
            policy["max_queue_size"],
        )
        for level, policy in batching["priority_queue_policy"].items()
    }
    default = ("DELAY", 5_000_000, False, 0)
    assert policies == {"1": ("REJECT", 0, True, 7), "2": default, "3": default}, batching


async def test_a_model_of_fixed_rows_is_not_batched(library: Library) -> None:
    document = await library.document("get_model_metadata", "fixed-rows")
    assert [dims(tensor) for tensor in document["inputs"] + document["outputs"]] == [[2, 3]] * 2
    document = await library.config("fixed-rows")
    assert int(document["max_batch_size"]) == 0 and "dynamic_batching" not in document, document
    for tensor in document["input"] + document["output"]:
        assert [int(size) for size in tensor["dims"]] == [2, 3], document
    for rows in (1, 3, 4):
        inputs = [library.input("input", np.ones((rows, 3), dtype=np.float32))]
        assert "2, 3" in await library.refused(400, "infer", "fixed-rows", inputs)
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert_same(await library.infer("fixed-rows", rows), rows)


async def test_a_model_has_the_version_of_its_release(library: Library) -> None:
    [version] = (await library.document("get_model_metadata", "ranker"))["versions"]
    assert int(version) > 0
    assert await library.ready("ranker", version)
    assert (await library.document("get_model_metadata", "ranker", version))["name"] == "ranker"
    assert await library.document("get_model_config", "ranker", version)
    statistics = await library.document("get_inference_statistics", "ranker", version)
    assert [own["version"] for own in statistics["model_stats"]] == [version]
    result = await library.infer("ranker", features(1), model_version=version)
    response = library.response(result)
    assert (response["model_name"], response["model_version"]) == ("ranker", version)
    for wrong in (str(int(version) + 1000), "0", "latest", f"0{version}"):
        assert not await library.ready("ranker", wrong)
        for method in ("get_model_metadata", "get_model_config", "get_inference_statistics"):
            await library.refused(404, method, "ranker", wrong)
        inputs = [library.input("input", features(1))]
        await library.refused(404, "infer", "ranker", inputs, model_version=wrong)


async def test_the_index_lists_what_the_tenant_may_use(library: Library) -> None:
    index = await library.index()
    assert set(index) == GRANTED | PIPELINES, sorted(index)
    assert all(model["state"] == "READY" for model in index.values()), index
    [version] = (await library.document("get_model_metadata", "ranker"))["versions"]
    assert index["ranker"]["version"] == version


async def test_each_tenant_sees_its_own_models(library: Library) -> None:
    for key, names in ((OTHERS_KEY, OTHERS), (ADMIN_TOKEN, GRANTED | {"digits"})):
        assert {model["name"] for model in await library.entries(key)} == names
        every = (await library.document("get_inference_statistics", key=key))["model_stats"]
        assert {statistics["name"] for statistics in every} == names, every
    inputs = [library.input("input", features(1))]
    await library.refused(404, "infer", "identity-fp32", inputs, key=OTHERS_KEY)
    await library.refused(404, "infer", "pipeline:ranker", inputs, key=OTHERS_KEY)
    await library.refused(404, "get_model_metadata", "waits", key=OTHERS_KEY)
    # The administrator sees everything and runs nothing.
    await library.refused(403, "infer", "ranker", inputs, key=ADMIN_TOKEN)


@once_over_grpc
async def test_the_health_service_says_serving() -> None:
    with grpc_channel() as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        # The messages by hand: an empty one asks for the server, field 1 of the answer is SERVING.
        assert check(b"", timeout=PATIENCE_S) == b"\x08\x01"
        service = b"inference.GRPCInferenceService"
        assert check(b"\x0a" + bytes([len(service)]) + service, timeout=PATIENCE_S) == b"\x08\x01"
        try:
            check(b"\x0a\x07nothing", timeout=PATIENCE_S)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND, error
        else:
            raise AssertionError("a service that is not there is healthy")

"""Calls that only an administrator may make."""

import io
import json
import tarfile
from typing import Any

import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

from libraries import GrpcLibrary, Library
from marks import changes_the_server, once_over_grpc
from server import (
    ADMIN,
    ADMIN_TOKEN,
    GRANTED,
    KEY,
    NOBODYS,
    PIPELINES,
    administer,
    bearer,
    grpc_channel,
    send,
)
from values import FIXTURES, assert_same, features


@changes_the_server
async def test_an_earlier_version_is_no_longer_loaded(library: Library) -> None:
    model = "identity-uint8"
    [earlier] = (await library.document("get_model_metadata", model))["versions"]
    content = (FIXTURES / "identity-fp32.onnx").read_bytes()
    administer("PUT", f"models/{model}?force=true", content)
    [version] = (await library.document("get_model_metadata", model))["versions"]
    assert int(version) > int(earlier)
    entries = [entry for entry in await library.entries() if entry["name"] == model]
    told = [(entry["version"], entry["state"], entry["reason"]) for entry in entries]
    assert told == [(version, "READY", ""), (earlier, "UNAVAILABLE", "superseded")], entries
    inputs = [library.input("input", features(1))]
    calls = [("infer", model, inputs, earlier), ("get_model_metadata", model, earlier)]
    for call in calls:
        message = await library.refused(404, *call)
        assert f"version {earlier} is not found" in message, message
        assert "no longer loaded" in message, message
        assert f"version {version} is loaded" in message, message
    assert not await library.ready(model, earlier)
    assert_same(await library.infer(model, features(1), model_version=version), features(1))


@changes_the_server
async def test_only_an_administrator_loads_and_unloads(library: Library) -> None:
    # Models that no pipeline needs.
    model = "identity-fp32"

    def request() -> list[Any]:
        return [library.input("input", features(1))]

    [version] = (await library.document("get_model_metadata", model))["versions"]
    for method in ("load_model", "unload_model"):
        await library.refused(401, method, model, key=None)
        await library.refused(403, method, model)
        await library.refused(403, method, model, key=NOBODYS)
        await library.refused(404, method, "nothing", key=ADMIN_TOKEN)

    await library.call("unload_model", model, key=ADMIN_TOKEN)
    assert not await library.ready(model)
    await library.refused(503, "infer", model, request())
    assert (await library.index())[model]["state"] == "UNAVAILABLE"
    assert await library.call("is_server_live") is True
    assert (await library.infer("ranker", features(1))).as_numpy("output").shape == (1, 1)

    await library.call("load_model", model, key=ADMIN_TOKEN)
    assert await library.ready(model)
    assert (await library.index())[model]["state"] == "READY"
    assert (await library.document("get_model_metadata", model))["versions"] == [version]
    assert_same(await library.infer(model, features(1)), features(1))
    # A pipeline needs this one.
    await library.refused(400, "unload_model", "ranker", key=ADMIN_TOKEN)
    assert await library.ready("ranker")


@changes_the_server
async def test_a_model_is_loaded_with_its_files_and_configuration(library: Library) -> None:
    model = f"brought-{library.protocol}-{type(library).__name__.lower()}"
    first, second = ((FIXTURES / f"identity-{name}.onnx").read_bytes() for name in ("fp32", "fp64"))
    config = {"backend": "onnxruntime", "max_batch_size": 4, "dynamic_batching": {}}
    named = {"output": [{"name": "output", "label_filename": "labels.txt"}]}

    async def load(**brought: Any) -> None:
        await library.call("load_model", model, key=ADMIN_TOKEN, **brought)

    def files(content: bytes, version: int = 1) -> dict[str, bytes]:
        return {f"file:{version}/model.onnx": content}

    await library.refused(403, "load_model", model, config=json.dumps(config), files=files(first))
    await load(config=json.dumps(config), files=files(first))
    labels = {"file:labels.txt": b"cat\ndog\n"}
    await load(config=json.dumps(config | named), files=files(first) | labels)
    operator = {"key": ADMIN_TOKEN}
    described = await library.document("get_model_metadata", model, **operator)
    assert (described["versions"], described["inputs"][0]["datatype"]) == (["1"], "FP32"), described
    document = await library.document("get_model_config", model, **operator)
    document = document.get("config", document)
    assert document["max_batch_size"] == 4, document
    assert document["output"][0]["label_filename"] == "labels.txt", document
    # What the server says can be sent back, and new content takes the place of the old one. The
    # labels stay, although their file is not sent.
    await load(config=json.dumps(document | {"max_batch_size": 2}), files=files(second))
    described = await library.document("get_model_metadata", model, **operator)
    assert (described["versions"], described["inputs"][0]["datatype"]) == (["1"], "FP64"), described
    kept = administer("GET", f"models/{model}/config")["output"]
    assert kept == [{"name": "output", "labels": ["cat", "dog"]}], kept
    await load(config=json.dumps(config | {"max_batch_size": 8}))
    document = await library.document("get_model_config", model, **operator)
    assert document.get("config", document)["max_batch_size"] == 8, document
    await load(files=files(first, version=3))
    described = await library.document("get_model_metadata", model, **operator)
    assert (described["versions"], described["inputs"][0]["datatype"]) == (["3"], "FP32"), described
    for wrong, brought in (
        ("newest version of model", {"files": files(second)}),
        ("sequence_batching", {"config": json.dumps({"sequence_batching": {"direct": {"a": 1}}})}),
        ("not a JSON object", {"config": "max_batch_size: 4"}),
        ("has no use", {"config": "{}", "files": {"file:1/model.plan": b""}}),
        ("one version", {"files": files(first, 4) | files(first, 5)}),
        ("not an ONNX model", {"files": files(b"no model", 6)}),
        ("other", {"config": json.dumps({"name": "other"})}),
    ):
        message = await library.refused(400, "load_model", model, key=ADMIN_TOKEN, **brought)
        assert wrong in message, (wrong, message)
    administer("DELETE", f"models/{model}")


@changes_the_server
async def test_a_model_is_loaded_with_the_files_of_its_weights(library: Library) -> None:
    model = f"beside-{library.protocol}-{type(library).__name__.lower()}"
    onnx = (FIXTURES / "external-data.onnx").read_bytes()
    weights = np.arange(4, dtype=np.float32).tobytes()
    files = {"file:1/model.onnx": onnx, "file:1/weights.bin": weights}
    await library.call("load_model", model, key=ADMIN_TOKEN, config="{}", files=files)
    assert await library.call("is_model_ready", model, key=ADMIN_TOKEN)
    path = f"/admin/v1/models/{model}/content"
    _, _, package = send("GET", path, host=ADMIN, key=ADMIN_TOKEN)
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        assert archive.getnames() == ["model.onnx", "weights.bin"]
    for wrong, brought in (
        ("which were not uploaded (weights.bin)", {"file:1/model.onnx": onnx}),
        ("has no use", {"file:1/weights.bin": weights}),
        ("one version", {"file:1/model.onnx": onnx, "file:2/weights.bin": weights}),
        ("more.bin, which the model does not name", files | {"file:1/more.bin": weights}),
    ):
        options = {"key": ADMIN_TOKEN, "config": "{}", "files": brought}
        message = await library.refused(400, "load_model", model, **options)
        assert wrong in message, (wrong, message)
    administer("DELETE", f"models/{model}")


@once_over_grpc
@changes_the_server
async def test_the_index_may_be_of_what_is_ready(library: GrpcLibrary) -> None:
    await library.call("unload_model", "identity-int16", key=ADMIN_TOKEN)
    with grpc_channel() as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for ready, missing in ((True, {"identity-int16"}), (False, set())):
            request = service_pb2.RepositoryIndexRequest(ready=ready)
            index = stub.RepositoryIndex(request, metadata=tuple(bearer(KEY).items()))
            names = {model.name for model in index.models}
            assert names == (GRANTED | PIPELINES) - missing, names
    await library.call("load_model", "identity-int16", key=ADMIN_TOKEN)

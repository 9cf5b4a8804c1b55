"""Calls that only an administrator may make."""

from typing import Any

from tritonclient.grpc import service_pb2, service_pb2_grpc

from libraries import GrpcLibrary, Library
from marks import changes_the_server, once_over_grpc
from server import (
    ADMIN_TOKEN,
    GRANTED,
    KEY,
    NOBODYS,
    PIPELINES,
    administer,
    bearer,
    grpc_channel,
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
        assert f"version {earlier} of" in message and "no longer loaded" in message, message
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
    files = {"file:1/model.onnx": (FIXTURES / "identity-fp64.onnx").read_bytes()}
    for named, brought in (("config", {"config": "{}"}), ("file:1/model.onnx", {"files": files})):
        message = await library.refused(501, "load_model", model, key=ADMIN_TOKEN, **brought)
        assert f'"{named}"' in message, message
    assert await library.ready(model)

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

"""Requests that are refused. They do not affect other requests."""

import base64
from typing import Any

import numpy as np

from libraries import Library, error_of
from marks import once_over_http
from server import NOBODYS, post, send
from values import assert_same, features

INFER = "/v2/models/ranker/infer"


async def test_a_model_that_is_not_granted_is_not_there(library: Library) -> None:
    def request() -> list[Any]:
        return [library.input("input", np.zeros((1, 1, 28, 28), dtype=np.float32))]

    unknown = await library.refused(404, "infer", "nothing", request())
    hidden = await library.refused(404, "infer", "digits", request())
    assert "nothing" in unknown and unknown.replace("nothing", "digits") == hidden, (
        unknown,
        hidden,
    )
    for name in ("nothing", "digits", "pipeline:"):
        assert not await library.ready(name)
        for method in ("get_model_metadata", "get_model_config", "get_inference_statistics"):
            await library.refused(404, method, name)


async def test_inputs_that_do_not_fit_are_refused(library: Library) -> None:
    def tensor(rows: tuple[int, ...], name: str = "input", numpy_type: Any = np.float32) -> Any:
        return library.input(name, np.zeros(rows, dtype=numpy_type))

    def texts(*row: str | bytes) -> np.ndarray:
        return np.array([row], dtype=np.object_)

    def reshaped(array: np.ndarray, shape: list[int]) -> Any:
        """An input whose shape does not fit its bytes."""
        return library.input("input", array).set_shape(shape)

    cases = [
        ("inptu", "ranker", [tensor((1, 32), name="inptu")]),
        ("input", "ranker", []),
        ("input", "ranker", [tensor((1, 32)), tensor((1, 32))]),
        ("FP32", "ranker", [tensor((1, 32), numpy_type=np.float64)]),
        ("32", "ranker", [tensor((1, 31))]),
        ("32", "ranker", [tensor((32,))]),
        ("32", "ranker", [tensor((1, 1, 32))]),
        ("input", "ranker", [tensor((0, 32))]),
        ("input", "ranker", [reshaped(np.zeros((1, 32), dtype=np.float32), [2, 32])]),
        ("input", "ranker", [reshaped(np.zeros((2, 32), dtype=np.float32), [1, 32])]),
        ("input", "ranker", [reshaped(np.zeros((1, 32), dtype=np.float32), [-1, 32])]),
        ("input", "identity-bytes", [reshaped(texts("a"), [1, 2])]),
        ("input", "identity-bytes", [reshaped(texts("a", "b"), [1, 1])]),
        ("element 1 has a NUL", "identity-bytes", [library.input("input", texts("a", "b\0c"))]),
    ]
    for named, model, inputs in cases:
        message = await library.refused(400, "infer", model, inputs)
        assert named in message, f"{named!r} is missing from: {message}"
    outputs = [library.module.InferRequestedOutput("outptu")]
    message = await library.refused(400, "infer", "ranker", [tensor((1, 32))], outputs=outputs)
    assert "outptu" in message, message
    # The next request is not affected.
    assert (await library.infer("ranker", features(2))).as_numpy("output").shape == (2, 1)


async def test_a_refused_request_harms_no_later_one(library: Library) -> None:
    for elements in (1, 7_000, 15_000, 100_000):
        for _ in range(5):
            inputs = [library.input("input", np.zeros((1, elements), dtype=np.float32))]
            await library.refused(404, "infer", "nothing", inputs)
            assert_same(await library.infer("identity-fp32", features(1)), features(1))


async def test_what_is_over_the_limit_of_a_message_is_refused(library: Library) -> None:
    inputs = [library.input("input", np.zeros((9, 1 << 18), dtype=np.float32))]
    assert str(8 << 20) in await library.refused(413, "infer", "identity-fp32", inputs)
    assert_same(await library.infer("identity-fp32", features(1)), features(1))


async def test_outputs_are_asked_for_once_and_have_classes_if_they_are_numbers(
    library: Library,
) -> None:
    twice = [library.module.InferRequestedOutput("output") for _ in range(2)]
    inputs = [library.input("input", features(1))]
    message = await library.refused(400, "infer", "ranker", inputs, outputs=twice)
    assert "asked for twice" in message, message
    outputs = [library.module.InferRequestedOutput("output", class_count=3)]
    inputs = [library.input("input", np.array([["text"]], dtype=np.object_))]
    message = await library.refused(400, "infer", "identity-bytes", inputs, outputs=outputs)
    assert "BYTES" in message, message
    inputs = [library.input("input", features(1))]
    # No classes.
    output = library.module.InferRequestedOutput("output")
    if hasattr(output, "_output"):
        output._output.parameters["classification"].int64_param = 0
    else:
        output._parameters["classification"] = 0
    result = await library.infer("ranker", features(1), outputs=[output])
    assert result.as_numpy("output").shape == (1, 1)


async def test_shared_memory_is_refused(library: Library) -> None:
    handle = base64.b64encode(bytes(64)).decode()
    calls = [
        ("get_system_shared_memory_status",),
        ("register_system_shared_memory", "region", "/key", 128),
        ("unregister_system_shared_memory", "region"),
        ("unregister_system_shared_memory",),
        ("get_cuda_shared_memory_status",),
        ("register_cuda_shared_memory", "region", handle, 0, 128),
        ("unregister_cuda_shared_memory", "region"),
        ("unregister_cuda_shared_memory",),
    ]
    for call in calls:
        message = await library.refused(501, *call)
        assert "tenant" in message, message
    there = library.module.InferInput("input", [1, 32], "FP32")
    there.set_shared_memory("region", 128)
    message = await library.refused(501, "infer", "ranker", [there])
    assert "tenant" in message, message
    output = library.module.InferRequestedOutput("output")
    output.set_shared_memory("region", 4)
    inputs = [library.input("input", features(1))]
    message = await library.refused(501, "infer", "ranker", inputs, outputs=[output])
    assert "tenant" in message, message


async def test_a_key_is_needed(library: Library) -> None:
    for status, key in ((401, None), (403, NOBODYS)):
        inputs = [library.input("input", features(1))]
        await library.refused(status, "infer", "ranker", inputs, key=key)
        await library.refused(status, "get_model_metadata", "ranker", key=key)
        await library.refused(status, "get_model_config", "ranker", key=key)
        await library.refused(status, "get_inference_statistics", "ranker", key=key)
        await library.refused(status, "get_inference_statistics", key=key)
        await library.refused(status, "get_model_repository_index", key=key)


@once_over_http
async def test_paths_and_methods_that_are_not_there_are_refused() -> None:
    error_of(send("GET", INFER), 405)
    error_of(post("/v2/models/ranker", b""), 405)
    error_of(send("GET", "/v2/nothing"), 404)
    error_of(send("GET", "/v2/models/ranker/nothing"), 404)

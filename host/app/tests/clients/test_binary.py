"""Tensors as JSON, as bytes and as raw contents, and malformed bodies."""

import gzip
import json
from itertools import product
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

from libraries import HttpLibrary, error_of
from marks import once_over_grpc, once_over_http, over_http
from server import KEY, bearer, grpc_channel, post, send
from values import BINARY_ONLY, NUMPY_TYPES, TEXTS, assert_same, batches, features, picture

INFER = "/v2/models/ranker/infer"


@over_http
async def test_json_and_binary_tensors_mix(library: HttpLibrary) -> None:
    for datatype in NUMPY_TYPES.keys() - BINARY_ONLY:
        for batch in batches(datatype, finite=True):
            for binary_in, binary_out in ((False, False), (False, True), (True, False)):
                inputs = [library.input("input", batch, binary_data=binary_in)]
                outputs = [library.module.InferRequestedOutput("output", binary_data=binary_out)]
                model = f"identity-{datatype.lower()}"
                result = await library.call("infer", model, inputs, outputs=outputs)
                assert_same(result, batch)
                [output] = library.response(result)["outputs"]
                assert ("data" in output) != binary_out, output


@over_http
async def test_several_json_and_binary_tensors_mix(library: HttpLibrary) -> None:
    one, two = (np.arange(32, dtype=np.int32).reshape(2, 16) * factor for factor in (1, -7))
    for kinds in product((False, True), repeat=4):
        inputs = [
            library.input(name, array, binary_data=binary)
            for name, array, binary in zip(("INPUT0", "INPUT1"), (one, two), kinds[:2], strict=True)
        ]
        outputs = [
            library.module.InferRequestedOutput(name, binary_data=binary)
            for name, binary in zip(("OUTPUT1", "OUTPUT0"), kinds[2:], strict=True)
        ]
        result = await library.call("infer", "simple", inputs, outputs=outputs)
        assert (result.as_numpy("OUTPUT0") == one + two).all(), kinds
        assert (result.as_numpy("OUTPUT1") == one - two).all(), kinds
        told = library.response(result)["outputs"]
        assert tuple("data" not in output for output in told) == kinds[2:], (kinds, told)


@over_http
async def test_json_tensors_may_be_compressed(library: HttpLibrary) -> None:
    texts = np.array([TEXTS] * 50, dtype=np.object_)
    for compression in library.compressions:
        inputs = [library.input("input", texts, binary_data=False)]
        outputs = [library.module.InferRequestedOutput("output", binary_data=False)]
        result = await library.call(
            "infer", "identity-bytes", inputs, outputs=outputs, **compression
        )
        assert_same(result, texts)


@over_http
async def test_floats_that_json_has_not_are_answered_as_json(library: HttpLibrary) -> None:
    as_json = [library.module.InferRequestedOutput("output", binary_data=False)]
    for datatype in ("FP32", "FP64"):
        for batch in batches(datatype):
            sent = [library.input("input", batch)]
            model = f"identity-{datatype.lower()}"
            result = await library.call("infer", model, sent, outputs=as_json)
            got = result.as_numpy("output")
            np.testing.assert_array_equal(got, batch)
            assert "data" in library.response(result)["outputs"][0]


@over_http
async def test_what_json_cannot_hold_is_refused(library: HttpLibrary) -> None:
    half = library.input("input", np.ones((1, 2), dtype=np.float16), binary_data=False)
    await library.refused(400, "infer", "identity-fp16", [half])
    not_a_number = np.full((1, 2), np.nan, dtype=np.float32)
    as_json = [library.module.InferRequestedOutput("output", binary_data=False)]
    sent = library.input("input", not_a_number, binary_data=False)
    message = await library.refused(400, "infer", "identity-fp32", [sent])
    assert "NaN" in message and "binary data" in message, message
    sent = library.input("input", np.ones((1, 2), dtype=np.float16))
    await library.refused(400, "infer", "identity-fp16", [sent], outputs=as_json)


@once_over_http
async def test_a_body_that_is_no_request_is_refused() -> None:
    for body in (b"", b"{", b"[]", b"null", b'{"inputs": 1}', b"\xff\xfe", b"[" * 100_000):
        error_of(post(INFER, body), 400)
    tensor = {"name": "input", "datatype": "FP32", "shape": [1, 32]}
    wrong = [
        tensor,
        tensor | {"data": [1.0]},
        tensor | {"data": ["1"] * 32},
        tensor | {"data": [0.0] * 32, "datatype": "FP31"},
        tensor | {"data": [0.0] * 32, "shape": [1, -32]},
        tensor | {"data": [0.0] * 32, "shape": [2**62, 2**62]},
        tensor | {"parameters": {"binary_data_size": 128}},
    ]
    for tensor in wrong:
        assert "input" in error_of(post(INFER, json.dumps({"inputs": [tensor]})), 400)


@once_over_http
async def test_binary_lengths_that_do_not_add_up_are_refused() -> None:
    def body(size: int) -> bytes:
        parameters = {"binary_data_size": size}
        tensor = {"name": "input", "datatype": "FP32", "shape": [1, 32], "parameters": parameters}
        return json.dumps({"inputs": [tensor]}).encode()

    data = features(1).tobytes()
    for size, tail in ((128, data[:-1]), (128, data + b"x"), (124, data), (2**63, data)):
        head = body(size)
        error_of(post(INFER, head + tail, inference_header_content_length=str(len(head))), 400)
    head = body(128)
    for length in ("1000000", "-1", "x", str(len(head) - 1)):
        error_of(post(INFER, head + data, inference_header_content_length=length), 400)


@once_over_http
async def test_a_body_may_be_one_raw_tensor() -> None:
    # The raw body of a text has its bytes alone, without their length.
    text = 'grüße "😀"\n'.encode()
    cases = [
        ("ranker", features(1).tobytes(), [1, 1]),
        ("fixed-rows", bytes(range(24)), [2, 3]),
        ("identity-bytes", text, [1, 1]),
        ("identity-bytes", b"", [1, 1]),
        ("pipeline:digits", picture(7)[0], [1]),
    ]
    answers = []
    for model, sent, shape in cases:
        path = f"/v2/models/{model}/infer"
        status, headers, body = post(path, sent, inference_header_content_length="0")
        assert status == 200, (model, body)
        length = int(headers["inference-header-content-length"])
        [output] = json.loads(body[:length])["outputs"]
        assert output["shape"] == shape, (model, output)
        answers.append(body[length:])
        assert output["parameters"]["binary_data_size"] == len(answers[-1]), (model, output)
    score, rows, echo, nothing, label = answers
    assert len(score) == 4 and rows == bytes(range(24))
    assert echo == len(text).to_bytes(4, "little") + text and nothing == bytes(4), answers
    assert json.loads(label[4:])["label"] == 7, label
    two = post("/v2/models/simple/infer", bytes(64), inference_header_content_length="0")
    assert "2 inputs" in error_of(two, 400)


@once_over_http
async def test_a_body_that_is_not_compressed_as_it_says_is_refused() -> None:
    for encoding in ("gzip", "deflate"):
        error_of(post(INFER, b'{"inputs": []}', content_encoding=encoding), 400)
        cut = gzip.compress(bytes(10_000))[:-20]
        error_of(post(INFER, cut, content_encoding=encoding), 400)


@once_over_http
async def test_answers_are_compressed_where_that_is_asked_for() -> None:
    tensor = {"name": "input", "datatype": "INT8", "shape": [1, 5000], "data": [0] * 5000}
    body = json.dumps({"inputs": [tensor]})
    infer = "/v2/models/identity-int8/infer"
    status, headers, answer = post(infer, body, accept_encoding="gzip")
    assert status == 200 and headers["content-encoding"] == "gzip", headers
    assert json.loads(gzip.decompress(answer))["outputs"][0]["data"] == tensor["data"]
    # tritonclient.http.aio accepts these encodings, but decodes gzip and deflate only in an
    # inference.
    default = "gzip, deflate, br, zstd"
    assert post(infer, body, accept_encoding=default)[1]["content-encoding"] in (
        None,
        "gzip",
        "deflate",
    )
    for path in ("/v2", "/v2/models/ranker", "/v2/models/ranker/config", "/v2/models/stats"):
        status, headers, answer = send("GET", path, headers={"accept-encoding": default})
        assert status == 200 and headers["content-encoding"] is None, headers
        assert json.loads(answer), answer


@once_over_grpc
async def test_raw_contents_belong_to_the_inputs_one_by_one() -> None:
    row = np.arange(16, dtype=np.int32)
    inputs = [
        {"name": name, "datatype": "INT32", "shape": [1, 16]} for name in ("INPUT0", "INPUT1")
    ]
    typed = [tensor | {"contents": {"int_contents": row}} for tensor in inputs]
    raw = row.tobytes()
    with grpc_channel() as channel:

        def infer(tensors: list[Any], contents: list[bytes]) -> Any:
            request = service_pb2.ModelInferRequest(
                model_name="simple", inputs=tensors, raw_input_contents=contents
            )
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            return stub.ModelInfer(request, metadata=tuple(bearer(KEY).items()))

        for tensors, contents in ((inputs, [raw, raw]), (typed, [])):
            answer = infer(tensors, contents)
            assert list(answer.raw_output_contents) == [(row * 2).tobytes(), bytes(64)], answer
        wrong = [[], [raw], [raw, raw, raw], [raw, raw[:-4]], [raw + raw, b""]]
        for tensors, contents in [(inputs, contents) for contents in wrong] + [(typed, [raw, raw])]:
            try:
                answer = infer(tensors, contents)
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
            else:
                raise AssertionError(f"{len(contents)} contents were taken: {answer}")

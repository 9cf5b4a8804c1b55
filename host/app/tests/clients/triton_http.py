"""tritonclient.http, and what no client sends by itself."""

import gzip
import json
from contextlib import asynccontextmanager
from http.client import HTTPConnection

import tritonclient.http as triton
from cases import COMMON, OVER_HTTP, features, picture, until
from clients import HTTP, KEY, HttpLibrary, bearer, run, send

CONNECTIONS = 8


class Library(HttpLibrary):
    async def infer_many(self, model, batches):
        with triton.InferenceServerClient(HTTP, concurrency=CONNECTIONS) as client:
            calls = [
                client.async_infer(model, [self.input("input", batch)], headers=bearer(KEY))
                for batch in batches
            ]
            return [call.get_result() for call in calls]

    @asynccontextmanager
    async def under_way(self, model, array):
        # This library gives nothing up: its request, on a connection of our own.
        body, length = self.client.generate_request_body([self.input("input", array)])
        headers = {**bearer(KEY), "inference-header-content-length": str(length)}
        connection = HTTPConnection(HTTP)
        connection.request("POST", f"/v2/models/{model}/infer", body, headers)
        try:
            yield
        finally:
            connection.close()


def post(path, body, **headers):
    """The status, headers and body that come back."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return send("POST", path, body, headers)


def error_of(answer, status):
    """The error's text."""
    got, headers, body = answer
    assert got == status, (got, body)
    # To the letter: a client looks for just this.
    assert headers["content-type"] == "application/json", headers
    document = json.loads(body)
    assert list(document) == ["error"] and document["error"], document
    return document["error"]


INFER = "/v2/models/ranker/infer"


async def a_body_that_is_no_request_is_refused(_):
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


async def binary_lengths_that_do_not_add_up_are_refused(_):
    def body(size):
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


async def a_body_may_be_one_raw_tensor(_):
    # Of a text, its bytes, without the length that goes before it elsewhere.
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


async def a_full_queue_says_when_to_come_back(library):
    async with library.under_way("waits", features(1)):
        await until("waits", queued_rows=1)
        answer = post("/v2/models/waits/infer", features(1).tobytes(), inference_header_content_length="0")
        assert "1 of 1 requests" in error_of(answer, 429) and answer[1]["retry-after"] == "1", answer
    await until("waits", queued_rows=0)


async def a_body_that_is_not_compressed_as_it_says_is_refused(_):
    for encoding in ("gzip", "deflate"):
        error_of(post(INFER, b'{"inputs": []}', content_encoding=encoding), 400)
        cut = gzip.compress(bytes(10_000))[:-20]
        error_of(post(INFER, cut, content_encoding=encoding), 400)


async def answers_are_compressed_where_that_is_asked_for(_):
    tensor = {"name": "input", "datatype": "INT8", "shape": [1, 5000], "data": [0] * 5000}
    body = json.dumps({"inputs": [tensor]})
    infer = "/v2/models/identity-int8/infer"
    status, headers, answer = post(infer, body, accept_encoding="gzip")
    assert status == 200 and headers["content-encoding"] == "gzip", headers
    assert json.loads(gzip.decompress(answer))["outputs"][0]["data"] == tensor["data"]
    # tritonclient.http.aio asks for these, and undoes gzip and deflate of an inference only.
    default = "gzip, deflate, br, zstd"
    assert post(infer, body, accept_encoding=default)[1]["content-encoding"] in (None, "gzip", "deflate")
    for path in ("/v2", "/v2/models/ranker", "/v2/models/ranker/config", "/v2/models/stats"):
        status, headers, answer = send("GET", path, headers={"accept-encoding": default})
        assert status == 200 and headers["content-encoding"] is None, headers
        assert json.loads(answer), answer


async def paths_and_methods_that_are_not_there_are_refused(_):
    error_of(send("GET", INFER), 405)
    error_of(post("/v2/models/ranker", b""), 405)
    error_of(send("GET", "/v2/nothing"), 404)
    error_of(send("GET", "/v2/models/ranker/nothing"), 404)


RAW = [
    a_body_that_is_no_request_is_refused,
    binary_lengths_that_do_not_add_up_are_refused,
    a_body_may_be_one_raw_tensor,
    a_full_queue_says_when_to_come_back,
    a_body_that_is_not_compressed_as_it_says_is_refused,
    answers_are_compressed_where_that_is_asked_for,
    paths_and_methods_that_are_not_there_are_refused,
]

run(lambda: Library(triton, triton.InferenceServerClient(HTTP)), OVER_HTTP + RAW + COMMON)

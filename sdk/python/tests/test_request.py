from array import array

import pytest

from gristmill_plugin import (
    Blob,
    Dtype,
    Internal,
    InvalidInput,
    Response,
    Tensor,
    json,
    testing,
)
from gristmill_plugin import numpy as np


def test_a_request_has_its_values():
    request = testing.request(
        b"body",
        content_type="text/plain",
        headers={"accept": "*/*"},
        query=[("k", "1"), ("k", "2")],
    )
    assert request.content_type == "text/plain"
    assert (bytes(request.body), len(request.body), request.body.read(1, 2)) == (b"body", 4, b"od")
    assert dict(request.headers) == {"accept": "*/*"}
    assert (request.query["k"], request.query.get_all("k")) == ("1", ["1", "2"])
    assert (len(request.query), request.query.get("none"), request.parts) == (1, None, [])


def test_a_multipart_request_has_parts():
    part = testing.Part(b"data", name="file", filename="a.png", content_type="image/png")
    request = testing.request(parts=[part])
    assert (request.content_type, len(request.body)) == ("multipart/form-data", 0)
    [found] = request.parts
    assert (found.name, found.filename, found.content_type) == ("file", "a.png", "image/png")
    assert bytes(found.body) == b"data"


def test_the_bytes_of_a_blob_are_a_tensor():
    blob = Blob.from_bytes(array("f", [1, 2, 3, 4, 5]).tobytes())
    tensor = Tensor.from_bytes([5, 1], Dtype.FLOAT32, blob)
    assert (tensor.shape, tensor.view().values.tolist()) == ((5, 1), [1, 2, 3, 4, 5])
    with pytest.raises(Internal, match="20 bytes"):
        Tensor.from_bytes([4], Dtype.FLOAT32, blob)
    assert np.frombuffer(blob, np.float32)[1:3].tolist() == [2, 3]
    assert np.frombuffer(blob, np.float32, count=2, offset=8).tolist() == [3, 4]
    assert np.frombuffer(blob, np.float32, offset=99).shape == (0,)
    with pytest.raises(ValueError, match="multiple of element size"):
        np.frombuffer(blob, np.float64)


def test_a_blob_is_cut_and_made_of_bytes():
    blob = Blob.from_bytes(memoryview(b"0123456789"))
    assert (bytes(blob.slice(2, 3)), bytes(blob.slice(8))) == (b"234", b"89")
    assert len(blob.slice(99)) == 0


@pytest.mark.parametrize(
    "text",
    ["TWFu", " TW\r\nFu", "data:image/png;base64,TWFu", "DATA:;BASE64,TWFu", "TWF1bg==", "TWFu TQ"],
)
def test_base64_is_decoded(text):
    expected = {"TWF1bg==": b"Maun", "TWFu TQ": b"ManM"}.get(text, b"Man")
    assert bytes(Blob.from_base64(text)) == expected


def test_both_alphabets_of_base64():
    assert bytes(Blob.from_base64("_-__")) == bytes(Blob.from_base64("/+//")) == b"\xff\xef\xff"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("TWF%", "base64 has '%' at position 3"),
        ("data:;base64, T*", "base64 has '*' at position 15"),
        ("TQ==T", "base64 has 'T' at position 4 after its end"),
        ("T===", "base64 has '=' at position 1"),
        ("TWFuT", "base64 ends within a group of four characters"),
        ("TW\ud83d", "base64 has '?' at position 2"),
        ("data:image/png,abc", 'a data URL whose data are not in base64: it has no ";base64"'),
        ("data:image/png;base64", "a data URL without a comma"),
        (None, "base64 is a text, not NoneType"),
    ],
)
def test_other_texts_are_the_clients_fault(text, why):
    with pytest.raises(InvalidInput) as refused:
        Blob.from_base64(text)
    assert refused.value.text == why


@pytest.mark.parametrize("body", [b"", b"{", b"[NaN]", b"[Infinity]", b'"\xff"', b"[" * 1_000_000])
def test_a_body_that_is_not_json_is_the_clients_fault(body):
    with pytest.raises(InvalidInput, match="invalid JSON: "):
        testing.request(body).json()


def test_a_body_may_be_nested_only_so_deep():
    deep = b"[" * json.DEPTH_MAX + b"]" * json.DEPTH_MAX
    assert len(testing.request(deep).json()) == 1
    for body in (b"[" + deep + b"]", b'{"a":' * 501 + b"0" + b"}" * 501):
        with pytest.raises(InvalidInput, match="nested more deeply than 500"):
            testing.request(body).json()
    wide = [[{}]] * 10_000
    assert testing.request(json=wide).json() == wide


def test_brackets_in_texts_are_not_nesting():
    text = "[{" * 100_000 + '"' + "\\"
    assert testing.request(json=[text]).json() == [text]


def test_a_context_has_its_values():
    context = testing.context(settings={"threshold": 0.5}, tenant="acme", time_left_ms=7)
    assert (context.tenant, context.time_left_ms) == ("acme", 7)
    assert (context.pipeline, context.model, context.request_id) == (
        "pipeline",
        "model",
        "request-1",
    )
    assert context.settings["threshold"] == 0.5
    assert context.settings is context.settings
    assert testing.context().settings == {}


def test_json_is_compact_utf_8():
    response = Response.json({"a": [1, "ü"]}, status=201, headers={"etag": "x"})
    assert response.body == '{"a":[1,"ü"]}'.encode()
    assert (response.status, response.content_type) == (201, "application/json")
    assert response.headers == {"etag": "x"}
    assert json.loads(json.dumps({"a": None})) == {"a": None}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1}, b"bytes"])
def test_a_value_without_json_form_is_the_plugins_fault(value):
    with pytest.raises(Internal, match="the response as JSON: "):
        Response.json(value)


def test_a_text_says_its_encoding():
    response = Response.text("ü")
    assert (response.body, response.content_type) == (b"\xc3\xbc", "text/plain; charset=utf-8")

import pytest
from gristmill_plugin import (
    Blob,
    Dtype,
    Internal,
    Prepared,
    Processor,
    Response,
    Tensor,
    kept,
    numpy,
    testing,
)
from gristmill_plugin.image import Color, Pixels


class Keeper(Processor):
    def preprocess(self, context, request):
        photo = Pixels.from_bytes(2, 1, Color.GRAY, b"\x07\x08")
        tensor = Tensor.from_values([1], Dtype.FLOAT32, [1.5])
        things = {"photo": photo, "tensor": tensor, "body": request.body}
        return Prepared({"input": Tensor.from_values([1, 1], Dtype.FLOAT32, [1.0])}, keep=things)

    def postprocess(self, context, outputs, state):
        photo, tensor, body = kept("photo"), kept("tensor"), kept("body")
        assert isinstance(photo, Pixels) and isinstance(tensor, Tensor) and isinstance(body, Blob)
        assert photo.color is Color.GRAY
        return Response(photo.tobytes() + bytes(body))


def test_what_is_kept_reaches_postprocess():
    plugin = Keeper()
    testing.preprocess(plugin, testing.context(), testing.request(b"abc"))
    outputs = {"output": Tensor.from_values([1, 1], Dtype.FLOAT32, [2.0])}
    response = testing.postprocess(plugin, testing.context(), outputs)
    assert isinstance(response, Response)
    assert response.body == b"\x07\x08abc"


def test_what_is_not_kept_is_named():
    with pytest.raises(Internal, match="nothing is kept as 'photo'"):
        kept("photo")


class Answering(Processor):
    """Prepares what a test wants."""

    def __init__(self, make):
        self.make = make

    def preprocess(self, context, request):
        return self.make()

    def postprocess(self, context, outputs, state):
        return Response(b"")


def prepared(make):
    return testing.preprocess(Answering(make), testing.context(), testing.request())


def test_an_object_that_would_be_taken_twice_is_named():
    def make(**keep):
        tensor = Tensor.from_values([1], Dtype.FLOAT32, [1.0])
        blob = Blob.from_bytes(b"a")
        things = {"tensor": tensor, "blob": blob}
        return Prepared({"x": tensor}, keep={name: things[key] for name, key in keep.items()})

    failed = prepared(lambda: make(again="tensor"))
    assert "keep 'again' is the same object as input 'x': make it twice" in failed.text
    failed = prepared(lambda: make(first="blob", second="blob"))
    assert "keep 'second' is the same object as keep 'first'" in failed.text
    with pytest.raises(Internal):
        kept("first")


def test_arrays_are_made_before_what_they_are_made_of_is_taken():
    def make():
        base = numpy.asarray([1.0, 2.0])
        base.tensor()
        return Prepared({"x": base * 2}, keep={"base": base, "sum": base + 1, "more": base + 2})

    assert prepared(make).inputs["x"].shape == (2,)
    assert [numpy.asarray(kept(name)).tolist() for name in ("base", "sum", "more")] == [
        [1.0, 2.0],
        [2.0, 3.0],
        [3.0, 4.0],
    ]


def test_what_is_kept_cannot_be_used_any_more():
    blob = Blob.from_bytes(b"abc")
    prepared(lambda: Prepared({"x": Tensor.from_values([1], Dtype.INT8, [1])}, keep={"b": blob}))
    with pytest.raises(RuntimeError, match="kept already"):
        bytes(blob)
    assert bytes(kept("b")) == b"abc"

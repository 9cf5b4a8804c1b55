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

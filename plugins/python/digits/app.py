"""A photo of a handwritten digit in, its label out.

The photo is the body, the first part of a form, or base64 or a data URL in JSON: `{"image": ".."}`.
The model takes 28x28 values from 0 to 1, with bright ink on black (models/digits/README.md).
"""

from gristmill_plugin import (
    Blob,
    Context,
    Outputs,
    Prepared,
    Processor,
    Request,
    Response,
    Tensor,
    export,
    shortest_float32,
)
from gristmill_plugin.image import Color, Pixels

SIZE = 28
DIGITS = 10


@export
class Digits(Processor):
    def preprocess(self, context: Context, request: Request) -> Prepared:
        photo = Pixels.decode(photo_of(request), Color.GRAY)
        return Prepared({"input": to_ink(photo.resize(SIZE, SIZE))})

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        probabilities = outputs.tensor("output", [1, DIGITS]).softmax()
        top = [
            {"label": found.index, "probability": shortest_float32(found.value)}
            for found in probabilities.top_k(3)
        ]
        return Response.json({**top[0], "top": top})


def photo_of(request: Request) -> Blob:
    """The file of the photo."""
    if request.content_type == "application/json":
        return request.json_blob("/image")
    parts = request.parts
    return parts[0].body if parts else request.body


def to_ink(picture: Pixels) -> Tensor:
    """Bright ink on black, stretched to 0 to 1.

    A bright picture shows dark ink on paper and is inverted. The host computes the elements:
    `(value * scale - mean) / std`.
    """
    (luma,) = picture.statistics()
    darkest, brightest = luma.min, luma.max
    spread = brightest - darkest
    inverted = luma.mean > 127.5
    if spread == 0:
        scale, mean, std = 1 / 255, 0.0, 1.0
    else:
        scale, mean, std = 1.0, float(darkest), float(spread)
    if inverted:
        scale, mean = -scale, -1.0 if spread == 0 else -float(brightest)
    return picture.to_tensor(scale=scale, mean=[mean], std=[std])

"""Photos of handwritten digits in, the number that they make out.

A request is `{"images": ["..", ..]}`: each photo is base64 or a data URL, and shows one digit. All
run through the model `digits` side by side, so that they can share a batch. The model takes 28x28
values from 0 to 1, with bright ink on black (models/digits/README.md).
"""

from gristmill_plugin import (
    Context,
    Dtype,
    Handler,
    InferError,
    InvalidInput,
    Request,
    Response,
    Tensor,
    export,
    models,
)
from gristmill_plugin.image import Color, Pixels

MODEL = "digits"
SIZE = 28
DIGITS = 10
IMAGES_MAX = 32


@export
class Number(Handler):
    def handle(self, context: Context, request: Request) -> Response:
        runs = [models.Run(MODEL, {"input": ink}) for ink in inks_of(request)]
        digits = []
        for outcome in models.infer_all(runs):
            if isinstance(outcome, InferError):
                # A number without one of its digits is another number.
                raise outcome
            [best] = outcome.tensor("output", [1, DIGITS]).argmax()
            digits.append(best.index)
        return Response.json({"digits": digits, "text": "".join(map(str, digits))})


def inks_of(request: Request) -> list[Tensor]:
    """The model's input for each photo."""
    shape = request.json_tensor("/images", Dtype.STRING).shape
    if len(shape) != 1 or not 1 <= shape[0] <= IMAGES_MAX:
        raise InvalidInput(f"images is not a list of 1 to {IMAGES_MAX} texts in base64")
    photos = [request.json_blob(f"/images/{at}") for at in range(shape[0])]
    return [to_ink(Pixels.decode(photo, Color.GRAY).resize(SIZE, SIZE)) for photo in photos]


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

"""A photo in, what is on it out: the five best of ImageNet's labels.

The photo is the body, the file `image` of a form, or base64 or a data URL in JSON:
`{"image": ".."}`. The model is EfficientNet-Lite0, and `labels.txt` has a line for each of its
classes (models/photo/README.md).
"""

from gristmill_plugin import (
    Blob,
    Context,
    Internal,
    Outputs,
    Prepared,
    Processor,
    Request,
    Response,
    assets,
    export,
    shortest_float32,
)
from gristmill_plugin.image import Filter, Pixels

# The shorter side of the photo, of which the middle is cropped.
SHORTER = 256
SIDE = 224
# As the model was trained, for red, green and blue alike.
MEAN = 127.0
STD = 128.0
TOP = 5


@export
class Photo(Processor):
    def preprocess(self, context: Context, request: Request) -> Prepared:
        photo = Pixels.decode_resized(photo_of(request), shorter=SHORTER, filter=Filter.BICUBIC)
        photo = photo.center_crop(SIDE, SIDE)
        return Prepared({"images": photo.to_tensor(scale=1.0, mean=[MEAN] * 3, std=[STD] * 3)})

    def postprocess(self, context: Context, outputs: Outputs, state: bytes) -> Response:
        labels = assets.text("labels.txt").splitlines()
        logits = outputs["logits"]
        if logits.shape != (1, len(labels)):
            shape = list(logits.shape)
            raise Internal(f"labels.txt has {len(labels)} lines, but the logits have shape {shape}")
        top = [
            {"label": labels[found.index], "probability": shortest_float32(found.value)}
            for found in logits.softmax().top_k(TOP)
        ]
        best = top[0]
        return Response.json(
            {"prediction": best["label"], "probability": best["probability"], "top": top}
        )


def photo_of(request: Request) -> Blob:
    """The file of the photo."""
    match request.content_type:
        case "application/json":
            return request.json_blob("/image")
        case "multipart/form-data":
            return request.file("image").body
        case _:
            return request.body

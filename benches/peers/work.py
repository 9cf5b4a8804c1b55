"""The work of the benchmark services, written for speed. Each peer but fastapi-plain uses it.

A peer so differs from the others by its server alone. Each worker process has its own sessions, of one thread each:
there are two workers on two cores.
"""

import io
import os
from itertools import chain
from pathlib import Path

# Read when ONNX Runtime is loaded; without it 1.31 writes to the home directory.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime as ort
import orjson
from PIL import Image, UnidentifiedImageError

ROOT = Path(__file__).resolve().parents[2]
PHOTOS = ROOT / "target/models/photos.onnx"
FEATURES = 32
NUMBERS = frozenset((float, int))  # exact types: a bool is not a number here
SHORTER, SIDE = 256, 224
TOP = 5

# (value / 255 - mean) / deviation, as one multiplication and one addition for each channel.
MEAN = np.array((0.485, 0.456, 0.406), np.float32)
DEVIATION = np.array((0.229, 0.224, 0.225), np.float32)
SCALE = (1 / (255 * DEVIATION)).reshape(3, 1, 1)
OFFSET = (-MEAN / DEVIATION).reshape(3, 1, 1)


class Refused(Exception):
    """The request is at fault; the text says how."""


def load(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def load_ranker() -> ort.InferenceSession:
    return load(ROOT / "models/ranker/ranker.onnx")


def load_photos() -> ort.InferenceSession:
    return load(PHOTOS)


def infer(session: ort.InferenceSession, rows: np.ndarray) -> np.ndarray:
    return session.run(["output"], {"input": rows})[0]


def parse_json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(f"body is not JSON: {error}") from None


def ranker_rows(request: object) -> tuple[list[str], np.ndarray]:
    """Check a ranker request; return the ids and the features, [N,32]."""
    items = request.get("items") if type(request) is dict else None
    if type(items) is not list or not items:
        raise Refused("`items` must be a non-empty list")
    ids = []
    rows = []
    for position, item in enumerate(items):
        if type(item) is not dict:
            raise Refused(f"items[{position}] must be an object")
        name = item.get("id")
        if type(name) is not str:
            raise Refused(f"items[{position}].id must be a string")
        row = item.get("features")
        if type(row) is not list or len(row) != FEATURES or not NUMBERS.issuperset(map(type, row)):
            raise Refused(f"items[{position}].features must be a list of {FEATURES} numbers")
        ids.append(name)
        rows.append(row)
    with np.errstate(over="ignore"):
        # A third faster than np.array(rows), as every row is known to be of the same length.
        features = np.fromiter(chain.from_iterable(rows), np.float32, len(rows) * FEATURES)
    if not np.isfinite(features).all():
        raise Refused("a feature is out of the range of a 32-bit float")
    return ids, features.reshape(-1, FEATURES)


def ranking(ids: list[str], output: np.ndarray) -> dict:
    """The answer of the ranker: the items, best first."""
    scores = output[:, 0].tolist()
    # Sorting is stable with reverse=True too: equal scores stay in the order of the request.
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    return {"items": [{"id": ids[i], "score": scores[i]} for i in order]}


def photo_row(body: bytes) -> np.ndarray:
    """Decode a picture and prepare it as models/photos/README.md says; return [1,3,224,224]."""
    try:
        image = Image.open(io.BytesIO(body), formats=("JPEG", "PNG"))
    except UnidentifiedImageError:
        raise Refused("body is not a JPEG or PNG image") from None
    return image_row(image)


def image_row(image: Image.Image) -> np.ndarray:
    """The same of a picture that may not be decoded yet."""
    try:
        image = image.convert("RGB")
    except Exception as error:  # Pillow's decoders raise many kinds for a broken image
        raise Refused(f"the image cannot be read: {error}") from None
    scale = SHORTER / min(image.size)
    width, height = (round(side * scale) for side in image.size)
    left, top = (width - SIDE) // 2, (height - SIDE) // 2
    # Only the part that is cropped is resized: a third faster than to resize all and to crop then.
    x, y = image.width / width, image.height / height
    box = (left * x, top * y, (left + SIDE) * x, (top + SIDE) * y)
    pixels = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=box))
    row = np.empty((1, 3, SIDE, SIDE), np.float32)
    np.multiply(pixels.transpose(2, 0, 1), SCALE, out=row[0])
    row += OFFSET
    return row


def classification(logits: np.ndarray) -> dict:
    """The answer for a picture, of its row of logits: the best five labels."""
    odds = np.exp(logits - logits.max())
    best = np.argpartition(odds, -TOP)[-TOP:]
    best = best[np.argsort(-odds[best])]
    shares = (odds[best] / odds.sum()).tolist()
    top = [
        {"label": label, "probability": share} for label, share in zip(best.tolist(), shares, strict=True)
    ]
    return {**top[0], "top": top}

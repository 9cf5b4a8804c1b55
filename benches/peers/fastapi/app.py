"""The comparison peer: the benchmark services as a FastAPI application, written for speed."""

import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import orjson
import work
from fastapi import FastAPI, Request, Response
from PIL import Image, UnidentifiedImageError

DIGIT_SIDE = 28
TOP = 3

# Each worker process imports this module and so has its own sessions.
ranker = work.load_ranker()
digits = work.load(work.ROOT / "models/digits/digits.onnx")
# The benchmark `peers` makes this model; `load` does without.
photos = work.load_photos() if work.PHOTOS.exists() else None

# Without openapi_url there are no documentation routes to match before ours.
app = FastAPI(openapi_url=None)


def to_json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


@app.exception_handler(work.Refused)
async def refuse(_request: Request, refused: work.Refused) -> Response:
    return to_json({"detail": str(refused)}, 400)


def digit_row(body: bytes) -> np.ndarray:
    """Decode an image and prepare it as models/digits/README.md says; return [1,1,28,28]."""
    try:
        image = Image.open(io.BytesIO(body), formats=("PNG", "JPEG"))
        small = image.convert("L").resize((DIGIT_SIDE, DIGIT_SIDE), Image.Resampling.BILINEAR)
    except UnidentifiedImageError:
        raise work.Refused("body is not a PNG or JPEG image") from None
    except Exception as error:  # Pillow's decoders raise many kinds for a broken image
        raise work.Refused(f"the image cannot be read: {error}") from None
    pixels = np.asarray(small, dtype=np.float32) / np.float32(255)
    if pixels.mean() > 0.5:
        pixels = 1 - pixels
    pixels -= pixels.min()
    peak = pixels.max()
    if peak > 0:
        pixels /= peak
    return pixels.reshape(1, 1, DIGIT_SIDE, DIGIT_SIDE)


@app.get("/livez")
async def livez() -> Response:
    return Response("ok", media_type="text/plain")


@app.post("/ranker")
async def rank(request: Request) -> Response:
    ids, features = work.ranker_rows(work.parse_json(await request.body()))
    return to_json(work.ranking(ids, work.infer(ranker, features)))


@app.post("/digits")
async def digit(request: Request) -> Response:
    (logits,) = work.infer(digits, digit_row(await request.body()))
    odds = np.exp(logits - logits.max())
    odds = (odds / odds.sum()).tolist()
    best = sorted(range(len(odds)), key=odds.__getitem__, reverse=True)[:TOP]
    top = [{"label": label, "probability": odds[label]} for label in best]
    return to_json({**top[0], "top": top})


@app.post("/photos")
async def photo(request: Request) -> Response:
    (logits,) = work.infer(photos, work.photo_row(await request.body()))
    return to_json(work.classification(logits))

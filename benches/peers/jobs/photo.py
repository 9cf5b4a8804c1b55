"""What is in a photo: FastAPI with Pillow, NumPy and ONNX Runtime, as people write it."""

import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import work
from fastapi import FastAPI, HTTPException, Request
from PIL import Image, ImageOps

MODEL = work.ROOT / "target/models/photo"
SHORTER, SIDE, TOP = 256, 224, 5
MEAN, DEVIATION = np.float32(127), np.float32(128)

session = work.load(MODEL / "efficientnet-lite0.onnx")
labels = (MODEL / "labels.txt").read_text(encoding="utf-8").splitlines()
app = FastAPI()


def row(image: Image.Image) -> np.ndarray:
    """As torchvision does: Resize(256, BICUBIC), CenterCrop(224), ToTensor, Normalize."""
    width, height = image.size
    longer = int(SHORTER * max(width, height) / min(width, height))
    size = (SHORTER, longer) if width <= height else (longer, SHORTER)
    image = image.resize(size, Image.Resampling.BICUBIC)
    left, top = (round((side - SIDE) / 2) for side in size)
    image = image.crop((left, top, left + SIDE, top + SIDE))
    pixels = (np.asarray(image, dtype=np.float32) - MEAN) / DEVIATION
    return pixels.transpose(2, 0, 1)[np.newaxis]


@app.post("/photo")
async def classify(request: Request) -> dict:
    try:
        image = Image.open(io.BytesIO(await request.body()))
        image = ImageOps.exif_transpose(image).convert("RGB")
    except OSError as error:
        raise HTTPException(status_code=400, detail=f"not an image: {error}")
    [[logits]] = session.run(None, {"images": row(image)})
    scores = np.exp(logits - logits.max())
    scores /= scores.sum()
    best = [
        {"label": labels[at], "probability": float(scores[at])} for at in np.argsort(-scores)[:TOP]
    ]
    return {"prediction": best[0]["label"], "probability": best[0]["probability"], "top": best}

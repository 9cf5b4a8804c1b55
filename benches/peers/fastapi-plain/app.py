"""The benchmark services as people write them with FastAPI: pydantic models, plain functions, default sessions."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
from fastapi import FastAPI, HTTPException, UploadFile
from PIL import Image
from pydantic import BaseModel, Field

ROOT = Path(__file__).resolve().parents[3]
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)

ranker = ort.InferenceSession(ROOT / "models/ranker/ranker.onnx")
photos = ort.InferenceSession(ROOT / "target/models/photos.onnx")

app = FastAPI()


class Item(BaseModel):
    id: str
    features: list[float] = Field(min_length=32, max_length=32)


class RankerRequest(BaseModel):
    items: list[Item] = Field(min_length=1)


class ScoredItem(BaseModel):
    id: str
    score: float


class RankerResponse(BaseModel):
    items: list[ScoredItem]


class Candidate(BaseModel):
    label: int
    probability: float


class PhotoResponse(BaseModel):
    label: int
    probability: float
    top: list[Candidate]


@app.post("/ranker")
def rank(request: RankerRequest) -> RankerResponse:
    features = np.array([item.features for item in request.items], dtype=np.float32)
    scores = ranker.run(None, {"input": features})[0][:, 0]
    items = [
        ScoredItem(id=item.id, score=float(score))
        for item, score in zip(request.items, scores)
    ]
    items.sort(key=lambda item: item.score, reverse=True)
    return RankerResponse(items=items)


@app.post("/photos")
def classify(file: UploadFile) -> PhotoResponse:
    try:
        image = Image.open(file.file).convert("RGB")
    except OSError as error:
        raise HTTPException(status_code=400, detail=f"not an image: {error}")
    logits = photos.run(None, {"input": preprocess(image)})[0][0]
    probabilities = np.exp(logits - logits.max())
    probabilities /= probabilities.sum()
    top = [
        Candidate(label=int(label), probability=float(probabilities[label]))
        for label in np.argsort(-probabilities)[:5]
    ]
    return PhotoResponse(label=top[0].label, probability=top[0].probability, top=top)


def preprocess(image: Image.Image) -> np.ndarray:
    scale = 256 / min(image.size)
    width, height = round(image.width * scale), round(image.height * scale)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - 224) // 2, (height - 224) // 2
    image = image.crop((left, top, left + 224, top + 224))
    pixels = np.array(image, dtype=np.float32) / 255
    pixels = (pixels - MEAN) / STD
    return pixels.transpose(2, 0, 1)[np.newaxis]

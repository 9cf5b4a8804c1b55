"""Vectors of texts: FastAPI with tokenizers, NumPy and ONNX Runtime."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import orjson
import work
from fastapi import FastAPI, Response
from pydantic import BaseModel
from tokenizers import Tokenizer

MODEL = work.ROOT / "target/models/embed"

session = work.load(MODEL / "model.onnx")
tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
tokenizer.enable_padding()
app = FastAPI()


class Texts(BaseModel):
    texts: list[str]


@app.post("/embed")
async def embed(request: Texts) -> Response:
    encoded = tokenizer.encode_batch(request.texts, add_special_tokens=False)
    inputs = {
        "input_ids": np.array([text.ids for text in encoded], dtype=np.int64),
        "attention_mask": np.array([text.attention_mask for text in encoded], dtype=np.int64),
    }
    [vectors] = session.run(None, inputs)
    # FastAPI's own way to JSON takes a multiple of the model's time for so many numbers.
    answer = orjson.dumps({"vectors": vectors}, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(answer, media_type="application/json")

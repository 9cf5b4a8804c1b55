"""The text of a picture: RapidOCR in FastAPI."""

from fastapi import FastAPI, Request
from rapidocr_onnxruntime import RapidOCR

# One thread for each session: there are two workers on two cores.
engine = RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
app = FastAPI()


@app.post("/ocr")
async def read(request: Request) -> dict:
    found, _ = engine(await request.body())
    return {"lines": [{"text": text, "score": score, "box": box} for box, text, score in found or []]}

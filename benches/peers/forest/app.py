"""The newcomer's RandomForest in FastAPI, twice: as people write it, with pydantic, and tuned by hand."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
import orjson
from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import RootModel

MODEL = Path(__file__).resolve().parents[3] / "target/forest/forest.onnx"

options = ort.SessionOptions()
options.intra_op_num_threads = 1
tuned = ort.InferenceSession(MODEL, options)
plain = ort.InferenceSession(MODEL)

app = FastAPI()


class Rows(RootModel[list[list[float]]]):
    pass


class Prediction(RootModel[dict[str, list]]):
    pass


@app.post("/plain")
def predict(rows: Rows) -> Prediction:
    features = np.array(rows.root, dtype=np.float32)
    if features.ndim != 2 or features.shape[1] != 13:
        raise HTTPException(status_code=400, detail="the body is not a list of rows of 13 numbers")
    label, probabilities = plain.run(None, {"X": features})
    return Prediction({"label": label.tolist(), "probabilities": probabilities.tolist()})


@app.post("/tuned")
async def predict_quickly(request: Request) -> Response:
    features = np.array(orjson.loads(await request.body()), dtype=np.float32)
    if features.ndim != 2 or features.shape[1] != 13:
        raise HTTPException(status_code=400, detail="the body is not a list of rows of 13 numbers")
    label, probabilities = tuned.run(None, {"X": features})
    answer = {"label": label, "probabilities": probabilities}
    return Response(orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")

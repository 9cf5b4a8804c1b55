"""Write golden inputs and outputs of the models, as ONNX Runtime computes them on the CPU."""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

# Read when ONNX Runtime is loaded; without it 1.31 writes to the home directory.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime as ort

from digits import data as digits_data
from ranker import data as ranker_data

HERE = Path(__file__).parent
BATCHES = (1, 3, 8)
DECIMALS = 4


def digits_inputs(rows: int) -> np.ndarray:
    """Return held-out digit images [rows, 1, 28, 28]."""
    return digits_data.to_inputs(digits_data.load_split()[1][:rows])


def ranker_inputs(rows: int) -> np.ndarray:
    """Return held-out impressions [rows, 32]."""
    return ranker_data.generate(rows, ranker_data.HELD_OUT_SEED).features


INPUTS: dict[str, Callable[[int], np.ndarray]] = {"digits": digits_inputs, "ranker": ranker_inputs}


def tensor(name: str, array: np.ndarray, decimals: int | None = None) -> dict:
    """Describe an FP32 array as an Open Inference Protocol tensor, rounded if asked."""
    values = array.ravel().astype(np.float32)
    # The shortest decimal that reads back as the same float32, or a rounded one.
    data = [float(str(v)) if decimals is None else round(float(v), decimals) for v in values]
    return {"name": name, "datatype": "FP32", "shape": list(array.shape), "data": data}


def golden(name: str) -> dict:
    """Return the golden cases of one model, each case with rows of its own."""
    session = ort.InferenceSession(HERE / name / f"{name}.onnx", providers=["CPUExecutionProvider"])
    rows = INPUTS[name](sum(BATCHES))
    cases = []
    for batch in np.split(rows, np.cumsum(BATCHES)[:-1]):
        given = tensor("input", batch, DECIMALS)
        x = np.array(given["data"], dtype=np.float32).reshape(batch.shape)
        (output,) = session.run(["output"], {"input": x})
        cases.append({"inputs": [given], "outputs": [tensor("output", output)]})
    return {"cases": cases}


def main() -> None:
    """Write golden.json beside each named model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(INPUTS), help="models to write (default: all of them)")
    for name in parser.parse_args().names:
        path = HERE / name / "golden.json"
        path.write_text(json.dumps(golden(name), separators=(",", ":")) + "\n")
        print(f"wrote {name}/golden.json, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

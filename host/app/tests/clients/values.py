"""Datatypes, and arrays to send."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

MODELS = Path(__file__).parents[4] / "models"
FIXTURES = Path(__file__).parents[1] / "fixtures"

NUMPY_TYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": np.object_,
}
# These have no JSON form.
BINARY_ONLY = {"FP16", "BF16"}
TEXTS = ["", "a", "grüße €😀", 'quote " backslash \\ newline \n tab \t', "\u2028\u007f", "x" * 300]


def edges(datatype: str, finite: bool = False) -> np.ndarray:
    """A row with the values at a datatype's edges."""
    numpy_type = NUMPY_TYPES[datatype]
    if datatype == "BOOL":
        values = [True, False, True, True]
    elif datatype == "BYTES":
        values = TEXTS
    elif np.issubdtype(numpy_type, np.integer):
        info = np.iinfo(numpy_type)
        values = [info.min, info.max, 0, 1, info.max // 2]
    else:
        info = ml_dtypes.finfo(numpy_type)
        values = [info.min, info.max, info.tiny, info.smallest_subnormal, 0.0, -0.0, 1 / 3]
        values += [] if finite else [float("nan"), float("inf"), float("-inf")]
    return np.array(values, dtype=numpy_type)


def batches(datatype: str, **options: bool) -> list[np.ndarray]:
    """Batches of 1 and of 5 rows, and batches whose rows are not contiguous in memory."""
    row = edges(datatype, **options)
    five = np.stack([np.roll(row, index) for index in range(5)])
    return [five[:1], five, five[::2, ::-1], np.asfortranarray(five)]


def features(rows: int) -> np.ndarray:
    return np.linspace(-1, 1, rows * 32, dtype=np.float32).reshape(rows, 32)


def flat(array: np.ndarray) -> list[Any] | bytes:
    """Elements that can be compared bit by bit."""
    if array.dtype == np.object_:
        return [e.encode() if isinstance(e, str) else e for e in array.flatten()]
    return array.tobytes()


def assert_same(result: Any, sent: np.ndarray) -> None:
    """Check that the answer of an identity model equals the input."""
    got = result.as_numpy("output")
    assert got.shape == sent.shape and got.dtype == sent.dtype, (got, sent)
    assert flat(got) == flat(sent), (got, sent)


def picture(digit: int) -> np.ndarray:
    """A request to the pipeline `digits`."""
    return np.array([(MODELS / f"digits/samples/{digit}.png").read_bytes()], dtype=np.object_)


def ranking() -> np.ndarray:
    """A request to the pipeline `ranker`."""
    return np.array(
        [json.dumps({"items": [{"id": "a", "features": [0.5] * 32}]})], dtype=np.object_
    )


def answer_of(result: Any) -> Any:
    """A pipeline's answer."""
    answer = result.as_numpy("RESPONSE")
    assert answer.shape == (1,), answer
    return json.loads(answer[0])


def dims(tensor: dict[str, Any]) -> list[int]:
    """The sizes of a tensor in a document; 64-bit integers may be strings."""
    return [int(size) for size in tensor["shape"]]

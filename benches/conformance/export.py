"""Exports the `onnx` package's backend node tests to files that can be read without protobuf, and runs them with
ONNX Runtime's own Python package.

    python benches/conformance/export.py target/conformance

Writes for each test a folder with `model.onnx` and `case.json` (inputs, outputs, tolerances; tensors as raw
little-endian bytes beside it, each string after its 32-bit length), and `onnxruntime.json`: `passed`, `failed` or
`unsupported` by test.
"""

import json
import os
import struct
import sys
import warnings
from pathlib import Path

# Read when ONNX Runtime is loaded; without it 1.31 writes to the home directory.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime
from onnx.backend.test.case.node import collect_testcases

DATATYPES = {
    "bool": "BOOL", "uint8": "UINT8", "int8": "INT8", "uint16": "UINT16", "int16": "INT16",
    "uint32": "UINT32", "int32": "INT32", "uint64": "UINT64", "int64": "INT64",
    "float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64",
}  # fmt: skip


class NoTensor(Exception):
    """A value that no tensor of the protocol holds."""


def encoded(value):
    """The datatype and the bytes of a value."""
    if not isinstance(value, (np.ndarray, np.generic)):
        raise NoTensor(type(value).__name__)
    value = np.asarray(value)
    if value.dtype.kind in "OUS":
        texts = [text if isinstance(text, bytes) else str(text).encode() for text in value.flatten()]
        return "BYTES", b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if value.dtype.name not in DATATYPES:
        raise NoTensor(value.dtype.name)
    return DATATYPES[value.dtype.name], np.ascontiguousarray(value).tobytes()


def write_tensors(folder, kind, infos, values):
    tensors = []
    for index, (info, value) in enumerate(zip(infos, values)):
        datatype, data = encoded(value)
        file = f"{kind}_{index}.bin"
        (folder / file).write_bytes(data)
        shape = list(np.asarray(value).shape)
        tensors.append({"name": info.name, "datatype": datatype, "shape": shape, "file": file})
    return tensors


def export(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    document = {"rtol": case.rtol, "atol": case.atol}
    inputs, outputs = case.data_sets[0]
    try:
        document["inputs"] = write_tensors(folder, "input", case.model.graph.input, inputs)
        document["outputs"] = write_tensors(folder, "output", case.model.graph.output, outputs)
    except NoTensor as kind:
        document = {"unsupported": f"a value is {kind}, which is no tensor of the protocol"}
    (folder / "case.json").write_text(json.dumps(document))


def fits(case, actual, expected):
    if actual.shape != np.shape(expected) or actual.dtype != np.asarray(expected).dtype:
        return False
    if actual.dtype.kind in "OUS":
        return bool(np.array_equal(actual.astype(str), np.asarray(expected).astype(str)))
    return bool(np.allclose(actual, expected, case.rtol, case.atol, equal_nan=True))


def baseline(case):
    """The verdict of ONNX Runtime itself."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:
        return "unsupported"
    inputs, outputs = case.data_sets[0]
    names = [info.name for info in case.model.graph.input]
    try:
        actual = session.run(None, dict(zip(names, inputs)))
    except Exception:
        return "failed"
    if len(actual) < len(outputs):
        return "failed"
    for got, expected in zip(actual, outputs):
        if not isinstance(got, np.ndarray):
            return "unsupported"
        if not fits(case, got, expected):
            return "failed"
    return "passed"


def main():
    warnings.filterwarnings("ignore")
    target = Path(sys.argv[1])
    verdicts = {}
    for case in collect_testcases(None):
        export(case, target / "cases" / case.name)
        verdicts[case.name] = baseline(case)
    (target / "onnxruntime.json").write_text(json.dumps(verdicts, indent=1))
    counts = {verdict: list(verdicts.values()).count(verdict) for verdict in set(verdicts.values())}
    print(f"{len(verdicts)} tests; ONNX Runtime {onnxruntime.__version__} by itself: {counts}")


if __name__ == "__main__":
    main()

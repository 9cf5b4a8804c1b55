"""WordLlama's embeddings as an ONNX model, and their tokenizer, taken out of WordLlama's package.

    python3 models/embed/fetch.py target/models/embed

It needs Python with pip, nothing else. The folder gets model.onnx and tokenizer.json.

The package has a table with a row of 256 numbers for each token. The model does what WordLlama does with it: the mean
of the rows of a text's tokens. Ids beyond the table are those at its ends, and a text without tokens is 0. The table
stays as it is, in float16; sums are float32.
"""

import json
import struct
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
import onnx_file
import packages
from onnx_file import FLOAT16, FLOAT32, INT64

TABLE, TABLE_KEY = "wordllama/weights/l2_supercat_256.safetensors", "embedding.weight"
TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"

# Of ONNX's format and of its operators.
VERSIONS = 8, 17


def table(safetensors):
    """The shape of the table in a safetensors file, and its elements' bytes."""
    [length] = struct.unpack_from("<Q", safetensors)
    entry = json.loads(safetensors[8 : 8 + length])[TABLE_KEY]
    if entry["dtype"] != "F16":
        raise SystemExit(f"the table is {entry['dtype']}, not F16")
    start, end = entry["data_offsets"]
    return entry["shape"], safetensors[8 + length :][start:end]


def model(shape, elements):
    tokens, width = shape
    nodes = [
        onnx_file.node("Max", ["input_ids", "first_id"], "ids_from_first"),
        onnx_file.node("Min", ["ids_from_first", "last_id"], "ids"),
        onnx_file.node("Gather", ["table", "ids"], "rows_in_float16"),
        onnx_file.node("Cast", ["rows_in_float16"], "rows", to=FLOAT32),
        onnx_file.node("Cast", ["attention_mask"], "mask", to=FLOAT32),
        # [batch, 1, tokens] x [batch, tokens, width]: the sum of the rows that the mask marks.
        onnx_file.node("Unsqueeze", ["mask", "axis"], "weights"),
        onnx_file.node("MatMul", ["weights", "rows"], "sums_in_lists"),
        onnx_file.node("Squeeze", ["sums_in_lists", "axis"], "sums"),
        onnx_file.node("ReduceSum", ["mask", "axis"], "marked", keepdims=1),
        onnx_file.node("Max", ["marked", "one"], "count"),
        onnx_file.node("Div", ["sums", "count"], "vectors"),
    ]
    constants = [
        onnx_file.tensor("table", FLOAT16, shape, elements),
        onnx_file.tensor("first_id", INT64, [1], struct.pack("<q", 0)),
        onnx_file.tensor("last_id", INT64, [1], struct.pack("<q", tokens - 1)),
        onnx_file.tensor("axis", INT64, [1], struct.pack("<q", 1)),
        onnx_file.tensor("one", FLOAT32, [1], struct.pack("<f", 1)),
    ]
    names = ("input_ids", "attention_mask")
    inputs = [onnx_file.end(name, INT64, ["batch", "tokens"]) for name in names]
    outputs = [onnx_file.end("vectors", FLOAT32, ["batch", width])]
    return onnx_file.model(VERSIONS, "wordllama", nodes, constants, inputs, outputs)


def contents(read):
    return {"model.onnx": model(*table(read(TABLE))), "tokenizer.json": read(TOKENIZER)}


if __name__ == "__main__":
    packages.fetch(__file__, contents)

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
import packages

TABLE, TABLE_KEY = "wordllama/weights/l2_supercat_256.safetensors", "embedding.weight"
TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"

IR_VERSION, OPSET = 8, 17
# ONNX's numbers of datatypes, and of an attribute that is an integer.
FLOAT, INT64, FLOAT16, INT_ATTRIBUTE = 1, 7, 10, 2


def table(safetensors):
    """The shape of the table in a safetensors file, and its elements' bytes."""
    [length] = struct.unpack_from("<Q", safetensors)
    entry = json.loads(safetensors[8 : 8 + length])[TABLE_KEY]
    if entry["dtype"] != "F16":
        raise SystemExit(f"the table is {entry['dtype']}, not F16")
    start, end = entry["data_offsets"]
    return entry["shape"], safetensors[8 + length :][start:end]


# An ONNX file is a message of Protocol Buffers. These four write one; its fields have the numbers
# of onnx.proto.


def varint(value):
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def message(*fields):
    """A message of pairs of number and value: an integer, a text, or bytes, as other messages are."""
    written = []
    for number, value in fields:
        if isinstance(value, int):
            written += [varint(number << 3), varint(value)]
        else:
            value = value.encode() if isinstance(value, str) else value
            written += [varint(number << 3 | 2), varint(len(value)), value]
    return b"".join(written)


def constant(name, datatype, shape, elements):
    return message(*((1, size) for size in shape), (2, datatype), (8, name), (9, elements))


def described(name, datatype, shape):
    """An input or an output. A size with a name is open."""
    sizes = [(1, message((1 if isinstance(size, int) else 2, size))) for size in shape]
    return message((1, name), (2, message((1, message((1, datatype), (2, message(*sizes)))))))


def node(operator, inputs, output, **attributes):
    written = [(5, message((1, key), (3, value), (20, INT_ATTRIBUTE))) for key, value in attributes.items()]
    return message(*((1, name) for name in inputs), (2, output), (3, output), (4, operator), *written)


def model(shape, elements):
    tokens, width = shape
    nodes = [
        node("Max", ["input_ids", "first_id"], "ids_from_first"),
        node("Min", ["ids_from_first", "last_id"], "ids"),
        node("Gather", ["table", "ids"], "rows_in_float16"),
        node("Cast", ["rows_in_float16"], "rows", to=FLOAT),
        node("Cast", ["attention_mask"], "mask", to=FLOAT),
        # [batch, 1, tokens] x [batch, tokens, width]: the sum of the rows that the mask marks.
        node("Unsqueeze", ["mask", "axis"], "weights"),
        node("MatMul", ["weights", "rows"], "sums_in_lists"),
        node("Squeeze", ["sums_in_lists", "axis"], "sums"),
        node("ReduceSum", ["mask", "axis"], "marked", keepdims=1),
        node("Max", ["marked", "one"], "count"),
        node("Div", ["sums", "count"], "vectors"),
    ]
    constants = [
        constant("table", FLOAT16, shape, elements),
        constant("first_id", INT64, [1], struct.pack("<q", 0)),
        constant("last_id", INT64, [1], struct.pack("<q", tokens - 1)),
        constant("axis", INT64, [1], struct.pack("<q", 1)),
        constant("one", FLOAT, [1], struct.pack("<f", 1)),
    ]
    inputs = [described(name, INT64, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")]
    output = described("vectors", FLOAT, ["batch", width])
    graph = [(1, node) for node in nodes] + [(2, "wordllama")] + [(5, constant) for constant in constants]
    graph = message(*graph, *((11, value) for value in inputs), (12, output))
    return message((1, IR_VERSION), (7, graph), (8, message((1, ""), (2, OPSET))))


def contents(read):
    return {"model.onnx": model(*table(read(TABLE))), "tokenizer.json": read(TOKENIZER)}


if __name__ == "__main__":
    packages.fetch(__file__, contents)

"""The models of PP-OCR and their list of characters, taken out of RapidOCR's package, and two scanned pages out of
scikit-image's for the tests.

    python3 models/ocr/fetch.py target/models/ocr

It needs Python with pip, nothing else. The folder gets detect.onnx, angle.onnx, read.onnx, keys.txt, page.png and
text.png. Of each column of a line, read.onnx gives the best class and its score in place of all scores.
"""

import struct
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
import onnx_file
import packages
from onnx_file import FLOAT32, INT64

FILES = {
    "detect.onnx": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
    "angle.onnx": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "read.onnx": "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    "page.png": "skimage/data/page.png",
    "text.png": "skimage/data/text.png",
}
# The fields of an ONNX file (ModelProto) that are read: of the graph, and of the metadata.
GRAPH, NODE, NODE_OUTPUT, CONSTANT, OUTPUT, OUTPUT_NAME = 7, 1, 2, 5, 12, 1
METADATA, NAME, VALUE = 14, 1, 2


def fields(message):
    """The fields of a message of Protocol Buffers: the number, the content if it is bytes, and the whole field."""

    def varint(at):
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at

    message, at = memoryview(message), 0
    while at < len(message):
        start, content = at, b""
        key, at = varint(at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            _, at = varint(at)
        elif kind == 2:
            length, at = varint(at)
            content = message[at : at + length]
            at += length
        else:
            at += {1: 8, 5: 4}[kind]
        yield number, content, message[start:at]


def field(message, wanted):
    """The content of the first field of this number."""
    return next(content for number, content, _ in fields(message) if number == wanted)


def keys(model):
    """The characters that the model `read` knows, in the order of its classes."""
    for number, entry, _ in fields(model):
        if number == METADATA and bytes(field(entry, NAME)) == b"character":
            return bytes(field(entry, VALUE)).decode().splitlines()
    raise SystemExit('the model has no metadata "character"')


def with_best(model):
    """The model `read` with the best class of each column and its score as outputs, in place of the scores of all
    classes: those are 1 to 2 MB for each line of a page.
    """
    graph = field(model, GRAPH)
    scores = bytes(field(field(graph, OUTPUT), OUTPUT_NAME)).decode()
    # Its second output comes last. It takes half of the time of ArgMax and ReduceMax.
    node = onnx_file.node("TopK", [scores, "one"], "score", axis=2) + onnx_file.field(NODE_OUTPUT, "best")
    shape = ["rows", "columns", 1]
    added = [
        onnx_file.field(NODE, node),
        onnx_file.field(CONSTANT, onnx_file.tensor("one", INT64, [1], struct.pack("<q", 1))),
        onnx_file.field(OUTPUT, onnx_file.end("best", INT64, shape)),
        onnx_file.field(OUTPUT, onnx_file.end("score", FLOAT32, shape)),
    ]
    kept = [whole for number, _, whole in fields(graph) if number != OUTPUT]
    others = [whole for number, _, whole in fields(model) if number != GRAPH]
    return b"".join([*others, onnx_file.field(GRAPH, *kept, *added)])


def contents(read):
    files = {name: read(path) for name, path in FILES.items()}
    keys_file = "".join(f"{key}\n" for key in keys(files["read.onnx"]))
    return {**files, "read.onnx": with_best(files["read.onnx"]), "keys.txt": keys_file.encode()}


if __name__ == "__main__":
    packages.fetch(__file__, contents)

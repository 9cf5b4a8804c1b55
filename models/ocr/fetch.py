"""The models of PP-OCR and their list of characters, taken out of RapidOCR's package, and two scanned pages out of
scikit-image's for the tests.

    python3 models/ocr/fetch.py target/models/ocr

It needs Python with pip, nothing else. The folder gets detect.onnx, angle.onnx, read.onnx, keys.txt, page.png and
text.png.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
import packages

FILES = {
    "detect.onnx": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
    "angle.onnx": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "read.onnx": "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    "page.png": "skimage/data/page.png",
    "text.png": "skimage/data/text.png",
}
# Of an ONNX file (ModelProto), the field with a name and a value of the metadata, and these two
# within it.
METADATA, NAME, VALUE = 14, 1, 2


def fields(message):
    """The fields of a message in the format of Protocol Buffers that have bytes: pairs of number and bytes."""

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
        key, at = varint(at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            _, at = varint(at)
        elif kind == 2:
            length, at = varint(at)
            yield number, message[at : at + length]
            at += length
        else:
            at += {1: 8, 5: 4}[kind]


def keys(model):
    """The characters that the model `read` knows, in the order of its classes."""
    for number, entry in fields(model):
        if number == METADATA:
            entry = dict(fields(entry))
            if bytes(entry[NAME]) == b"character":
                return bytes(entry[VALUE]).decode().splitlines()
    raise SystemExit('the model has no metadata "character"')


def contents(read):
    files = {name: read(path) for name, path in FILES.items()}
    return {**files, "keys.txt": "".join(f"{key}\n" for key in keys(files["read.onnx"])).encode()}


if __name__ == "__main__":
    packages.fetch(__file__, contents)

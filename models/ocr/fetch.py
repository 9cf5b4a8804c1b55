"""The models of PP-OCR and their list of characters, taken out of RapidOCR's package, and two scanned pages out of
scikit-image's for the tests.

    python3 models/ocr/fetch.py target/models/ocr

pip downloads the packages, of which requirements.txt has the digests; nothing of them is installed or run. It needs
Python with pip, nothing else. The folder gets detect.onnx, angle.onnx, read.onnx, keys.txt, page.png and text.png; it
appears when all of them are there.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
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


def download(folder):
    """The packages' files."""
    # They are only unpacked, so they need not fit this Python and this machine.
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.12", "--platform=manylinux_2_28_x86_64"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", *options]
    subprocess.run([*command, "-r", REQUIREMENTS, "-d", folder], check=True)
    return Path(folder).glob("*.whl")


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


def main():
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        unfinished = Path(folder) / "models"
        unfinished.mkdir()
        for package in map(zipfile.ZipFile, download(folder)):
            for name, entry in FILES.items():
                if entry in package.namelist():
                    (unfinished / name).write_bytes(package.read(entry))
        characters = keys((unfinished / "read.onnx").read_bytes())
        (unfinished / "keys.txt").write_text("\n".join(characters) + "\n", encoding="utf-8", newline="\n")
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    print(f"{target}: three models, {len(characters)} characters and two pages")


if __name__ == "__main__":
    main()

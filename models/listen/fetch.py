"""Silero VAD, taken out of its package, and a recording of speech out of pyannote's for the tests.

    python3 models/listen/fetch.py target/models/listen

It needs Python with pip, nothing else. The folder gets vad.onnx and speech.wav.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
import packages

FILES = {
    # The one of fixed shapes, which gives the same numbers as silero_vad.onnx: the server can run
    # it on made-up inputs.
    "vad.onnx": "silero_vad/data/silero_vad_openvino_16k.onnx",
    "speech.wav": "pyannote/audio/sample/sample.wav",
}


def contents(read):
    return {name: read(path) for name, path in FILES.items()}


if __name__ == "__main__":
    packages.fetch(__file__, contents)

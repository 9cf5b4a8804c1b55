"""Write sample images of held-out digits and check that the exported model reads every one."""

import argparse
import os
import sys
from pathlib import Path

# Read when ONNX Runtime is loaded; without it 1.31 writes to the home directory.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime as ort
from PIL import Image

from data import load_split, preprocess, to_gray

HERE = Path(__file__).parent
PAPER, INK = 232.0, 45.0


def typical(digits: np.ndarray) -> np.ndarray:
    """Order digits of one class from the most typical, nearest to their mean, to the least."""
    return digits[np.square(digits - digits.mean(axis=0)).sum(axis=(1, 2)).argsort()]


def enlarged(digit: np.ndarray, side: int) -> Image.Image:
    """Render a digit bright on black, smooth, with a black margin."""
    return to_gray(np.pad(digit, 1)).resize((side, side), Image.Resampling.BICUBIC)


def photo(digit: np.ndarray, rng: np.random.Generator) -> Image.Image:
    """Render a digit as a photo would show it: dark ink on unevenly lit, slightly noisy paper."""
    ink = np.asarray(enlarged(digit, 320), dtype=np.float32) / 255
    light = np.linspace(1.0, 0.88, 320)[:, None] * np.linspace(1.0, 0.95, 320)[None, :]
    shade = (PAPER + (INK - PAPER) * ink) * light + rng.normal(scale=3, size=ink.shape)
    return Image.fromarray(shade.clip(0, 255).astype(np.uint8))


def write_samples(digits: np.ndarray, labels: np.ndarray, out: Path) -> dict[Path, int]:
    """Write the samples and return each file with the digit it shows."""
    classes = [typical(digits[labels == label]) for label in range(10)]
    samples = {f"{label}.png": (label, enlarged(classes[label][0], 112)) for label in range(10)}
    samples["seven.png"] = (7, enlarged(classes[7][1], 280))
    samples["three.jpg"] = (3, photo(classes[3][1], np.random.default_rng(0)))

    out.mkdir(parents=True, exist_ok=True)
    for name, (_, image) in samples.items():
        image.save(out / name, optimize=True, quality=90)
    return {out / name: label for name, (label, _) in samples.items()}


def read(session: ort.InferenceSession, images: list[Image.Image]) -> np.ndarray:
    """Return the logits [N, 10] of images taken through the serving preprocessing."""
    return session.run(["output"], {"input": np.stack([preprocess(i) for i in images])[:, None]})[0]


def main() -> None:
    """Write the samples, read them back from their files, and fail on a misread one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", type=Path, default=HERE / "digits.onnx", help="model that must read the samples")
    parser.add_argument("--out", type=Path, default=HERE / "samples", help="folder to write")
    args = parser.parse_args()

    session = ort.InferenceSession(args.model, providers=["CPUExecutionProvider"])
    _, digits, _, labels = load_split()
    misread = 0
    for path, label in write_samples(digits, labels, args.out).items():
        with Image.open(path) as image:
            logits = read(session, [image])[0]
        second, first = np.sort(logits)[-2:]
        misread += logits.argmax() != label
        print(f"{path.name:10s} shows {label}, read as {logits.argmax()} (margin {first - second:.1f})")

    photos = [photo(digit, np.random.default_rng(i)) for i, digit in enumerate(digits)]
    print(f"held-out accuracy, rendered as photos: {(read(session, photos).argmax(axis=1) == labels).mean():.4f}")
    if misread:
        sys.exit(f"{misread} samples misread")


if __name__ == "__main__":
    main()

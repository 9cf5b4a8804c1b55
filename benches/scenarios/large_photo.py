"""A photo of 12 million pixels, as a phone makes it, and what Pillow takes for a tensor of it.

    python benches/scenarios/large_photo.py      # with the packages of benches/peers/fastapi

It writes target/bench-data/large.jpg, which `cargo bench --bench sandbox -- large_photo` decodes, and
prints the milliseconds of CPU time of Pillow: with a full decode, and with `draft`, which decodes at an eighth,
and at the quarter that keeps two pixels for each of the result. `cargo xtask bench jobs` runs both.
"""

import io
import json
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

from photo import noise

WIDTH, HEIGHT = 4000, 3000
# Grain of about two pixels.
SCALES = [(3, 70), (7, 45), (16, 28), (40, 17), (110, 9), (500, 5), (2000, 4)]
SHORTER, SIDE = 256, 224
ROUNDS = 15
MEAN = np.array((0.485, 0.456, 0.406), np.float32)[:, None, None]
DEVIATION = np.array((0.229, 0.224, 0.225), np.float32)[:, None, None]


def tensor(file: bytes, draft: int | None) -> np.ndarray:
    image = Image.open(io.BytesIO(file))
    if draft is not None:
        image.draft("RGB", (draft, draft))
    image = image.convert("RGB")
    longer = SHORTER * max(image.size) // min(image.size)
    size = (SHORTER, longer) if image.width <= image.height else (longer, SHORTER)
    image = image.resize(size, Image.Resampling.BILINEAR)
    left, top = (round((side - SIDE) / 2) for side in size)
    image = image.crop((left, top, left + SIDE, top + SIDE))
    return (np.asarray(image, np.float32).transpose(2, 0, 1) / 255 - MEAN) / DEVIATION


def main() -> None:
    path = Path(__file__).resolve().parents[2] / "target/bench-data/large.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    noise(WIDTH, HEIGHT, SCALES).save(path, quality=90, subsampling=2)
    file = path.read_bytes()
    print(f"{path}: {len(file)} bytes", file=sys.stderr)
    figures = {}
    for name, draft in (("full_ms", None), ("eighth_ms", SHORTER), ("quarter_ms", 2 * SHORTER)):
        times = []
        for _ in range(ROUNDS):
            start = time.process_time()
            tensor(file, draft)
            times.append(time.process_time() - start)
        figures[name] = round(min(times) * 1000, 1)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

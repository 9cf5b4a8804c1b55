"""photo.jpg: a picture of ImageNet's mean size, 500x375, with the detail of a photo.

    python benches/scenarios/photo.py      # with the packages of benches/peers/fastapi

Seeded noise at several scales, the coarser the stronger, so that it has large forms and fine grain and compresses
as a photo does.
"""

from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 500, 375
SEED = 5
SCALES = [(3, 70), (7, 45), (16, 28), (40, 17), (110, 9), (500, 3)]


def noise(width: int, height: int, scales: list[tuple[int, int]]) -> Image.Image:
    """A picture with noise at these scales: the cells across the picture, and the strength."""
    random = np.random.default_rng(SEED)
    picture = np.full((height, width, 3), (118, 112, 100), np.float32)
    for cells, strength in scales:
        shape = (max(2, round(cells * height / width)), cells)
        # Most of the light is common to the three colours.
        light = random.standard_normal(shape)[:, :, None] + 0.5 * random.standard_normal((*shape, 3))
        for colour in range(3):
            layer = Image.fromarray(light[:, :, colour].astype(np.float32))
            layer = layer.resize((width, height), Image.Resampling.BICUBIC)
            picture[:, :, colour] += strength * np.asarray(layer)
    return Image.fromarray(picture.clip(0, 255).astype(np.uint8))


def main():
    path = Path(__file__).with_name("photo.jpg")
    noise(WIDTH, HEIGHT, SCALES).save(path, quality=88)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

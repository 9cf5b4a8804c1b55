"""The digits data: split, image preparation and the serving-side preprocessing."""

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SIDE = 28
SPLIT_SEED = 20240607
HELD_OUT_FRACTION = 0.2


def to_gray(digit: np.ndarray) -> Image.Image:
    """Turn one 8x8 digit with ink values 0..16 into an 8-bit gray image, ink bright."""
    return Image.fromarray(np.round(digit * (255 / 16)).astype(np.uint8))


def preprocess(image: Image.Image) -> np.ndarray:
    """Do what the serving plugin does: gray, 28x28, 0..1, ink bright, contrast stretch."""
    small = image.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    pixels = np.asarray(small, dtype=np.float32) / 255
    if pixels.mean() > 0.5:
        pixels = 1 - pixels
    pixels = pixels - pixels.min()
    return pixels / max(float(pixels.max()), 1e-6)


def load_split() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return train digits, held-out digits, train labels, held-out labels (digits are 8x8, 0..16)."""
    digits = load_digits()
    return train_test_split(
        digits.images,
        digits.target,
        test_size=HELD_OUT_FRACTION,
        stratify=digits.target,
        random_state=SPLIT_SEED,
    )


def to_inputs(digits: np.ndarray) -> np.ndarray:
    """Turn 8x8 digits into model inputs of shape [N, 1, 28, 28]."""
    return np.stack([preprocess(to_gray(d)) for d in digits])[:, None].astype(np.float32)

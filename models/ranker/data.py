"""The ranker data: generated clicks from a hidden utility, seen through position bias and noise.

The 32 features of a row, in order: 12 user taste factors, 12 item topic factors, and 8 signals
(price, freshness, popularity, rating, discount, distance, stock, session depth). All are
standardised: mean 0, deviation 1.
"""

from typing import NamedTuple

import numpy as np

FACTORS = 12
SIGNALS = 8
FEATURES = 2 * FACTORS + SIGNALS
POSITIONS = 10
WORLD_SEED = 41
TRAIN_SEED = 42
HELD_OUT_SEED = 43


class Clicks(NamedTuple):
    """Impressions: features [N, 32], clicked or not [N], and the hidden chance of a click [N]."""

    features: np.ndarray
    clicked: np.ndarray
    chance: np.ndarray


def utility(features: np.ndarray) -> np.ndarray:
    """Return the hidden utility [N]: taste meets topic, then signals that do not act linearly."""
    mixing = np.random.default_rng(WORLD_SEED).normal(size=(FACTORS, 3, 2)) / FACTORS**0.5
    taste = features[:, :FACTORS] @ mixing[:, :, 0]
    topic = features[:, FACTORS : 2 * FACTORS] @ mixing[:, :, 1]
    price, fresh, popular, rating, discount, distance, stock, depth = features[:, 2 * FACTORS :].T
    return (
        1.6 * np.tanh(taste * topic).sum(axis=1)
        - 1.2 * np.maximum(price - discount, 0)
        + 0.8 * np.tanh(2 * fresh)
        + 0.7 * popular
        + 0.9 * rating * (popular > 0)
        - 0.6 * np.abs(distance)
        - 1.5 * (stock < -1.5)
        - 0.4 * depth
    )


def generate(rows: int, seed: int) -> Clicks:
    """Draw impressions; the position shown, which the model never sees, damps the click."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, FEATURES)).astype(np.float32)
    examined = 0.95 ** rng.integers(0, POSITIONS, size=rows)
    wanted = 1 / (1 + np.exp(-(2 * utility(features) + rng.normal(scale=0.5, size=rows))))
    chance = examined * wanted
    return Clicks(features, (rng.random(rows) < chance).astype(np.float32), chance)

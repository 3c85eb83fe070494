"""A synthetic image of three regions with noise, and the share of pixels that labels get wrong."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment


def noisy_image(side: int, noise: float, channels: int, seed: int = 0):
    """True regions (side, side) and the pixels (side^2, channels): a disc on two bands.

    With one channel the grey levels are 0, 1 and 2, with two (0, 0), (1, 0) and (0, 1).
    """
    row, column = np.mgrid[:side, :side] / side
    truth = (row + 0.15 * np.sin(2 * np.pi * column) > 0.5).astype(int)
    truth[(column - 0.5) ** 2 + (row - 0.5) ** 2 < 0.3**2] = 2
    levels = np.array([[0.0], [1], [2]]) if channels == 1 else np.array([[0.0, 0], [1, 0], [0, 1]])
    pixels = levels[truth].reshape(-1, channels)
    return truth, pixels + np.random.default_rng(seed).normal(0, noise, pixels.shape)


def error(truth: np.ndarray, labels: np.ndarray) -> float:
    """Share of wrong pixels under the best naming of the segments."""
    counts = np.zeros((3, 3))
    np.add.at(counts, (truth.ravel(), labels), 1)
    return float(1 - counts[linear_sum_assignment(-counts)].sum() / truth.size)

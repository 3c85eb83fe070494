"""Data as in example 5 of NN-EVCLUS."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def circles(seed: int, n: int = 500) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Two fifths in the middle, three fifths on a ring around them; the two do not touch."""
    rng = np.random.default_rng(seed)
    inner = 2 * n // 5
    angle = rng.uniform(0, 2 * np.pi, n - inner)
    radius = rng.normal(5, 0.5, n - inner)
    ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X = np.concatenate([rng.normal(0, 0.8, (inner, 2)), ring])
    return X, np.repeat([0, 1], [inner, n - inner])

"""Small mixtures and partitions that the tests of this folder share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evdist.mixture import Parameters, from_posterior


def clouds(n: int = 200, d: int = 3, c: int = 3, *, seed: int = 0) -> tuple[NDArray, NDArray]:
    """c overlapping Gaussians with full covariances: X (n, d), labels (n,)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    y[: 3 * c] = np.arange(3 * c) % c
    roots = rng.normal(size=(c, d, d)) * np.linspace(0.4, 1.2, c)[:, None, None]
    means = 3.0 * rng.normal(size=(c, d))
    return means[y] + np.einsum("nij,nj->ni", roots[y], rng.normal(size=(n, d))), y


def start(X: NDArray, y: NDArray, model: str, *, seed: int = 0) -> Parameters:
    """Parameters of a blurred version of the true partition: EM has something left to do."""
    c = int(y.max()) + 1
    P = np.eye(c)[y] + np.random.default_rng(seed).random((len(X), c))
    return from_posterior(X, P / P.sum(axis=1, keepdims=True), model)

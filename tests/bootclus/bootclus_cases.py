"""Data, R's results and plain double-precision formulas that the tests of Bootclus share."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist import FocalSets
from evdist.evclus.problem import MemoryPairs
from evdist.mixture import Parameters

#: Three overlapping Gaussians in the plane, drawn once.
CENTRES = np.array([[0.0, 0.0], [0.0, 4.0], [4.0, 0.0]])


def three_gaussians(n: int, seed: int = 0) -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return CENTRES[y] + rng.standard_normal((n, 2)), y


def reference(shared: Path, name: str) -> Any:
    path = shared / "reference" / name
    opened = gzip.open(path, "rt") if name.endswith(".gz") else path.open()
    with opened as file:
        return json.load(file)


def from_covariances(weights: Any, means: NDArray, covariances: NDArray) -> Parameters:
    values, axes = np.linalg.eigh(np.asarray(covariances, dtype=float))
    volumes = np.exp(np.log(values).mean(axis=1))
    return Parameters("VVV", weights, means, volumes, values / volumes[:, None], axes)


def belief_plausibility(mass: NDArray, focal_sets: FocalSets) -> tuple[NDArray, NDArray]:
    """Bel and Pl that i and j are together, eq. (3), for all pairs: (n, n) each."""
    M = np.asarray(mass, dtype=float)
    return M @ focal_sets.S @ M.T, 1.0 - M @ focal_sets.C @ M.T


def criterion(mass: NDArray, focal_sets: FocalSets, lower: NDArray, upper: NDArray) -> float:
    """J(M), eq. (6), over all pairs i < j."""
    bel, pl = belief_plausibility(mass, focal_sets)
    pairs = np.triu_indices(len(mass), 1)
    return float((((bel - lower) ** 2 + (pl - upper) ** 2)[pairs]).sum())


def all_pairs(lower: NDArray, upper: NDArray) -> MemoryPairs:
    """Square matrices of bounds as the entries of a problem, in the order of the objects."""
    n = len(lower)
    partner = np.array([[j for j in range(n) if j != i] for i in range(n)])
    rows = np.arange(n)[:, None]
    target = np.concatenate([lower[rows, partner], 1.0 - upper[rows, partner]], axis=1)
    entry = np.concatenate([partner, partner + n], axis=1)
    return MemoryPairs(
        np.arange(n) * 2 * (n - 1), np.full(n, 2 * (n - 1)),
        entry.astype(np.uint32).ravel(), target.astype(np.float32).ravel(),
    )  # fmt: skip

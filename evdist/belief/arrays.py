"""What every function of masses expects of its arguments, checked in one place."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.focal import FocalSets


def as_masses(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """``m`` as a float (n, f) or (f,) array; float32 stays, everything else becomes float64."""
    a = np.asarray(m)
    if a.dtype not in (np.float32, np.float64):
        a = a.astype(np.float64)
    if a.ndim not in (1, 2) or a.shape[-1] != len(focal):
        raise ValueError(
            f"Masses must have shape (n, {len(focal)}) or ({len(focal)},), one column per focal "
            f"set of {focal!r}, got shape {a.shape}."
        )
    return a


def as_pair(
    m1: ArrayLike, m2: ArrayLike, focal: FocalSets
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Two mass arrays about the same objects; a single mass function goes with any number."""
    a, b = as_masses(m1, focal), as_masses(m2, focal)
    if a.ndim == b.ndim == 2 and a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0]):
        raise ValueError(
            f"Mass arrays must have the same number of rows, got {a.shape[0]} and {b.shape[0]}. "
            "Pass the same objects in the same order."
        )
    return a, b


def as_queries(sets: FocalSets | Iterable[Iterable[int]], focal: FocalSets) -> NDArray[np.bool_]:
    """Sets of clusters as a (q, c) bool matrix; they may repeat and need no empty set."""
    c = focal.n_clusters
    if isinstance(sets, FocalSets):
        if sets.n_clusters != c:
            raise ValueError(
                f"Both families must be about the same clusters, got {sets.n_clusters} clusters "
                f"asked of masses on {c}."
            )
        return sets.matrix
    members = [[int(k) for k in s] for s in sets]
    Q = np.zeros((len(members), c), dtype=bool)
    for row, clusters in enumerate(members):
        outside = [k for k in clusters if not 0 <= k < c]
        if outside:
            raise ValueError(
                f"Query set {row} names cluster {outside[0]}; clusters are numbered 0..{c - 1}."
            )
        Q[row, clusters] = True
    return Q

"""Nearest neighbours of very many objects, in blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import neighbors

METRICS = ("euclidean", "cityblock", "chebyshev", "cosine", "correlation", "precomputed")
#: Rows searched at once.
_ROWS = 65_536

Found = tuple[NDArray[np.float64], NDArray[np.int32]]


def search(
    X: NDArray[Any], metric: str = "euclidean", n_jobs: int | None = None
) -> neighbors.NearestNeighbors:
    """An index of the rows of X; how many threads ask it changes nothing."""
    return neighbors.NearestNeighbors(metric=metric, n_jobs=n_jobs).fit(X)


def nearest_others(index: neighbors.NearestNeighbors, X: NDArray[Any], K: int) -> Found:
    """The K nearest other rows of each row of the X that was indexed: (n, K) twice, by distance."""
    n = len(X)
    d = np.empty((n, K))
    j = np.empty((n, K), dtype=np.int32)
    for lo in range(0, n, _ROWS):
        rows = X[lo : lo + _ROWS]
        found, who = index.kneighbors(rows, n_neighbors=K + 1)
        # Among many copies an object need not find itself: then the last one found goes.
        own = who == np.arange(lo, lo + len(rows))[:, None]
        own[~own.any(axis=1), -1] = True
        d[lo : lo + len(rows)] = found[~own].reshape(-1, K)
        j[lo : lo + len(rows)] = who[~own].reshape(-1, K)
    return d, j


def nearest_of_new(index: neighbors.NearestNeighbors, X: NDArray[Any], K: int) -> Found:
    """The K nearest indexed rows of each row of X: (rows, K) twice, by distance."""
    found, who = index.kneighbors(X, n_neighbors=K)
    return found, who.astype(np.int32)

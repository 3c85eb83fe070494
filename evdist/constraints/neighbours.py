"""The nearest neighbours of a few objects among many: never n queries, never an n x n matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from evdist.constraints.check import Pairs
from evdist.kernels.distances import Metric

#: Of each object in turn: objects near it, in any order, and their distances.
Candidates = Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]

#: Two distances this near, relative to their size, may be a tie that rounding has parted.
_TIE = 1e-12
#: Entries of a dissimilarity matrix that are read at once.
_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Neighbours:
    """N_K of some objects, in increasing order; first in each row the object itself, at 0.

    Parameters
    ----------
    objects : (L,) int64, sorted
    index : (L, K + 1) int64
    distance : (L, K + 1) float64
    """

    objects: NDArray[np.int64]
    index: NDArray[np.int64]
    distance: NDArray[np.float64]

    def row_of(self, links: Pairs) -> Pairs:
        """Rows of the given objects."""
        return np.searchsorted(self.objects, links)


def object_count(X: Any) -> int:
    """n, from attributes, a square matrix or (index, distance)."""
    return len(X[0]) if isinstance(X, tuple) else X.shape[0] if hasattr(X, "shape") else len(X)


def nearest(
    X: Any, objects: NDArray[np.int64], K: int, metric: str | Callable[..., float]
) -> Neighbours:
    """K nearest neighbours of `objects` (sorted), ties to the lower object."""
    if isinstance(X, tuple):
        candidates = _given(X, objects)
    elif isinstance(metric, str) and metric == "precomputed":
        candidates = _from_matrix(X, objects, K)
    else:
        candidates = _searched(X, objects, K, metric)
    index = np.empty((len(objects), K + 1), np.int64)
    distance = np.zeros((len(objects), K + 1))
    index[:, 0] = objects
    for row, (found, d) in enumerate(candidates):
        others = found != objects[row]
        found, d = found[others], d[others]
        if len(found) < K:
            raise ValueError(
                f"Object {objects[row]} has a link and {len(found)} neighbours, but K = {K} are "
                "needed. Give more neighbours for each object or a smaller K."
            )
        best = np.lexsort((found, d))[:K]
        index[row, 1:], distance[row, 1:] = found[best], d[best]
    return Neighbours(objects, index, distance)


def _given(X: tuple[Any, ...], objects: NDArray[np.int64]) -> Candidates:
    """Rows of (index, distance)."""
    if len(X) != 2:
        raise ValueError(f"Neighbours must be a tuple (index, distance), got {len(X)} arrays.")
    index, distance = np.asarray(X[0]), np.asarray(X[1], dtype=float)
    if index.ndim != 2 or index.shape != distance.shape or index.dtype.kind not in "iu":
        raise ValueError(
            "Neighbours must be two (n, q) arrays, integers and their dissimilarities, got "
            f"shapes {index.shape} ({index.dtype}) and {distance.shape}."
        )
    n = len(index)
    bad = (index[objects] < 0) | (index[objects] >= n) | ~(distance[objects] >= 0)
    if bad.any():
        row, t = np.argwhere(bad)[0]
        i = objects[row]
        raise ValueError(
            f"Neighbours must be objects 0..{n - 1} at dissimilarities of at least 0, but "
            f"neighbour {t} of object {i} is {index[i, t]} at {distance[i, t]}."
        )
    yield from zip(index[objects], distance[objects], strict=True)


def _from_matrix(D: Any, objects: NDArray[np.int64], K: int) -> Candidates:
    """From rows of a square matrix, those of `objects` only."""
    D = D if hasattr(D, "shape") else np.asarray(D)
    if len(D.shape) != 2 or D.shape[0] != D.shape[1]:
        raise ValueError(
            f"A dissimilarity matrix must be square, got shape {D.shape}. "
            "For attributes leave out metric='precomputed'."
        )
    n = D.shape[0]
    step = max(1, _ENTRIES // n)
    for lo in range(0, len(objects), step):
        mine = objects[lo : lo + step]
        block = 0.5 * (np.asarray(D[mine], float) + np.asarray(D[:, mine], float).T)
        for i, d in zip(mine, block, strict=True):
            if not np.isfinite(d).all() or (d < 0).any():
                j = int(np.flatnonzero(~np.isfinite(d) | (d < 0))[0])
                raise ValueError(
                    f"Dissimilarities must be finite and non-negative, but D[{i}, {j}] = {d[j]}."
                )
            d[i] = np.inf
            near = np.flatnonzero(d <= np.partition(d, K - 1)[K - 1])
            yield near, d[near]


def _searched(
    X: Any, objects: NDArray[np.int64], K: int, metric: str | Callable[..., float]
) -> Candidates:
    """From attributes, by scikit-learn."""
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two axes (objects, attributes), got shape {X.shape}.")
    if metric == "mahalanobis":
        # Euclidean distance of whitened attributes: the same covariance as in a fit.
        X = check_array(X)
        ready = Metric.of(X, "mahalanobis")
        X, metric = (X - ready.centre) @ ready.whiten, "euclidean"
    # A quarter of a second that only those pay who expand links.
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(metric=metric).fit(X)
    n = len(X)
    # The object itself, K others and one more, which shows whether the K-th has equals.
    distance, index = search.kneighbors(X[objects], min(K + 2, n))
    for row, i in enumerate(objects):
        d, found = distance[row], index[row]
        limit = d[found != i][K - 1] * (1 + _TIE)
        if len(d) < n and d[-1] <= limit:
            # Any of its equals may be missing: take all of them, so that the lowest can win.
            (more_d,), (more,) = search.radius_neighbors(X[[i]], radius=limit)
            found, first = np.unique(np.concatenate([found, more]), return_index=True)
            d = np.concatenate([d, more_d])[first]
        yield found, d

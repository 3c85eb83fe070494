"""Attributes of objects that are known by their dissimilarities.

Reference: NN-EVCLUS, section 4.2: the principal components of the rows of the dissimilarity
matrix. A new object is projected from its dissimilarities to the same objects.

Symbols
-------
D       (n, L) dissimilarities of the objects to L landmarks; in the paper L = n
mean    (L,) mean of its rows
P       (p, L) principal axes

Differs: the paper takes all objects for columns. Here a column is a landmark, and the rows are gone
through in blocks: nothing larger than (L, L) is made, whatever n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.utils.validation import validate_data

from evdist.data.sources import AttributeSource, CallableSource, Source
from evdist.engine.memory import check_memory
from evdist.estimators.checks import integer, random_of
from evdist.features.base import RowTransformer, count_features
from evdist.kernels.distances import METRICS, Metric
from evdist.partition.rows import block_rows


@dataclass(eq=False, repr=False)
class DissimilarityPCA(RowTransformer):
    """Attributes by principal components of the dissimilarity rows.

    Parameters
    ----------
    n_components : int, default=2
        Attributes to make, at most the number of landmarks. NN-EVCLUS takes 3 to 20.
    metric : str or callable, default="euclidean"
        "precomputed": X holds the dissimilarities of its n rows to L landmarks, (n, L); a square
        matrix is the case of the paper. Otherwise X holds anything that the metric compares: a
        name as in EVCLUS, or a function of two rows, called as metric(x, landmark).
    n_landmarks : int, default=1000
        L, unless the metric is "precomputed": so many objects, drawn at random, or all of them if
        there are not more.
    random_state : int, RandomState, Generator or None, default=None
        Draws the landmarks.

    Attributes
    ----------
    components_ : (n_components, L) array
        The directions, by falling variance.
    mean_ : (L,) array
        Mean of the dissimilarity rows.
    explained_variance_ : (n_components,) array
        Variance along each direction.
    explained_variance_ratio_ : (n_components,) array
        As shares of the variance of all the dissimilarity rows.
    landmarks_ : (L,) int array
        Objects that are landmarks, in increasing order; not there with "precomputed".
    """

    n_components: int = 2
    _: KW_ONLY
    metric: str | Callable[..., float] = "euclidean"
    n_landmarks: int = 1000
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the principal components.

        Parameters
        ----------
        X : (n, L) or (n, d) array
            Dissimilarities to L landmarks with metric="precomputed", else the objects.
        y : None
            Not used; pipelines pass it.
        """
        integer("n_landmarks", self.n_landmarks, 1)
        integer("n_components", self.n_components, 1)
        if not callable(self.metric) and self.metric not in ("precomputed", *METRICS):
            raise ValueError(
                f"metric must be one of {', '.join(sorted(METRICS))}, precomputed, or a function "
                f"of two rows, got {self.metric!r}."
            )
        X = self._check(X, ensure_min_samples=2)
        n, L = len(X), X.shape[1]
        if self.metric != "precomputed":
            L = min(int(self.n_landmarks), n)
        r = count_features(self.n_components, L, f"there are {L} landmarks, n_features={L}")
        check_memory(
            {"covariance": 8 * 4 * L * L},
            "Pass the columns of a few thousand landmarks, D[:, landmarks]."
            if self.metric == "precomputed"
            else "Lower n_landmarks to a few thousand.",
            what=f"The covariance of dissimilarities to {L:,} landmarks",
        )
        if self.metric != "precomputed":
            self.landmarks_ = np.arange(n)
            if n > L:
                rng = random_of(self.random_state)
                self.landmarks_ = np.sort(rng.choice(n, L, replace=False))
            self._source = self._landmark_source(X)
        mean, covariance = _moments(self._dissimilarities(X), n)
        values, vectors = eigh(covariance, subset_by_index=(L - r, L - 1))
        axes = vectors[:, ::-1].T
        largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
        self.mean_ = mean
        self.components_ = axes * np.where(largest < 0, -1.0, 1.0)
        self.explained_variance_ = np.maximum(values[::-1], 0.0)
        total = np.trace(covariance)
        self.explained_variance_ratio_ = self.explained_variance_ / (total if total > 0 else 1.0)
        self._n_features_out = r
        return self

    def _landmark_source(self, X: NDArray[Any]) -> Source:
        chosen = X[self.landmarks_]
        if callable(self.metric):
            return CallableSource(chosen, self.metric)
        ready = Metric.of(X, self.metric)
        return AttributeSource(ready.table(chosen), ready)

    def _check(self, X: Any, **options: Any) -> NDArray[Any]:
        if callable(self.metric):
            X = X if hasattr(X, "shape") else np.asarray(X)
            return validate_data(self, X, dtype=None, ensure_all_finite=False, **options)
        return validate_data(self, X, dtype=[np.float64, np.float32], **options)

    def _rows(self, X: Any) -> NDArray[Any]:
        return self._check(X, reset=False)

    def _dissimilarities(self, X: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
        """Blocks of rows of D, computed where the metric is not "precomputed"."""
        precomputed = self.metric == "precomputed"
        L = X.shape[1] if precomputed else len(self.landmarks_)
        step = block_rows(L)
        for lo in range(0, len(X), step):
            rows = X[lo : lo + step]
            if precomputed:
                _refuse_negative(rows, lo)
            else:
                others = np.tile(np.arange(L, dtype=np.uint32), (len(rows), 1))
                rows = self._source.cross(rows, others)
            yield rows.astype(np.float64, copy=False)

    def _features(self, X: NDArray[Any]) -> NDArray[np.float64]:
        blocks = [(D - self.mean_) @ self.components_.T for D in self._dissimilarities(X)]
        return np.concatenate(blocks)


def _moments(blocks: Iterator[NDArray[Any]], n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean (L,) and covariance (L, L) of n rows that come in blocks.

    Sums are taken about the first block's mean, since those about zero lose digits where the
    spread is small beside the mean.
    """
    first = next(blocks)
    origin = first.mean(axis=0)
    Z = first - origin
    total, squares = Z.sum(axis=0), Z.T @ Z
    for block in blocks:
        Z = block - origin
        total += Z.sum(axis=0)
        squares += Z.T @ Z
    shift = total / n
    return origin + shift, squares / n - np.outer(shift, shift)


def _refuse_negative(D: NDArray[Any], first: int) -> None:
    if (D < 0).any():
        i, j = np.argwhere(D < 0)[0]
        raise ValueError(
            f"Dissimilarities must be non-negative, but row {first + i}, column {j} is {D[i, j]}. "
            "For similarities pass 1 - S or S.max() - S."
        )

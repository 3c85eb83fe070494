"""Median evidential c-means as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.ecm.estimator import ecm_parameters
from evdist.engine.progress import Progress
from evdist.estimators.checks import non_negative, positive
from evdist.medoids.ecmdd import MedoidClusterer
from evdist.medoids.mecm_solver import MedianMedoids

__all__ = ["MECM"]


class MECM(MedoidClusterer):
    """Median evidential c-means: ECM on dissimilarities, with objects as prototypes.

    Zhou, Martin, Pan and Liu (2015). The square matrix of dissimilarities must fit in memory, and
    an iteration looks at all of it for every set of clusters.

    Parameters
    ----------
    n_clusters : int, default=4
    alpha : float, default=1
        Weight |A|^alpha of sets of several clusters: the larger, the more specific the masses.
    beta : float above 1, default=2
        Hardness: near 1 the masses are almost all on one set.
    delta : float, default=10
        Distance to the empty set, in the units of the dissimilarities.
    eta : float above 0, default=1
        The larger, the less unlike distances to its clusters remove an object from a set.
    gamma : float, default=1
        Weight of the mean squared distance to the clusters of a set.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="pairs"
    metric : str, default="euclidean"
        euclidean, sqeuclidean, cityblock, chebyshev, cosine, correlation or precomputed (n, n).
    init : "k-means++" or (n_clusters,) array of int
        Medoids to start from: objects far from each other, or those given.
    n_init : int, default=5
        Starts with "k-means++"; the one with the smallest objective is kept.
    tol : float, default=1e-6
        Stop when the objective falls by less than this part of itself.
    max_iter : int, default=200
    random_state : int, RandomState or None, default=None
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.

    Attributes
    ----------
    credal_partition_ : CredalPartition
    labels_ : (n,) int array
    medoids_ : (c,) int array
        The object of each cluster.
    objective_ : float
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import MECM
    >>> X, _ = make_blobs(150, centers=3, random_state=0)
    >>> MECM(n_clusters=3, random_state=0).fit(X).credal_partition_.mass.shape
    (150, 8)
    """

    def __init__(
        self,
        n_clusters: int = 4,
        *,
        alpha: float = 1.0,
        beta: float = 2.0,
        delta: float = 10.0,
        eta: float = 1.0,
        gamma: float = 1.0,
        focal_sets: str | FocalSets = "pairs",
        metric: str = "euclidean",
        init: str | ArrayLike = "k-means++",
        n_init: int = 5,
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: Any = None,
        callbacks: Sequence[Callable[[Progress], None]] = (),
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.beta = beta
        self.delta = delta
        self.eta = eta
        self.gamma = gamma
        self.focal_sets = focal_sets
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callbacks = callbacks

    def _checked(self, X: NDArray) -> tuple[FocalSets, NDArray[np.int64] | None]:
        positive("eta", self.eta)
        non_negative("gamma", self.gamma)
        return super()._checked(X)

    def _start(self, D: NDArray, medoid: NDArray, sets: FocalSets) -> MedianMedoids:
        numbers = ecm_parameters(self.alpha, self.beta, self.delta)
        return MedianMedoids(sets, medoid, *numbers, float(self.eta), float(self.gamma))

    def _keep(self, found: MedianMedoids, D: NDArray) -> None:
        self.medoids_ = found.medoid
        self._between = D[np.ix_(found.medoid, found.medoid)]

    def _costs(self, D: NDArray) -> NDArray:
        model = self._start(D, self.medoids_, self._sets)
        return model.costs_at(D[:, self.medoids_], self._between)

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        return {}, {"rows": self._rows, "medoids": self.medoids_, "between": self._between}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        self._rows, self._sets = arrays["rows"], self.credal_partition_.focal_sets
        self.medoids_, self._between = arrays["medoids"], arrays["between"]

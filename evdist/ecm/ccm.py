"""Credal c-means as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from evdist.belief import FocalSets
from evdist.ecm.blocks import ClusterRows, LocalRows
from evdist.ecm.ccm_solver import CredalModel
from evdist.ecm.estimator import PrototypeClusterer, checked_model
from evdist.ecm.solver import Fit, Model, fit_ecm
from evdist.ecm.start import SAMPLE, best_start
from evdist.engine.progress import Progress
from evdist.estimators.checks import non_negative, weights
from evdist.kernels.threads import thread_count
from evdist.partition import CredalPartition

__all__ = ["CCM"]

_FAMILIES = ("simple", "pairs", "full")


class CCM(PrototypeClusterer):
    """Credal c-means: like ECM, but a set of clusters is as far as the clusters in it.

    In ECM an object of one cluster may lie at the centre of a set of two others and be given to
    that set; here the distances to the single clusters of a set count too. Liu, Pan, Dezert and
    Mercier (2015).

    Parameters
    ----------
    n_clusters : int, default=4
    gamma : float, default=1
        Weight of the distance to the centre of a set beside those to its clusters.
    beta : float above 1, default=2
        Hardness: near 1 the masses are almost all on one set.
    delta : float, default=10
        Distance to the empty set, in the units of X.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="pairs"
    init : "k-means++" or (n_clusters, d) array of prototypes
        CCM-bp is init=X[evdist.delta_bel(X, K).largest(n_clusters)].
    n_init : int, default=5
        Seedings with "k-means++"; the best goes on. They are compared on at most 20,000 objects.
    tol : float, default=1e-5
        Stop when the objective falls by less than this part of itself.
    max_iter : int, default=200
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.

    Attributes
    ----------
    credal_partition_ : CredalPartition
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    prototypes_ : (c, d) array
    objective_ : float
        The sum over objects of the cost of their masses.
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import CCM
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> CCM(n_clusters=3, random_state=0).fit(X).credal_partition_.mass.shape
    (300, 8)
    """

    #: Read by the checks that all prototype-based clusterers share.
    alpha, metric = 0.0, "euclidean"
    _model: CredalModel

    def __init__(
        self,
        n_clusters: int = 4,
        *,
        gamma: float = 1.0,
        beta: float = 2.0,
        delta: float = 10.0,
        focal_sets: str | FocalSets = "pairs",
        init: str | ArrayLike = "k-means++",
        n_init: int = 5,
        tol: float = 1e-5,
        max_iter: int = 200,
        n_jobs: int | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callable[[Progress], None]] = (),
    ):
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.beta = beta
        self.delta = delta
        self.focal_sets = focal_sets
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callbacks = callbacks

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None, client: Any = None
    ) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, path of a .npy, .csv, .parquet or .zarr
            file
        y : ignored
        sample_weight : (n,) array, positive
            They are divided by their mean: two of everything changes nothing.
        client : distributed.Client, default=None
            Run the iterations on a Dask cluster instead of on threads; the result is the same.
        """
        X = self._table(X, ensure_min_samples=2)
        gamma = non_negative("gamma", self.gamma)
        plain = checked_model(self, *X.shape, beta=self.beta, families=_FAMILIES)
        model: Model = CredalModel(
            plain.focal_sets, plain.prototypes, 0.0, plain.beta, plain.delta, gamma=gamma
        )
        w = weights(sample_weight, len(X))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        threads = thread_count(self.n_jobs)
        rows = LocalRows(X, w, threads) if client is None else ClusterRows(X, w, client)
        limits: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter)}
        with self._reporting() as report:
            fit: Fit | None = None
            if isinstance(self.init, str):
                fit = best_start(
                    X, w, model, n_init=self.n_init, seed=seed, n_threads=threads, report=report,
                    **limits,
                )  # fmt: skip
                model = fit.model
            if fit is None or len(X) > SAMPLE:
                fit = fit_ecm(rows, model, report=report, **limits)
        self._keep(fit.model)
        partition = CredalPartition(rows.masses(fit.model), fit.model.focal_sets)
        self._finish(partition, fit.history, fit.converged)
        return self

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        values, arrays = super()._state()
        return {**values, "gamma": self._model.gamma}, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        self._keep(
            CredalModel(
                self.credal_partition_.focal_sets, np.asarray(arrays["prototypes"], dtype=float),
                0.0, float(values["beta"]), float(values["delta"]), gamma=float(values["gamma"]),
            )
        )  # fmt: skip

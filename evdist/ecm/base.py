"""What the clusterers with prototypes share: the checks, the descent, new objects, saved models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.ecm.blocks import LocalRows, rows_of
from evdist.ecm.lazy import LazyRows, lazy_table
from evdist.ecm.solver import ECMSolver, Fitted, Model, Rows
from evdist.ecm.start import SAMPLE, Table, seeded_solvers, with_neighbour_pairs
from evdist.engine.loop import Solution, best_of, minimise
from evdist.engine.progress import Report
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import (
    at_most_objects,
    focal_family,
    integer,
    non_negative,
    one_of,
    positive,
    random_of,
    weights,
)
from evdist.estimators.placing import RowMasses
from evdist.kernels.threads import thread_count
from evdist.partition import CredalPartition

METRICS = ("euclidean", "adaptive")
#: Correlations with a smaller eigenvalue are those of dependent columns.
_DEPENDENT = 1e-12
#: With a beta nearer to 1 powers of 1 / (beta - 1) would overflow, and masses are those of k-means.
_HARDEST = 1.1


class PrototypeClusterer(RowMasses, CredalClusterer):
    """A clusterer whose answer is a `Model` of ECM: it places and keeps new objects like ECM.

    A subclass has the parameter `n_jobs` and calls `_keep` with its model. One that calls `_solve`
    has those of ECM.
    """

    metric: str
    focal_sets: str | FocalSets
    init: Any
    n_init: int
    tol: float
    n_jobs: int | None
    random_state: Any
    #: With focal_sets="select", the nearest clusters of a cluster that form pairs with it.
    pair_neighbours: int
    _mass_type = np.float32
    _least_different = 1  # identical rows get masses, which say nothing

    def _keep(self, model: Model) -> None:
        self._model = model
        self.prototypes_, self.metric_ = model.prototypes, model.metric
        self.beta_, self.delta_ = float(model.beta), float(model.delta)

    def _keep_and_place(self, rows: Rows, model: Model) -> CredalPartition:
        """Keep the fitted model; the masses that it gives the fitted objects."""
        self._keep(model)
        return CredalPartition(rows.masses(model), model.focal_sets)

    def _solve(
        self, rows: Rows, model: Model, X: Table, w: NDArray[np.float64] | None
    ) -> Solution[Fitted]:
        """ECM from the seeds or given prototypes; with "select" from a first fit on singletons."""
        tol, most = float(self.tol), int(self.max_iter)
        seed = int(random_of(self.random_state).randint(2**31 - 1))
        seeded, plain = isinstance(self.init, str), self.metric == "euclidean"
        with self._reporting() as report:
            if seeded:
                start = self._from_seeds(X, model, w, seed, report)
                model = start.value.model
            if self.focal_sets == "select":
                first = minimise(
                    ECMSolver(rows, model, tol), most, stage="singletons", report=report
                )
                model = with_neighbour_pairs(rows, first.value.model, int(self.pair_neighbours))
            elif seeded and plain and len(X) <= SAMPLE:
                return start
            model = model if plain else model.adaptive()
            return minimise(ECMSolver(rows, model, tol), most, report=report)

    def _from_seeds(
        self, X: Table, model: Model, w: NDArray[Any] | None, seed: int, report: Report
    ) -> Solution[Fitted]:
        """The best of `n_init` fits from k-means++ seeds."""
        solvers = seeded_solvers(
            X, w, model, n_init=self.n_init, seed=seed, tol=float(self.tol),
            n_threads=thread_count(self.n_jobs),
        )  # fmt: skip
        return best_of(solvers, int(self.max_iter), stage="start 1 of 1", report=report)

    def _masses(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Masses of ECM at the fitted prototypes."""
        return LocalRows(X, None, thread_count(self.n_jobs)).masses(self._model)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        model = self._model
        values = {"alpha": model.alpha, "beta": model.beta, "delta": model.delta}
        arrays = {"prototypes": model.prototypes}
        if model.metric is not None:
            arrays["metric"] = model.metric
        return values, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        alpha, beta, delta = (float(values[name]) for name in ("alpha", "beta", "delta"))
        sets = self.credal_partition_.focal_sets
        self._keep(Model(sets, arrays["prototypes"], alpha, beta, delta, arrays.get("metric")))


class MeansClusterer(PrototypeClusterer):
    """A clusterer whose descent is that of ECM from `_start(X, weights)`, a checked model."""

    _start: Callable[[NDArray[Any], NDArray[np.float64] | None], Model]
    #: Whether X may stay where it is, a Dask array or a file larger than memory.
    _takes_lazy = False
    _fit_lazily: Callable[[LazyRows, Any], Self]

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None, client: Any = None
    ) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; a path is that of a .npy, .csv, .parquet or .zarr file.
        y : None
            Not used; pipelines pass it.
        sample_weight : (n,) array, positive
            They are divided by their mean: two of everything changes nothing.
        client : distributed.Client, default=None
            Run the iterations on a Dask cluster instead of on threads; the result is the same.
        """
        lazy = lazy_table(X) if self._takes_lazy else None
        if lazy is not None:
            return self._fit_lazily(LazyRows(lazy, self.n_jobs, client), sample_weight)
        X = self._table(X, ensure_min_samples=2)
        w = weights(sample_weight, len(X))
        model = self._start(X, w)
        X = self._descended(X)
        rows = rows_of(X, w, self.n_jobs, client)
        fit = self._solve(rows, model, X, w)
        partition = self._keep_and_place(rows, fit.value.model)
        self._finish(partition, fit.history, fit.converged)
        self._look_back(X)
        return self

    def _descended(self, X: NDArray[Any]) -> NDArray[Any]:
        """The rows that the descent sees, where they are not those of X."""
        return X

    def _look_back(self, X: NDArray[Any]) -> None:
        """A word about the fit of the rows X, all or some, where an estimator has one."""


def ecm_parameters(alpha: Any, beta: Any, delta: Any) -> tuple[float, float, float]:
    """alpha at least 0, beta above 1, delta above 0, as floats."""
    alpha, delta = non_negative("alpha", alpha), positive("delta", delta)
    if isinstance(beta, str) or not positive("beta", beta) > 1:
        raise ValueError(f"beta must be a number above 1, got {beta!r}; 2 is the usual one.")
    return alpha, float(beta), delta


def beta_for(beta: Any, n: int, d: int) -> Any:
    """What was given; for "auto" at most 2, and less where n points in d dimensions need it.

    Schwaemmle and Jensen, "A simple and fast method to determine the parameters for fuzzy c-means
    cluster analysis" (2010): the least fuzzifier with which random points have no
    clusters. In many dimensions distances are alike, and any softer one lets prototypes meet.
    """
    if isinstance(beta, str) and beta == "auto":
        power = -0.0406 * math.log(n) - 0.1134
        least = 1.0 + (1418.0 / n + 22.05) * d**-2.0 + (12.33 / n + 0.243) * d**power
        return min(max(least, _HARDEST), 2.0)
    return beta


def delta_for(delta: Any, X: NDArray[Any], w: NDArray[Any] | None) -> Any:
    """What was given, or for "auto" the root mean square of the distances between two objects."""
    if isinstance(delta, str) and delta == "auto":
        w = np.ones(len(X)) if w is None else w  # their mean is one
        # einsum, not BLAS: its sums do not depend on a number of threads.
        away = X - np.einsum("i,ia->a", w, X) / len(X)
        # Two objects are twice as far apart, squared, as each is from the mean.
        square = 2.0 * float(np.einsum("i,ia,ia->", w, away, away)) / len(X)
        return float(np.sqrt(square)) if square > 0 else 1.0  # equal objects: any will do
    return delta


def check_spread(X: NDArray[Any]) -> None:
    """Data for an adaptive metric must spread in all directions."""
    check_covariance(X.std(axis=0), lambda: np.corrcoef(X, rowvar=False))


def check_covariance(spread: NDArray[Any], correlation: Callable[[], NDArray[Any]]) -> None:
    """The same from the standard deviations of columns, and their correlations if these are > 0."""
    if not spread.all():
        column = int(np.argmin(spread))
        raise ValueError(
            f"An adaptive metric needs columns that vary, but column {column} is constant. Leave "
            'it out, or use metric="euclidean".'
        )
    if len(spread) > 1 and np.linalg.eigvalsh(correlation())[0] < _DEPENDENT:
        raise ValueError(
            f"An adaptive metric needs data that spread in all {len(spread)} directions, but some "
            'columns follow from others. Leave these out, or use metric="euclidean".'
        )


def check_descent(estimator: Any, n: int, n_clusters: Any = None) -> int:
    """n_clusters, once it, n_init, max_iter, tol and callbacks have been checked for n objects.

    `n_clusters` takes the place of the estimator's own.
    """
    c = integer("n_clusters", estimator.n_clusters if n_clusters is None else n_clusters, 1)
    for name in ("n_init", "max_iter"):
        integer(name, getattr(estimator, name), 1)
    non_negative("tol", estimator.tol)
    estimator._check_callbacks()
    at_most_objects(c, n)
    return c


def chosen_sets(focal_sets: Any, c: int, families: Sequence[str]) -> FocalSets:
    """The focal sets that are given or named; for "select" those of the first fit."""
    family = focal_family(focal_sets, c, families)
    if isinstance(family, FocalSets):
        return family
    sets: FocalSets = getattr(FocalSets, "simple" if family == "select" else family)(c)
    return sets


def _given_prototypes(init: ArrayLike, c: int, d: int) -> NDArray[np.float64]:
    """Prototypes a user gave, (c, d) and finite."""
    V = np.array(init, dtype=float)
    if V.shape != (c, d):
        raise ValueError(
            f"init must be one prototype per cluster, shape ({c}, {d}), got {V.shape}."
        )
    if not np.isfinite(V).all():
        row = int(np.argwhere(~np.isfinite(V))[0][0])
        raise ValueError(f"init must be finite, but prototype {row} is {V[row].tolist()}.")
    return V


def checked_model(
    estimator: Any,
    n: int,
    d: int,
    *,
    beta: Any,
    families: Sequence[str],
    delta: Any = None,
    n_clusters: Any = None,
) -> Model:
    """Every parameter that the prototype-based clusterers share, checked; the model to start from.

    Its prototypes are those given as `init`, or zero for "k-means++". With focal_sets="select" its
    focal sets are those of the first fit. `delta` and `n_clusters` take the place of the
    estimator's own.
    """
    c = check_descent(estimator, n, n_clusters)
    one_of("metric", estimator.metric, METRICS)
    family = chosen_sets(estimator.focal_sets, c, families)
    numbers = ecm_parameters(estimator.alpha, beta, estimator.delta if delta is None else delta)
    prototypes = np.zeros((c, d))
    if not isinstance(estimator.init, str):
        prototypes = _given_prototypes(estimator.init, c, d)
    elif estimator.init != "k-means++":
        raise ValueError(f'init must be prototypes or "k-means++", got {estimator.init!r}.')
    return Model(family, prototypes, *numbers)

"""ECM as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import psutil
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from evdist.belief import FocalSets
from evdist.data.inputs import load
from evdist.ecm.blocks import ClusterRows, LocalRows
from evdist.ecm.solver import Fit, Model, Rows, fit_ecm
from evdist.ecm.start import SAMPLE, best_start, with_neighbour_pairs
from evdist.engine.progress import Progress
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import (
    at_most_objects,
    focal_family,
    integer,
    non_negative,
    one_of,
    positive,
    weights,
)
from evdist.kernels.threads import thread_count
from evdist.partition import CredalPartition
from evdist.partition.rows import is_dask, map_rows

__all__ = ["ECM", "PrototypeClusterer", "check_spread", "checked_model", "delta_for"]
__all__ += ["ecm_parameters"]

_FAMILIES = ("simple", "pairs", "full", "select")
_METRICS = ("euclidean", "adaptive")
#: Correlations with a smaller eigenvalue are those of dependent columns.
_DEPENDENT = 1e-12


class PrototypeClusterer(CredalClusterer):
    """A clusterer whose answer is a `Model` of ECM: it places and keeps new objects like ECM.

    A subclass has the parameter `n_jobs` and calls `_keep` with its model.
    """

    n_jobs: int | None

    def _keep(self, model: Model) -> None:
        self._model = model
        self.prototypes_, self.metric_ = model.prototypes, model.metric
        self.delta_ = float(model.delta)

    def predict_mass(self, X: Any) -> Any:
        """Mass functions of new objects, (rows, f), those of ECM at the fitted prototypes.

        Each row depends on itself alone. A Dask array gives a Dask array.
        """
        check_is_fitted(self, "credal_partition_")
        if is_dask(X) and hasattr(X, "map_blocks") and hasattr(X, "rechunk"):
            f = len(self.credal_partition_.focal_sets)
            return map_rows(self._predict_rows, X, width=f, dtype=np.float32)
        X = self._table(load(X), reset=False)
        return LocalRows(X, None, thread_count(self.n_jobs)).masses(self._model)

    def _predict_rows(self, rows: NDArray, first: int) -> NDArray[np.float32]:
        return self.predict_mass(rows)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        model = self._model
        values = {"alpha": model.alpha, "beta": model.beta, "delta": model.delta}
        arrays = {"prototypes": model.prototypes}
        if model.metric is not None:
            arrays["metric"] = model.metric
        return values, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        alpha, beta, delta = (float(values[name]) for name in ("alpha", "beta", "delta"))
        sets = self.credal_partition_.focal_sets
        self._keep(Model(sets, arrays["prototypes"], alpha, beta, delta, arrays.get("metric")))


class ECM(PrototypeClusterer):
    """Evidential c-means: clusters with prototypes, sets of clusters with the means of theirs.

    An object near a prototype has its mass on that cluster, one halfway between prototypes on the
    set of those clusters, and one farther than about `delta` from all of them on the empty set.

    Parameters
    ----------
    n_clusters : int, default=4
    alpha : float, default=1
        Weight |A|^alpha of sets of several clusters: the larger, the more specific the masses.
    beta : float above 1, default=2
        Hardness: near 1 the masses are almost all on one set.
    delta : float or "auto", default="auto"
        Distance to the empty set, in the units of X: what is farther from all prototypes is an
        outlier. "auto" is the root mean square of the distances between two objects; R's evclust
        takes 10 whatever the units.
    focal_sets : {"simple", "pairs", "full", "select"} or FocalSets, default="simple"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets; or ("select") the pairs of neighbouring clusters,
        found in a first fit with "simple".
    pair_neighbours : int, default=2
        With "select": pairs of clusters that are among each other's so many nearest.
    metric : {"euclidean", "adaptive"}, default="euclidean"
        "adaptive" learns one Mahalanobis metric per cluster, for clusters that are not round.
    init : "k-means++" or (n_clusters, d) array of prototypes
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
    delta_ : float
    metric_ : (c, d, d) array or None
        With metric="adaptive", S of each cluster, of determinant 1: the squared distance of x to a
        prototype v is (x - v)' S (x - v).
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
    >>> from evdist import ECM
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> ECM(n_clusters=3, random_state=0).fit(X).credal_partition_.mass.shape
    (300, 5)
    """

    def __init__(
        self,
        n_clusters: int = 4,
        *,
        alpha: float = 1.0,
        beta: float = 2.0,
        delta: float | str = "auto",
        focal_sets: str | FocalSets = "simple",
        pair_neighbours: int = 2,
        metric: str = "euclidean",
        init: str | ArrayLike = "k-means++",
        n_init: int = 5,
        tol: float = 1e-5,
        max_iter: int = 200,
        n_jobs: int | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callable[[Progress], None]] = (),
    ):
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.beta = beta
        self.delta = delta
        self.focal_sets = focal_sets
        self.pair_neighbours = pair_neighbours
        self.metric = metric
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
        integer("pair_neighbours", self.pair_neighbours, 1)
        w = weights(sample_weight, len(X))
        delta = delta_for(self.delta, X, w)
        model = checked_model(self, *X.shape, beta=self.beta, families=_FAMILIES, delta=delta)
        if self.metric == "adaptive":
            check_spread(X)
        _check_memory(len(X), len(model.focal_sets))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        threads = thread_count(self.n_jobs)
        rows = LocalRows(X, w, threads) if client is None else ClusterRows(X, w, client)
        with self._reporting() as report:
            fit = self._solve(rows, model, X, w, seed, threads, report)
        self._keep(fit.model)
        partition = CredalPartition(rows.masses(fit.model), fit.model.focal_sets)
        self._finish(partition, fit.history, fit.converged)
        return self

    def _solve(
        self,
        rows: Rows,
        model: Model,
        X: NDArray,
        w: NDArray | None,
        seed: int,
        threads: int,
        report: Callable[[Progress], None],
    ) -> Fit:
        limits: dict[str, Any] = {
            "tol": float(self.tol),
            "max_iter": int(self.max_iter),
            "report": report,
        }
        seeded = isinstance(self.init, str)
        if seeded:
            start = best_start(
                X, w, model, n_init=self.n_init, seed=seed, n_threads=threads, **limits
            )
            model = start.model
        plain = self.metric == "euclidean"
        if self.focal_sets == "select":
            model = fit_ecm(rows, model, stage="singletons", **limits).model
            model = with_neighbour_pairs(rows, model, int(self.pair_neighbours))
        elif seeded and plain and len(X) <= SAMPLE:
            return start
        return fit_ecm(rows, model if plain else model.adaptive(), **limits)


def ecm_parameters(alpha: Any, beta: Any, delta: Any) -> tuple[float, float, float]:
    """alpha at least 0, beta above 1, delta above 0, as floats."""
    alpha, delta = non_negative("alpha", alpha), positive("delta", delta)
    if not positive("beta", beta) > 1:
        raise ValueError(f"beta must be a number above 1, got {beta!r}; 2 is the usual one.")
    return alpha, float(beta), delta


def _check_memory(n: int, f: int) -> None:
    """Refuse masses that cannot be held: n f numbers of four bytes."""
    need, there = 4 * n * f, psutil.virtual_memory().available
    if need > there:
        raise MemoryError(
            f"The masses of {n:,} objects on {f} focal sets need {need / 1e9:.1f} GB, but "
            f"{there / 1e9:.1f} GB are free. Use fewer focal sets."
        )


def delta_for(delta: Any, X: NDArray, w: NDArray | None) -> Any:
    """What was given, or for "auto" the root mean square of the distances between two objects."""
    if isinstance(delta, str) and delta == "auto":
        w = np.ones(len(X)) if w is None else w  # their mean is one
        # einsum, not BLAS: its sums do not depend on a number of threads.
        away = X - np.einsum("i,ia->a", w, X) / len(X)
        # Two objects are twice as far apart, squared, as each is from the mean.
        square = 2.0 * float(np.einsum("i,ia,ia->", w, away, away)) / len(X)
        return float(np.sqrt(square)) if square > 0 else 1.0  # equal objects: any will do
    return delta


def check_spread(X: NDArray) -> None:
    """Data for an adaptive metric must spread in all directions."""
    spread = X.std(axis=0)
    if not spread.all():
        column = int(np.argmin(spread))
        raise ValueError(
            f"An adaptive metric needs columns that vary, but column {column} is constant. Leave "
            'it out, or use metric="euclidean".'
        )
    if X.shape[1] > 1 and np.linalg.eigvalsh(np.corrcoef(X, rowvar=False))[0] < _DEPENDENT:
        raise ValueError(
            f"An adaptive metric needs data that spread in all {X.shape[1]} directions, but some "
            'columns follow from others. Leave these out, or use metric="euclidean".'
        )


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
    estimator: Any, n: int, d: int, *, beta: Any, families: Sequence[str], delta: Any = None
) -> Model:
    """Every parameter that ECM and its kin share, checked; the model to start from.

    Its prototypes are those given as `init`, or zero for "k-means++". With focal_sets="select" its
    focal sets are those of the first fit. `delta` takes the place of the estimator's own.
    """
    c = integer("n_clusters", estimator.n_clusters, 1)
    for name in ("n_init", "max_iter"):
        integer(name, getattr(estimator, name), 1)
    non_negative("tol", estimator.tol)
    one_of("metric", estimator.metric, _METRICS)
    estimator._check_callbacks()
    at_most_objects(c, n)
    family = focal_family(estimator.focal_sets, c, families)
    if not isinstance(family, FocalSets):
        family = getattr(FocalSets, "simple" if family == "select" else family)(c)
    numbers = ecm_parameters(estimator.alpha, beta, estimator.delta if delta is None else delta)
    prototypes = np.zeros((c, d))
    if not isinstance(estimator.init, str):
        prototypes = _given_prototypes(estimator.init, c, d)
    elif estimator.init != "k-means++":
        raise ValueError(f'init must be prototypes or "k-means++", got {estimator.init!r}.')
    return Model(family, prototypes, *numbers)

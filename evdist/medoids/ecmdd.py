"""Evidential c-medoids as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import spatial

from evdist.belief import FocalSets
from evdist.data.sources import MatrixSource
from evdist.ecm.base import check_descent, chosen_sets, ecm_parameters
from evdist.ecm.solver import cheapest
from evdist.engine.loop import best_of
from evdist.engine.memory import check_memory
from evdist.engine.progress import Progress
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import non_negative, one_of, positive, random_of
from evdist.estimators.placing import RowMasses
from evdist.medoids.solver import Medoids, MedoidSolver, Prototypes, WeightedMedoids, seed_medoids
from evdist.partition import CredalPartition

_FAMILIES = ("simple", "pairs", "full")
METRICS = (
    "euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "precomputed"
)  # fmt: skip


@dataclass(eq=False, repr=False)
class MedoidClusterer(RowMasses, CredalClusterer):
    """Base of the clusterers whose prototypes are objects, on a square matrix in memory.

    A subclass has `_start(D, medoid, sets)`, the prototypes to descend from, `_costs(D)`, the
    costs of new objects from their dissimilarities to all fitted ones, and `_usual(D)`, the delta
    at which the empty set costs as much as a cluster at the usual dissimilarity.
    """

    _start: ClassVar[Callable[..., Prototypes]]
    _usual: ClassVar[Callable[..., float]]
    _costs: ClassVar[Callable[..., NDArray[Any]]]
    _keep: ClassVar[Callable[..., None]]

    n_clusters: int = 4
    _: KW_ONLY
    alpha: float = 1.0
    beta: float = 2.0
    delta: float | str = "auto"
    eta: float = 1.0
    gamma: float = 1.0
    focal_sets: str | FocalSets = "pairs"
    metric: str = "euclidean"
    init: str | ArrayLike = "k-means++"
    n_init: int = 5
    tol: float = 1e-6
    max_iter: int = 200
    random_state: Any = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; (n, n) dissimilarities with metric="precomputed". A path is that of a .npy,
            .csv, .parquet or .zarr file.
        y : None
            Not used; pipelines pass it.
        """
        X = self._table(X, ensure_min_samples=2)
        sets, given = self._checked(X)
        D = _square(X, self.metric)
        self.delta_ = self._usual(D) if self.delta == "auto" else float(self.delta)
        rng = np.random.default_rng(random_of(self.random_state).randint(2**31 - 1))
        c = sets.n_clusters
        starts = [seed_medoids(D, c, rng) for _ in range(self.n_init)] if given is None else [given]
        solvers = [MedoidSolver(D, self._start(D, medoid, sets), self.tol) for medoid in starts]
        with self._reporting() as report:
            fit = best_of(solvers, self.max_iter, report=report)
        self._rows = np.empty((0, D.shape[1])) if self.metric == "precomputed" else X
        self._sets = sets
        self._keep(fit.value.prototypes, D)
        self._finish(CredalPartition(fit.value.mass, sets), fit.history, fit.converged)
        return self

    def _checked(self, X: NDArray[Any]) -> tuple[FocalSets, NDArray[np.int64] | None]:
        """Focal sets and given medoids, once every parameter has been checked."""
        n = len(X)
        c = check_descent(self, n)
        one_of("metric", self.metric, METRICS)
        ecm_parameters(self.alpha, self.beta, 1.0 if self.delta == "auto" else self.delta)
        if self.metric == "precomputed":
            MatrixSource.of(X)
        check_memory(
            {"dissimilarities": 3 * 8 * n * n}, "Use EVCLUS, which samples dissimilarities.",
            what=f"{type(self).__name__} of {n:,} objects",
        )  # fmt: skip
        sets = chosen_sets(self.focal_sets, c, _FAMILIES)
        if (sets.singletons < 0).any():
            lone = int(sets.singletons.argmin())
            raise ValueError(f"focal_sets must hold every single cluster, but {{{lone}}} is not.")
        return sets, _given_medoids(self.init, c, n)

    # ------------------------------------------------------------------ new objects
    def _masses(self, X: NDArray[Any]) -> NDArray[np.float64]:
        X = np.asarray(X, dtype=float)
        if self.metric != "precomputed":
            X = spatial.distance.cdist(X, self._rows, self.metric)
        return cheapest(self._costs(X), float(self.beta))[0]


@dataclass(eq=False, repr=False)
class ECMdd(MedoidClusterer):
    """Evidential c-medoids: clusters represented by one object each, or by all with weights.

    Zhou, Martin, Pan and Liu (2016), arXiv 1606.01113. The square matrix of dissimilarities must
    fit in memory.

    Experimental: names and values of the parameters are the article's, but it was not at hand, and
    its formulas for sets of clusters may differ. Five starts may not find the least objective: the
    labels then change with `random_state`, and a larger `n_init` helps.

    Parameters
    ----------
    alpha : float, default=2
        Weight |A|^alpha of sets of several clusters: the larger, the more specific the masses.
    metric : str, default="sqeuclidean"
        euclidean, sqeuclidean, cityblock, chebyshev, cosine, correlation or precomputed (n, n).
        The objective is linear in the dissimilarities: squared distances make it that of ECM with
        objects as prototypes. With `weighted` and plain distances all clusters may coincide.
    weighted : bool, default=False
        One medoid for each cluster (sECMdd), or all objects with weights (wECMdd).
    psi : float above 1, default=2
        Weighted: the larger, the more even the weights.
    sharpness : float, default=5
        Weighted: power of the weights of sets; the larger, the fewer objects represent a set.
    n_clusters : int, default=4
        Number of clusters.
    beta : float above 1, default=2
        Fuzzifier: near 1, almost all mass is on one set.
    delta : float or "auto", default="auto"
        delta^2 is the cost of the empty set; a cluster's cost is a dissimilarity, and with
        `weighted` of the order of a mean dissimilarity divided by n. "auto" is the root of the
        mean dissimilarity of two objects, with `weighted` times n_clusters / n before.
    eta : float, default=1
        One medoid: weight of closeness relative to equality of distances, in the medoid of a set.
    gamma : float, default=1
        One medoid: weight of the medoid of a set relative to those of its clusters.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="pairs"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets.
    init : "k-means++" or (n_clusters,) array of int
        Initial medoids: objects far from each other, or the given ones.
    n_init : int, default=5
        Starts with "k-means++"; the one with the smallest objective is kept.
    tol : float, default=1e-6
        Stop when the relative decrease of the objective is smaller than this.
    max_iter : int, default=200
        Maximum number of iterations.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the starts: an int gives the same result every time.
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses of the objects.
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    delta_ : float
        The `delta` that was used.
    medoids_ : (c,) int array
        The object of each cluster; with `weighted` that of largest weight.
    weights_ : (c, n) array or None
        With `weighted`, the weights of the objects in each cluster.
    objective_ : float
        The objective at the end.
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether `tol` ended the fit, not `max_iter`.
    n_features_in_ : int
        Columns of X; with "precomputed" the number of objects.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import ECMdd
    >>> X, _ = make_blobs(150, centers=3, random_state=0)
    >>> ECMdd(n_clusters=3, random_state=0).fit(X).credal_partition_.mass.shape
    (150, 8)
    """

    _: KW_ONLY
    alpha: float = 2.0
    metric: str = "sqeuclidean"
    weighted: bool = False
    psi: float = 2.0
    sharpness: float = 5.0

    def _checked(self, X: NDArray[Any]) -> tuple[FocalSets, NDArray[np.int64] | None]:
        for name in ("eta", "gamma", "sharpness"):
            non_negative(name, getattr(self, name))
        if not positive("psi", self.psi) > 1:
            raise ValueError(f"psi must be a number above 1, got {self.psi!r}; 2 is the usual one.")
        return super()._checked(X)

    def _usual(self, D: NDArray[Any]) -> float:
        # The weights of a cluster are spread over its members, n / c of them, and squared.
        share = self.n_clusters / len(D) if self.weighted else 1.0
        mean = mean_dissimilarity(D) * share
        return float(np.sqrt(mean)) if mean > 0 else 1.0

    def _single(self, medoid: NDArray[Any], sets: FocalSets) -> Medoids:
        numbers = ecm_parameters(self.alpha, self.beta, self.delta_)
        return Medoids(sets, medoid, *numbers, float(self.eta), float(self.gamma))

    def _start(self, D: NDArray[Any], medoid: NDArray[Any], sets: FocalSets) -> Prototypes:
        if not self.weighted:
            return self._single(medoid, sets)
        # The first weights are those for the fuzzy memberships that the medoids give.
        near = cheapest(D[:, medoid], float(self.beta))[0]
        weights = cheapest((near**self.beta).T @ D, float(self.psi))[0]
        return self._many(weights, sets)

    def _many(self, weights: NDArray[Any], sets: FocalSets) -> WeightedMedoids:
        numbers = ecm_parameters(self.alpha, self.beta, self.delta_)
        return WeightedMedoids(sets, weights, *numbers, float(self.psi), float(self.sharpness))

    def _keep(self, found: Medoids | WeightedMedoids, D: NDArray[Any]) -> None:
        self.weights_: NDArray[np.float64] | None = None
        if isinstance(found, WeightedMedoids):
            self.weights_, self.medoids_ = found.weights, found.weights.argmax(axis=1)
            self._set_medoids = np.empty(0, dtype=np.int64)
        else:
            self.medoids_, self._set_medoids = found.medoid, found.set_medoids(D)

    def _costs(self, D: NDArray[Any]) -> NDArray[Any]:
        if self.weights_ is not None:
            return self._many(self.weights_, self._sets).costs(D)
        single = self._single(self.medoids_, self._sets)
        return single.costs_at(D[:, self.medoids_], D[:, self._set_medoids])

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {"rows": self._rows, "medoids": self.medoids_, "sets": self._set_medoids}
        if self.weights_ is not None:
            arrays["weights"] = self.weights_
        return {"delta": self.delta_}, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.delta_ = float(values.get("delta", self.delta))
        self._rows, self._sets = arrays["rows"], self.credal_partition_.focal_sets
        self.medoids_, self._set_medoids = arrays["medoids"], arrays["sets"]
        self.weights_ = arrays.get("weights")


def mean_dissimilarity(D: NDArray[Any]) -> float:
    """Of two different objects."""
    return float(D.sum() / (len(D) * (len(D) - 1)))


def _square(X: NDArray[Any], metric: str) -> NDArray[np.float64]:
    """All dissimilarities, symmetric and zero on the diagonal."""
    X = np.asarray(X, dtype=float)
    D = 0.5 * (X + X.T) if metric == "precomputed" else spatial.distance.cdist(X, X, metric)
    np.fill_diagonal(D, 0.0)
    return D


def _given_medoids(init: Any, c: int, n: int) -> NDArray[np.int64] | None:
    if isinstance(init, str):
        one_of("init", init, ("k-means++",))
        return None
    medoid = np.asarray(init)
    if medoid.shape != (c,) or medoid.dtype.kind not in "iu":
        raise ValueError(
            f'init must be "k-means++" or {c} object numbers, got {medoid.dtype} of shape '
            f"{medoid.shape}."
        )
    if len(np.unique(medoid)) < c or medoid.min() < 0 or medoid.max() >= n:
        raise ValueError(
            f"init must name {c} different objects from 0 to {n - 1}, got {medoid.tolist()}."
        )
    return medoid.astype(np.int64)

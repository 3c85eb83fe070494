"""ECM as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.ecm.base import (
    MeansClusterer,
    beta_for,
    check_covariance,
    check_spread,
    checked_model,
    delta_for,
)
from evdist.ecm.lazy import LazyRows, Moments
from evdist.ecm.solver import Model
from evdist.ecm.start import sample_numbers
from evdist.engine.memory import check_memory
from evdist.engine.progress import Progress
from evdist.estimators.checks import integer
from evdist.estimators.number import clusters_for

_FAMILIES = ("simple", "pairs", "full", "select")
#: Prototypes have met below this share of the usual distance between objects, when the largest
#: mass of an object is below _EVEN on average; with beta up to _SOFT that was never seen.
_MET, _EVEN, _SOFT = 0.07, 0.5, 1.5
_LOOKED_AT = 10_000


@dataclass(eq=False, repr=False)
class ECM(MeansClusterer):
    """Evidential c-means: a prototype per cluster, and their means for sets of clusters.

    An object close to a prototype has its mass on that cluster, an object halfway between
    prototypes on the set of their clusters, and an object farther than about `delta` from all
    prototypes on the empty set.

    Parameters
    ----------
    n_clusters : int or "auto", default=4
        "auto" counts the prominent modes of the density of a sample; the result may be one.
        `n_clusters_` is the number.
    alpha : float, default=1
        Weight |A|^alpha of sets of several clusters: the larger, the more specific the masses.
    beta : float above 1 or "auto", default="auto"
        Fuzzifier: near 1, almost all mass is on one set. "auto" is 2, the papers'
        value, up to about five attributes, and less beyond, where 2 would make all prototypes
        coincide: 1.3 with ten attributes, 1.1 with a hundred.
    delta : float or "auto", default="auto"
        Distance to the empty set, in the units of X: objects farther from all prototypes are
        outliers. "auto" is the root mean square of the distances between two objects; R's evclust
        uses 10 for any units.
    focal_sets : {"simple", "pairs", "full", "select"} or FocalSets, default="simple"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets; or ("select") the pairs of neighbouring clusters,
        found in a first fit with "simple".
    pair_neighbours : int, default=2
        With "select": two clusters form a pair if each is among this many nearest of the other.
    metric : {"euclidean", "adaptive"}, default="euclidean"
        "adaptive" learns one Mahalanobis metric per cluster, for clusters that are not round.
    scale : {"standard", "robust"} or None, default=None
        Centre each column of X and divide it by its spread: mean and standard deviation, or
        median and interquartile range. New objects are scaled in the same way.
    init : "k-means++" or (n_clusters, d) array of prototypes, default="k-means++"
        Prototypes to start from.
    n_init : int, default=5
        Number of "k-means++" starts, compared on at most 20,000 objects; the best is continued.
    tol : float, default=1e-5
        Stop when the relative decrease of the objective is smaller than this.
    max_iter : int, default=200
        Maximum number of iterations.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
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
    prototypes_ : (c, d) array
        Centres of the clusters.
    beta_, delta_ : float
        The fuzzifier and the distance to the empty set that were used.
    metric_ : (c, d, d) array or None
        With metric="adaptive", S of each cluster, of determinant 1: the squared distance of x to a
        prototype v is (x - v)' S (x - v).
    objective_ : float
        The sum over objects of the cost of their masses.
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether `tol` ended the fit, not `max_iter`.
    n_clusters_ : int
        Number of clusters.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import ECM
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> ECM(n_clusters=3, random_state=0).fit(X).credal_partition_.mass.shape
    (300, 5)
    """

    n_clusters: int | Literal["auto"] = 4
    _: KW_ONLY
    alpha: float = 1.0
    beta: float | str = "auto"
    delta: float | str = "auto"
    focal_sets: str | FocalSets = "simple"
    pair_neighbours: int = 2
    metric: str = "euclidean"
    scale: str | None = None
    init: str | ArrayLike = "k-means++"
    n_init: int = 5
    tol: float = 1e-5
    max_iter: int = 200
    n_jobs: int | None = None
    random_state: Any = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    @property
    def _compiles(self) -> tuple[str, int] | None:  # type: ignore[override]
        # The start from seeds is always in the Euclidean metric.
        return ("evdist.ecm.kernel:euclidean_sums", 5) if isinstance(self.init, str) else None

    _takes_lazy = True

    def _start(self, X: NDArray[Any], w: NDArray[np.float64] | None) -> Model:
        model = self._checked(X.shape, delta_for(self.delta, X, w), X)
        if self.metric == "adaptive":
            check_spread(X)
        n, f = len(X), len(model.focal_sets)
        check_memory(
            {"masses": 4 * n * f}, "Use fewer focal sets.",
            what=f"ECM of {n:,} objects with {f} focal sets",
        )  # fmt: skip
        return model

    def _checked(self, shape: tuple[int, int], delta: Any, some: NDArray[Any]) -> Model:
        """The model to start from; `some` rows tell the number of clusters."""
        integer("pair_neighbours", self.pair_neighbours, 1)
        return checked_model(
            self, *shape, beta=beta_for(self.beta, *shape), families=_FAMILIES, delta=delta,
            n_clusters=clusters_for(self.n_clusters, some),
        )  # fmt: skip

    def _fit_lazily(self, rows: LazyRows, sample_weight: Any) -> Self:
        """Fit rows that are nowhere all together; masses and labels stay lazy."""
        others = {
            "sample_weight": sample_weight is not None,
            "scale": self.scale is not None,
            'focal_sets="select"': isinstance(self.focal_sets, str) and self.focal_sets == "select",
        }
        for name, asked in others.items():
            if asked:
                raise ValueError(
                    f"{name} needs all rows in memory, and these {rows.n:,} are not. Leave it out, "
                    "or pass an array."
                )
        self.n_features_in_ = rows.shape[1]
        some = rows[sample_numbers(rows.n, np.random.default_rng(0))]
        adaptive = self.metric == "adaptive"
        moments = rows.moments(some.mean(axis=0), covariance=adaptive)
        self._scale = None
        self._tell_of_spreads(some)
        model = self._checked(rows.shape, self._delta_of(moments), some)
        if adaptive:
            spread = np.sqrt(moments.variance)
            check_covariance(spread, lambda: moments.covariance / np.outer(spread, spread))
        fit = self._solve(rows, model, rows, None)
        partition = self._keep_and_place(rows, fit.value.model)
        self._finish(partition, fit.history, fit.converged)
        self._look_back(some)
        return self

    def _delta_of(self, moments: Moments) -> Any:
        """`delta_for` of all rows, from their moments."""
        if isinstance(self.delta, str) and self.delta == "auto":
            # Two objects are twice as far apart, squared, as each is from the mean.
            return float(np.sqrt(2.0 * moments.variance.sum())) or 1.0
        return self.delta

    def _look_back(self, X: NDArray[Any]) -> None:
        """In many dimensions a large beta spreads all masses evenly, and prototypes meet."""
        V = self.prototypes_
        if len(V) < 2 or self.beta_ <= _SOFT or not (X != X[0]).any():
            return
        gaps = np.linalg.norm(V[:, None] - V, axis=2) + np.diag(np.full(len(V), np.inf))
        k, m = (int(at) for at in np.unravel_index(gaps.argmin(), gaps.shape))
        largest = float(self._masses(X[:_LOOKED_AT]).max(axis=1).mean())
        if gaps[k, m] < _MET * delta_for("auto", X, None) and largest < _EVEN:
            warnings.warn(
                f"The prototypes of clusters {k} and {m} have met, and masses are spread almost "
                f"evenly: beta={self.beta_:g} is too soft for these data. Try beta=1.2.",
                stacklevel=3,
            )

"""ECM as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.ecm.base import MeansClusterer, check_spread, checked_model, delta_for
from evdist.ecm.solver import Model
from evdist.engine.memory import check_memory
from evdist.engine.progress import Progress
from evdist.estimators.checks import integer

_FAMILIES = ("simple", "pairs", "full", "select")


@dataclass(eq=False, repr=False)
class ECM(MeansClusterer):
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
    verbose : bool, default=False
        Show how far the fit is: a bar in a terminal, lines elsewhere.

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

    n_clusters: int = 4
    _: KW_ONLY
    alpha: float = 1.0
    beta: float = 2.0
    delta: float | str = "auto"
    focal_sets: str | FocalSets = "simple"
    pair_neighbours: int = 2
    metric: str = "euclidean"
    init: str | ArrayLike = "k-means++"
    n_init: int = 5
    tol: float = 1e-5
    max_iter: int = 200
    n_jobs: int | None = None
    random_state: Any = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def _start(self, X: NDArray[Any], w: NDArray[np.float64] | None) -> Model:
        integer("pair_neighbours", self.pair_neighbours, 1)
        delta = delta_for(self.delta, X, w)
        model = checked_model(self, *X.shape, beta=self.beta, families=_FAMILIES, delta=delta)
        if self.metric == "adaptive":
            check_spread(X)
        n, f = len(X), len(model.focal_sets)
        check_memory(
            {"masses": 4 * n * f}, "Use fewer focal sets.",
            what=f"ECM of {n:,} objects with {f} focal sets",
        )  # fmt: skip
        return model

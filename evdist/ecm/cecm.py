"""CECM as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from evdist.belief import FocalSets
from evdist.constraints import check_links, expand_constraints
from evdist.ecm.base import PrototypeClusterer, check_spread, checked_model, delta_for
from evdist.ecm.linked import LinkedProblem, fit_cecm
from evdist.engine.memory import check_memory
from evdist.engine.progress import Progress
from evdist.estimators.checks import integer, non_negative, random_of, weights
from evdist.partition import CredalPartition

_FAMILIES = ("simple", "pairs", "full")
#: Tables of (n, f) numbers that a fit holds at once: masses, costs, and what an iteration makes.
_TABLES = 8


@dataclass(eq=False, repr=False)
class CECM(PrototypeClusterer):
    """Constrained evidential c-means: ECM with pairs of objects known to be together or apart.

    The links correct the masses of linked objects where distances are misleading; with
    metric="adaptive" they also influence the shape of the clusters.
    `evdist.propose_links(model.credal_partition_, X=X)` proposes the pairs to ask about next.

    Parameters
    ----------
    n_clusters : int, default=4
        Number of clusters.
    alpha, delta : float, default=1 and "auto"
        As in ECM; beta is 2.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="simple"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets.
    metric : {"euclidean", "adaptive"}, default="euclidean"
        "adaptive" learns one Mahalanobis metric per cluster.
    constraint_weight : float from 0 to below 1, default=0.5
        xi, the weight of the links: the objective is (1 - xi) times that of ECM, divided by objects
        and focal sets, plus xi times the mean plausibility that a link is violated.
    expand_constraints : int, default=0
        K: each link also applies to the K nearest pairs of neighbours (k-CEVCLUS, algorithm 2).
    init : "k-means++" or (n_clusters, d) array of prototypes, default="k-means++"
        Prototypes to start from.
    n_init : int, default=5
        Number of "k-means++" starts, compared without the links.
    tol : float, default=1e-5
        Stop when the relative decrease of the objective is smaller than this.
    max_iter : int, default=200
        Maximum number of iterations.
    n_jobs : int, default=None
        Threads of the seedings and of predict_mass; None is all cores.
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
    prototypes_ : (c, d) array
        Centres of the clusters.
    delta_ : float
        The distance to the empty set that was used.
    metric_ : (c, d, d) array or None
        With metric="adaptive", the matrix of each cluster's squared Mahalanobis distance.
    objective_ : float
        The objective at the end.
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether `tol` ended the fit, not `max_iter`.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from evdist import CECM
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> model = CECM(n_clusters=2, random_state=0)
    >>> labels = model.fit(X, cannot_link=[(0, 1)], must_link=[(1, 2), (2, 3)]).labels_
    >>> bool(labels[0] != labels[1] == labels[2] == labels[3])
    True
    """

    n_clusters: int = 4
    _: KW_ONLY
    alpha: float = 1.0
    delta: float | str = "auto"
    focal_sets: str | FocalSets = "simple"
    metric: str = "euclidean"
    constraint_weight: float = 0.5
    expand_constraints: int = 0
    init: str | ArrayLike = "k-means++"
    n_init: int = 5
    tol: float = 1e-5
    max_iter: int = 200
    n_jobs: int | None = None
    random_state: Any = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; a path is that of a .npy, .csv, .parquet or .zarr file.
        y : None
            Not used; pipelines pass it.
        must_link, cannot_link : (p, 2) arrays of object numbers
            Pairs known to be in one cluster, in different clusters.
        sample_weight : (n,) array, positive
            They are divided by their mean. Links do not depend on them.
        """
        X = np.asarray(self._table(X, ensure_min_samples=2), dtype=float)
        w = weights(sample_weight, len(X))
        delta = delta_for(self.delta, X, w)
        model = checked_model(self, *X.shape, beta=2.0, families=_FAMILIES, delta=delta)
        xi = non_negative("constraint_weight", self.constraint_weight)
        if xi >= 1:
            raise ValueError(
                f"constraint_weight must be below 1, got {self.constraint_weight!r}: at 1 the "
                "distances would not count."
            )
        if self.metric == "adaptive":
            check_spread(X)
        must, cannot = check_links(must_link, cannot_link, len(X))
        if integer("expand_constraints", self.expand_constraints, 0):
            # Guesses that contradict each other are weighed against the distances, as in k-CEVCLUS.
            must, cannot = expand_constraints(
                X, must, cannot, self.expand_constraints, consistent=False
            )
        n, f = len(X), len(model.focal_sets)
        # Unlike ECM, CECM keeps the masses of all objects while it works.
        check_memory(
            {"masses": 8 * _TABLES * n * f},
            "Use fewer focal sets or a sample of the objects; EVCLUS takes links for millions of "
            "objects.",
            what=f"CECM of {n:,} objects with {f} focal sets",
        )
        problem = LinkedProblem(X, must, cannot, xi, w)
        seed = int(random_of(self.random_state).randint(2**31 - 1))
        tol, most = float(self.tol), int(self.max_iter)
        with self._reporting() as report:
            if isinstance(self.init, str):
                model = self._from_seeds(X, model, w, seed, report).value.model
            if self.metric == "adaptive":
                model = model.adaptive()
            fit = fit_cecm(problem, model, tol=tol, max_iter=most, report=report)
        self._keep(fit.value.model)
        mass = fit.value.mass.astype(np.float32)
        self._finish(CredalPartition(mass, model.focal_sets), fit.history, fit.converged)
        return self

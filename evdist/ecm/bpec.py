"""Belief-peaks evidential clustering: centres from the delta-Bel graph, then masses and metric.

Reference: Su, Denoeux (2019), BPEC: belief-peaks evidential clustering. The centres come from
`evdist.ecm.belief_peaks`; they stay, and ECM's objective (`evdist.ecm.solver`) is minimised
over the masses and one metric per cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.ecm.base import METRICS, PrototypeClusterer, chosen_sets, delta_for, ecm_parameters
from evdist.ecm.belief_peaks import BeliefPeaks, delta_bel
from evdist.ecm.blocks import LocalRows
from evdist.ecm.solver import ECMSolver, Model, Rows
from evdist.ecm.start import with_neighbour_pairs
from evdist.engine.loop import minimise
from evdist.engine.progress import Progress
from evdist.estimators.checks import (
    at_most_objects,
    focal_family,
    integer,
    non_negative,
    one_of,
    positive,
)
from evdist.kernels.threads import thread_count

_FAMILIES = ("simple", "pairs", "full", "select")
#: By default, no more neighbours than this.
_MOST_NEIGHBOURS = 100


@dataclass(eq=False, repr=False)
class BPEC(PrototypeClusterer):
    """Belief-peaks evidential clustering: centres are chosen among the objects and stay fixed.

    A centre has many near neighbours and is far from any object with more: both can be seen in the
    delta-Bel graph, `evdist.plot.delta_bel(model.peaks_.delta, model.peaks_.bel,
    centres=model.centres_)`. With the centres as prototypes, masses and one metric per cluster
    minimise the objective of ECM. Su and Denoeux (2019).

    Parameters
    ----------
    n_clusters : int or None, default=None
        The centres are this many objects with the largest delta * Bel; None: all in the box.
    n_neighbors : int or None, default=None
        Neighbours used as evidence for an object; None is twice the square root of n, at most 100.
    q : float, default=0.9
        The scale of a neighbour is the q-quantile of its distances.
    delta_min, bel_min : float, default=0
        Centres have at least this delta and this Bel. With n_clusters=None a delta_min above 0 is
        needed.
    delta_max, bel_max : float or None, default=None
        With the two above, the box of the delta-Bel graph that contains centres; None is no bound.
    alpha, beta : float, default=1, 2
        Weight of large sets, fuzzifier above 1, as in ECM.
    delta : float or "auto", default="auto"
        Distance to the empty set, in the units of X. "auto" is the root mean square of the
        distances between two objects; R's evclust uses 10 for any units.
    focal_sets : {"simple", "pairs", "full", "select"} or FocalSets, default="simple"
        As in ECM.
    pair_neighbours : int, default=2
        With "select": two clusters form a pair if each is among this many nearest of the other.
    metric : {"euclidean", "adaptive"}, default="euclidean"
        "adaptive" learns one Mahalanobis metric per cluster, as in the paper.
    tol : float, default=1e-5
        Stop when the relative decrease of the objective is smaller than this.
    max_iter : int, default=200
        Maximum number of iterations.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
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
    peaks_ : BeliefPeaks
        `delta` and `bel` of all objects.
    centres_ : (c,) int array
        The objects that are centres, by decreasing delta * Bel.
    prototypes_ : (c, d) array
        The centres.
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
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import BPEC
    >>> X, _ = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> BPEC(delta_min=4).fit(X).prototypes_.shape
    (3, 2)
    """

    n_clusters: int | None = None
    _: KW_ONLY
    n_neighbors: int | None = None
    q: float = 0.9
    delta_min: float = 0.0
    delta_max: float | None = None
    bel_min: float = 0.0
    bel_max: float | None = None
    alpha: float = 1.0
    beta: float = 2.0
    delta: float | str = "auto"
    focal_sets: str | FocalSets = "simple"
    pair_neighbours: int = 2
    metric: str = "euclidean"
    tol: float = 1e-5
    max_iter: int = 200
    n_jobs: int | None = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the centres and cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; a path is that of a .npy, .csv, .parquet or .zarr file.
        y : None
            Not used; pipelines pass it.
        """
        X = self._table(X, ensure_min_samples=2)
        K = self._checked(len(X))
        threads = thread_count(self.n_jobs)
        self.peaks_ = delta_bel(X, K, q=self.q, n_jobs=threads)
        self.centres_ = self._chosen(self.peaks_)
        delta = delta_for(self.delta, X, None)
        model = self._model_at(np.asarray(X[self.centres_], dtype=float), delta)
        rows = LocalRows(X, None, threads)
        with self._reporting() as report:
            if self.focal_sets == "select":
                first = minimise(
                    self._solver(rows, model), self.max_iter, stage="singletons", report=report
                )
                model = with_neighbour_pairs(rows, first.value.model, self.pair_neighbours)
            fit = minimise(self._solver(rows, model), self.max_iter, report=report)
        partition = self._keep_and_place(rows, fit.value.model)
        self._finish(partition, fit.history, fit.converged)
        return self

    def _solver(self, rows: Rows, model: Model) -> ECMSolver:
        """Masses, and an adaptive metric, for the prototypes of `model`, which stay."""
        start = model.adaptive() if self.metric == "adaptive" else model
        return ECMSolver(rows, start, self.tol, move=False)

    def _checked(self, n: int) -> int:
        """The number of neighbours, once every parameter has been checked."""
        if self.n_clusters is not None:
            at_most_objects(integer("n_clusters", self.n_clusters, 1), n)
            focal_family(self.focal_sets, self.n_clusters, _FAMILIES)
        elif not isinstance(self.focal_sets, FocalSets):
            one_of("focal_sets", self.focal_sets, _FAMILIES)
        positive("q", self.q, below=1.0)
        box = self._box()
        if self.n_clusters is None and not box[0][0] > 0:
            raise ValueError(
                "BPEC needs n_clusters, or a threshold delta_min above which objects are centres; "
                "evdist.delta_bel(X, K) gives the graph to choose it from."
            )
        ecm_parameters(self.alpha, self.beta, 1.0 if self.delta == "auto" else self.delta)
        one_of("metric", self.metric, METRICS)
        non_negative("tol", self.tol)
        for name in ("pair_neighbours", "max_iter"):
            integer(name, getattr(self, name), 1)
        self._check_callbacks()
        K = min(2 * round(np.sqrt(n)), _MOST_NEIGHBOURS)
        K = K if self.n_neighbors is None else integer("n_neighbors", self.n_neighbors, 1)
        return min(K, n - 1)

    def _box(self) -> list[tuple[float, float]]:
        """(low, high) of delta and of Bel."""
        box = []
        for name in ("delta", "bel"):
            low = non_negative(f"{name}_min", getattr(self, f"{name}_min"))
            most = getattr(self, f"{name}_max")
            high = np.inf if most is None else non_negative(f"{name}_max", most)
            if low > high:
                raise ValueError(f"{name}_min must be at most {name}_max, got {low} and {high}.")
            box.append((low, high))
        return box

    def _chosen(self, peaks: BeliefPeaks) -> NDArray[np.intp]:
        inside = peaks.inside(*self._box())
        if self.n_clusters is None:
            return inside
        if len(inside) < self.n_clusters:
            raise ValueError(
                f"The box holds {len(inside)} objects, fewer than n_clusters={self.n_clusters}. "
                "Lower delta_min or bel_min."
            )
        return inside[: self.n_clusters]

    def _model_at(self, prototypes: NDArray[np.float64], delta: float) -> Model:
        family = chosen_sets(self.focal_sets, len(prototypes), _FAMILIES)
        return Model(family, prototypes, *ecm_parameters(self.alpha, self.beta, delta))

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values, arrays = super()._state()
        peaks = {"delta": self.peaks_.delta, "bel": self.peaks_.bel}
        return values, {**arrays, "centres": self.centres_, **peaks}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._set_state(values, arrays)
        self.centres_ = arrays["centres"]
        self.peaks_ = BeliefPeaks(arrays["delta"], arrays["bel"])

"""EK-NNclus as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.data.sources import MatrixSource
from evdist.eknn.graph import (
    Neighbourhood,
    VisitSolver,
    in_order,
    neighbourhood,
    pair_weight,
    place,
    rule,
)
from evdist.eknn.search import METRICS, nearest_of_new, nearest_others, search
from evdist.engine.loop import minimise
from evdist.engine.memory import check_memory
from evdist.engine.progress import Progress, Report
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import integer, one_of, positive, random_of
from evdist.estimators.placing import RowMasses
from evdist.partition import CredalPartition

#: More objects start from the partition of a sample of so many.
_SAMPLE = 20_000
#: Their neighbours by default.
_NEIGHBOURS_OF_MANY = 50
#: Rows placed at once beside a sample.
_ROWS = 16_384
#: Bytes per object and neighbour while the graph is made symmetric, the peak of a fit.
_BYTES = 70


@dataclass(eq=False, repr=False)
class EKNNclus(RowMasses, CredalClusterer):
    """The most plausible partition by the evidential K-nearest-neighbour rule.

    The number of clusters is found automatically; it falls as `n_neighbors` rises.
    Denoeux, Kanjanatarakul, Sriboonchitta (2015).

    Parameters
    ----------
    n_neighbors : int or None, default=None
        Neighbours used as evidence for an object; None is three times the square root of n, and
        50 for more than 20,000 objects.
    q : float, default=0.9
        Evidence falls to 1/e at the q-quantile of the distances to the neighbours.
    power : float, default=2
        Evidence that two objects are together is exp(-gamma d^power).
    metric : str, default="euclidean"
        euclidean, cityblock, chebyshev, cosine, correlation, or precomputed (n, n).
    init : "auto", "singletons", int or (n,) array of int, default="auto"
        Start with one cluster per object ("singletons"), with this many random clusters, or with
        labels from 0. "auto" is "singletons" up to 20,000 objects. Beyond, a sample is partitioned
        first, with at least three times the square root of its size as neighbours, and the other
        objects join its clusters.
    symmetric : bool, default=True
        Whether two objects are neighbours when either is among the nearest of the other. Then no
        move lowers the plausibility; False is the rule of the paper and of R's evclust, which
        does not guarantee this.
    n_init : int, default=1
        Number of visiting orders to try; the most plausible partition is kept.
    max_iter : int, default=100
        Maximum number of passes over all objects.
    n_jobs : int or None, default=None
        Threads of the neighbour search.
    random_state : int, RandomState, Generator or None, default=None
        Draws the orders, and the labels when `init` is a number.
    callbacks : sequence of callables, default=()
        Each is called after every visit of all objects with a `Progress`.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses on single clusters and on the whole frame, by the evidential K-NN rule.
    labels_ : (n,) int array
        Cluster of each object.
    n_clusters_ : int
        The number found.
    gamma_ : float
        How fast the evidence of a neighbour falls with its distance, see `power`.
    objective_ : float
        Share of the evidence of being together that is between clusters, from 0 to 1.
    history_ : list of float
        The objective before the first and after every visit; it never rises when `symmetric`.
    n_iter_ : int
        Visits of all objects done.
    converged_ : bool
        Whether the last visit moved no object.
    n_features_in_ : int
        Columns of X; with "precomputed" the number of objects.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import EKNNclus
    >>> X, _ = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> EKNNclus(n_neighbors=60, random_state=0).fit(X).n_clusters_
    3
    """

    _mass_type = np.float32

    n_neighbors: int | None = None
    _: KW_ONLY
    q: float = 0.9
    power: float = 2.0
    metric: str = "euclidean"
    init: str | int | ArrayLike = "auto"
    symmetric: bool = True
    n_init: int = 1
    max_iter: int = 100
    n_jobs: int | None = None
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
        random = random_of(self.random_state)
        X = self._table(X, ensure_min_samples=2)
        K = self._checked(X)
        index = search(X, self.metric, self.n_jobs)
        graph = neighbourhood(
            *nearest_others(index, X, K), q=self.q, b=self.power, symmetric=bool(self.symmetric)
        )
        with self._reporting() as report:
            # Each start draws its labels, then its orders: one after the other.
            runs = (
                minimise(
                    VisitSolver(graph, self._start(X, K, random, report), _orders(len(X), random)),
                    self.max_iter, report=report,
                )
                for _ in range(self.n_init)
            )  # fmt: skip
            best = min(runs, key=lambda run: run.objective)
        label = in_order(best.value.label)
        c = int(label.max()) + 1
        check_memory(
            {"masses": 8 * len(X) * (c + 2)},
            "Raise n_neighbors or q, or pass a number of clusters as init.",
            what=f"EKNNclus of {len(X):,} objects, which found {c:,} clusters,",
        )
        self.n_clusters_, self.gamma_ = c, graph.gamma
        self._rows, self._row_labels = X, label
        partition = CredalPartition(rule(graph, label, c), FocalSets.simple(c))
        self._finish(partition, best.history, best.converged, sweeps="visits of all objects")
        return self

    def _checked(self, X: NDArray[Any]) -> int:
        """The number of neighbours, once every parameter has been checked."""
        n = len(X)
        one_of("metric", self.metric, METRICS)
        if self.metric == "precomputed":
            MatrixSource.of(X)
        positive("q", self.q, below=1.0)
        positive("power", self.power)
        for name in ("n_init", "max_iter"):
            integer(name, getattr(self, name), 1)
        self._check_callbacks()
        self._check_init(n)
        K = self._neighbours(n)
        check_memory(
            {"neighbours": _BYTES * n * K},
            "Lower n_neighbors, and pass a number of clusters as init.",
            what=f"EKNNclus of {n:,} objects with {K} neighbours each",
        )
        return K

    def _neighbours(self, n: int) -> int:
        if self.n_neighbors is not None:
            return min(integer("n_neighbors", self.n_neighbors, 1), n - 1)
        return min(_usual_neighbours(n) if n <= _SAMPLE else _NEIGHBOURS_OF_MANY, n - 1)

    def _check_init(self, n: int) -> None:
        init = self.init
        if isinstance(init, Integral) and not isinstance(init, bool):
            integer("init", init, 1)
            return
        if isinstance(init, str):
            one_of("init", init, ("auto", "singletons"))
            return
        labels = np.asarray(init)
        if labels.shape != (n,) or labels.dtype.kind not in "iu":
            raise ValueError(
                f'init must be "auto", "singletons", a number of clusters or {n} labels (whole '
                f"numbers), got {labels.dtype} of shape {labels.shape}."
            )
        if labels.min() < 0:
            row = int(labels.argmin())
            raise ValueError(f"Labels in init count from 0, but object {row} has {labels[row]}.")

    def _start(
        self,
        X: NDArray[Any],
        K: int,
        random: np.random.RandomState,
        report: Report,
    ) -> NDArray[np.int32]:
        init, n = self.init, len(X)
        if isinstance(init, str):
            if init == "auto" and n > _SAMPLE and self.metric != "precomputed":
                return self._from_sample(X, K, random, report)
            return np.arange(n, dtype=np.int32)
        if isinstance(init, Integral):
            return random.randint(int(init), size=n, dtype=np.int32)
        return np.unique(np.asarray(init), return_inverse=True)[1].astype(np.int32)

    def _from_sample(
        self,
        X: NDArray[Any],
        K: int,
        random: np.random.RandomState,
        report: Report,
    ) -> NDArray[np.int32]:
        """Partition a sample; give the others the labels that the rule finds for them there."""
        rows = np.sort(random.choice(len(X), _SAMPLE, replace=False))
        some = X[rows]
        index = search(some, self.metric, self.n_jobs)
        near = nearest_others(index, some, max(K, _usual_neighbours(_SAMPLE)))
        graph = neighbourhood(*near, q=self.q, b=self.power, symmetric=bool(self.symmetric))
        alone = np.arange(_SAMPLE, dtype=np.int32)
        solver = VisitSolver(graph, alone, _orders(_SAMPLE, random))
        found = minimise(solver, self.max_iter, stage="sample", report=report)
        known = in_order(found.value.label)
        label = np.empty(len(X), dtype=np.int32)
        for lo in range(0, len(X), _ROWS):
            near = nearest_of_new(index, X[lo : lo + _ROWS], K)
            label[lo : lo + _ROWS] = place(*near, known, gamma=graph.gamma, b=self.power)
        return label

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        values = {"n_clusters": self.n_clusters_, "gamma": self.gamma_}
        return values, {"rows": self._rows, "labels": self._row_labels}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.n_clusters_, self.gamma_ = int(values["n_clusters"]), float(values["gamma"])
        self._rows, self._row_labels = arrays["rows"], arrays["labels"]

    # ------------------------------------------------------------------ new objects
    def _masses(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Masses by the rule, from the nearest fitted objects."""
        index = search(self._rows, self.metric, self.n_jobs)
        d, j = nearest_of_new(index, X, self._neighbours(len(self._rows)))
        weight = pair_weight(d, self.gamma_, self.power)
        start = np.arange(0, j.size + 1, j.shape[1])
        graph = Neighbourhood(start, j.ravel(), weight.ravel(), self.gamma_)
        return rule(graph, self._row_labels, self.n_clusters_)


def _usual_neighbours(n: int) -> int:
    """Two to three times the square root of n: Denoeux, slides (2017), "Ek-NNclus"."""
    return 3 * round(np.sqrt(n))


def _orders(n: int, random: np.random.RandomState) -> Iterator[NDArray[np.int64]]:
    while True:
        yield random.permutation(n)

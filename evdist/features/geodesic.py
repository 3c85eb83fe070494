"""Distances that follow the data: along the neighbour graph, with long steps made dear.

References: Tenenbaum, de Silva, Langford (2000), Isomap; de Silva, Tenenbaum (2003), landmark
points; Groisman, Jonckheere, Sapienza (2022), Fermat distance.

    d(x, y) = ( min over paths x = x_0, ..., x_m = y in the graph of sum |x_i - x_(i-1)|^p )^(1/p)

With p = 1 this is the length of the shortest path. A larger p prefers many short steps to a long
one, so that a gap between two groups counts far more than the way within a group, whatever its
shape; p -> infinity is the longest step that cannot be avoided, the distance of single linkage.

An object's coordinates are its distances to L landmarks. For any two objects

    max over landmarks l of |d(x, l) - d(y, l)|  <=  d(x, y),

with equality where a landmark lies on the way; the left-hand side is the Chebyshev distance of the
coordinates, which every algorithm of this package can sample. Nothing of size n x n is made.

Symbols
-------
A       anchors: the objects that carry the graph, all of them or a random sample
L       landmarks, some of the anchors
table   (anchors, L) of d(anchor, landmark)^p
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.utils.validation import validate_data

from evdist.estimators.checks import integer, positive, random_of
from evdist.features.base import RowTransformer
from evdist.kernels.neighbours import NeighbourIndex
from evdist.kernels.threads import thread_count
from evdist.partition.rows import block_rows


@dataclass(eq=False, repr=False)
class GeodesicMap(RowTransformer):
    """Coordinates whose Chebyshev distance follows the shape of the data.

    For clusters of any shape, ``make_pipeline(GeodesicMap(), EVCLUS(c, metric="chebyshev"))``:
    rings, spirals and bands that no Euclidean distance tells apart. Clusters that overlap it
    joins more easily than Euclidean distances do; there take a smaller `power`, or none of this.

    Parameters
    ----------
    n_landmarks : int, default=100
        L, the number of coordinates; all anchors when there are fewer.
    n_neighbors : int, default=10
        Neighbours that an anchor is joined with. Parts of the graph that this leaves apart are
        joined by their shortest gap.
    power : float, default=4.0
        p: 1 is the plain geodesic distance; larger values make gaps count more.
    n_anchors : int, default=20000
        The graph is built on so many objects, drawn at random, or on all when there are not more.
        Every other object, old or new, is reached through its nearest anchors.
    n_jobs : int, default=None
        Threads of the neighbour search; None is all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Draws the anchors and the landmarks.

    Attributes
    ----------
    anchors_ : (m, d) array
        The objects that the graph is built on.
    landmarks_ : (L,) int array
        Which anchors are landmarks.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from evdist.features import GeodesicMap
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> GeodesicMap(20, random_state=0).fit_transform(X).shape
    (200, 20)
    """

    n_landmarks: int = 100
    _: KW_ONLY
    n_neighbors: int = 10
    power: float = 4.0
    n_anchors: int = 20_000
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph of the anchors and the distances to the landmarks.

        Parameters
        ----------
        X : (n, d) array
            The objects.
        y : None
            Not used; pipelines pass it.
        """
        for name in ("n_landmarks", "n_neighbors", "n_anchors"):
            integer(name, getattr(self, name), 1)
        positive("power", self.power)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        rng = random_of(self.random_state)
        chosen = np.arange(len(X))
        if len(X) > self.n_anchors:
            chosen = np.sort(rng.choice(len(X), int(self.n_anchors), replace=False))
        self.anchors_ = X[chosen]
        self._at = _Anchors.of(self.anchors_)
        graph = joined_graph(self._at, self._near, thread_count(self.n_jobs))
        # In units of the typical step, so that powers neither overflow nor vanish.
        self._unit = _typical(graph.data)
        graph.data = np.maximum(graph.data / self._unit, 1e-12) ** self.power
        self.landmarks_, self._table = _spread_landmarks(
            graph, min(int(self.n_landmarks), len(chosen)), self.power, rng
        )
        self._n_features_out = len(self.landmarks_)
        return self

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What a fitted map needs to map new objects; :meth:`of_arrays` takes it back."""
        return {
            "anchors": self.anchors_,
            "landmarks": self.landmarks_,
            "table": self._table,
            "numbers": np.array([self._unit, self.power, self.n_neighbors]),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The map that gave these arrays; it maps to the same bits.

        Parameters
        ----------
        arrays : mapping of names to arrays
            What `to_arrays` of a fitted map gave.
        """
        unit, power, near = (float(value) for value in arrays["numbers"])
        anchors, landmarks = arrays["anchors"], arrays["landmarks"]
        made = cls(len(landmarks), n_neighbors=int(near), power=power)
        made.anchors_, made.landmarks_, made._table = anchors, landmarks, arrays["table"]
        made._unit, made.n_features_in_ = unit, anchors.shape[1]
        made._n_features_out = len(landmarks)
        made._at = _Anchors.of(anchors)
        return made

    @property
    def _near(self) -> int:
        return min(int(self.n_neighbors), len(self.anchors_) - 1)

    def _features(self, X: NDArray) -> NDArray[np.float64]:
        out = np.empty((len(X), self._n_features_out))
        anchor, far = self._at.search(X, self._near + 1, thread_count(self.n_jobs))
        reach = (far / self._unit) ** self.power
        step = block_rows(anchor.shape[1] * self._n_features_out)
        for lo in range(0, len(X), step):
            ways = reach[lo : lo + step, :, None] + self._table[anchor[lo : lo + step]]
            out[lo : lo + step] = self._unit * ways.min(axis=1) ** (1.0 / self.power)
        return out


@dataclass(frozen=True)
class _Anchors:
    """The anchors where neighbours are looked for: about their middle, in single precision."""

    index: NeighbourIndex
    middle: NDArray[np.float64]
    #: A power of two, so that squares neither overflow nor vanish.
    unit: float

    @classmethod
    def of(cls, anchors: NDArray[np.float64]) -> _Anchors:
        middle = np.median(anchors, axis=0)
        unit = float(2.0 ** np.frexp(np.abs(anchors - middle).max())[1])
        return cls(NeighbourIndex.build((anchors - middle) / unit, seed=0), middle, unit)

    def nearest(self, K: int, threads: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Of each anchor the K nearest others and how far they are, the nearest first."""
        order = self.index.order
        near, far = np.empty((len(order), K), np.int64), np.empty((len(order), K))
        places, squared = self.index.nearest(K, threads)
        near[order], far[order] = order[places], self.unit * np.sqrt(squared, dtype=float)
        return near, far

    def search(
        self, X: NDArray[np.float64], K: int, threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Of each row the K nearest anchors and how far they are, the nearest first."""
        places, squared = self.index.search((X - self.middle) / self.unit, K, threads)
        return self.index.order[places], self.unit * np.sqrt(squared, dtype=float)

    def gaps(
        self, part: NDArray[np.int64], threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """For every part but the largest, the shortest way to another: from, to, how far."""
        order = self.index.order
        own = part[order]
        some = np.flatnonzero(own != np.bincount(part).argmax())
        place, squared = self.index.nearest_outside(own, some, threads)
        rank = np.lexsort((squared, own[some]))
        first = rank[np.unique(own[some][rank], return_index=True)[1]]
        far = self.unit * np.sqrt(squared[first], dtype=float)
        return order[some[first]], order[place[first]], far


def joined_graph(anchors: _Anchors, K: int, threads: int = 1) -> sparse.csr_array:
    """Distances between each anchor and its K nearest others, both ways, parts joined: (m, m).

    Each round joins every part but the largest with the one nearest to it.
    """
    near, far = anchors.nearest(K, threads)
    m = len(near)
    # Copies are at distance zero, which a sparse matrix would take for no edge.
    far = np.maximum(far, np.finfo(float).tiny)
    first = np.arange(0, m * K + 1, K)
    graph = sparse.csr_array((far.ravel(), near.ravel(), first), shape=(m, m))
    graph = graph.maximum(graph.T.tocsr())
    while True:
        count, part = csgraph.connected_components(graph, directed=False)
        if count == 1:
            return graph
        i, j, gap = anchors.gaps(part.astype(np.int64), threads)
        gap = np.maximum(gap, np.finfo(float).tiny)
        more = sparse.csr_array((gap, (i, j)), shape=graph.shape)
        graph = graph.maximum(more).maximum(more.T.tocsr())


def _typical(steps: NDArray) -> float:
    """The median length of a step that is not between copies; 1 where all are."""
    long = steps[steps > 1e-300]
    return float(np.median(long)) if long.size else 1.0


def _spread_landmarks(
    graph: sparse.csr_array, L: int, power: float, rng: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """L anchors drawn as k-means++ draws seeds, and d^p of all anchors to them: (L,), (m, L)."""
    m = graph.shape[0]
    landmarks = np.empty(L, np.int64)
    table = np.empty((m, L))
    near = np.full(m, np.inf)
    landmark = int(rng.randint(m))
    for q in range(L):
        landmarks[q] = landmark
        table[:, q] = csgraph.dijkstra(graph, directed=False, indices=landmark)
        near = np.minimum(near, table[:, q])
        chance = near ** (2.0 / power)
        chance[landmarks[: q + 1]] = 0.0
        total = chance.sum()
        # Nothing but copies is left: any anchor that is no landmark yet.
        if not total > 0:
            chance = np.ones(m)
            chance[landmarks[: q + 1]] = 0.0
            total = chance.sum()
        if q + 1 < L:
            landmark = int(rng.choice(m, p=chance / total))
    return landmarks, table

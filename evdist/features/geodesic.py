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
from sklearn import neighbors
from sklearn.utils.validation import validate_data

from evdist.estimators.checks import integer, positive, random_of
from evdist.features.base import RowTransformer
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
        Threads of the neighbour search, as in scikit-learn.
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
        self._index = neighbors.NearestNeighbors(n_jobs=self.n_jobs).fit(self.anchors_)
        graph = joined(neighbour_graph(self._index, self._near), self._index)
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
        made._index = neighbors.NearestNeighbors().fit(anchors)
        return made

    @property
    def _near(self) -> int:
        return min(int(self.n_neighbors), len(self.anchors_) - 1)

    def _features(self, X: NDArray) -> NDArray[np.float64]:
        out = np.empty((len(X), self._n_features_out))
        K = self._near + 1
        step = block_rows(K * self._n_features_out)
        for lo in range(0, len(X), step):
            far, anchor = self._index.kneighbors(X[lo : lo + step], K)
            reach = (far / self._unit) ** self.power
            ways = reach[:, :, None] + self._table[anchor]
            out[lo : lo + step] = self._unit * ways.min(axis=1) ** (1.0 / self.power)
        return out


def neighbour_graph(index: neighbors.NearestNeighbors, K: int) -> sparse.csr_array:
    """Distances between each fitted object and its K nearest others, both ways: (m, m)."""
    graph = sparse.csr_array(index.kneighbors_graph(n_neighbors=K, mode="distance"))
    # Copies are at distance zero, which a sparse matrix would take for no edge.
    graph.data = np.maximum(graph.data, np.finfo(float).tiny)
    return graph.maximum(graph.T.tocsr())


def joined(graph: sparse.csr_array, index: neighbors.NearestNeighbors) -> sparse.csr_array:
    """The graph with its parts joined: each round joins every part with the one nearest to it."""
    X = index._fit_X
    while True:
        count, part = csgraph.connected_components(graph, directed=False)
        if count == 1:
            return graph
        largest = int(np.bincount(part).argmax())
        edges = _shortest_gaps(X, part, largest, index)
        i, j, d = (np.array(column) for column in zip(*edges, strict=True))
        more = sparse.csr_array((d, (i, j)), shape=graph.shape)
        graph = graph.maximum(more).maximum(more.T.tocsr())


def _shortest_gaps(
    X: NDArray, part: NDArray, largest: int, index: neighbors.NearestNeighbors
) -> list[tuple[int, int, float]]:
    """For every part but the largest, the shortest way to another part: (from, to, distance)."""
    n = len(X)
    best: dict[int, tuple[float, int, int]] = {}
    waiting = np.flatnonzero(part != largest)
    K = 32
    while len(waiting):
        K = min(2 * K, n)
        far, near = index.kneighbors(X[waiting], K)
        outside = part[near] != part[waiting][:, None]
        first = outside.argmax(axis=1)
        found = outside[np.arange(len(waiting)), first]
        for row in np.flatnonzero(found):
            i, d, j = int(waiting[row]), far[row, first[row]], int(near[row, first[row]])
            best[part[i]] = min(best.get(part[i], (np.inf, 0, 0)), (float(d), i, j))
        # Who has K nearer companions than the gap that its part has found cannot have a shorter.
        reached = far[:, -1]
        bound = np.array([best.get(p, (np.inf, 0, 0))[0] for p in part[waiting]])
        waiting = waiting[~found & (reached < bound)]
    return [(i, j, max(d, np.finfo(float).tiny)) for d, i, j in best.values()]


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

"""Few coordinates in which neighbours lie together and strangers apart.

Reference: McInnes, Healy, Melville (2018), UMAP. Objects are joined with their nearest neighbours;
each is then drawn along its edges and pushed away by random others until that balances. Clusters
that are thin and curved in hundreds of attributes become compact and lie apart.

What differs from the authors' program, so that a seed gives the same bits on any number of threads:
an object gathers its forces from the positions that all have after the step before, along all of
its edges at once, and no step moves another object. The pull is taken implicitly and part of every
step is kept for the next, so that half as many steps serve. See docs/decisions/layout.md.

Symbols
-------
n, d    objects, attributes
k       neighbours
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from evdist.estimators.checks import integer
from evdist.features.base import RowTransformer
from evdist.features.layout_kernel import edges_of, fuzzy_weights, move, reverse_lists, scatter
from evdist.kernels.neighbours import NeighbourIndex, run_parts
from evdist.kernels.threads import thread_count

#: Steps for fewer and for more objects than STEPS_FROM.
STEPS, STEPS_MANY, STEPS_FROM = 300, 100, 50_000
#: Strangers that push an object in a step, and how many drawn ones they stand for, per unit of s_i.
#: The authors draw 5; with 10 clusters lie further apart (digits: HDBSCAN .89 instead of .83).
STRANGERS, PUSH = 16, 10.0
#: Share of the last step that is kept.
KEEP = 0.9
#: An object that is so many times as far from its neighbours as usual is lost.
STRAY = 8.0
#: Largest coordinate of the start.
EXTENT = 10.0
#: Objects that new ones are placed by, at most.
ANCHORS = 100_000
#: Rows that the principal components are found from.
_SOME = 20_000
_BLOCK = 4096


@dataclass(eq=False, repr=False)
class NeighbourLayout(RowTransformer):
    """Coordinates in which an object lies near its nearest neighbours and apart from others.

    For clusters in many attributes: vectors of language or image models, pixels, single cells.
    ``EVCLUS(c, metric="layout")`` compares objects there.

    Parameters
    ----------
    n_components : int, default=5
        Coordinates; 2 for a map to look at.
    n_neighbors : int, default=15
        Neighbours that an object is joined with.
    n_epochs : int or "auto", default="auto"
        Steps; "auto" is 300, or 100 from 50,000 objects on.
    metric : {"euclidean", "cosine"}, default="euclidean"
        How neighbours are found.
    n_sample : int, default=2000000
        So many objects, drawn at random, are laid out; others are placed by their neighbours among
        them, as new objects are.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the sample, the neighbours and the steps: an int gives the same layout every
        time.

    Attributes
    ----------
    embedding_ : (n, n_components) float32 array
        Where the objects of the fit lie.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from evdist.features import NeighbourLayout
    >>> X, _ = load_digits(return_X_y=True)
    >>> NeighbourLayout(2, random_state=0).fit(X).embedding_.shape
    (1797, 2)
    """

    n_components: int = 5
    _: KW_ONLY
    n_neighbors: int = 15
    n_epochs: int | Literal["auto"] = "auto"
    metric: Literal["euclidean", "cosine"] = "euclidean"
    n_sample: int = 2_000_000
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Lay out the objects.

        Parameters
        ----------
        X : (n, d) array
            The objects.
        y : None
            Not used; pipelines pass it.
        """
        for name in ("n_components", "n_neighbors", "n_sample"):
            integer(name, getattr(self, name), 1)
        if self.n_epochs != "auto":
            integer("n_epochs", self.n_epochs, 1)
        if self.metric not in ("euclidean", "cosine"):
            raise ValueError(
                f"NeighbourLayout finds neighbours by metric='euclidean' or 'cosine', "
                f"got {self.metric!r}."
            )
        X = validate_data(self, X, dtype=(np.float32, np.float64), ensure_min_samples=2)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        threads, n = thread_count(self.n_jobs), len(X)
        rng = np.random.default_rng([seed, n, 43])
        chosen = None
        if n > self.n_sample:
            chosen = np.sort(rng.choice(n, int(self.n_sample), replace=False))
        rows = self._compared(X if chosen is None else X[chosen])
        index = NeighbourIndex.build(rows, seed, threads)
        k = min(int(self.n_neighbors), index.n - 1)
        Y = self._laid_out(index, k, rng, threads)
        keep = np.arange(index.n)
        if index.n > ANCHORS:
            keep = np.sort(rng.choice(index.n, ANCHORS, replace=False))
        self._anchors = Anchors(rows[index.order[keep]], Y[keep])
        self._n_features_out = int(self.n_components)
        if chosen is None:
            self.embedding_ = np.empty_like(Y)
            self.embedding_[index.order] = Y
        else:
            found = index.search(self._compared(X), k, threads)
            self.embedding_ = _among(Y, *found, threads)
            self.embedding_[chosen[index.order]] = Y
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.float32]:
        """Lay out the objects and return where they lie.

        Parameters
        ----------
        X : (n, d) array
            The objects.
        y : None
            Not used; pipelines pass it.
        """
        return self.fit(X).embedding_

    def _laid_out(
        self, index: NeighbourIndex, k: int, rng: np.random.Generator, threads: int
    ) -> NDArray[np.float32]:
        """Positions of the indexed rows, in their order: (n, n_components)."""
        n = index.n
        epochs = self.n_epochs
        if epochs == "auto":
            epochs = STEPS if n < STEPS_FROM else STEPS_MANY
        places, squared = index.nearest(k, threads)
        edges = Edges.among(places, squared, 1.0 / epochs, threads)
        Y = _start(index.rows, int(self.n_components), rng)
        Y = spread_out(Y, edges, int(epochs), rng, threads)
        # A few objects are thrown far from their neighbours and do not come back: they join them.
        near = _among(Y, places, squared, threads)
        away = np.linalg.norm(Y - near, axis=1)
        lost = away > STRAY * np.median(away)
        Y[lost] = near[lost]
        return Y

    def _compared(self, X: NDArray) -> NDArray[np.float32]:
        """Rows as neighbours are looked for: for angles of length one."""
        rows: NDArray[np.float32] = np.asarray(X, np.float32)
        if self.metric == "cosine":
            length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
            rows = (rows / np.where(length > 0, length, 1)).astype(np.float32)
        return rows

    def _features(self, X: NDArray) -> NDArray[np.float64]:
        check_is_fitted(self, "_anchors")
        rows = self._compared(X)
        found = self._anchors.place(rows, int(self.n_neighbors), thread_count(self.n_jobs))
        return found.astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    # ------------------------------------------------------------------ on disk
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What a fitted layout needs to place new objects; :meth:`of_arrays` takes it back."""
        angles = float(self.metric == "cosine")
        return {
            "anchors": self._anchors.rows,
            "places": self._anchors.places,
            "numbers": np.array([self.n_neighbors, angles]),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The layout that gave these arrays; it places new objects alike, to the bit.

        Parameters
        ----------
        arrays : mapping of names to arrays
            What `to_arrays` of a fitted layout gave.
        """
        k, angles = (float(value) for value in arrays["numbers"])
        anchors, places = arrays["anchors"], arrays["places"]
        made = cls(places.shape[1], n_neighbors=int(k), metric="cosine" if angles else "euclidean")
        made._anchors = Anchors(anchors, places)
        made.n_features_in_, made._n_features_out = anchors.shape[1], places.shape[1]
        return made


@dataclass
class Anchors:
    """Objects of the layout that new ones are placed by.

    Attributes
    ----------
    rows : (m, d) float32 array
    places : (m, n_components) float32 array
        Where they lie.
    """

    rows: NDArray[np.float32]
    places: NDArray[np.float32]
    _index: NeighbourIndex | None = field(default=None, compare=False)

    def place(self, X: NDArray[np.float32], k: int, threads: int) -> NDArray[np.float32]:
        """Where rows X lie: among their k nearest anchors; on an anchor that they are equal to."""
        if self._index is None:
            self._index = NeighbourIndex.build(self.rows, 0, threads)
        index = self._index
        where = self.places[index.order]
        places, squared = index.search(X, min(k, index.n), threads)
        found = _among(where, places, squared, threads)
        same = squared[:, 0] == 0
        found[same] = where[places[same, 0]]
        return found


@dataclass(frozen=True)
class Edges:
    """The neighbour graph: object i is joined with other[first[i] : first[i + 1]]."""

    first: NDArray[np.int64]
    other: NDArray[np.int32]
    weight: NDArray[np.float32]

    @classmethod
    def among(
        cls, places: NDArray[np.int32], squared: NDArray[np.float32], least: float, threads: int
    ) -> Edges:
        """Edges of weight `least` or more between objects and their k nearest."""
        n, k = places.shape
        p = np.empty((n, k), np.float32)
        starts = range(0, n, _BLOCK)
        run_parts(
            lambda lo: fuzzy_weights(squared[lo : lo + _BLOCK], p[lo : lo + _BLOCK]),
            starts,
            threads,
        )
        back, who = np.empty(n + 1, np.int64), np.empty(n * k, np.int32)
        reverse_lists(places, back, who)
        first = np.zeros(n + 1, np.int64)
        none = np.empty(0, np.int32), np.empty(0, np.float32)
        floor = np.float32(least)

        def fill(other: NDArray, weight: NDArray) -> None:
            run_parts(
                lambda lo: edges_of(
                    places, p, back, who, floor, lo, min(lo + _BLOCK, n), first, other, weight
                ),
                starts,
                threads,
            )

        fill(*none)
        np.cumsum(first, out=first)
        made = cls(first, np.empty(first[-1], np.int32), np.empty(first[-1], np.float32))
        fill(made.other, made.weight)
        return made

    def totals(self) -> NDArray[np.float32]:
        """s_i, the sum of each object's weights; every object has an edge of weight one."""
        return np.add.reduceat(self.weight, self.first[:-1])


def _start(rows: NDArray[np.float32], dim: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """The rows' principal components, and noise where there are not so many: (n, dim).

    A start from eigenvectors of the graph collapses where the graph has many small parts.
    """
    n, d = rows.shape
    some = rows if n <= _SOME else rows[np.sort(rng.choice(n, _SOME, replace=False))]
    _, axes = np.linalg.eigh(np.cov(some.T.astype(np.float64)).reshape(d, d))
    axes = axes[:, ::-1][:, :dim]
    # The sign of an eigenvector is arbitrary: its largest entry is made positive.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    Y = np.zeros((n, dim), np.float32)
    Y[:, : axes.shape[1]] = rows @ axes.astype(np.float32)
    Y *= EXTENT / max(float(np.abs(Y).max()), 1e-30)
    return Y + rng.normal(0, 1e-3, Y.shape).astype(np.float32)


def spread_out(
    Y: NDArray[np.float32], edges: Edges, epochs: int, rng: np.random.Generator, threads: int
) -> NDArray[np.float32]:
    """Positions after `epochs` steps, each shorter than the one before: (n, dim)."""
    n, dim = Y.shape
    now = np.zeros((n, -(-dim // 8) * 8), np.float32)
    now[:, :dim] = Y
    after, last = np.zeros_like(now), np.zeros_like(now)
    order = rng.permutation(n)
    Z = np.empty((dim, n), np.float32)
    turns = rng.integers(0, n, epochs)
    total = edges.totals()
    strangers = min(STRANGERS, n)
    starts = range(0, n, _BLOCK)
    for epoch in range(epochs):
        rate = np.float32(1.0 - epoch / epochs)

        def lay(lo: int, now: NDArray = now) -> None:
            scatter(now, order, lo, min(lo + _BLOCK, n), Z)

        def step(
            lo: int,
            now: NDArray = now,
            after: NDArray = after,
            epoch: int = epoch,
            rate: Any = rate,
        ) -> None:
            move(
                now, last, Z, after, edges.first, edges.other, edges.weight, total,
                lo, min(lo + _BLOCK, n), strangers, turns[epoch], np.float32(PUSH), rate,
                np.float32(KEEP),
            )  # fmt: skip

        run_parts(lay, starts, threads)
        run_parts(step, starts, threads)
        now, after = after, now
    return np.ascontiguousarray(now[:, :dim])


def _among(
    Y: NDArray[np.float32], places: NDArray, squared: NDArray, threads: int
) -> NDArray[np.float32]:
    """Means of the neighbours' positions Y[places], weighted as edges are: (m, dim)."""
    weight = np.empty(squared.shape, np.float32)
    found = np.empty((len(places), Y.shape[1]), np.float32)

    def mean(lo: int) -> None:
        here = slice(lo, lo + _BLOCK)
        fuzzy_weights(squared[here], weight[here])
        w = weight[here] / weight[here].sum(axis=1, keepdims=True)
        found[here] = np.einsum("ik,ikq->iq", w, Y[places[here]])

    run_parts(mean, range(0, len(places), _BLOCK), threads)
    return found

"""Where dissimilarities come from: attributes and a metric, a square matrix, or a list of pairs.

A source knows how many objects there are and gives the dissimilarity of any asked-for pairs, in
blocks; nothing of size n x n is ever made. Landmarks are a source of their own (`subset`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from evdist.data.pair_cache import PairCache
from evdist.data.sparse import SparseSource
from evdist.kernels.distances import METRICS, Metric, distances, pairwise
from evdist.kernels.vector import aligned_zeros, padded_width
from evdist.stores.fingerprints import fingerprint

#: Objects are counted in 32 bits.
_MAX_OBJECTS = 2**32

Objects = NDArray[np.uint32]


class Source(Protocol):
    """Dissimilarities on demand."""

    @property
    def n(self) -> int: ...

    @property
    def name(self) -> str: ...

    def distances(self, mine: Objects, others: Objects) -> NDArray[np.float32]:
        """Of objects `mine` (rows,) to `others` (rows, k)."""
        ...

    def cross(self, new: NDArray[Any], others: Objects) -> NDArray[np.float32]:
        """Of new objects (rows, ...), described as the fitted ones were, to `others` (rows, k)."""
        ...

    def fingerprint(self) -> str:
        """Tells whether two sources give the same dissimilarities."""
        ...

    def subset(self, objects: Objects) -> Source:
        """The same dissimilarities among some objects only, renumbered 0, 1, ..."""
        ...


@dataclass(frozen=True)
class AttributeSource:
    """Rows of numbers and a metric in compiled code."""

    table: NDArray[np.float32]
    metric: Metric

    @classmethod
    def of(cls, X: NDArray[Any], metric: str, n_threads: int = 1) -> AttributeSource:
        ready = Metric.of(X, metric)
        return cls(ready.table(X, n_threads), ready)

    @classmethod
    def of_rows(cls, rows: NDArray[np.float32], metric: Metric) -> AttributeSource:
        """From `rows` of another source with this metric."""
        n, d = rows.shape
        table = aligned_zeros(n, padded_width(d))
        table[:, :d] = rows
        return cls(table, metric)

    @property
    def n(self) -> int:
        return len(self.table)

    @property
    def name(self) -> str:
        return self.metric.name

    def distances(self, mine: Objects, others: Objects) -> NDArray[np.float32]:
        return distances(self.metric, self.table, others, self.table, mine)

    def cross(self, new: NDArray[Any], others: Objects) -> NDArray[np.float32]:
        table = self.metric.table(new)
        return distances(
            self.metric, self.table, others, table, np.arange(len(new), dtype=np.uint32)
        )

    def fingerprint(self) -> str:
        return fingerprint(self.name, self.table)

    def subset(self, objects: Objects) -> AttributeSource:
        return AttributeSource(np.ascontiguousarray(self.table[objects]), self.metric)

    @property
    def rows(self) -> NDArray[np.float32]:
        """The rows of the table without their padding, (n, d)."""
        return np.ascontiguousarray(self.table[:, : self.metric.width])

    def less_noise(self, reference: NDArray[Any], n_threads: int = 1) -> AttributeSource:
        """The same objects, compared less the noise floors that rows `reference` give them."""
        d = len(self.metric.centre)
        table = aligned_zeros(self.n, padded_width(d + 1))
        table[:, :d] = self.table[:, :d]
        against = np.ascontiguousarray(self.table[reference, :d])
        metric = replace(self.metric, reference=against)
        metric.set_floors(table, n_threads)
        return AttributeSource(table, metric)

    def __reduce__(self) -> tuple[Any, ...]:
        # Padding need not travel, and what arrives lies anywhere: rows go back on cache lines.
        return AttributeSource.of_rows, (self.rows, self.metric)


@dataclass(frozen=True)
class CallableSource:
    """Objects of any kind and a user's function of two of them, called once for each pair.

    `X` is (n, d), whose rows the function gets, or (n,), whose elements it gets: text, series of
    any length. An object's dissimilarity to itself is 0 and not asked for.
    """

    X: NDArray[Any]
    metric: Callable[[Any, Any], float]
    name: str = "callable"
    #: Numbers of these objects in the source that they were taken from, None for their own.
    numbers: NDArray[np.int64] | None = None
    known: PairCache = field(default_factory=PairCache)

    @property
    def n(self) -> int:
        return len(self.X)

    def distances(self, mine: Objects, others: Objects) -> NDArray[np.float32]:
        left, right = np.repeat(mine, others.shape[1]).astype(np.int64), others.ravel()
        numbers = np.arange(self.n) if self.numbers is None else self.numbers
        # Asked for (smaller, larger): an asymmetric function then gives one value per pair.
        a, b = np.minimum(numbers[left], numbers[right]), np.maximum(numbers[left], numbers[right])
        found, apart = np.zeros(len(left), np.float32), a != b

        def compute(i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[Any]:
            order = np.argsort(numbers)
            here = (order[np.searchsorted(numbers, part, sorter=order)] for part in (i, j))
            values = np.asarray(pairwise(self.metric, *(self.X[rows] for rows in here)))
            one, other = (part.astype(np.uint32) for part in (i, j))
            return check_dissimilarities(values, one, other[:, None])[:, 0]

        found[apart] = self.known.get(a[apart], b[apart], compute)
        return found.reshape(others.shape)

    def cross(self, new: NDArray[Any], others: Objects) -> NDArray[np.float32]:
        mine = np.arange(len(new), dtype=np.uint32)
        left = np.repeat(mine, others.shape[1])
        found = pairwise(self.metric, new[left], self.X[others.ravel()])
        return check_dissimilarities(found, mine, others)

    def fingerprint(self) -> str:
        function = getattr(self.metric, "__qualname__", type(self.metric).__qualname__)
        return fingerprint(self.name, function, self.X)

    def subset(self, objects: Objects) -> CallableSource:
        numbers = objects.astype(np.int64) if self.numbers is None else self.numbers[objects]
        return CallableSource(self.X[objects], self.metric, self.name, numbers, self.known)


@dataclass(frozen=True)
class MatrixSource:
    """A square matrix; the papers' symmetrisation (D + D') / 2 is made pair by pair."""

    D: NDArray[Any]
    #: Columns of the whole matrix that these objects are, None for all of them; and its width.
    columns: Objects | None = None
    size: int = 0
    name: str = "precomputed"

    @classmethod
    def of(cls, D: NDArray[Any]) -> MatrixSource:
        if D.ndim != 2 or D.shape[0] != D.shape[1]:
            raise ValueError(
                f"A dissimilarity matrix must be square, got shape {D.shape}. "
                "For attributes leave out metric='precomputed'."
            )
        _refuse_bad_entries(D)
        if not np.allclose(D, D.T, rtol=1e-7, atol=0):
            i, j = np.argwhere(~np.isclose(D, D.T, rtol=1e-7, atol=0))[0]
            warnings.warn(
                f"The dissimilarity matrix is not symmetric (D[{i}, {j}] = {D[i, j]:g}, "
                f"D[{j}, {i}] = {D[j, i]:g}); (D + D') / 2 is used.",
                stacklevel=5,
            )
        return cls(D, None, len(D))

    @property
    def n(self) -> int:
        return len(self.D)

    def distances(self, mine: Objects, others: Objects) -> NDArray[np.float32]:
        i = mine[:, None]
        return (0.5 * (self.D[i, others] + self.D[others, i])).astype(np.float32)

    def cross(self, new: NDArray[Any], others: Objects) -> NDArray[np.float32]:
        if new.shape[1] != self.size:
            raise ValueError(
                f"New objects need their dissimilarities to all {self.size} fitted objects, got "
                f"{new.shape[1]} columns."
            )
        _refuse_bad_entries(new)
        rows = np.arange(len(new))[:, None]
        mine = others if self.columns is None else self.columns[others]
        return new[rows, mine].astype(np.float32)

    def fingerprint(self) -> str:
        return fingerprint(self.name, self.D)

    def subset(self, objects: Objects) -> MatrixSource:
        return MatrixSource(self.D[np.ix_(objects, objects)], objects, self.size)


def _refuse_bad_entries(D: NDArray[Any]) -> None:
    bad = ~np.isfinite(D) | (D < 0)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise ValueError(
            f"Dissimilarities must be finite and non-negative, but D[{i}, {j}] = {D[i, j]}. "
            "Correct or remove that object; for similarities pass 1 - S or S.max() - S."
        )


def check_dissimilarities(
    found: NDArray[Any], mine: Objects, others: Objects
) -> NDArray[np.float32]:
    """What a user's function gave, (rows, k); refused, naming the pair, if it must not be."""
    if found.size != others.size:
        raise ValueError(
            f"metric must give one number for two rows, got an array of shape {found.shape[1:]}."
        )
    D = found.reshape(others.shape).astype(np.float32)
    bad = ~np.isfinite(D) | (D < 0)
    if bad.any():
        r, t = np.argwhere(bad)[0]
        raise ValueError(
            "Dissimilarities must be finite and non-negative, but the metric gave "
            f"{D[r, t]} for objects {mine[r]} and {others[r, t]}."
        )
    return D


@dataclass(frozen=True)
class PairList:
    """Dissimilarities known for some pairs only, as symmetric compressed rows."""

    n: int
    first: NDArray[np.int64]
    other: NDArray[np.uint32]
    D: NDArray[np.float32]
    name: str = "pairs"

    def fingerprint(self) -> str:
        return fingerprint(self.name, self.first, self.other, self.D)


def pair_list(i: NDArray[Any], j: NDArray[Any], d: NDArray[Any], n: int) -> PairList:
    """Pairs (i, j, d) given once or twice; two different values of one pair are averaged."""
    i, j, d = np.asarray(i), np.asarray(j), np.asarray(d, dtype=float)
    bad = ~np.isfinite(d) | (d < 0)
    if bad.any():
        t = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"Dissimilarities must be finite and non-negative, but pair ({i[t]}, {j[t]}) has "
            f"{d[t]}."
        )
    keep = i != j
    low, high = np.minimum(i, j)[keep].astype(np.int64), np.maximum(i, j)[keep].astype(np.int64)
    key, where = np.unique(low * n + high, return_inverse=True)
    mean = np.bincount(where, d[keep]) / np.bincount(where)
    low, high = key // n, key % n
    rows, cols = np.concatenate([low, high]), np.concatenate([high, low])
    by_row = np.lexsort((cols, rows))
    count = np.bincount(rows, minlength=n)
    if not count.all():
        alone = int(np.flatnonzero(count == 0)[0])
        raise ValueError(
            f"Object {alone} has no dissimilarity to any other; give it at least one or leave it "
            "out."
        )
    first = np.concatenate([[0], np.cumsum(count)])
    both = np.concatenate([mean, mean]).astype(np.float32)
    return PairList(n, first, cols[by_row].astype(np.uint32), both[by_row])


#: Names that scikit-learn has for some of them.
_OTHER_NAMES = {"manhattan": "cityblock", "l1": "cityblock", "l2": "euclidean"}


def known_metric(metric: object) -> str:
    """`metric` if it is one of ours, else an error that lists them."""
    if not isinstance(metric, str) or metric not in METRICS:
        own = _OTHER_NAMES.get(metric) if isinstance(metric, str) else None
        here = f", which is {own} here" if own else ""
        raise ValueError(
            f"metric must be one of {', '.join(sorted(METRICS))}, precomputed, pairs (EVCLUS also "
            f"takes auto, geodesic and layout), or a callable, got {metric!r}{here}."
        )
    return metric


def is_pair_list(X: Any, metric: Any) -> bool:
    """A square sparse matrix, unless the metric is the cosine, or three columns i, j, d with
    metric="pairs"."""
    if sp.issparse(X):
        return X.shape[0] == X.shape[1] and metric != "cosine"
    return isinstance(metric, str) and metric == "pairs"


def make_source(X: Any, metric: Any, n_threads: int = 1) -> Source | PairList:
    """The source of dissimilarities that X and `metric` describe."""
    if sp.issparse(X):
        return _sparse_pairs(X, metric) if is_pair_list(X, metric) else SparseSource.of(X, metric)
    if isinstance(metric, str) and metric == "pairs":
        return _listed_pairs(X)
    if isinstance(metric, str) and metric == "precomputed":
        return MatrixSource.of(np.asarray(X, dtype=float))
    if callable(metric):
        return CallableSource(X if isinstance(X, np.ndarray) else np.asarray(X), metric)
    return AttributeSource.of(X, known_metric(metric), n_threads)


def _sparse_pairs(X: Any, metric: Any) -> PairList:
    """The pairs that a sparse matrix stores; they must look like it unless the metric says so."""
    coo = X.tocoo()
    if not (isinstance(metric, str) and metric in ("precomputed", "pairs")):
        _refuse_sparse_attributes(coo)
    return pair_list(coo.row, coo.col, coo.data, X.shape[0])


def _refuse_sparse_attributes(X: Any) -> None:
    """A square matrix with a diagonal, or with two values of one pair, is no dissimilarity."""
    i, j, value = np.asarray(X.row), np.asarray(X.col), np.asarray(X.data, dtype=float)
    on = np.flatnonzero((i == j) & (value != 0))
    why = f"X[{i[on[0]]}, {i[on[0]]}] = {value[on[0]]:g} on its diagonal" if len(on) else ""
    if not why:
        there = sp.csr_array((value, (i, j)), shape=X.shape)
        both = (there != 0).multiply((there != 0).T)
        unlike = (abs(there - there.T) > 1e-6 * abs(there)).multiply(both).tocoo()
        if unlike.nnz:
            a, b = int(unlike.row[0]), int(unlike.col[0])
            why = f"X[{a}, {b}] = {there[a, b]:g}, X[{b}, {a}] = {there[b, a]:g}"
    if why:
        raise ValueError(
            f"A sparse square X is taken for dissimilarities of pairs, but this one has {why}. For "
            "attributes pass X.toarray(); for dissimilarities pass metric='precomputed', which "
            "takes the mean of both."
        )


def _listed_pairs(X: Any) -> PairList:
    table = np.asarray(X, dtype=float)
    if table.ndim != 2 or table.shape[1] != 3:
        raise ValueError(
            f"metric='pairs' needs rows (i, j, dissimilarity), got shape {table.shape}."
        )
    if not len(table):
        raise ValueError("The pair list is empty; it needs rows (i, j, dissimilarity).")
    ids = table[:, :2]
    bad = ~((ids == np.floor(ids)) & (ids >= 0) & (ids < _MAX_OBJECTS)).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        i, j = ids[row].tolist()
        raise ValueError(
            f"Row {row} of the pair list names objects {i:g} and {j:g}; objects are numbered "
            "0, 1, 2, ..."
        )
    i, j = ids.astype(np.int64).T
    return pair_list(i, j, table[:, 2], int(ids.max()) + 1)

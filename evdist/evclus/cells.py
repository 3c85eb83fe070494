"""The preliminary partition of thousands of clusters: a sample cut into cells first.

The stages are those of `evdist.evclus.groups`, whose cost grows with the square of c: of 200,000
objects in 10,000 clusters they took longer than ten minutes, and gigabytes. Here about sqrt(c)
cells are cut by k-means, small groups are found in each cell alone, Ward's method merges
neighbours only, and Lloyd's iterations go over blocks of rows on threads. The same for any number
of threads: a cell or a block is the work of one.

Symbols
-------
c, q    clusters, small groups
S       (s, d) the sample
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import ceil, sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from threadpoolctl import threadpool_limits

from evdist.evclus.means import Means

#: From so many clusters on.
CELLS_FROM = 1500
#: Objects by cell that these are cut on.
_BY_CELL = 200
#: Lloyd's iterations for small groups and from the merged means at most, and here.
LLOYD, LLOYD_END, _LLOYD_END = 10, 30, 5
#: Small groups by cluster. ARI of the groups of 60,000 objects in 3,000 clusters: .953 with 2, .985
#: with 4, .992 with 6, in 8, 10 and 12 s.
_SMALL_PER_CLUSTER = 4
#: Small groups that one may be merged with.
_NEIGHBOURS = 10

#: Means, and the groups of the sample.
Found = tuple[Means, NDArray[np.int64]]
T = TypeVar("T")


def groups_by_cells(
    S: NDArray[np.float32], c: int, state: int, n_threads: int
) -> tuple[Found, Found]:
    """The merged small groups of a sample, and those of Lloyd's iterations from their means."""
    cell = _cells(S, ceil(sqrt(c)), state, n_threads)
    V, theirs = _small(S, cell, _SMALL_PER_CLUSTER * c, state, n_threads)
    count = np.bincount(theirs, minlength=len(V))
    merged = Means(V.astype(np.float32), _merged(V, c), count.astype(float))
    single, labels = _lloyd(S, merged.middles(), n_threads)
    return (merged, merged.group[theirs]), (single, labels)


def numbered_by_cells(means: Means) -> Means:
    """The same groups, near ones next to each other: cell after cell, and within each."""
    middles = means.middles()
    cell = _cells(middles.astype(np.float32), ceil(sqrt(len(middles))), 0, 1)
    found = [np.flatnonzero(cell == g) for g in np.unique(cell)]
    centres = np.array([middles[mine].mean(axis=0) for mine in found])
    order = np.concatenate([found[g][_leaves(middles[found[g]])] for g in _leaves(centres)])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return replace(means, group=rank[means.group])


def _leaves(V: NDArray) -> NDArray[np.int64]:
    """The order of the leaves of the average linkage."""
    if len(V) <= 2:
        return np.arange(len(V))
    return leaves_list(linkage(V, "average")).astype(np.int64)


def _cells(S: NDArray[np.float32], count: int, state: int, n_threads: int) -> NDArray[np.int64]:
    """The cell of each row, by k-means on some of them."""
    from sklearn.cluster import KMeans, kmeans_plusplus  # loads for a second

    rng = np.random.default_rng(state)
    some = S[rng.choice(len(S), min(len(S), _BY_CELL * count), replace=False)]
    count = min(count, len(np.unique(some, axis=0)))
    seeds, _ = kmeans_plusplus(some, count, random_state=state, n_local_trials=1)
    found = KMeans(count, init=seeds, n_init=1, max_iter=LLOYD).fit(some)
    return _nearest(Means.single(found.cluster_centers_), S, n_threads)


def _small(
    S: NDArray[np.float32], cell: NDArray, q: int, state: int, n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Means of about q small groups, each cell with its share of them, and the group of each row.

    Every group has objects.
    """
    from sklearn.cluster import KMeans, kmeans_plusplus  # loads for a second

    order = np.argsort(cell, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(cell))[:-1])

    def find(g: int) -> tuple[NDArray, NDArray]:
        X = S[parts[g]]
        share = min(max(1, round(q * len(X) / len(S))), len(np.unique(X, axis=0)))
        # What is set for one thread does not hold for those that it starts.
        with threadpool_limits(1):
            seeds, _ = kmeans_plusplus(X, share, random_state=state, n_local_trials=1)
            small = KMeans(share, init=seeds, n_init=1, max_iter=LLOYD).fit(X)
        used, theirs = np.unique(small.labels_, return_inverse=True)
        return small.cluster_centers_[used].astype(float), theirs

    found = _each(find, [g for g, mine in enumerate(parts) if len(mine)], n_threads)
    first = np.concatenate([[0], np.cumsum([len(V) for V, _ in found])])
    labels = np.empty(len(S), np.int64)
    filled = [mine for mine in parts if len(mine)]
    for mine, lo, (_, theirs) in zip(filled, first, found, strict=False):
        labels[mine] = lo + theirs
    return np.concatenate([V for V, _ in found]), labels


def _merged(V: NDArray[np.float64], c: int) -> NDArray[np.int64]:
    """Ward's method among neighbours: the group of each mean."""
    if len(V) <= c:
        return np.arange(len(V))
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.neighbors import kneighbors_graph

    graph = kneighbors_graph(V, min(_NEIGHBOURS, len(V) - 1))
    ward = AgglomerativeClustering(c, linkage="ward", connectivity=graph.maximum(graph.T))
    return np.asarray(ward.fit(V).labels_, dtype=np.int64)


def _lloyd(S: NDArray[np.float32], V: NDArray[np.float64], n_threads: int) -> Found:
    """Lloyd's iterations from means V; a mean without objects stays where it is."""
    labels = np.full(len(S), -1)
    for _ in range(_LLOYD_END):
        before, labels = labels, _nearest(Means.single(V), S, n_threads)
        if np.array_equal(before, labels):
            break
        count = np.bincount(labels, minlength=len(V))
        sums = np.column_stack([np.bincount(labels, x, len(V)) for x in S.astype(float).T])
        V = np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], V)
    return Means.single(V), _nearest(Means.single(V), S, n_threads)


def _nearest(means: Means, S: NDArray[np.float32], n_threads: int) -> NDArray[np.int64]:
    step = means.rows_at_once
    parts = _each(lambda i: means.nearest(S[i : i + step]), range(0, len(S), step), n_threads)
    return np.concatenate(parts)


def _each(work: Callable[[int], T], numbers: list[int] | range, n_threads: int) -> list[T]:
    """`work(i)` of every number, on threads."""
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, numbers))

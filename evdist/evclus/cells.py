"""The preliminary partition of thousands of clusters: a sample cut into cells first.

The stages are those of `evdist.evclus.groups`, whose cost grows with the square of c: a fit of
60,000 objects in 3,000 clusters took 44 s with them, and takes 12 s with cells. Here about sqrt(c)
cells are cut by k-means, small groups are found in each cell alone, Ward's method merges
neighbours only, and Lloyd's iterations go over blocks of rows on threads. The same for any number
of threads: a cell or a block is the work of one.

Symbols
-------
c, q    clusters, small groups
S       (s, d) the sample
"""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from evdist.evclus.means import LLOYD, Means, leaves
from evdist.evclus.outlying import Attempt
from evdist.evclus.sampling import run_blocks
from evdist.kernels.seeding import seed_rows

#: Sampled objects for each cell when the cells are cut.
_BY_CELL = 200
#: Lloyd's iterations from the merged means at most: ten gave the same ARI.
_LLOYD_END = 5
#: Small groups by cluster. ARI of the groups of 60,000 objects in 3,000 clusters: .953 with 2, .985
#: with 4, .992 with 6, in 8, 10 and 12 s.
_SMALL_PER_CLUSTER = 4
#: Small groups that one may be merged with.
_NEIGHBOURS = 10

#: Means, and the groups of the sample.
Found = tuple[Means, NDArray[np.int64]]


def merged_by_cells(S: NDArray[np.float32], c: int, state: int, n_threads: int) -> Attempt[Found]:
    """Small groups of a sample, each of one cell, merged by Ward's method."""
    cell = _cells(S, ceil(sqrt(c)), state, n_threads)
    V, theirs = _small(S, cell, _SMALL_PER_CLUSTER * c, state, n_threads)
    count = np.bincount(theirs, minlength=len(V))
    merged = Means(V.astype(np.float32), _merged(V, c), count.astype(float))
    return Attempt((merged, merged.group[theirs]), count, merged.group, lambda: theirs)


def numbered_by_cells(means: Means) -> Means:
    """The same groups, near ones next to each other: cell after cell, and within each."""
    middles = means.middles()
    cell = _cells(middles.astype(np.float32), ceil(sqrt(len(middles))), 0, 1)
    found = [np.flatnonzero(cell == g) for g in np.unique(cell)]
    centres = np.array([middles[mine].mean(axis=0) for mine in found])
    order = [found[g][leaves(middles[found[g]])] for g in leaves(centres)]
    return means.in_order(np.concatenate(order))


def _cells(S: NDArray[np.float32], count: int, state: int, n_threads: int) -> NDArray[np.int64]:
    """The cell of each row, by k-means on some of them."""
    from sklearn.cluster import KMeans  # loads for a second

    rng = np.random.default_rng(state)
    some = S[rng.choice(len(S), min(len(S), _BY_CELL * count), replace=False)]
    count = min(count, len(np.unique(some, axis=0)))
    seeds = seed_rows(some, count, state)
    found = KMeans(count, init=seeds, n_init=1, max_iter=LLOYD).fit(some)
    return Means.single(found.cluster_centers_).labels(S, n_threads)


def _small(
    S: NDArray[np.float32], cell: NDArray, q: int, state: int, n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Means of about q small groups, each cell with its share of them, and the group of each row.

    Every group has objects.
    """
    from sklearn.cluster import KMeans  # loads for a second

    order = np.argsort(cell, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(cell[order])) + 1)
    means: list[NDArray[np.float64]] = [np.empty(0)] * len(parts)
    labels = np.empty(len(S), np.int64)

    def find(g: int) -> None:
        X = S[parts[g]]
        share = min(max(1, round(q * len(X) / len(S))), len(np.unique(X, axis=0)))
        # What is set for one thread does not hold for those that it starts.
        with threadpool_limits(1):
            seeds = seed_rows(X, share, state)
            small = KMeans(share, init=seeds, n_init=1, max_iter=LLOYD).fit(X)
        used, labels[parts[g]] = np.unique(small.labels_, return_inverse=True)
        means[g] = small.cluster_centers_[used].astype(float)

    run_blocks(find, range(len(parts)), n_threads)
    count = 0
    for mine, V in zip(parts, means, strict=True):
        labels[mine] += count
        count += len(V)
    return np.concatenate(means), labels


def _merged(V: NDArray[np.float64], c: int) -> NDArray[np.int64]:
    """Ward's method among neighbours: the group of each mean."""
    if len(V) <= c:
        return np.arange(len(V))
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.neighbors import kneighbors_graph

    graph = kneighbors_graph(V, min(_NEIGHBOURS, len(V) - 1))
    ward = AgglomerativeClustering(c, linkage="ward", connectivity=graph.maximum(graph.T))
    return np.asarray(ward.fit(V).labels_, dtype=np.int64)


def smoothed_by_blocks(S: NDArray[np.float32], merged: Means, n_threads: int) -> Found:
    """Lloyd's iterations from the means of merged groups; one without objects stays as it is."""
    V, labels = merged.middles(), np.full(len(S), -1)
    for _ in range(_LLOYD_END):
        before, labels = labels, Means.single(V).labels(S, n_threads)
        if np.array_equal(before, labels):
            break
        count = np.bincount(labels, minlength=len(V))
        sums = np.column_stack([np.bincount(labels, x, len(V)) for x in S.astype(float).T])
        V = np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], V)
    single = Means.single(V)
    return single, single.labels(S, n_threads)

"""A preliminary partition: where a fit with many clusters starts, and which partners are near.

With many clusters the landmarks solved from seeds end in poor minima, and k uniform partners hold
hardly any of an object's own cluster. Both are mended by a rough partition of all objects, made
from a sample: many small groups (k-means), merged by Ward's method. An object goes to the group of
the nearest small one, or, after Lloyd's iterations from the merged means, to that of the nearest
mean: the former follows clusters of any shape, the latter is smoother; the likelihood of the sample
chooses. Where there is no mean, the sample's own dissimilarities are clustered and medoids stand
for the groups. What lies apart is left out (`evdist.evclus.outlying`). Groups are numbered so that
near groups have near numbers. Thousands of clusters are found cell by cell (`evdist.evclus.cells`).

The same for any number of threads: libraries run on one, and blocks of rows have a fixed size.

Symbols
-------
c, q    clusters, small groups
S       (s, d) the sample
V       (p, d) means: an object belongs to the group of the nearest
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import cluster as trees
from scipy import spatial
from threadpoolctl import threadpool_limits

from evdist.data.sources import AttributeSource, Source
from evdist.evclus.cells import (
    Found,
    merged_by_cells,
    numbered_by_cells,
    smoothed_by_blocks,
)
from evdist.evclus.means import CELLS_FROM, LLOYD, LLOYD_END, Means
from evdist.evclus.outlying import Attempt, group_again
from evdist.evclus.sampling import run_blocks, sorted_by_label
from evdist.kernels.distances import METRICS
from evdist.kernels.seeding import seed_rows

#: Objects that the groups are found on: enough to know each cluster by dozens.
MIN_SAMPLE, SAMPLE_PER_CLUSTER = 6000, 60
#: Of a sample without means.
MIN_MEDOID_SAMPLE = 2000
#: Small groups of each cluster before they are merged, as long as they are not too many: 8 find
#: clusters of unequal size and shape that 2 and k-means itself miss.
SMALL_PER_CLUSTER, MOST_SMALL = 8, 2000
#: Objects of a sample without means: all its dissimilarities are held.
MOST_MEDOID_SAMPLE = 4000
MEDOID_ROUNDS = 5
_BLOCK = 4096
#: d0 of a fit with many clusters, in units of what 95 % of the pairs inside a group stay below.
D0_FACTOR, D0_QUANTILE = 2.0, 0.95
#: Mass on the own group in the first masses; the rest is on Omega. With 0.75 the first sweeps have
#: to undo the ignorance, and end in worse minima.
START = 0.95
#: Objects by cluster and attribute in a sample that can tell the shapes of clusters.
SHAPE_SAMPLE = 4
#: Added to their variances, in units of that of the sample.
SHAPE_RIDGE = 1e-3
#: From so many clusters on, rows are lists of clusters: below, dense rows are faster.
SPARSE_FROM = 25
#: Fewer clusters than this are found by landmarks, whatever k is.
MANY = 13
#: Fewer uniform partners than this in the own cluster cannot tell what it is.
OWN_PARTNERS = 8


@dataclass(frozen=True)
class Groups:
    """A partition of all objects: labels (n,), and one object of each group near its middle.

    `means`, where there are any, are those that an object is compared with; `apart` is the share of
    the sample that was left out when they were found.
    """

    labels: NDArray[np.int32]
    middle: NDArray[np.uint32]
    means: Means | None = None
    apart: float = 0.0

    @property
    def count(self) -> int:
        return len(self.middle)


def near_share(k: int, c: int) -> float:
    """The share of near partners: none where uniform ones know the own cluster, else one half."""
    return 0.5 if c >= MANY and k < OWN_PARTNERS * c else 0.0


def find_groups(source: Source, n_clusters: int, seed: int, n_threads: int = 1) -> Groups:
    """A preliminary partition into `n_clusters` groups (fewer where objects are equal)."""
    with threadpool_limits(1):
        if isinstance(source, AttributeSource) and METRICS[source.name][0] == "squares":
            return _by_means(source, n_clusters, seed, n_threads)
        return _by_medoids(source, n_clusters, seed, n_threads)


def resolution(source: Source, groups: Groups, seed: int) -> float:
    """d0 from the preliminary partition: where pairs of one group end, twice as far.

    Twice the 95 % quantile of the dissimilarities inside groups was within .01 of the best of
    five factors on Gaussians of 2, 10 and 16 dimensions and on a2, a3, d31, s1, s2. Pairs with one
    that lies apart do not count: they are taken to be the longest.
    """
    rng = np.random.default_rng([seed, 29])
    mine = rng.integers(0, source.n, 4000)
    order = sorted_by_label(groups.labels)
    first = np.searchsorted(groups.labels[order], np.arange(groups.labels.max() + 2))
    mine_group = groups.labels[mine]
    size = first[mine_group + 1] - first[mine_group]
    place = first[mine_group][:, None] + (rng.random((len(mine), 10)) * size[:, None]).astype(int)
    others = order[place]
    D = source.distances(mine.astype(np.uint32), others.astype(np.uint32))
    known = D[others != mine[:, None]]
    within = D0_QUANTILE * (1.0 - groups.apart) ** 2
    reach = float(np.quantile(known, within)) if known.size else 0.0
    squared = METRICS.get(source.name, ("", "root"))[1] in ("none", "half")
    squared &= METRICS.get(source.name, ("", ""))[0] == "squares"
    return reach * (D0_FACTOR**2 if squared else D0_FACTOR)


# ---------------------------------------------------------------------- with means
def _by_means(source: AttributeSource, c: int, seed: int, n_threads: int) -> Groups:
    rng, some = sample_of(source.n, c, seed)
    d = len(source.metric.centre)
    S = np.ascontiguousarray(source.table[some, :d])
    state = int(rng.integers(2**31 - 1))
    with warnings.catch_warnings():
        # Fewer different groups than asked for, and sweeps that were not enough: both are fine.
        warnings.simplefilter("ignore")
        if c < CELLS_FROM:
            merged, kept = group_again(len(S), c, lambda rows: _merged(S[rows], c, state))
            means = likelier(S[kept], merged, _smoothed(S[kept], merged[0])).numbered()
        else:
            merged, kept = group_again(
                len(S), c, lambda rows: merged_by_cells(S[rows], c, state, n_threads)
            )
            smoothed = smoothed_by_blocks(S[kept], merged[0], n_threads)
            means = numbered_by_cells(likelier(S[kept], merged, smoothed))
    labels = means.labels(source.table[:, :d], n_threads).astype(np.int32)
    apart = 1.0 - len(kept) / len(S)
    return Groups(labels, means.middle_objects(some, S, labels[some]), means, apart)


def _merged(S: NDArray, c: int, state: int) -> Attempt[Found]:
    """Small groups of a sample, merged by Ward's method."""
    from sklearn.cluster import KMeans  # loads for a second

    q = min(small_groups(c), len(np.unique(S, axis=0)))
    small = KMeans(q, init=seed_rows(S, q, state), n_init=1, max_iter=LLOYD).fit(S)
    used, theirs, count = np.unique(small.labels_, return_inverse=True, return_counts=True)
    merged = Means.merged(small.cluster_centers_[used], count, c)
    return Attempt((merged, merged.group[theirs]), count, merged.group, lambda: theirs)


def _smoothed(S: NDArray, merged: Means) -> Found:
    """Lloyd's iterations from the means of merged groups."""
    from sklearn.cluster import KMeans

    found = KMeans(merged.count, init=merged.middles(), n_init=1, max_iter=LLOYD_END).fit(S)
    return Means.single(found.cluster_centers_), found.labels_


def likelier(S: NDArray, merged: Found, single: Found) -> Means:
    """Of two partitions, with the labels of the sample, that under which it is likelier.

    Every group is a Gaussian of its own shape. Both partitions have as many groups, so that the
    likelihoods compare. Where objects are too few to tell the shapes, `single`.
    """
    c, d = single[0].count, S.shape[1]
    if len(S) < SHAPE_SAMPLE * d * c or merged[0].count != c:
        return single[0]
    better = _likelihood(S, merged[1]) > _likelihood(S, single[1])
    return merged[0] if better else single[0]


def _likelihood(S: NDArray, labels: NDArray) -> float:
    """sum_g n_g (log n_g - log |Sigma_g| / 2): the classification likelihood but for constants."""
    count = np.bincount(labels)
    parts = np.split(S[np.argsort(labels, kind="stable")].astype(float), np.cumsum(count)[:-1])
    # A group on a line would have any likelihood.
    ridge = SHAPE_RIDGE * float(S.var(axis=0, dtype=float).mean()) * np.eye(S.shape[1])
    apart = [x - x.mean(axis=0) for x in parts if len(x)]
    shape = np.array([x.T @ x / len(x) for x in apart]) + ridge
    count = count[count > 0]
    return float(count @ (np.log(count) - np.linalg.slogdet(shape)[1] / 2))


def sample_of(n: int, c: int, seed: int) -> tuple[np.random.Generator, NDArray[np.int64]]:
    """The objects that groups with means are found on, and what is drawn with after them."""
    rng = np.random.default_rng([seed, 31, n])
    count = min(n, max(MIN_SAMPLE, SAMPLE_PER_CLUSTER * c))
    return rng, np.sort(rng.choice(n, count, replace=False))


def small_groups(c: int) -> int:
    """q, the number of small groups before they are merged."""
    return min(SMALL_PER_CLUSTER * c, max(MOST_SMALL, 2 * c))


# ---------------------------------------------------------------------- without means
def _by_medoids(source: Source, c: int, seed: int, n_threads: int) -> Groups:
    rng = np.random.default_rng([seed, 31, source.n])
    count = min(
        source.n, max(MIN_MEDOID_SAMPLE, min(SAMPLE_PER_CLUSTER * c, MOST_MEDOID_SAMPLE), 2 * c)
    )
    some = np.sort(rng.choice(source.n, count, replace=False)).astype(np.uint32)
    D = source.distances(some, np.tile(some, (count, 1))).astype(float)
    D = np.maximum(D, D.T)
    np.fill_diagonal(D, 0.0)

    def attempt(rows: NDArray[np.int64]) -> Attempt[NDArray[np.int64]]:
        tree = trees.hierarchy.linkage(
            spatial.distance.squareform(D[np.ix_(rows, rows)], checks=False), "ward"
        )
        group = trees.hierarchy.fcluster(tree, c, "maxclust").astype(np.int64) - 1
        small = trees.hierarchy.fcluster(tree, small_groups(c), "maxclust").astype(np.int64) - 1
        of_small = np.empty(small.max() + 1, np.int64)
        of_small[small] = group  # a cut farther down the tree: each lies in one group
        return Attempt(group, np.bincount(small), of_small, lambda: small)

    group, kept = group_again(count, c, attempt)
    some, D = some[kept], D[np.ix_(kept, kept)]
    for _ in range(MEDOID_ROUNDS):
        medoids = _medoids(D, group)
        group = D[:, medoids].argmin(axis=1)
    medoids = _medoids(D, group)
    if len(medoids) > 2:
        between = spatial.distance.squareform(D[np.ix_(medoids, medoids)], checks=False)
        medoids = medoids[trees.hierarchy.leaves_list(trees.hierarchy.linkage(between, "average"))]
    middle = some[medoids]
    labels = np.empty(source.n, np.int32)

    def fill(lo: int) -> None:
        mine = np.arange(lo, min(lo + _BLOCK, source.n), dtype=np.uint32)
        to = source.distances(mine, np.tile(middle, (len(mine), 1)))
        labels[lo : lo + len(mine)] = to.argmin(axis=1)

    run_blocks(fill, range(0, source.n, _BLOCK), n_threads)
    return Groups(labels, middle, apart=1.0 - len(kept) / count)


def _medoids(D: NDArray, group: NDArray) -> NDArray[np.int64]:
    """Of each group that has objects the one that is nearest to the others in sum."""
    found = []
    for g in np.unique(group):
        mine = np.flatnonzero(group == g)
        found.append(mine[D[np.ix_(mine, mine)].sum(axis=0).argmin()])
    return np.array(found)

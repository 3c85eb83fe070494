"""Which d0 tells the clusters apart: judged on a few hundred objects, without labels.

A small d0 makes near objects conflict and everyone an outlier; a large one joins what is apart.
Where clusters are round and equal, the stress itself says which d0 is right. Where they are long,
curved or of unequal density it does not: Euclidean distances within such a cluster exceed those to
the next one. The way along the data does not have that fault. So three sets of dissimilarities of
the same objects are clustered, for every d0 that is tried: those given, and, unless most d0 give
one and the same partition in these, two sums along the neighbour graph, of the steps to the powers
2 and 4 (`along`). The partition that explains its own dissimilarities best, and cuts the neighbour
graph least, is the reference; and d0 is the one whose partition, in the dissimilarities given,
agrees most with the reference and with those of the next smaller and larger d0, and better uses
every cluster. What was measured stands in docs/decisions/d0-auto.md.

Symbols
-------
D       (m, m) dissimilarities of all m objects of the trial
G       (m, m) neighbour graph: 1 where one of two objects is among the other's K nearest
p       power of a step along the graph; Groisman, Jonckheere, Sapienza (2022), Fermat distance
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from evdist.belief import FocalSets, contour, nonspecificity

#: K, neighbours of an object in the graph.
NEIGHBOURS = 10
#: Powers of the steps along the graph that are tried beside the dissimilarities themselves.
POWERS = (2.0, 4.0)
#: Weight of the agreement with the partitions of the next smaller and larger d0; that with the
#: reference has the rest.
STEADY = 1 / 3
#: Agreements this close to the best count as equal.
TIE = 0.005
#: Misfits this close count as equal, of partitions that are the same but for objects on borders:
#: their adjusted Rand index is at least SAME.
MISFIT_TIE, SAME = 0.05, 0.85
#: By so much a partition along the graph must fit better than one in the dissimilarities given,
#: and be another one: an adjusted Rand index of ANOTHER or more says that it is not.
HANDICAP, ANOTHER = 0.01, 0.9
#: So many d0 that give the same partition, with this adjusted Rand index, settle it.
SETTLED, UNMOVED = 7, 0.98
#: A d0 that calls a larger share of the objects outliers is not taken where another calls fewer so.
MOST_OUTLIERS = 0.9
#: Objects of the smallest cluster, as a share of the mean, below which a cluster counts as unused,
#: and what that takes from the agreement: a tiny cluster may be missed on the sample alone.
UNUSED, UNUSED_COST = 0.05, 0.1


def neighbours(D: NDArray, K: int = NEIGHBOURS) -> sparse.csr_array:
    """G: one where one of two objects is among the K nearest of the other; (m, m)."""
    m = len(D)
    K = min(K, m - 1)
    apart = D + np.diag(np.full(m, np.inf))
    near = np.argpartition(apart, K - 1, axis=1)[:, :K]
    rows = np.repeat(np.arange(m), K)
    graph = sparse.csr_array((np.ones(m * K), (rows, near.ravel())), shape=(m, m))
    return graph.maximum(graph.T.tocsr())


def along(
    D: NDArray, graph: sparse.csr_array, powers: Sequence[float] = POWERS
) -> Iterator[NDArray[np.float64]]:
    """The least sum of step^p over paths in the graph, to the power 1 / p: (m, m) for each p.

    The least spanning tree joins the parts of the graph: a gap counts as one long step.
    """
    # In units of a typical step, so that powers neither overflow nor vanish; copies stay apart by
    # next to nothing, since a sparse matrix takes zero for no edge.
    known = D[D > 0]
    unit = float(np.median(known)) if known.size else 1.0
    steps = np.maximum(D / unit, 1e-9).astype(float)
    tree = sparse.csr_array(csgraph.minimum_spanning_tree(sparse.csr_array(steps)))
    edges = (graph + tree + tree.T).tocoo()
    for p in powers:
        length = steps[edges.row, edges.col] ** p
        paths = sparse.csr_array((length, (edges.row, edges.col)), shape=D.shape)
        # Every edge is there in both directions, so that "directed" finds the same sums, faster.
        yield unit * csgraph.shortest_path(paths, method="D", directed=True) ** (1.0 / p)


def modularity(labels: NDArray, graph: sparse.csr_array) -> float:
    """Share of the graph's edges within clusters, less that of random edges; Newman (2004)."""
    edges = graph.tocoo()
    within = float((labels[edges.row] == labels[edges.col]).mean())
    ends = np.bincount(labels, weights=np.asarray(graph.sum(axis=1)).ravel()) / graph.nnz
    return within - float((ends**2).sum())


def misfit(
    mass: NDArray,
    objective: float,
    spread: float,
    focal_sets: FocalSets,
    graph: sparse.csr_array,
) -> float:
    """N* + J / var(delta) - Q: what masses leave open, leave unexplained, and cut; least is best.

    `mass` (m, f) by object; `spread` is var(delta) over the kept pairs. One more where a cluster is
    unused: ways along the graph join clusters that touch, and explain the rest all the better.
    """
    labels = most_plausible(mass, focal_sets)
    unused = not all_used(labels, focal_sets.n_clusters)
    bits = np.log2(max(focal_sets.n_clusters, 2))
    n_star = float(nonspecificity(mass.astype(float), focal_sets).mean() / bits)
    unexplained = objective / spread if spread > 0 else 0.0
    return n_star + unexplained - modularity(labels, graph) + float(unused)


def all_used(labels: NDArray, c: int) -> bool:
    """Whether each of the c clusters has more than a share UNUSED of the mean."""
    return bool(np.bincount(labels, minlength=c).min() > UNUSED * len(labels) / c)


def most_plausible(mass: NDArray, focal_sets: FocalSets) -> NDArray[np.int64]:
    """The cluster of greatest plausibility of each object, (m,)."""
    return contour(mass.astype(float), focal_sets).argmax(axis=1)


def rand_agreement(a: NDArray, b: NDArray) -> float:
    """Adjusted Rand index of two labellings 0, 1, ...; Hubert and Arabie (1985).

    scikit-learn's to the last bit. Its checks take a hundred times as long as the index itself of
    the few objects of a trial, and were a sixth of a fit on a GPU.
    """
    table = np.bincount(a * (int(b.max()) + 1) + b)
    n, together = len(a), int((table**2).sum())
    within_a, within_b = (int((np.bincount(x) ** 2).sum()) for x in (a, b))
    # Ordered pairs: in one cluster of both, of a alone, of b alone, of neither.
    both, a_alone, b_alone = together - n, within_a - together, within_b - together
    neither = n**2 - a_alone - b_alone - together
    if a_alone == b_alone == 0:
        return 1.0
    chance = (both + a_alone) * (a_alone + neither) + (both + b_alone) * (b_alone + neither)
    return 2.0 * (both * neither - a_alone * b_alone) / chance


def settled(partitions: Sequence[NDArray], misfits: Sequence[float], c: int) -> bool:
    """Whether the d0 tried agree so far that ways along the graph need not be asked.

    Most of them give the partition of least misfit, and it uses every cluster. On 164 trials of
    labelled sets (docs/decisions/d0-auto.md) the ways along the graph changed no such d0.
    """
    best = partitions[int(np.argmin(misfits))]
    if not all_used(best, c):
        return False
    same = sum(rand_agreement(best, labels) >= UNMOVED for labels in partitions)
    return same >= SETTLED


def reference(own: Sequence[float], others: Sequence[float], partitions: Sequence[NDArray]) -> int:
    """Which partition is the reference, from the misfits of all.

    `own` are those in the dissimilarities given, by rising d0; `others` those along the graph,
    counted on from there; `partitions` the labels of all. Among own ones of equal misfit that are
    the same partition the smallest d0 wins: larger ones begin to join clusters.
    """
    best = int(np.argmin(own))
    if others and min(others) < own[best] - HANDICAP:
        along_graph = len(own) + int(np.argmin(others))
        if rand_agreement(partitions[best], partitions[along_graph]) < ANOTHER:
            return along_graph
    return next(
        i
        for i, value in enumerate(own)
        if value <= own[best] + MISFIT_TIE
        and rand_agreement(partitions[best], partitions[i]) >= SAME
    )


def closest(
    partitions: Sequence[NDArray], known: NDArray, c: int, outliers: Sequence[float]
) -> tuple[list[int], list[float]]:
    """Which partitions, by rising d0, agree most, the one to prefer first; how far each does.

    With the reference `known`, and with those of the next smaller and larger d0: one that changes
    with d0 is chance, and the reference may be one of them. One that leaves clusters unused counts
    UNUSED_COST less. Of those within TIE of the best the last is preferred: a large d0 gives least
    mass to the empty set and leaves open what lies between clusters. `outliers` are the shares of
    outliers: labels may agree well where hardly an object is said to be in its cluster.
    """
    to_next = [rand_agreement(a, b) for a, b in pairwise(partitions)]
    agreement = [
        (1 - STEADY) * rand_agreement(known, labels)
        + STEADY * float(np.mean(to_next[max(i - 1, 0) : i + 1]))
        - UNUSED_COST * (not all_used(labels, c))
        for i, labels in enumerate(partitions)
    ]
    most = max(MOST_OUTLIERS, min(outliers))
    taken = {i: a for i, a in enumerate(agreement) if outliers[i] <= most}
    ties = [i for i, a in taken.items() if a >= max(taken.values()) - TIE]
    return ties[::-1], agreement

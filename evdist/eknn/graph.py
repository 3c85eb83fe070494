"""The most plausible partition by the evidential K-nearest-neighbour rule.

Reference: Denoeux, Kanjanatarakul, Sriboonchitta (2015), EK-NNclus: a clustering procedure based
on the evidential K-nearest neighbor rule, Knowledge-Based Systems 88, sections 3 and 4.

======  =================================================================  ==========
symbol  meaning                                                            shape
======  =================================================================  ==========
d_ij    dissimilarity of object i and its neighbour j                      (n, K)
w_ij    -log(1 - exp(-gamma d_ij^b)), weight of "i and j are together"     (edges,)
y       labels                                                             (n,)
======  =================================================================  ==========

Each pair of neighbours gives mass exp(-gamma d_ij^b) to "together". Combined by Dempster's rule
over all pairs, the plausibility of a partition is, up to a constant, the exponential of the sum of
w_ij over the pairs in one cluster. It is climbed one object at a time: with the others fixed, an
object's best cluster is the one to which its neighbours give the largest sum of weights.

Of very many objects a sample is partitioned first. The clusters of a sample of m objects with some
3 sqrt(m) neighbours are whole ones; with few neighbours among all objects, patches of them would
come out. The others take the label that the rule gives them from the sample, and all are visited.

Differs from the paper and from R's evclust, unless `symmetric` is false:

* j is a neighbour of i when either is among the K nearest of the other. Then every pair counts for
  both of its objects, and each move raises the plausibility. With the K nearest of each object
  alone, which the paper and R use, an object may move towards those that do not look at it: the
  sum may fall, and visits may go in circles.
* copies (d = 0) have a large finite weight, -log(machine epsilon), where the formula is infinite.
  R lets no exp(-gamma d^b) fall below 1e-6, which gives an object far from all a little evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from evdist.eknn.kernel import relabel, sum_votes, weight_between
from evdist.engine.loop import Descent, Solver

#: -log(1 - phi) of copies, whose phi is one: that of the largest number below one.
_MOST = -np.log(np.finfo(float).eps)
#: Numbers of votes held at once.
_VOTES = 4_000_000


@dataclass(frozen=True)
class Neighbourhood:
    """Weights of pairs, by rows: those of object i are start[i]:start[i + 1]."""

    start: NDArray[np.int64]
    neighbour: NDArray[np.int32]
    weight: NDArray[np.float64]
    gamma: float

    @property
    def n(self) -> int:
        return len(self.start) - 1

    @cached_property
    def total(self) -> float:
        return float(self.weight.sum())

    def against(self, label: NDArray[np.int32]) -> float:
        """The share of all weight that lies between clusters: the objective, from 0 to 1."""
        if self.total == 0:
            return 0.0
        return weight_between(self.start, self.neighbour, self.weight, label) / self.total


def pair_weight(d: NDArray[np.float64], gamma: float, b: float) -> NDArray[np.float64]:
    """w = -log(1 - phi(d)), phi(d) = exp(-gamma d^b)."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(-np.log(-np.expm1(-gamma * d**b)), _MOST)


def neighbourhood(
    d: NDArray[np.float64],
    neighbour: NDArray[np.int32],
    *,
    q: float,
    b: float,
    symmetric: bool,
) -> Neighbourhood:
    """Weights of the pairs; gamma is one over the q-quantile of d^b."""
    n, K = d.shape
    scale = float(np.quantile(d**b, q))
    # Nothing but copies within that quantile: all others are infinitely far.
    gamma = 1.0 / scale if scale > 0 else np.finfo(float).max
    weight = pair_weight(d, gamma, b).ravel()
    start = np.arange(0, n * K + 1, K)
    graph = sp.csr_array((weight, neighbour.ravel(), start), shape=(n, n))
    if symmetric:
        graph = graph.maximum(graph.T.tocsr())
    graph.sort_indices()
    return Neighbourhood(
        graph.indptr.astype(np.int64), graph.indices.astype(np.int32), graph.data, gamma
    )


class Labels(NamedTuple):
    """A label for each object, (n,), and how many changed in the last visit of all objects."""

    label: NDArray[np.int32]
    moved: int


@dataclass(frozen=True, eq=False)
class VisitSolver(Solver[Labels]):
    """Visits all objects, in one of `orders` after the other, until none moves."""

    graph: Neighbourhood
    start: NDArray[np.int32]
    orders: Iterator[NDArray[np.int64]]

    @property
    def rows(self) -> int:
        return self.graph.n

    def init(self) -> Descent[Labels]:
        return Descent(Labels(self.start, -1), (self.graph.against(self.start),))

    def step(self, now: Descent[Labels]) -> Descent[Labels]:
        graph, label = self.graph, now.value.label.copy()
        vote = np.zeros(int(self.start.max()) + 1)
        order = next(self.orders)
        moved = relabel(graph.start, graph.neighbour, graph.weight, order, label, vote)
        return now.follow(Labels(label, moved), graph.against(label))

    def done(self, now: Descent[Labels]) -> bool:
        return now.value.moved == 0


def place(
    d: NDArray[np.float64],
    who: NDArray[np.int32],
    label: NDArray[np.int32],
    *,
    gamma: float,
    b: float,
) -> NDArray[np.int32]:
    """Labels of new objects: those with the most weight among their neighbours `who` (rows, K)."""
    rows, K = d.shape
    start = np.arange(0, rows * K + 1, K)
    vote = np.zeros((rows, int(label.max()) + 1))
    sum_votes(start, who.ravel(), pair_weight(d, gamma, b).ravel(), label, 0, vote)
    return vote.argmax(axis=1).astype(np.int32)


def in_order(label: NDArray[np.int32]) -> NDArray[np.int32]:
    """The same clusters numbered by their first objects."""
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[number]


def rule(graph: Neighbourhood, label: NDArray[np.int32], c: int) -> NDArray[np.float32]:
    """Masses by the evidential K-NN rule from the labels of the neighbours, (n, c + 2).

    With u_k = the sum of weights of the neighbours in cluster k, Dempster's rule gives
    m({k}) = (exp(u_k) - 1) / N and m(Omega) = 1 / N, N = 1 + sum_k (exp(u_k) - 1). A single
    cluster is the whole frame: (n, 2).
    """
    n = graph.n
    if c == 1:
        return np.tile(np.array([0.0, 1.0], dtype=np.float32), (n, 1))
    mass = np.zeros((n, c + 2), dtype=np.float32)
    rows = max(1, _VOTES // c)
    for lo in range(0, n, rows):
        u = np.zeros((min(rows, n - lo), c))
        sum_votes(graph.start, graph.neighbour, graph.weight, label, lo, u)
        # exp(u_k) overflows; all terms are divided by exp(max u).
        top = u.max(axis=1, keepdims=True)
        omega = np.exp(-top[:, 0])
        single = np.exp(u - top) - omega[:, None]
        total = single.sum(axis=1) + omega
        mass[lo : lo + rows, 1:-1] = single / total[:, None]
        mass[lo : lo + rows, -1] = omega / total
    return mass

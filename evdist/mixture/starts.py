"""Where EM starts: partitions by agglomeration of groups, or by k-means from k-means++ seeds.

Agglomeration joins, again and again, the two groups whose union costs the least: sum of squares
(criterion EII: Ward's method) or, for groups of any shape, n_k log |W_k / n_k| (criterion VVV).
Coordinates are divided by their standard deviations: the start does not depend on units.

Equal rows are one row with the sum of their weights, and rows are sorted: a repeated row and a row
of double weight, and any order of the rows, give the same start.

Differs: mclust starts the VVV tree at single objects, whose covariance is singular, and adds a
trace term; here it starts at some hundred groups of Ward's tree, and the scatter of each gets a
small multiple of the identity. mclust whitens the data by default; on iris, diabetes, seeds and
ecoli that led EM to lower likelihoods than plain division by standard deviations.

References: Fraley (1998), Algorithms for model-based Gaussian hierarchical clustering; Scrucca and
Raftery (2015), Improved initialisation of model-based clustering.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import cluster as trees
from sklearn import cluster

#: Larger data is started from so many of its rows, drawn at random.
MOST_ROWS = 2000
#: Groups of Ward's tree at which the VVV tree begins: so many, and so many for each component.
_GROUPS, _GROUPS_PER_COMPONENT = 100, 3
#: Scatter added to each group, in units of the mean weight of a row.
_RIDGE = 0.3


@dataclass(frozen=True)
class Starts:
    """Partitions of weighted rows into any number of groups.

    Attributes
    ----------
    X : (n, d) array, n at most MOST_ROWS
    weight : (n,) array, above zero
    most : int
        Largest number of groups that will be asked for.
    init : "hierarchical" or "k-means++"
    n_init : int
        Partitions for each number of groups: with "hierarchical" VVV first, EII second, the rest by
        k-means++.
    seed : int
    """

    X: NDArray[np.float64]
    weight: NDArray[np.float64]
    most: int
    init: str
    n_init: int
    seed: int

    def labels(self, c: int) -> Iterator[NDArray[np.intp]]:
        """Partitions into c groups, each (n,) labels 0..c-1, all of them used."""
        rng = np.random.default_rng([self.seed, c])
        trees = [self._vvv, self._eii] if self.init == "hierarchical" else []
        inverse = self._distinct[2]
        for i in range(self.n_init):
            part = trees[i](c) if i < len(trees) else self._k_means(c, int(rng.integers(2**31)))
            yield part[inverse]

    @cached_property
    def _distinct(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Standardised distinct rows, their weights, and which of them each row is."""
        rows, inverse = np.unique(self.X, axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)
        weight = np.bincount(inverse, self.weight, len(rows))
        share = weight / weight.sum()
        Y = rows - share @ rows
        sd = np.sqrt(share @ (Y * Y))
        return Y / np.where(sd > 0, sd, 1.0), weight, inverse

    @property
    def n_distinct(self) -> int:
        return len(self._distinct[0])

    def _k_means(self, c: int, seed: int) -> NDArray[np.intp]:
        Y, weight, _ = self._distinct
        means = cluster.KMeans(c, n_init=1, max_iter=50, random_state=seed).fit(
            Y, sample_weight=weight
        )
        return _numbered(means.labels_)

    def _eii(self, c: int) -> NDArray[np.intp]:
        return _numbered(_cut(self._ward, c, self.n_distinct))

    @cached_property
    def _ward(self) -> NDArray[Any]:
        Y = self._distinct[0]
        return trees.hierarchy.linkage(Y, "ward") if len(Y) > 1 else np.empty((0, 4))

    def _vvv(self, c: int) -> NDArray[np.intp]:
        groups, merges = self._gaussian_tree
        first = _numbered(_cut(self._ward, groups, self.n_distinct))
        name = np.arange(groups)
        for i, j in merges[: groups - c]:
            name[name == j] = i
        return _numbered(name[first])

    @cached_property
    def _gaussian_tree(self) -> tuple[int, list[tuple[int, int]]]:
        """Groups at the leaves, and which two are joined, first to last; the first name stays."""
        Y, weight, _ = self._distinct
        m = min(max(_GROUPS, _GROUPS_PER_COMPONENT * self.most), self.n_distinct)
        first = _numbered(_cut(self._ward, m, self.n_distinct))
        G = np.zeros((len(Y), m))
        G[np.arange(len(Y)), first] = weight
        n = G.sum(axis=0)
        mean = (G.T @ Y) / n[:, None]
        W = np.stack([((Y - mean[k]) * G[:, k, None]).T @ (Y - mean[k]) for k in range(m)])
        return m, _join_all(n, mean, W, _RIDGE * weight.mean())


def _cut(tree: NDArray[Any], c: int, n: int) -> NDArray[np.intp]:
    """Labels (n,) of exactly c groups: the tree without its last c - 1 joins, ties or not."""
    top = np.arange(2 * n - 1)
    for k, (i, j) in enumerate(tree[: n - c, :2].astype(np.intp)):
        top[i] = top[j] = n + k
    for node in range(2 * n - 2, -1, -1):
        top[node] = top[top[node]]
    return top[:n]


def _numbered(labels: NDArray[Any]) -> NDArray[np.intp]:
    """The same partition, groups numbered in the order of the sorted rows."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.reshape(-1)]


def _join_all(
    n: NDArray[Any], mean: NDArray[Any], W: NDArray[Any], ridge: float
) -> list[tuple[int, int]]:
    """All m - 1 joins of m groups, each the one that raises sum_k n_k log|W_k / n_k| the least."""
    n, mean, W = n.copy(), mean.copy(), W.copy()
    m, d = mean.shape
    eye = ridge * np.eye(d)

    def cost(n: NDArray[Any], W: NDArray[Any]) -> NDArray[Any]:
        return n * (np.linalg.slogdet(W + eye)[1] - d * np.log(n))

    def union(i: int, j: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        delta = mean[j] - mean[i]
        share = n[i] * n[j] / (n[i] + n[j])
        return n[i] + n[j], W[i] + W[j] + share[:, None, None] * delta[:, :, None] * delta[:, None]

    own = cost(n, W)
    rise = np.full((m, m), np.inf)
    for i in range(m - 1):
        j = np.arange(i + 1, m)
        rise[i, j] = cost(*union(i, j)) - own[i] - own[j]
    alive = np.ones(m, dtype=bool)
    joins = []
    for _ in range(m - 1):
        p, q = divmod(int(rise.argmin()), m)
        joins.append((p, q))
        sizes, scatter = union(p, np.array([q]))
        mean[p] = (n[p] * mean[p] + n[q] * mean[q]) / sizes[0]
        n[p], W[p] = sizes[0], scatter[0]
        own[p] = cost(n[p : p + 1], W[p : p + 1])[0]
        alive[q] = False
        rise[q], rise[:, q] = np.inf, np.inf
        others = np.flatnonzero(alive & (np.arange(m) != p))
        fresh = cost(*union(p, others)) - own[p] - own[others]
        rise[np.minimum(p, others), np.maximum(p, others)] = fresh
    return joins

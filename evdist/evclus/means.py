"""Means that stand for the groups of a preliminary partition: see `evdist.evclus.groups`.

Symbols
-------
V   (p, d) means: an object belongs to the group of the nearest
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import cluster as trees

from evdist.evclus.sampling import run_blocks

#: Lloyd's iterations at most: for small groups, and from the means of merged ones.
LLOYD, LLOYD_END = 10, 30
#: From so many groups on they are found cell by cell (`evdist.evclus.cells`).
CELLS_FROM = 1500
#: Rows whose distances to all means are held at a time, below and from CELLS_FROM groups on.
_BLOCK, _SMALL_BLOCK = 4096, 512


@dataclass(frozen=True)
class Means:
    """Means V (p, d) float32, the group of each, and how many objects it stands for."""

    V: NDArray[np.float32]
    group: NDArray[np.int64]
    weight: NDArray[np.float64]

    @classmethod
    def single(cls, V: NDArray) -> Means:
        """Every mean a group."""
        return cls(V.astype(np.float32), np.arange(len(V)), np.ones(len(V)))

    @classmethod
    def merged(cls, V: NDArray, weight: NDArray, c: int) -> Means:
        """c groups of means that have objects, all of them, by Ward's method."""
        few = len(V) <= c
        group = (
            np.arange(len(V))
            if few
            else trees.hierarchy.fcluster(trees.hierarchy.linkage(V, "ward"), c, "maxclust") - 1
        )
        return cls(V.astype(np.float32), group, weight.astype(float))

    @property
    def count(self) -> int:
        return int(self.group.max()) + 1

    def middles(self) -> NDArray[np.float64]:
        """The mean of each group, (c, d)."""
        total = np.bincount(self.group, self.weight)
        return np.column_stack(
            [np.bincount(self.group, self.weight * x) / total for x in self.V.astype(float).T]
        )

    def numbered(self) -> Means:
        """The same groups, near ones next to each other: the leaves of their average linkage."""
        return self.in_order(leaves(self.middles()))

    def in_order(self, order: NDArray[np.int64]) -> Means:
        """The same groups, `order[i]` of them now number i."""
        rank = np.empty(self.count, np.int64)
        rank[order] = np.arange(self.count)
        return replace(self, group=rank[self.group])

    @property
    def rows_at_once(self) -> int:
        """Rows of a block for :meth:`nearest`; a fixed size, since bits may depend on it."""
        return _BLOCK if self.count < CELLS_FROM else _SMALL_BLOCK

    def nearest(self, X: NDArray) -> NDArray[np.int64]:
        """The group of the mean next to each row, of equally near ones the first."""
        norm = (self.V.astype(float) ** 2).sum(axis=1)
        return self.group[(norm - 2.0 * (X @ self.V.T)).argmin(axis=1)]

    def labels(self, X: NDArray, n_threads: int) -> NDArray[np.int64]:
        """:meth:`nearest` of many rows, block by block on threads."""
        found = np.empty(len(X), np.int64)
        step = self.rows_at_once

        def fill(lo: int) -> None:
            found[lo : lo + step] = self.nearest(X[lo : lo + step])

        run_blocks(fill, range(0, len(X), step), n_threads)
        return found

    def middle_objects(self, objects: NDArray, S: NDArray, labels: NDArray) -> NDArray[np.uint32]:
        """Of each group the sampled object nearest to its middle."""
        near = ((S - self.middles()[labels]) ** 2).sum(axis=1)
        order = np.lexsort((near, labels))
        groups, first = np.unique(labels[order], return_index=True)
        middle = np.zeros(self.count, np.uint32)
        middle[groups] = objects[order[first]]
        return middle


def leaves(V: NDArray) -> NDArray[np.int64]:
    """The order of rows in which near ones are next to each other: their average linkage."""
    if len(V) <= 2:
        return np.arange(len(V))
    return trees.hierarchy.leaves_list(trees.hierarchy.linkage(V, "average")).astype(np.int64)

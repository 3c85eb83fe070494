"""Means that stand for the groups of a preliminary partition: see `evdist.evclus.groups`.

Symbols
-------
V   (p, d) means: an object belongs to the group of the nearest
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage

#: Rows whose distances to all means are held at a time, and where there are thousands of these.
_BLOCK, _SMALL_BLOCK, _THOUSANDS = 4096, 512, 1500


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
        group = np.arange(len(V)) if few else fcluster(linkage(V, "ward"), c, "maxclust") - 1
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
        if self.count <= 2:
            return self
        rank = np.empty(self.count, np.int64)
        rank[leaves_list(linkage(self.middles(), "average"))] = np.arange(self.count)
        return replace(self, group=rank[self.group])

    @property
    def rows_at_once(self) -> int:
        """Rows of a block for :meth:`nearest`; a fixed size, since bits may depend on it."""
        return _BLOCK if len(self.V) < _THOUSANDS or self.count < _THOUSANDS else _SMALL_BLOCK

    def nearest(self, X: NDArray) -> NDArray[np.int64]:
        """The group of the mean next to each row, of equally near ones the first."""
        norm = (self.V.astype(float) ** 2).sum(axis=1)
        return self.group[(norm - 2.0 * (X @ self.V.T)).argmin(axis=1)]

    def middle_objects(self, objects: NDArray, S: NDArray, labels: NDArray) -> NDArray[np.uint32]:
        """Of each group the sampled object nearest to its middle."""
        near = ((S - self.middles()[labels]) ** 2).sum(axis=1)
        order = np.lexsort((near, labels))
        groups, first = np.unique(labels[order], return_index=True)
        middle = np.zeros(self.count, np.uint32)
        middle[groups] = objects[order[first]]
        return middle

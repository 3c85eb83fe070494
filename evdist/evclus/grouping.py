"""The preliminary partition of a sample, for objects that are not in it.

`evdist.evclus.groups` finds groups on a sample and tells the group of every object that lies in
memory. In partitions the others come later, partition by partition: each goes to the group of the
nearest mean or medoid, by the same formula in blocks of the same size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from evdist.data.sources import AttributeSource
from evdist.evclus.groups import Groups, find_groups
from evdist.evclus.means import Means
from evdist.kernels.distances import Metric, distances


@dataclass(frozen=True)
class Grouping:
    """Tells the group of any row. Small, so that it can be sent to a worker.

    Attributes
    ----------
    means : Means
        Means or medoids, ready for the metric.
    squares : bool
        Whether they are means, which are compared by squares.
    """

    metric: Metric
    means: Means
    squares: bool

    @classmethod
    def find(cls, source: AttributeSource, n_clusters: int, seed: int) -> tuple[Grouping, Groups]:
        """From a sample of the rows; also the groups of these."""
        groups = find_groups(source, n_clusters, seed)
        if groups.means is not None:
            return cls(source.metric, groups.means, True), groups
        medoids = source.subset(groups.middle).rows
        return cls(source.metric, Means.single(medoids), False), groups

    @property
    def count(self) -> int:
        """Groups."""
        return self.means.count

    def labels(self, table: NDArray[np.float32]) -> NDArray[np.uint32]:
        """Groups (n,) of rows that are ready for the metric; of equally near ones the first."""
        found = np.empty(len(table), np.uint32)
        d = self.means.V.shape[1]
        with threadpool_limits(1):
            step = self.means.rows_at_once
            for lo in range(0, len(table), step):
                rows = table[lo : lo + step]
                if self.squares:
                    found[lo : lo + step] = self.means.nearest(rows[:, :d])
                else:
                    found[lo : lo + step] = self._nearest_medoid(rows)
        return found

    def _nearest_medoid(self, rows: NDArray[np.float32]) -> NDArray[np.int64]:
        medoids = AttributeSource.of_rows(self.means.V, self.metric).table
        others = np.tile(np.arange(len(medoids), dtype=np.uint32), (len(rows), 1))
        mine = np.arange(len(rows), dtype=np.uint32)
        return distances(self.metric, medoids, others, rows, mine).argmin(axis=1)

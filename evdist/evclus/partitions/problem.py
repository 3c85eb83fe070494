"""What a partition's rows are updated with: the rows of its view, the pairs among them.

Symbols
-------
view    a partition and its partners, see `evdist.evclus.partitions.graph`
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.layout import PartitionedData
from evdist.data.sources import AttributeSource
from evdist.evclus.partitions.graph import View
from evdist.evclus.partitions.near import NearPairs, Sorted
from evdist.evclus.partitions.sizes import BLOCK, Sizes
from evdist.evclus.problem import Problem
from evdist.evclus.rows.protocol import Rows
from evdist.evclus.rows.sweep import Block
from evdist.evclus.sampling import row_block
from evdist.kernels.distances import Metric
from evdist.kernels.graph import PairGraph
from evdist.stores.partitioned import PartitionArray

#: Loaded where a GPU is asked for: torch takes seconds.
_ON_DEVICE = "evdist.evclus.partitions.device"


@dataclass(frozen=True)
class PartitionedProblem:
    """Data in partitions and what is sought; small, so that it can be sent to a worker."""

    data: PartitionedData
    metric: Metric
    graph: PairGraph
    d0: float
    focal_sets: FocalSets
    rows: Rows
    #: Numbers in a stored row of masses.
    width: int
    near: NearPairs | None = None
    #: Where some partners are near: the group of each row, and the near partners of all rows.
    labels: PartitionArray | None = None
    near_entries: int = 0
    #: Where noise floors are taken off: the root of that of each row.
    floors: PartitionArray | None = None
    #: Whether rows are lists of clusters (`evdist.kernels.sparse_rows`).
    sparse: bool = False
    #: As in `Problem`.
    promise: float = 0.0

    @property
    def n(self) -> int:
        return self.data.n

    @property
    def parts(self) -> int:
        return self.data.shuffle.count

    @property
    def scale(self) -> float:
        """Turns a sum over pairs into their mean."""
        return 2.0 / (self.graph.entries + self.near_entries)

    def view(self, partition: int) -> View:
        return View(self.graph, partition, self.near, self.by_group)

    def by_group(self, partition: int) -> Sorted:
        """The rows of a partition by group."""
        assert self.labels is not None and self.near is not None
        return Sorted.of(self.labels.read(partition)[:, 0], self.near.groups)

    def neighbours(self, partition: int) -> tuple[int, ...]:
        return self.view(partition).partners

    def table(self, partition: int) -> NDArray[np.float32]:
        """The rows of a partition, ready for the metric."""
        if self.floors is None:
            return self.metric.table(self.data.read(partition))
        roots = self.floors.read(partition)[:, 0]
        return self.metric.table(self.data.read(partition), roots=roots)

    def masses(self, url: str) -> PartitionArray:
        """A store of masses of this problem."""
        return PartitionArray(url, self.data.shuffle, self.width, "float32")

    def state_problem(self, pairs: ViewPairs) -> Problem:
        return Problem(
            self.focal_sets, pairs, pairs.view.plan, sparse=self.sparse, promise=self.promise
        )

    @cached_property
    def sizes(self) -> Sizes:
        near = self.near is not None
        return Sizes(self.data.shuffle, self.metric.width, self.view(0).k, self.width, near)


@dataclass(frozen=True)
class ViewPairs:
    """Pairs of a view's own rows; a `Pairs` of which only these rows are asked.

    Attributes
    ----------
    source : callable
        Gives the rows of the view, when they are needed.
    active : (own,) bool or None
        Rows whose pairs are wanted; None for all. The others have none.
    kept : blocks that were made before, by their bounds; filled where `keep` is set
    """

    view: View
    d0: float
    source: Callable[[], AttributeSource]
    n_threads: int = 1
    active: NDArray[np.bool_] | None = None
    keep: bool = False
    kept: dict[tuple[int, int], Block] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return self.view.n

    @property
    def entries(self) -> int:
        return int(sum(self.block(lo, hi).degree.sum() for lo, hi in self.view.plan.pieces))

    def block(self, lo: int, hi: int) -> Block:
        found = self.kept.get((lo, hi))
        if found is None:
            found = self._made(lo, hi)
            if self.keep:
                self.kept[lo, hi] = found
        return found

    def kept_on(self, device: Any, pieces: list[tuple[int, int]]) -> Any:
        """What a state of a device needs to update some pieces."""
        return import_module(_ON_DEVICE).view_on(device, self.view, self.source(), self.d0, pieces)

    def _made(self, lo: int, hi: int) -> Block:
        rows = np.arange(lo, hi, dtype=np.uint32)
        partner, degree = self.view.pairs(lo, hi)
        if self.active is not None:
            rows, partner = rows[self.active[lo:hi]], partner[self.active[lo:hi]]
        D = self._distances(rows, partner)
        if self.active is None:
            return row_block(lo, partner, degree, D, self.d0)
        packed = row_block(lo, partner, degree[self.active[lo:hi]], D, self.d0)
        first, count = np.zeros(hi - lo, np.int64), np.zeros(hi - lo, np.int64)
        first[self.active[lo:hi]] = packed.first
        count[self.active[lo:hi]] = packed.degree
        return Block(lo, first, count, packed.partner, packed.delta)

    def _distances(
        self, rows: NDArray[np.uint32], partner: NDArray[np.uint32]
    ) -> NDArray[np.float32]:
        source = self.source()
        D = np.empty(partner.shape, np.float32)
        # All threads together take the room of one block.
        size = -(-BLOCK // self.n_threads)

        def fill(at: int) -> None:
            part = slice(at, at + size)
            D[part] = source.distances(rows[part], partner[part])

        starts = range(0, len(rows), size)
        if self.n_threads == 1:
            for at in starts:
                fill(at)
        else:
            with ThreadPoolExecutor(self.n_threads) as pool:
                list(pool.map(fill, starts))  # the first error is raised
        return D

"""Where a fit in partitions runs: this process, or the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psutil

from evdist.belief import FocalSets
from evdist.data.layout import PartitionedData
from evdist.engine.memory import available, check_memory, gigabytes, give_back
from evdist.engine.owners import OwnersExecutor
from evdist.engine.partitioning import lay_out, table_shape
from evdist.engine.progress import Progress, Report
from evdist.evclus.begin import begins_with_groups, has_sparse_rows
from evdist.evclus.partitions.local import LocalPartitions
from evdist.evclus.partitions.owner import OwnedPartitions, least_room
from evdist.evclus.partitions.problem import PartitionedProblem
from evdist.evclus.partitions.sizes import Sizes
from evdist.evclus.rows.protocol import Rows
from evdist.evclus.start import Settings
from evdist.kernels.shuffle import Shuffle
from evdist.kernels.sparse_rows import WORDS
from evdist.stores.partitioned import PartitionArray
from evdist.stores.paths import join

#: Of the bytes that may be taken, the part that is planned with: what a library takes for a moment
#: is not.
_SHARE = 0.8


@dataclass(frozen=True)
class PartitionSite:
    """Threads, memory and folder of a fit; `client` is a distributed.Client or None.

    `memory_limit` is what this process may take in all, or on its device; None for what is free.
    """

    rows: Rows
    folder: str
    n_threads: int = 1
    checkpoint_every: int = 5
    memory_limit: int | None = None
    partitions: int | None = None
    client: Any = None

    @property
    def _on_device(self) -> bool:
        return self.rows.device_group is not None

    @property
    def room(self) -> int:
        """Bytes that the partitions of this process may take."""
        if self.memory_limit is None or self._on_device:
            return int(_SHARE * available())
        give_back()
        taken = psutil.Process().memory_info().rss
        return max(int(_SHARE * self.memory_limit) - taken, 0)

    def lay_out(self, X: Any, report: Report = None) -> PartitionedData:
        """Shuffle X into partitions in the folder, unless they are there."""

        def tell(stage: str, done: int, whole: int) -> None:
            if report is not None:
                report(Progress(stage, done, whole, unit="block"))

        url = join(self.folder, "partitions.zarr")
        return lay_out(X, url, client=self.client, partitions=self.partitions, tell=tell)

    def news(self, problem: PartitionedProblem) -> str:
        """How the fit will work, for a user, before it begins."""
        parts, rows = problem.parts, problem.data.shuffle.rows
        said = f"{parts} partitions of {rows:,} rows"
        said += " on the GPU" if self._on_device else ""
        if self.client is not None:
            return f"{said} on {len(self.client.nthreads())} workers"
        room = self.room
        need = problem.sizes.whole(pairs=not self._on_device)
        where = "in memory" if need <= room else "from disk"
        return f"{said} {where}: {gigabytes(need)}, with {gigabytes(room)} to work in"

    def check(self, X: Any, settings: Settings, focal_sets: FocalSets) -> None:
        """Refuse what does not fit, before any row of X is read."""
        if self.client is not None and not self._on_device:
            return  # a worker sees for itself
        n, d = table_shape(X)
        k, width = settings.k, len(focal_sets)
        near = begins_with_groups(n, focal_sets, settings)
        lists = near and has_sparse_rows(focal_sets, settings)
        width = WORDS if lists else width
        sizes = Sizes(Shuffle.of(n, self.partitions), d, k, width, near)
        if self._on_device:
            # The pairs of one partition, and those of no other, are there at a time.
            rows: Any = self.rows
            rows.check_room(
                (sizes.view_rows, d), k, width, sizes.rows, client=self.client, lists=lists
            )
        if self.client is not None:
            return
        check_memory(
            {"one partition and its partners": least_room(sizes)},
            "Raise memory_limit, lower n_dissimilarities, or use fewer focal sets.",
            free=self.room,
            where=f"of {gigabytes(self.memory_limit)}" if self.memory_limit else "here",
        )

    def executor(
        self, problem: PartitionedProblem, point: PartitionArray
    ) -> LocalPartitions | OwnersExecutor:
        if self.client is not None:
            return OwnersExecutor(self.client, OwnedPartitions(problem), point)
        return LocalPartitions(problem, point, n_threads=self.n_threads, room=self.room)

"""Where a fit in partitions runs: this process, or the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psutil

from evdist.data.layout import PartitionedData
from evdist.engine.memory import available, check_memory, gigabytes
from evdist.engine.owners import OwnersExecutor
from evdist.engine.partitioning import lay_out, table_shape
from evdist.engine.progress import Progress, Report
from evdist.evclus.partitions.local import LocalPartitions
from evdist.evclus.partitions.owner import OwnedPartitions, least_room
from evdist.evclus.partitions.problem import PartitionedProblem
from evdist.evclus.partitions.sizes import Sizes
from evdist.evclus.rows.protocol import Rows
from evdist.kernels.shuffle import Shuffle
from evdist.stores.partitioned import PartitionArray
from evdist.stores.paths import join

#: Of the bytes that may be taken, the part that is planned with: what a library takes for a moment
#: is not.
_SHARE = 0.8


@dataclass(frozen=True)
class PartitionSite:
    """Threads, memory and folder of a fit; `client` is a distributed.Client or None.

    `memory_limit` is what this process may take in all; None for what is free.
    """

    rows: Rows
    folder: str
    n_threads: int = 1
    checkpoint_every: int = 5
    memory_limit: int | None = None
    partitions: int | None = None
    client: Any = None

    @property
    def room(self) -> int:
        """Bytes that the partitions of this process may take."""
        if self.memory_limit is None:
            return int(_SHARE * available())
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
        if self.client is not None:
            return f"{said} on {len(self.client.nthreads())} workers"
        need, room = problem.sizes.whole(), self.room
        where = "in memory" if need <= room else "from disk"
        return f"{said} {where}: {gigabytes(need)}, with {gigabytes(room)} to work in"

    def check(self, X: Any, k: int, width: int) -> None:
        """Refuse what does not fit, before any row of X is read."""
        if self.client is not None:
            return
        n, d = table_shape(X)
        check_memory(
            {
                "one partition and its partners": least_room(
                    Sizes(Shuffle.of(n, self.partitions), d, k, width)
                )
            },
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

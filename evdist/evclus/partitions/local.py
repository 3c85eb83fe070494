"""Sweeps over partitions in this process: one owner has all of them."""

from __future__ import annotations

import math
from collections.abc import Callable

from evdist.evclus.partitions.owner import Owner
from evdist.evclus.partitions.problem import PartitionedProblem
from evdist.stores.partitioned import PartitionArray


class LocalPartitions:
    """An `Executor` of `evdist.evclus.irqp`; its result is written to a store."""

    def __init__(
        self,
        problem: PartitionedProblem,
        point: PartitionArray,
        *,
        n_threads: int,
        room: int,
        folder: str | None = None,
    ):
        self.problem = problem
        self._owner = Owner(
            problem, range(problem.parts), point, n_threads=n_threads, room=room, folder=folder
        )

    def sweep(
        self, skip_below: float = 0.0, next_skip_below: Callable[[float], float] | None = None
    ) -> float:
        found = {b: x for colour in (0, 1) for b, x in self._owner.step(colour, skip_below).items()}
        return math.fsum(found[b][0] for b in sorted(found))

    def objective(self) -> tuple[float, float]:
        found = self._owner.losses()
        values = [found[b] for b in sorted(found)]
        return math.fsum(s for s, _ in values) / 2, math.fsum(p for _, p in values) / 2

    def save(self, point: PartitionArray) -> None:
        """Write all masses; sweeps go on from there if they must be done again."""
        self._owner.save(point)

    def result(self) -> None:
        """Nothing: the masses stay where they are until `save` is called."""

    def close(self) -> None:
        self._owner.close()

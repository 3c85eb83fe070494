"""Where a fit on GPUs runs: on one of this machine, or on those of a cluster's workers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from evdist.data.sources import AttributeSource, Source
from evdist.engine.cluster import ClusterExecutor
from evdist.engine.workers import run_on_workers
from evdist.evclus.device_pairs import (
    MadeOnDevice,
    OnDevice,
    WorkerPairs,
    plain,
    row_pairs,
    terms_of,
)
from evdist.evclus.device_start import Sizes, start_on
from evdist.evclus.gpu.memory import Choice, Need, Room, choose
from evdist.evclus.gpu.pairs import BlockPairs, RowPairs
from evdist.evclus.gpu.share import DeviceProblem, DeviceShare, device_here
from evdist.evclus.problem import Problem
from evdist.evclus.sampling import Arranged, Layout, sample_pairs
from evdist.evclus.sites import ClusterSite, LocalSite, PieceTask, SourcePairs
from evdist.evclus.solver import Settings

__all__ = ["DeviceExecutor", "DeviceSite", "DeviceWorkers"]


@dataclass(frozen=True)
class DeviceSite(LocalSite):
    """A GPU of this machine; what is not done there is done on threads."""

    device: torch.device = field(default_factory=lambda: torch.device("cuda"))
    choice: Choice = field(default_factory=lambda: Choice("device"))

    def choose(self, need: Need, limit: int | None) -> Choice:
        return choose(need, Room.on(device_here(str(self.device)), limit))

    def start(
        self, source: AttributeSource, settings: Settings, sizes: Sizes
    ) -> tuple[Settings, list[tuple[float, float]]]:
        return start_on(str(self.device), source, settings, sizes)

    def sample(  # type: ignore[override]
        self, source: Source, layout: Layout, d0: float, seed: int
    ) -> MadeOnDevice:
        pairs: RowPairs | BlockPairs
        if isinstance(source, AttributeSource):
            pairs = row_pairs(source, layout, d0)
        else:
            known = sample_pairs(source, layout, d0, self.n_threads)
            pairs = BlockPairs(plain(layout.graph), known)
        return MadeOnDevice(layout.graph, pairs, str(self.device), self.choice)

    def executor(self, problem: Problem, mass: NDArray) -> DeviceExecutor:  # type: ignore[override]
        return DeviceExecutor(problem, mass)


class DeviceExecutor:
    """Runs the sweeps of one problem on the device of its pairs: a share of all pieces."""

    def __init__(self, problem: Problem, mass: NDArray):
        pairs = problem.pairs
        assert isinstance(pairs, OnDevice)
        self.problem = problem
        self._share = DeviceShare(
            terms_of(problem), mass, range(len(problem.plan.pieces)), pairs.graph, pairs.kept
        )

    def sweep(self, rest: float = 0.0, then: Callable[[float], float] | None = None) -> float:
        """One pass over all rows; none rests here, where neighbours are updated together anyway.

        Returns the change of the sum over pairs, zero or negative.
        """
        for step in range(len(self.problem.plan.steps)):
            self._share.advance(step)
        return math.fsum(self._share.changes().values())

    def objective(self) -> tuple[float, float]:
        """(stress, penalty) summed over all pairs and links, each counted once."""
        found = self._share.objective().values()
        return math.fsum(s for s, _ in found) / 2, math.fsum(p for _, p in found) / 2

    def masses(self) -> NDArray[np.float32]:
        """The present masses, (n, f), in positions."""
        return self._share.masses(0, self.problem.n)

    def close(self) -> None:
        del self._share


@dataclass(frozen=True)
class DeviceWorkers(ClusterSite):
    """The workers of a Dask cluster, one GPU each."""

    device: torch.device = field(default_factory=lambda: torch.device("cuda"))
    memory_limit: int | None = None

    def choose(self, need: Need, limit: int | None) -> Choice:
        """What each worker will choose, judged by the one with the least memory free."""
        rooms = self.client.run(_room, str(self.device), limit)
        rows = -(-need.rows // len(rooms))
        return choose(replace(need, rows=rows), Room.least(rooms.values()))

    def start(
        self, source: AttributeSource, settings: Settings, sizes: Sizes
    ) -> tuple[Settings, list[tuple[float, float]]]:
        (found,) = run_on_workers(
            self.client, start_on, str(self.device), source, settings, sizes, items=[()]
        )
        return found

    def sample(self, source: Source, layout: Layout, d0: float, seed: int) -> WorkerPairs:
        here = SourcePairs(Arranged.of(source, layout), d0)
        pairs: RowPairs | BlockPairs
        if isinstance(source, AttributeSource):
            pairs = row_pairs(source, layout, d0)
        else:
            pairs = BlockPairs(plain(layout.graph), here)
        # Sums over all pairs are made once: nothing is kept for them.
        once = MadeOnDevice(layout.graph, pairs, str(self.device), Choice("recomputed", 1))
        return WorkerPairs(here, once)

    def executor(self, problem: Problem, mass: NDArray) -> ClusterExecutor:
        assert isinstance(problem.pairs, WorkerPairs)
        there = DeviceProblem(
            terms_of(problem), problem.pairs.there.pairs, str(self.device), self.memory_limit
        )
        return ClusterExecutor(self.client, there, mass, self.checkpoint_every)

    def sum_over_pieces(self, task: PieceTask, problem: Problem) -> float:
        assert isinstance(problem.pairs, WorkerPairs)
        return super().sum_over_pieces(task, replace(problem, pairs=problem.pairs.there))


def _room(device: str, limit: int | None) -> Room:
    return Room.on(device_here(device), limit)

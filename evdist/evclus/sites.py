"""Where a fit runs and what it leaves behind: this process or a cluster, with or without a folder.

In a folder (a path or URL that every worker can reach) the pairs are kept in `pairs.zarr` and the
masses in checkpoints, so that the same call goes on where a killed one stopped. Without a folder
pairs are made in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.data.sources import Source
from evdist.engine.cluster import ClusterExecutor
from evdist.engine.workers import run_on_workers
from evdist.evclus.irqp import Executor
from evdist.evclus.local import LocalExecutor
from evdist.evclus.pair_store import PairStore, StoredPairs
from evdist.evclus.problem import MemoryPairs, Pairs, Problem
from evdist.evclus.sampling import Arranged, Layout, run_blocks, sample_pairs
from evdist.evclus.sweep import Block
from evdist.kernels.distances import transform
from evdist.stores.checkpoint import Checkpoint
from evdist.stores.paths import join

__all__ = ["ClusterSite", "LocalSite", "Site", "SourcePairs"]


#: A number for the rows lo..hi-1 of a problem.
PieceTask = Callable[[Problem, int, int], float]


class Site(Protocol):
    """Where the pairs are kept and the sweeps run."""

    @property
    def n_threads(self) -> int: ...

    @property
    def checkpoint_every(self) -> int: ...

    def sample(self, source: Source, layout: Layout, d0: float, seed: int) -> Pairs: ...

    def executor(self, problem: Problem, mass: NDArray) -> Executor: ...

    def sum_over_pieces(self, task: PieceTask, problem: Problem) -> float: ...

    def checkpoint(self, stage: str) -> Checkpoint | None: ...


@dataclass(frozen=True)
class _Folder:
    """What both sites do with a folder."""

    n_threads: int = 1
    folder: str | None = None
    checkpoint_every: int = 5

    def checkpoint(self, stage: str) -> Checkpoint | None:
        if self.folder is None:
            return None
        return Checkpoint(join(self.folder, f"checkpoint {stage}".replace(" ", "-")))

    def _store(self, source: Source, layout: Layout, seed: int) -> PairStore:
        assert self.folder is not None
        return PairStore.create(
            join(self.folder, "pairs.zarr"), order=layout.order, graph=layout.graph,
            metric=source.name, seed=seed, source=source.fingerprint(),
        )  # fmt: skip


@dataclass(frozen=True)
class LocalSite(_Folder):
    """This process, on `n_threads` threads."""

    def sample(self, source: Source, layout: Layout, d0: float, seed: int) -> MemoryPairs:
        if self.folder is None:
            return sample_pairs(source, layout, d0, self.n_threads)
        store = self._store(source, layout, seed)
        chunks = dict(store.missing())
        arranged = Arranged.of(source, layout)
        run_blocks(
            lambda lo: _write_chunk(store, arranged, lo, chunks[lo]), list(chunks), self.n_threads
        )
        store.finish()
        whole = StoredPairs(PairStore.open(store.url), d0).block(0, source.n)
        return MemoryPairs(whole.first, whole.degree, whole.partner, whole.delta)

    def executor(self, problem: Problem, mass: NDArray) -> LocalExecutor:
        return LocalExecutor(problem, mass, self.n_threads)

    def sum_over_pieces(self, task: PieceTask, problem: Problem) -> float:
        with ThreadPoolExecutor(self.n_threads) as pool:
            return math.fsum(pool.map(lambda piece: task(problem, *piece), problem.plan.pieces))


@dataclass(frozen=True)
class ClusterSite(_Folder):
    """The workers of a Dask cluster; `client` is a distributed.Client."""

    client: Any = None

    def sample(self, source: Source, layout: Layout, d0: float, seed: int) -> Pairs:
        if self.folder is None:
            return SourcePairs(Arranged.of(source, layout), d0)
        store = self._store(source, layout, seed)
        arranged = Arranged.of(source, layout)
        run_on_workers(self.client, _write_chunk, store, arranged, items=store.missing())
        store.finish()
        return StoredPairs(PairStore.open(store.url), d0)

    def executor(self, problem: Problem, mass: NDArray) -> ClusterExecutor:
        return ClusterExecutor(self.client, problem, mass, self.checkpoint_every)

    def sum_over_pieces(self, task: PieceTask, problem: Problem) -> float:
        # Runs of pieces, so that the scheduler sees dozens of tasks and not thousands.
        pieces = problem.plan.pieces
        runs = [(pieces[i : i + 32],) for i in range(0, len(pieces), 32)]
        found = run_on_workers(self.client, _each_piece, task, problem, items=runs)
        return math.fsum(value for run in found for value in run)


def _each_piece(
    task: PieceTask, problem: Problem, pieces: Sequence[tuple[int, int]]
) -> list[float]:
    return [task(problem, *piece) for piece in pieces]


def _write_chunk(store: PairStore, arranged: Arranged, lo: int, hi: int) -> None:
    store.write(lo, *arranged.rows(lo, hi))


@dataclass(frozen=True)
class SourcePairs:
    """Pairs made from the source whenever a block is asked for: nothing is stored."""

    arranged: Arranged
    d0: float

    @property
    def n(self) -> int:
        return self.arranged.graph.n

    @property
    def entries(self) -> int:
        return self.arranged.graph.entries

    def block(self, lo: int, hi: int) -> Block:
        partner, degree, D = self.arranged.rows(lo, hi)
        delta = D.reshape(-1)
        transform(delta, self.d0, delta)
        first = np.arange(hi - lo, dtype=np.int64) * self.arranged.graph.k
        return Block(lo, first, degree, partner.ravel(), delta)

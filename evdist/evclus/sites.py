"""Where a fit runs and what it leaves behind: this process or a cluster, with or without a folder.

In a folder (a path or URL that every worker can reach) the pairs are kept in `pairs.zarr` and the
masses in checkpoints, so that the same call goes on where a killed one stopped. Without a folder
pairs are made in memory; so they are for a device, which makes them faster than it could read them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.sources import PairList, Source
from evdist.engine.cluster import ClusterExecutor
from evdist.engine.device import find_device
from evdist.engine.plan import Plan
from evdist.engine.worker_state import RowState
from evdist.engine.workers import run_on_workers
from evdist.evclus.begin import begins_with_groups, has_sparse_rows
from evdist.evclus.groups import START, Groups
from evdist.evclus.irqp import LocalExecutor, WholeExecutor
from evdist.evclus.listed import ListedPairs, is_listed
from evdist.evclus.memory import most_focal_sets
from evdist.evclus.pair_store import PairStore, StoredPairs
from evdist.evclus.problem import Pairs, Problem, in_memory
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.rows.protocol import Masses, Rows, Starter
from evdist.evclus.sampling import Layout, SourcePairs, run_blocks
from evdist.evclus.start import Settings
from evdist.kernels.sparse_rows import labelled
from evdist.kernels.threads import thread_count
from evdist.stores.checkpoint import Checkpoint
from evdist.stores.paths import join

#: Loaded where a GPU is asked for: torch takes seconds.
_DEVICE_ROWS = "evdist.evclus.rows.device"

#: A number for the rows lo..hi-1 of a problem.
PieceTask = Callable[[Problem, int, int], float]


class Site(Protocol):
    """Where the pairs are kept and the sweeps run."""

    @property
    def n_threads(self) -> int: ...

    @property
    def folder(self) -> str | None: ...

    @property
    def checkpoint_every(self) -> int: ...

    @property
    def backend(self) -> Rows: ...

    @property
    def starter(self) -> Starter:
        """What solves the landmarks and places objects against them."""
        ...

    def sample(self, source: Source, layout: Layout, d0: float, seed: int) -> Pairs: ...

    def executor(self, problem: Problem, mass: Masses) -> WholeExecutor: ...

    def sum_over_pieces(self, task: PieceTask, problem: Problem) -> float: ...

    def checkpoint(self, stage: str) -> Checkpoint | None: ...


@dataclass(frozen=True)
class _Folder:
    """What both sites do with a folder; `rows` are those of a device, None for threads."""

    n_threads: int = 1
    folder: str | None = None
    checkpoint_every: int = 5
    rows: Rows | None = None

    @property
    def backend(self) -> Rows:
        return self.rows or NumbaRows(self.n_threads)

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
    """This process: `n_threads` threads, or a device."""

    @property
    def starter(self) -> Starter:
        return self.backend

    def sample(self, source: Source, layout: Layout, d0: float, seed: int) -> Pairs:
        if self.folder is None or self.rows is not None:
            return self.backend.pairs(source, layout, d0)
        store = self._store(source, layout, seed)
        chunks = dict(store.missing())
        made = SourcePairs.in_order(source, layout)
        run_blocks(
            lambda lo: _write_chunk(store, made, lo, chunks[lo]), list(chunks), self.n_threads
        )
        store.finish()
        stored = StoredPairs(PairStore.open(store.url), d0)
        return ListedPairs.of(stored, self.n_threads) if is_listed(stored) else in_memory(stored)

    def executor(self, problem: Problem, mass: Masses) -> LocalExecutor:
        return LocalExecutor(problem, self.backend.state(problem, mass))

    def sum_over_pieces(self, task: PieceTask, problem: Problem) -> float:
        with ThreadPoolExecutor(self.n_threads) as pool:
            return math.fsum(pool.map(lambda piece: task(problem, *piece), problem.plan.pieces))


@dataclass(frozen=True)
class ClusterSite(_Folder):
    """The workers of a Dask cluster; `client` is a distributed.Client."""

    client: Any = None

    @property
    def starter(self) -> Starter:
        """Threads of the client's process; of several devices, one: the client needs none."""
        return self.backend if self.rows is None else _OnOneWorker(self.client, self.rows)

    def sample(self, source: Source, layout: Layout, d0: float, seed: int) -> Pairs:
        if self.rows is not None:
            # Each worker makes those of its pieces; `block` is for a look at a few of them here.
            return SourcePairs(source, layout.graph, layout.order, d0)
        if self.folder is None:
            return SourcePairs.in_order(source, layout, d0)
        store = self._store(source, layout, seed)
        made = SourcePairs.in_order(source, layout)
        run_on_workers(self.client, _write_chunk, store, made, items=store.missing())
        store.finish()
        return StoredPairs(PairStore.open(store.url), d0)

    def executor(self, problem: Problem, mass: Masses) -> ClusterExecutor:
        shared = _SharedProblem(problem, self.backend)
        return ClusterExecutor(self.client, shared, mass, self.checkpoint_every)

    def sum_over_pieces(self, task: PieceTask, problem: Problem) -> float:
        # Runs of pieces, so that the scheduler sees dozens of tasks and not thousands.
        pieces = problem.plan.pieces
        runs = [(pieces[i : i + 32],) for i in range(0, len(pieces), 32)]
        found = run_on_workers(self.client, _each_piece, self.backend, task, problem, items=runs)
        return math.fsum(value for run in found for value in run)


def site_of(model: Any, client: Any, rows: Rows | None = None) -> Site:
    """Where an estimator with `n_jobs` and `checkpoint` fits: `rows` are those of a device."""
    folder = None if model.checkpoint is None else str(model.checkpoint)
    threads = thread_count(model.n_jobs)
    if client is None:
        return LocalSite(threads, folder, model.checkpoint_every, rows)
    return ClusterSite(threads, folder, model.checkpoint_every, rows, client)


def has_device(model: Any, client: Any) -> bool:
    """Whether `device` of an estimator means a GPU, here or of the workers."""
    return find_device(model.device, client) is not None


def takes_groups(
    model: Any, data: Source | PairList, settings: Settings, linked: bool, client: Any
) -> bool:
    """Whether a fit of an EVCLUS `model` with many clusters may begin with groups.

    On a device where its rows are lists: dense rows know no near pairs there.
    """
    device = find_device(model.device, client)
    if device is None:
        return True
    return str(device).startswith("cuda") and rows_are_lists(data, settings, linked)


def rows_are_lists(data: Source | PairList, settings: Settings, linked: bool) -> bool:
    """Whether the rows of a fit that may begin with groups are lists of clusters."""
    family = settings.focal_sets
    if linked or isinstance(data, PairList) or family == "select":
        return False
    sets = getattr(FocalSets, family)(settings.n_clusters) if isinstance(family, str) else family
    return has_sparse_rows(sets, settings) and begins_with_groups(data.n, sets, settings)


def row_kernel(lists: bool) -> tuple[str, int]:
    """The function that updates rows on threads, and the seconds that numba takes for all of them.

    Measured on two cores with nothing else to do, as all numbers of this kind.
    """
    if lists:
        return "evdist.evclus.rows.sparse_sweep:update_sparse", 20
    return "evdist.evclus.rows.sweep:update_rows", 12


def device_rows(
    model: Any, data: Source | PairList, settings: Settings, linked: bool, client: Any
) -> Rows | None:
    """The rows of the device of an EVCLUS `model`, if it has the memory; None for threads."""
    device = find_device(model.device, client)
    if device is None:
        return None
    if isinstance(data, PairList):
        raise ValueError(
            "A list of pairs has a graph of its own, which the GPU's sweeps cannot follow. Use "
            "device='cpu', or pass the attributes or a square matrix."
        )
    rows = import_module(_DEVICE_ROWS).DeviceRows(str(device), model.memory_limit)
    f = most_focal_sets(settings)
    return rows.prepared(data, settings.k, f, linked, client, lists=settings.lists)


def plain_rows(model: Any, client: Any = None) -> Rows:
    """The rows of an EVCLUS `model`: of its device, here or of the workers, or threads.

    For new objects and for partitions, which choose by themselves where pairs lie.
    """
    device = find_device(model.device, client)
    if device is None:
        return NumbaRows(thread_count(model.n_jobs))
    return import_module(_DEVICE_ROWS).DeviceRows(str(device), model.memory_limit)


@dataclass(frozen=True)
class _SharedProblem:
    """A problem and the backend that every worker solves it with."""

    problem: Problem
    rows: Rows

    @property
    def device_group(self) -> Callable[[], Hashable] | None:
        return self.rows.device_group

    @property
    def n(self) -> int:
        return self.problem.n

    @property
    def sparse(self) -> bool:
        return self.problem.sparse

    @property
    def plan(self) -> Plan:
        return self.problem.plan

    def state(self, mass: NDArray, pieces: Sequence[int], n_threads: int, number: int) -> RowState:
        return self.rows.on_worker(n_threads, number).state(self.problem, mass, pieces)


@dataclass(frozen=True)
class _OnOneWorker:
    """A `Starter` whose work is done by any one worker."""

    client: Any
    rows: Rows

    def solve(self, *problems: Any) -> list:
        return self._call("solve", *problems)

    def assign(self, placing: Any) -> NDArray[np.float32]:
        return self._call("assign", placing)

    def groups(self, source: Source, n_clusters: int, seed: int, n_threads: int) -> Groups:
        return self._call("groups", source, n_clusters, seed, n_threads)

    def labelled(self, groups: Groups) -> NDArray[np.float32]:
        # They are sent to every worker, from here.
        return labelled(groups.labels, START)

    def _call(self, name: str, *args: Any) -> Any:
        (found,) = run_on_workers(self.client, _call_rows, self.rows, name, *args, items=[()])
        return found


def _call_rows(rows: Rows, name: str, *args: Any) -> Any:
    found = getattr(rows, name)(*args)
    return rows.on_host(found) if name == "assign" else found


def _each_piece(
    rows: Rows, task: PieceTask, problem: Problem, pieces: Sequence[tuple[int, int]]
) -> list[float]:
    problem = rows.for_sums(problem)
    return [task(problem, *piece) for piece in pieces]


def _write_chunk(store: PairStore, made: SourcePairs, lo: int, hi: int) -> None:
    store.write(lo, *made.rows(lo, hi))

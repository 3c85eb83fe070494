"""Many focal sets, pairs beyond the GPU's memory, several workers: parts of gpu_speed.py.

`stream` compares a fit with its dissimilarities on the GPU with the same fit within a limit of
memory; `workers` needs Dask's distributed beside NumPy and torch; `answer` compares with what
gpu_answer.py has found on a CPU.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bounds import Bounds
from evdist.evclus.gpu import memory
from evdist.evclus.gpu.fit import DeviceFit, fit_on_device
from evdist.evclus.gpu.pairs import RowPairs
from evdist.evclus.gpu.share import DeviceProblem, DeviceShare, Terms, by_colour, keep_pieces
from evdist.kernels.circulant import Circulant
from torch import Tensor

from evdist.belief import FocalSets
from evdist.engine.plan import Plan
from evdist.evclus.rows.arrays import Graph
from evdist.evclus.rows.attributes import CODES
from evdist.evclus.rows.cuda import MAX_FOCAL_SETS
from evdist.evclus.rows.kept import Hosted, Recomputed, Resident, cut, keep

__all__ = ["answer", "focal", "stream", "workers"]

Maker = Callable[[int, int], tuple[Tensor, Tensor]]


def timed(X: Tensor, c: int, **options: Any) -> tuple[DeviceFit, float, float]:
    """A fit, its seconds, and the median seconds of its sweeps."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    moments: list[float] = []
    found = fit_on_device(
        X, c, report=lambda sweep, objective: moments.append(time.perf_counter()), **options
    )
    torch.cuda.synchronize()
    sweeps = np.diff(moments) if len(moments) > 1 else [math.nan]
    return found, time.perf_counter() - begin, float(np.median(sweeps))


def focal(bounds: Bounds, blobs: Maker) -> None:
    """10^5 objects, d = 10, k = 100, with ever more focal sets."""
    X, _ = blobs(100_000, 10)
    bounds.head(f"focal sets, n = 10^5, d = 10, k = 100, {torch.cuda.get_device_name()}")
    for c, sets in (
        (10, FocalSets.simple(10)),
        (10, FocalSets.pairs(10)),
        (12, FocalSets.pairs(12)),
        (15, FocalSets.pairs(15)),
        (16, FocalSets.pairs(16)),
    ):
        f = len(sets)
        many = f > MAX_FOCAL_SETS  # in torch: some sweeps tell how long one takes
        options = {"focal_sets": sets, "d0": 6.0, "max_iter": 8 if many else 200}
        if many:
            options["init"] = "random"
        fit_on_device(X[:5000], c, **{**options, "max_iter": 2})  # compile
        found, took, sweep = timed(X, c, **options)
        bounds.note(f"f = {f}: a sweep, ms", sweep * 1e3)
        how = "from random masses" if many else "from landmarks"
        bounds.note(f"f = {f}: {len(found.history) - 1} sweeps {how}, s", took)


def stream(bounds: Bounds, blobs: Maker) -> None:
    """The same fit with its dissimilarities on the GPU, made in every sweep, and sent."""
    _three_fits(bounds, blobs(10**7, 10)[0])
    _three_sweeps(bounds, blobs)
    n, k, d = 10**8, 400, 8
    X, _ = blobs(n, d)
    torch.cuda.reset_peak_memory_stats()
    found, took, sweep = timed(X, 10, n_dissimilarities=k, d0=5.0, max_iter=4)
    bounds.head(f"n = 10^8, d = 8, k = 400: {4 * k * n / 1e9:.0f} GB of dissimilarities")
    bounds.note(f"kept: {found.kept}; start and 4 sweeps, s", took)
    bounds.note("a sweep, s", sweep)
    bounds.note("peak of device memory, GB", torch.cuda.max_memory_allocated() / 1e9, digits=1)
    bounds.note("objective at the start", found.history[0], digits=6)
    bounds.at_most("objective after 4 sweeps", found.objective, found.history[0], digits=6)


def _three_fits(bounds: Bounds, X: Tensor) -> None:
    """Fits with a limit below what the dissimilarities need."""
    narrow = memory.NARROW
    fit_on_device(X[:20_000], 10)  # compile
    whole, at_once, one = timed(X, 10)
    bounds.head(f"n = 10^7, d = 10, k = 100, {torch.cuda.get_device_name()}")
    bounds.note(f"kept: {whole.kept}; fit, s", at_once)
    bounds.note("a sweep, ms", one * 1e3)
    for memory.NARROW in (narrow, 0):
        torch.cuda.empty_cache()
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        found, took, sweep = timed(X, 10, memory_limit=32 * 10**8)
        peak = torch.cuda.max_memory_allocated() - held
        bounds.note(f"kept: {found.kept}; fit within 3.2 GB, s", took)
        bounds.note("a sweep, ms", sweep * 1e3)
        bounds.at_most("peak of memory beside the data, GB", peak / 1e9, 3.2, digits=2)
        different = float((found.mass != whole.mass).sum())
        bounds.at_most("bits that differ", different, 0, digits=0)
    memory.NARROW = narrow


def _three_sweeps(bounds: Bounds, blobs: Maker) -> None:
    """How wide rows may be so that comparing them again is faster than sending what was found."""
    n, k = 1_000_000, 100
    graph = Circulant.draw(n, k, np.random.default_rng(0))
    bounds.head(f"all dissimilarities once, n = 10^6, k = 100; narrow are up to {memory.NARROW}")
    for d in (10, 64, 256):
        X, _ = blobs(n, d)
        pairs = RowPairs(graph, X.cpu().numpy(), np.arange(n), d, CODES["euclidean"], 6.0)
        there = Graph.of(graph, X.device)
        make, pieces = pairs.maker(there, X.device), cut(there.bounds)
        like = torch.empty(k, 0, device=X.device)
        for where, name in (("host", Hosted), ("recomputed", Recomputed)):
            kept = keep(where, make, pieces, memory.TILE_BYTES // (4 * k), like)
            assert isinstance(kept, name) and not isinstance(kept, Resident)
            times = []
            for _ in range(4):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for colour in range(graph.colours):
                    for _ in kept.parts(colour):
                        pass
                torch.cuda.synchronize()
                times.append(time.perf_counter() - begin)
            bounds.note(f"d = {d}: {where}, ms", float(np.median(times)) * 1e3)
            del kept


# ---------------------------------------------------------------------- several workers
def _random_problem(X: Tensor, k: int, c: int, device: str) -> tuple[DeviceProblem, np.ndarray]:
    """A problem on data, and random masses to start from."""
    rng = np.random.default_rng(0)
    graph = Circulant.draw(len(X), k, rng)
    sets = FocalSets.simple(c)
    pairs = RowPairs(
        graph, X.cpu().numpy(), rng.permutation(len(X)), X.shape[1], CODES["euclidean"], 6.0
    )
    terms = Terms(np.asarray(sets.C, np.float32)[None], Plan.of(graph.bounds), np.zeros(0))
    mass = rng.dirichlet(np.ones(len(sets)), len(X)).astype(np.float32)
    return DeviceProblem(terms, pairs, device), mass


class _Alone:
    """One process with all rows, as an executor of sweeps."""

    def __init__(self, problem: DeviceProblem, mass: np.ndarray):
        self._n, self._steps = problem.n, len(problem.plan.steps)
        self._share = problem.share(mass, range(len(problem.plan.pieces)), 1, 0)

    def sweep(self) -> float:
        for step in range(self._steps):
            self._share.advance(step)
        return math.fsum(self._share.changes().values())

    def masses(self) -> np.ndarray:
        return self._share.masses(0, self._n)

    def close(self) -> None:
        del self._share


def _swept(executor: Any, sweeps: int) -> tuple[list[float], np.ndarray, float]:
    """Changes of the sum, masses, and the median seconds of a sweep."""
    changes, times = [], []
    for _ in range(sweeps):
        begin = time.perf_counter()
        changes.append(executor.sweep())
        times.append(time.perf_counter() - begin)
    mass = executor.masses()
    executor.close()
    return changes, mass, float(np.median(times))


def workers(bounds: Bounds, blobs: Maker, device: str = "cuda", n: int = 10**6) -> None:
    """One and two Dask workers, on one GPU where there is only one, against a process alone."""
    from distributed import Client, LocalCluster

    from evdist.engine.cluster import ClusterExecutor

    X, _ = blobs(n, 10)
    problem, mass = _random_problem(X, 100, 10, device)
    changes, right, alone = _swept(_Alone(problem, mass), 6)
    bounds.head(f"workers, n = {n:,}, d = 10, k = 100, c = 10, from random masses")
    bounds.note("a process alone: a sweep, ms", alone * 1e3)
    for count in (1, 2):
        with (
            LocalCluster(
                n_workers=count, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            found, same, took = _swept(ClusterExecutor(client, problem, mass), 6)
            name = f"{count} worker{'s' * (count > 1)}"
            bounds.note(f"{name}: a sweep, ms", took * 1e3)
            bounds.at_most(f"{name}: bits that differ", float((same != right).sum()), 0, digits=0)
            off = float(found != changes)
            bounds.at_most(f"{name}: changes that differ", off, 0, digits=0)
            if count == 2:
                there = ClusterExecutor(client, problem, mass)
                for sweep in range(6):
                    if sweep == 3:
                        os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
                    there.sweep()
                off = float((there.masses() != right).sum())
                there.close()
                bounds.at_most("a worker killed: bits that differ", off, 0, digits=0)


# ---------------------------------------------------------------------- against the CPU
def answer(bounds: Bounds, folder: Path, device: str = "cuda") -> None:
    """The problem of gpu_answer.py, from the same start to the same tolerance."""
    with np.load(folder / "answer.npz") as stored:
        known = dict(stored)
    X = known["X"]
    offsets, shifts = (tuple(known[name].tolist()) for name in ("offsets", "shifts"))
    graph = Circulant(len(X), int(known["colours"]), offsets, shifts)
    order, sets = known["order"], FocalSets.pairs(10)
    pairs = RowPairs(graph, X, order, X.shape[1], CODES["euclidean"], float(known["d0"]))
    plan = Plan.of(graph.bounds)
    terms = Terms(np.asarray(sets.C, np.float32)[None], plan, np.zeros(0))
    there = Graph.of(graph, torch.device(device))
    every = range(len(plan.pieces))
    mine = by_colour(plan, there, every)
    kept = keep_pieces(pairs, there, mine, torch.device(device), "device", 0)
    share = DeviceShare(terms, known["start"][order], every, there, kept)

    def objective() -> float:
        return math.fsum(s for s, _ in share.objective().values()) / graph.entries

    now, error, sweeps = objective(), 1.0, 0
    while error >= float(known["tol"]) and sweeps < 6000:
        for step in range(len(plan.steps)):
            share.advance(step)
        before, sweeps = now, sweeps + 1
        now += 2 * math.fsum(share.changes().values()) / graph.entries
        error = 0.5 * error + 0.5 * abs(before - now) / before
    now = objective()
    mass = np.empty((len(X), len(sets)), np.float32)
    mass[order] = share.masses(0, len(X))
    labels = (mass.astype(float) @ sets.matrix).argmax(axis=1)
    bounds.head(f"against the CPU, n = {len(X)}, k = {graph.k}, f = {len(sets)}, tol = 1e-10")
    bounds.note(f"objective of the CPU, x 1000, {int(known['sweeps'])} sweeps",
                1e3 * float(known["objective"]), digits=9)  # fmt: skip
    bounds.note(f"objective of the GPU, x 1000, {sweeps} sweeps", 1e3 * now, digits=9)
    off = abs(now / float(known["objective"]) - 1)
    bounds.at_most("relative difference", off, 1e-5, digits=9)
    bounds.at_most("labels that differ", float((labels != known["labels"]).sum()), 0, digits=0)

"""Many focal sets, pairs beyond the GPU's memory, several workers: parts of gpu_speed.py.

`stream` compares a fit with its dissimilarities on the GPU with the same fit within a limit of
memory; `workers` starts Dask workers; `answer` compares with what gpu_answer.py has found on a CPU.
"""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bounds import Bounds

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.engine.progress import Progress
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.rows import memory
from evdist.evclus.rows.arrays import Graph
from evdist.evclus.rows.cuda import MAX_FOCAL_SETS
from evdist.evclus.rows.device import DeviceRows
from evdist.evclus.rows.device_pairs import by_colour, keep_pieces
from evdist.evclus.rows.memory import Choice
from evdist.evclus.sampling import SourcePairs, draw_layout
from evdist.evclus.sites import ClusterSite

__all__ = ["answer", "focal", "stream", "timed", "workers"]

Maker = Callable[[int, int], tuple[np.ndarray, np.ndarray]]


def timed(X: np.ndarray, c: int, **options: Any) -> tuple[EVCLUS, float, float, str]:
    """A fit, its seconds, the median seconds of its sweeps, and where the pairs were kept."""
    moments: list[float] = []
    stages: list[str] = []

    def hear(news: Progress) -> None:
        stages.append(news.stage)
        if news.sweep:
            moments.append(time.perf_counter())

    options = {"random_state": 0, "device": "cuda", "callbacks": [hear], **options}
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some parts stop early on purpose
        model = EVCLUS(c, **{"metric": "euclidean", **options}).fit(X)
    took = time.perf_counter() - begin
    sweeps = np.diff(moments) if len(moments) > 1 else [math.nan]
    kept = next((s for s in stages if s.startswith("dissimil")), "dissimilarities on the GPU")
    return model, took, float(np.median(sweeps)), kept


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
        options: dict[str, Any] = {"focal_sets": sets, "d0": 6.0, "max_iter": 8 if many else 200}
        if many:
            options["init"] = "random"
        timed(X[:5000], c, **{**options, "max_iter": 2})  # compile
        found, took, sweep, _ = timed(X, c, **options)
        bounds.note(f"f = {f}: a sweep, ms", sweep * 1e3)
        how = "from random masses" if many else "from landmarks"
        bounds.note(f"f = {f}: {found.n_iter_} sweeps {how}, s", took)


def stream(bounds: Bounds, blobs: Maker) -> None:
    """The same fit with its dissimilarities on the GPU, made in every sweep, and sent."""
    _three_fits(bounds, blobs(10**7, 10)[0])
    _three_sweeps(bounds, blobs)
    n, k, d = 10**8, 400, 8
    X, _ = blobs(n, d)
    torch.cuda.reset_peak_memory_stats()
    found, took, sweep, kept = timed(X, 10, n_dissimilarities=k, d0=5.0, max_iter=4)
    bounds.head(f"n = 10^8, d = 8, k = 400: {4 * k * n / 1e9:.0f} GB of dissimilarities")
    bounds.note(f"{kept}; start and 4 sweeps, s", took)
    bounds.note("a sweep, s", sweep)
    bounds.note("peak of device memory, GB", torch.cuda.max_memory_allocated() / 1e9, digits=1)
    bounds.note("objective at the start", found.history_[0], digits=6)
    bounds.at_most("objective after 4 sweeps", found.objective_, found.history_[0], digits=6)


def _three_fits(bounds: Bounds, X: np.ndarray) -> None:
    """Fits with a limit below what the dissimilarities need."""
    narrow = memory.NARROW
    timed(X[:20_000], 10)  # compile
    whole, at_once, one, kept = timed(X, 10)
    bounds.head(f"n = 10^7, d = 10, k = 100, {torch.cuda.get_device_name()}")
    bounds.note(f"{kept}; fit, s", at_once)
    bounds.note("a sweep, ms", one * 1e3)
    for memory.NARROW in (narrow, 0):
        torch.cuda.empty_cache()
        held = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        found, took, sweep, kept = timed(X, 10, memory_limit=32 * 10**8)
        peak = torch.cuda.max_memory_allocated() - held
        bounds.note(f"{kept}; fit within 3.2 GB, s", took)
        bounds.note("a sweep, ms", sweep * 1e3)
        bounds.at_most("peak of memory, GB", peak / 1e9, 3.2, digits=2)
        a, b = (np.asarray(m.credal_partition_.mass) for m in (found, whole))
        bounds.at_most("masses that differ", float((a != b).sum()), 0, digits=0)
    memory.NARROW = narrow


def _three_sweeps(bounds: Bounds, blobs: Maker) -> None:
    """How wide rows may be so that comparing them again is faster than sending what was found."""
    n, k, gpu = 1_000_000, 100, torch.device("cuda")
    layout = draw_layout(n, k, 0)
    plan = Plan.of(layout.bounds)
    bounds.head(f"all dissimilarities once, n = 10^6, k = 100; narrow are up to {memory.NARROW}")
    for d in (10, 64, 256):
        pairs = SourcePairs(
            AttributeSource.of(blobs(n, d)[0], "euclidean"), layout.graph, layout.order, 6.0
        )
        graph = Graph.of(layout.graph, gpu)
        pieces = by_colour(plan, graph.bounds, range(len(plan.pieces)))
        for where in ("host", "recomputed"):
            choice = Choice(where, memory.TILE_BYTES // (4 * k))
            kept = keep_pieces(pairs, graph, pieces, gpu, choice)
            times = []
            for _ in range(4):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for colour in range(layout.graph.colours):
                    for _ in kept.parts(colour):
                        pass
                torch.cuda.synchronize()
                times.append(time.perf_counter() - begin)
            bounds.note(f"d = {d}: {where}, ms", float(np.median(times)) * 1e3)
            del kept


# ---------------------------------------------------------------------- several workers
def _random_problem(X: np.ndarray, k: int, c: int) -> tuple[Problem, np.ndarray]:
    """A problem on data, and random masses to start from."""
    layout, sets = draw_layout(len(X), k, 0), FocalSets.simple(c)
    source = AttributeSource.of(X, "euclidean")
    pairs = SourcePairs(source, layout.graph, layout.order, 6.0)
    mass = np.random.default_rng(0).dirichlet(np.ones(len(sets)), len(X)).astype(np.float32)
    return Problem(sets, pairs, Plan.of(layout.bounds)), mass


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
    from distributed import Client, LocalCluster  # a bare GPU machine may lack it

    problem, mass = _random_problem(blobs(n, 10)[0], 100, 10)
    rows = DeviceRows(device)
    changes, right, alone = _swept(rows.executor(problem, mass), 6)
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
            site = ClusterSite(rows=rows, client=client)
            found, same, took = _swept(site.executor(problem, mass), 6)
            name = f"{count} worker{'s' * (count > 1)}"
            bounds.note(f"{name}: a sweep, ms", took * 1e3)
            bounds.at_most(f"{name}: bits that differ", float((same != right).sum()), 0, digits=0)
            off = float(found != changes)
            bounds.at_most(f"{name}: changes that differ", off, 0, digits=0)
            if count == 2:
                there = site.executor(problem, mass)
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
    found, *_ = timed(
        known["X"], 10, n_dissimilarities=len(known["offsets"]), focal_sets="pairs",
        d0=float(known["d0"]), init=known["start"], tol=float(known["tol"]), max_iter=6000,
        device=device,
    )  # fmt: skip
    bounds.head(f"against the CPU, n = {len(known['X'])}, f = 57, tol = 1e-10")
    bounds.note(f"objective of the CPU, x 1000, {int(known['sweeps'])} sweeps",
                1e3 * float(known["objective"]), digits=9)  # fmt: skip
    bounds.note(f"objective of the GPU, x 1000, {found.n_iter_} sweeps",
                1e3 * found.objective_, digits=9)  # fmt: skip
    off = abs(found.objective_ / float(known["objective"]) - 1)
    bounds.at_most("relative difference", off, 1e-5, digits=9)
    different = float((found.labels_ != known["labels"]).sum())
    bounds.at_most("labels that differ", different, 0, digits=0)

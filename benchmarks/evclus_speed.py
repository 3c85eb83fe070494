"""How fast EVCLUS is, and how much memory it takes.

    python benchmarks/evclus_speed.py             all parts, one after the other
    python benchmarks/evclus_speed.py sweep       CPU time of a sweep against R and a bare gather
    python benchmarks/evclus_speed.py million     10^5 and 10^6 objects on this machine
    python benchmarks/evclus_speed.py dask        two threads against two Dask workers, and a kill

Absolute times belong to the machine that printed them; the ratios were measured in one run each.
Every part runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.evclus.irqp import LocalExecutor
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sampling import draw_layout, random_dissimilarities, sample_pairs
from evdist.kernels.vector import aligned_zeros

REFERENCE = Path(__file__).parents[2] / "shared" / "reference" / "timings.json"
#: R needs this many CPU seconds per row and sweep at n = 10,000, k = 100, c = 4 (its best run,
#: on another machine); used when the reference file is not there.
R_SECONDS_PER_ROW = 1.65e-4
#: The sweep after which a worker is killed; a fit has three at least.
KILLED_AFTER = 2


def blobs(n: int, d: int = 10, c: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Unit Gaussians round centres of spread 3: clusters that touch a little."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, c, n)
    return (rng.normal(0, 3, (c, d))[y] + rng.normal(size=(n, d))).astype(np.float32), y


@njit(nogil=True)
def bare_gather(table, index):
    """Touch one number of each cache line, in the given order."""
    total = np.float32(0)
    for i in range(index.size):
        total += table[index[i], 0]
    return total


def best_of(call, times: int) -> float:
    """Least CPU time of several calls, in seconds: what is left when others do not disturb."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return min(found)


def executor_of(X: np.ndarray, c: int, quantile: float) -> LocalExecutor:
    """A problem in mid-fit: landmark start, then a few sweeps on one thread."""
    source = AttributeSource.of(X, "euclidean")
    layout = draw_layout(len(X), 100, 0)
    d0 = float(np.quantile(random_dissimilarities(source, 0), quantile))
    pairs = sample_pairs(source, layout, d0, 1)
    start = EVCLUS(c, metric="euclidean", d0=d0, random_state=0, max_iter=1, tol=1.0, n_jobs=1).fit(
        X
    )
    mass = np.asarray(start.credal_partition_.mass)[layout.order]
    problem = Problem(FocalSets.simple(c), pairs, Plan.of(layout.bounds))
    executor = NumbaRows().executor(problem, mass)
    for _ in range(3):
        executor.sweep()
    return executor


def sweep() -> None:
    """CPU microseconds per row and sweep, one thread: against R and against a bare gather."""
    r = R_SECONDS_PER_ROW
    if REFERENCE.exists():
        runs = json.loads(REFERENCE.read_text())["runs"]
        r = min(
            x["user_s_per_iteration"] / 10_000 for x in runs if x["task"] == "kevclus_gauss4_10000"
        )
    rng = np.random.default_rng(1)
    centres = np.array([[0, 0], [0, 4], [4, 0], [4, 4]])
    X = centres[rng.integers(0, 4, 10_000)] + rng.normal(size=(10_000, 2))
    ours = best_of(executor_of(X, 4, 0.9).sweep, 200) / 10_000
    print("n = 10,000, k = 100, c = 4, one thread")
    print(f"  R kevclus   {r * 1e6:8.2f} us a row (its machine)")
    print(f"  evdist      {ours * 1e6:8.2f} us a row   {r / ours:.0f} times less")

    n = 1_000_000
    executor = executor_of(blobs(n)[0], 10, 0.2)
    table = aligned_zeros(n, 16)
    table[:] = 1  # pages that were never written all share one page of zeros, in the cache
    rows = n // 5
    index = rng.integers(0, n, rows * 100).astype(np.uint32)
    bare_gather(table, index[:100])
    gather, swept = [], []
    for _ in range(5):  # by turns: both see the same disturbances
        gather.append(best_of(lambda: bare_gather(table, index), 1) / rows)
        swept.append(best_of(executor.sweep, 1) / n)
    ratio = min(swept) / min(gather)
    print("n = 1,000,000, k = 100, c = 10, one thread")
    print(f"  bare random gather of as many cache lines {min(gather) * 1e6:6.2f} us a row")
    print(f"  sweep                                     {min(swept) * 1e6:6.2f} us a row")
    print(f"  ratio {ratio:.2f} (bound 4)")


def million() -> None:
    """Sampling + fit at 10^5 and 10^6; CPU against scikit-learn's GaussianMixture."""
    EVCLUS(10, metric="euclidean", random_state=0).fit(blobs(5_000)[0])  # compile
    walls = {}
    for n in (100_000, 1_000_000):
        X, y = blobs(n)
        wall, cpu = time.perf_counter(), time.process_time()
        model = EVCLUS(10, metric="euclidean", random_state=0).fit(X)
        walls[n] = time.perf_counter() - wall
        cpu = time.process_time() - cpu
        ari = adjusted_rand_score(y, model.labels_)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"n = {n:>9,}: {walls[n]:6.1f} s wall, {cpu:6.1f} s CPU, {model.n_iter_} sweeps, "
            f"ARI {ari:.4f}, peak memory {peak:.2f} GB"
        )
    print(f"t(10^6) / t(10^5) = {walls[1_000_000] / walls[100_000]:.1f} (bound 12)")
    # Two threads of one core disturb each other: CPU times are compared on one thread each.
    ours: list[float] = []
    peers: list[float] = []
    with threadpool_limits(1):
        for _ in range(3):  # by turns: both see the same disturbances
            mixture = GaussianMixture(10, random_state=0)
            peers.append(best_of(partial(mixture.fit, X), 1))
            ours.append(
                best_of(partial(EVCLUS(10, metric="euclidean", random_state=0, n_jobs=1).fit, X), 1)
            )
    ari = adjusted_rand_score(y, mixture.predict(X))
    print(f"one thread: GaussianMixture(10), full covariances, ARI {ari:.4f}")
    for s, t in zip(ours, peers, strict=True):
        print(f"  EVCLUS {s:.1f} s CPU, the mixture {t:.1f} s, {s / t:.2f} times as much")
    print(f"  the least of each: {min(ours) / min(peers):.2f} times as much (bound 2.5)")


def dask() -> None:
    """Two threads of one process against two single-thread workers; then kill -9 one of them."""
    from distributed import Client, LocalCluster

    X, _ = blobs(1_000_000)
    small, _ = blobs(20_000)
    EVCLUS(10, metric="euclidean", random_state=0).fit(small)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        EVCLUS(10, metric="euclidean", random_state=0).fit(
            small, client=client
        )  # compile on the workers
        seconds: dict[str, list[float]] = {"threads": [], "workers": []}
        for _ in range(7):  # by turns: one fit may take half as long again as the same one before
            begin = time.perf_counter()
            here = EVCLUS(10, metric="euclidean", random_state=0, n_jobs=2).fit(X)
            middle = time.perf_counter()
            there = EVCLUS(10, metric="euclidean", random_state=0, n_jobs=2).fit(X, client=client)
            took = {"threads": middle - begin, "workers": time.perf_counter() - middle}
            for name, s in took.items():
                seconds[name].append(s)
            same = np.array_equal(here.credal_partition_.mass, there.credal_partition_.mass)
            same &= here.history_ == there.history_
            told = ", ".join(f"two {name} {s:.1f} s" for name, s in took.items())
            print(f"{told}, same bits: {same}")
        for name, of in (("medians", np.median), ("least", min)):
            ratio = of(seconds["workers"]) / of(seconds["threads"])
            print(f"two workers against two threads, {name}: {ratio:.2f} (bound 1.25)")
        victim = next(iter(client.run(os.getpid).values()))
        killed: list[int] = []

        def kill(news) -> None:
            if news.sweep == KILLED_AFTER and not killed:
                killed.append(victim)
                os.kill(victim, signal.SIGKILL)

        begin = time.perf_counter()
        model = EVCLUS(10, metric="euclidean", random_state=0, n_jobs=2, callbacks=[kill]).fit(
            X, client=client
        )
        same = np.array_equal(here.credal_partition_.mass, model.credal_partition_.mass)
        print(
            f"kill -9 of a worker after sweep {KILLED_AFTER} of {model.n_iter_}: "
            f"{time.perf_counter() - begin:.1f} s, same bits: {bool(killed) and same}"
        )


PARTS = {"sweep": sweep, "million": million, "dask": dask}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        PARTS[sys.argv[1]]()
    else:
        for part in PARTS:
            print(f"--- {part}", flush=True)
            subprocess.run([sys.executable, __file__, part], check=True)

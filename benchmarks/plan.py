"""Whether `evdist plan` tells the truth: its model of time and of memory beside what is measured.

    python benchmarks/plan.py             both parts, a few minutes
    python benchmarks/plan.py sweep       CPU time of a full sweep, over k and the focal sets
    python benchmarks/plan.py memory      peak memory of scheduler, workers and flow run of a job

Bounds: time within a factor of 2 (the constants are of one machine), memory never above the plan.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.evclus.problem import Plan as Pieces
from evdist.evclus.problem import Problem
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sampling import draw_layout, random_dissimilarities, sample_pairs
from evdist.service.jobs.plan import Plan, seconds_per_row

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent


def blobs(n: int, d: int, c: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 3, (c, d))
    return (centres[rng.integers(0, c, n)] + rng.normal(size=(n, d))).astype(np.float32)


def measured(n: int, k: int, c: int) -> float:
    """CPU seconds per row of a full sweep on one thread, in mid-fit: the best of three."""
    X = blobs(n, 10, c)
    source = AttributeSource.of(X, "euclidean")
    layout = draw_layout(n, k, 0)
    d0 = float(np.quantile(random_dissimilarities(source, 0), 0.3))
    pairs = sample_pairs(source, layout, d0, 1)
    start = EVCLUS(
        c,
        metric="euclidean",
        d0=d0,
        n_dissimilarities=k,
        random_state=0,
        max_iter=1,
        tol=1.0,
        n_jobs=1,
    )
    mass = np.asarray(start.fit(X).credal_partition_.mass)[layout.order]
    problem = Problem(FocalSets.simple(c), pairs, Pieces.of(layout.bounds))
    executor = NumbaRows().executor(problem, mass)
    found = []
    for _ in range(4):
        begin = time.process_time()
        executor.sweep()
        found.append(time.process_time() - begin)
    return min(found[1:]) / n


def sweep(n: int = 200_000) -> None:
    print(f"a full sweep, one thread, n = {n:,}: CPU microseconds per row")
    print(f"{'k':>5} {'c':>4} {'f':>4} {'measured':>9} {'plan':>7} {'ratio':>6}  bound 0.5 to 2")
    for k, c in ((50, 10), (100, 4), (100, 10), (100, 20), (100, 40), (200, 10)):
        seconds, planned = measured(n, k, c), seconds_per_row(k, c + 2)
        ratio = seconds / planned
        print(f"{k:5} {c:4} {c + 2:4} {seconds * 1e6:9.2f} {planned * 1e6:7.2f} {ratio:6.2f}")


def memory(n: int = 300_000, d: int = 64, c: int = 20) -> None:
    """Peak resident memory of real processes during a job, against what the plan says is needed."""
    plan = Plan.of(n, d, c, workers=2, threads=1)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "objects.npy", blobs(n, d, c))
        peaks = _job(Path(folder), c)
    wanted = {
        "worker": (max(peaks["worker"]), plan.worker_need),
        "scheduler": (peaks["scheduler"], plan.scheduler_need),
        "flow run": (peaks["run"], plan.run_need),
    }
    print(f"a job of {n:,} x {d}, c = {c}, on two workers: peak memory in MB")
    print(f"{'process':>10} {'measured':>9} {'plan':>7} {'ratio':>6}  bound 1")
    for name, (peak, need) in wanted.items():
        print(f"{name:>10} {peak / 1e6:9.0f} {need / 1e6:7.0f} {peak / need:6.2f}")


def _job(folder: Path, c: int) -> dict:
    file = folder / "scheduler.json"
    log = (folder / "log").open("wb")
    said = {"stdout": log, "stderr": log}
    processes = [
        subprocess.Popen(
            [BIN / "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
             "--scheduler-file", file], **said)
    ]  # fmt: skip
    try:
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        processes += [
            subprocess.Popen(
                [BIN / "dask", "worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
                 "--host", "127.0.0.1", "--local-directory", folder], **said)
            for _ in range(2)
        ]  # fmt: skip
        run = subprocess.Popen(
            [BIN / "evdist", "cluster", folder / "objects.npy", "-c", str(c), "--quiet",
             "--out", folder / "job", "--scheduler", address,
             "--set", "max_iter=3", "--set", "d0=q0.3"],
            cwd=ROOT, **said)  # fmt: skip
        peak = 0
        while run.poll() is None:
            peak = max(peak, _peak(run.pid))
            time.sleep(0.2)
        if run.returncode:
            raise SystemExit((folder / "log").read_text())
        return {
            "run": peak,
            "scheduler": _peak(processes[0].pid),
            "worker": [_peak(process.pid) for process in processes[1:]],
        }
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def _peak(pid: int) -> int:
    """Most resident memory so far, in bytes."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0
    return next(
        (int(row.split()[1]) << 10 for row in text.splitlines() if row.startswith("VmHWM")), 0
    )


if __name__ == "__main__":
    parts = {"sweep": sweep, "memory": memory}
    for name in sys.argv[1:] or parts:
        parts[name]()

"""Time of NN-EVCLUS: S2 by mini-batches against R, MNIST, and two Dask workers.

    python benchmarks/nnevclus_speed.py [s2 | mnist | ranks] [--epochs N]

* s2: CPU seconds per epoch, n_H = 20, in 10 and in 50 mini-batches, against R's nnevclus_mb on the
  same data (shared/reference/timings.json, measured on another machine);
* mnist: 70,000 x 784, on one thread;
* ranks: two workers against one process that takes as many objects in a step, as two shards or as
  one subset of doubled size: loss curves and rows per second of whole fits.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from bounds import Bounds
from datasets import SHARED, load, reference
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import NNEVCLUS
from evdist.engine.workers import wait_for_workers


def timed(model: NNEVCLUS, X: Any, **how: Any) -> tuple[float, float]:
    """CPU and wall seconds of a fit; tol = 0 runs all epochs, which is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X, **how)
        return time.process_time() - cpu, time.perf_counter() - wall


def s2(bounds: Bounds, epochs: int) -> None:
    bounds.head("s2: n = 5,000, c = 15, n_H = 20, CPU seconds per epoch")
    X = pd.read_csv(SHARED / "data" / "s2.csv.gz")[["x1", "x2"]].to_numpy()
    runs = {r["task"]: r for r in reference("timings")["runs"]}
    for batches, task, q in (
        (10, "nnevclus_mb_s2_10_3", 0.9),
        (50, "nnevclus_mb_s2_chunked", 0.1),
    ):
        common: dict[str, Any] = {
            "hidden": (20,), "d0": f"q{q}", "batch_size": 5000 // batches, "tol": 0.0, "n_init": 1,
            "device": "cpu", "n_jobs": 1, "random_state": 0, "learning_rate": 0.005,
        }  # fmt: skip
        timed(NNEVCLUS(15, max_iter=1, **common), X)  # what comes once
        once, _ = timed(NNEVCLUS(15, max_iter=1, **common), X)
        cpu, _ = timed(NNEVCLUS(15, max_iter=1 + epochs, **common), X)
        ours, theirs = (cpu - once) / epochs, runs[task]["user_s_per_iteration"]
        bounds.note(f"{batches} mini-batches: evdist", ours, digits=4)
        bounds.note(f"{batches} mini-batches: R", theirs)
        bounds.at_least(f"{batches} mini-batches: ratio", theirs / ours, 30, digits=0)
    model = NNEVCLUS(15, d0="q0.1", batch_size=100, hidden=(20,), n_init=1, max_iter=110, tol=0.0,
                     device="cpu", n_jobs=1, random_state=0)  # fmt: skip
    cpu, _ = timed(model, X)
    theirs = runs["nnevclus_mb_s2_chunked"]
    bounds.note("110 epochs, 50 mini-batches: CPU seconds", cpu, f"R: {theirs['user_s']:.0f}")
    bounds.note("  loss", model.objective_, f"R: {theirs['crit_last']:.4f}", digits=4)
    y = load("S2").y
    bounds.note("  ARI", adjusted_rand_score(y, model.labels_), f"R: {theirs['ari_pl']:.3f}")


def mnist(bounds: Bounds, epochs: int) -> None:
    bounds.head("MNIST: 70,000 x 784, c = 10, hidden (100,)")
    with np.load(SHARED / "data" / "mnist.npz") as stored:
        X, y = stored["X"].reshape(70_000, 784).astype(np.float32) / 255, stored["y"]
    model = NNEVCLUS(10, hidden=(100,), batch_size=500, learning_rate=1e-3, n_init=1,
                     max_iter=epochs, tol=1e-3, device="cpu", random_state=0)  # fmt: skip
    cpu, wall = timed(model, X)
    bounds.at_most("wall seconds", wall, 600, digits=0)
    bounds.note("CPU seconds", cpu, digits=0)
    bounds.note("epochs", model.n_iter_, digits=0)
    bounds.note("loss", model.objective_, digits=4)
    bounds.note("ARI", adjusted_rand_score(y, model.labels_))


def ranks(bounds: Bounds, epochs: int) -> None:
    from distributed import Client, LocalCluster

    bounds.head("two Dask workers, batches of 200, against one process: loss curves")
    X, _ = make_blobs(20_000, n_features=8, centers=8, cluster_std=1.5, random_state=0)
    common: dict[str, Any] = {
        "hidden": (30,), "d0": "q0.2", "tol": 0.0, "n_init": 1, "device": "cpu", "n_jobs": 1,
        "random_state": 0, "max_iter": epochs, "checkpoint_every": 10,
    }  # fmt: skip
    variants: tuple[dict[str, Any], ...] = (
        {"batch_size": 200, "n_shards": 2}, {"batch_size": 400}, {"batch_size": 200}
    )  # fmt: skip
    sharded, doubled, small = (NNEVCLUS(8, **how, **common) for how in variants)
    wall = {model: timed(model, X)[1] for model in (sharded, doubled, small)}
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        wait_for_workers(client, 2)
        two = NNEVCLUS(8, batch_size=200, **common)
        timed(NNEVCLUS(8, batch_size=200, **{**common, "max_iter": 1}), X, client=client)
        _, together = timed(two, X, client=client)
    curve, same, other = (np.array(m.history_[1:-1]) for m in (two, sharded, doubled))
    bounds.at_most("n_shards=2 (400 a step): worst epoch, %",
                   float(np.abs(curve / same - 1).max() * 100), 1.0, digits=2)  # fmt: skip
    equal = np.array_equal(two.credal_partition_.mass, sharded.credal_partition_.mass)
    bounds.at_least("  masses have the same bits (1: yes)", float(equal), 1, digits=0)
    # Eight steps of 200 objects between two means are no steps of 400: what counts is the end.
    bounds.at_most("objective, times that of batch_size=400",
                   two.objective_ / doubled.objective_, 1.05, digits=3)  # fmt: skip
    half = len(curve) // 2
    far = abs(curve[half:].mean() / other[half:].mean() - 1) * 100
    bounds.note("  second half of the epochs, %", far, "it draws other subsets", digits=2)
    bounds.head("rows per second")
    rows = len(X) * epochs
    for what, seconds in (("one process, n_shards=2, 200 each", wall[sharded]),
                          ("one process, 400", wall[doubled]), ("one process, 200", wall[small]),
                          ("two workers, 200 each", together)):  # fmt: skip
        bounds.note(what, rows / seconds, digits=0)
    for what, model in (("n_shards=2", sharded), ("400", doubled), ("200", small)):
        bounds.note(f"two workers against one process, {what}", wall[model] / together, digits=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["s2", "mnist", "ranks"])
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args()
    bounds = Bounds(width=52)
    for name, work in (("s2", s2), ("mnist", mnist), ("ranks", ranks)):
        if name in options.what:
            work(bounds, options.epochs)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

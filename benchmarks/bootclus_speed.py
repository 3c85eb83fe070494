"""Time and memory of Bootclus.

    python benchmarks/bootclus_speed.py [iris] [linear] [--sizes 100000 1000000]

* iris: CPU seconds of a whole fit with B = 500 and model VEV on one thread, beside those of R's
  bootclus (the least of five runs, after one that compiles);
* linear: n = 10^5 and 10^6 objects (d = 4, c = 7, B = 100, k = 50, model VVV), each in a process of
  its own: wall seconds, CPU seconds of each stage and peak memory. Ten times the objects may take
  12 times as long.

iris takes seconds; linear two minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from bounds import Bounds
from datasets import load, reference
from numpy.typing import NDArray

from evdist import Bootclus
from evdist.engine.progress import Progress


def iris(bounds: Bounds) -> None:
    bounds.head("iris, VEV, B = 500, one thread: CPU seconds")
    X = load("iris").X
    runs = []
    for seed in range(6):
        began = time.process_time()
        Bootclus(3, covariance_models="VEV", n_bootstrap=500, random_state=seed, n_jobs=1).fit(X)
        runs.append(time.process_time() - began)
    ours = min(runs[1:])
    theirs = float(np.median([
        r["user_s"] for r in reference("timings")["runs"] if r["task"] == "bootclus_iris_B500"
    ]))  # fmt: skip
    bounds.note("Bootclus, first fit of a process", runs[0], "loads the compiled kernels")
    bounds.note("Bootclus", ours)
    bounds.note("R's bootclus, median of three", theirs)
    bounds.at_least("ratio", theirs / ours, 20.0, digits=1)


def seven(n: int, seed: int = 0) -> NDArray[np.float64]:
    """Seven Gaussians in four dimensions; neighbours overlap."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-2.5, 2.5, (7, 4))
    roots = rng.normal(size=(7, 4, 4)) * 0.4 + np.eye(4) * 0.8
    y = rng.integers(0, 7, n)
    X = rng.standard_normal((n, 4))
    for k in range(7):
        X[y == k] = X[y == k] @ roots[k].T + centres[k]
    return X


def one_fit(n: int) -> None:
    """A fit in this process; prints what it took as JSON."""
    warm = seven(9000)
    Bootclus(7, covariance_models="VVV", n_bootstrap=2, n_dissimilarities=50,
             focal_sets="select", random_state=0).fit(warm)  # fmt: skip
    X = seven(n)
    stages = {"mixture": 0.0, "bootstrap": 0.0, "intervals": 0.0, "fit": 0.0}
    began, last, stage = time.perf_counter(), time.process_time(), "mixture"

    def listen(news: Progress) -> None:
        # Stages are told of as they begin, but for the sweeps, whose first counts as an interval.
        nonlocal last, stage
        now = time.process_time()
        stages[stage] += now - last
        last, stage = now, news.stage

    model = Bootclus(7, covariance_models="VVV", n_bootstrap=100, n_dissimilarities=50,
                     focal_sets="select", random_state=0, callbacks=[listen]).fit(X)  # fmt: skip
    wall = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    facts = {"wall": wall, "peak": peak, "stages": stages, "sweeps": model.n_iter_,
             "objective": model.objective_, "failed": model.n_failed_,
             "sets": len(model.credal_partition_.focal_sets)}  # fmt: skip
    print(json.dumps(facts))


def linear(bounds: Bounds, sizes: list[int]) -> None:
    found = {}
    for n in sizes:
        run = [sys.executable, __file__, "--one", str(n)]
        done = subprocess.run(run, capture_output=True, text=True, check=True)
        found[n] = facts = json.loads(done.stdout.splitlines()[-1])
        bounds.head(f"n = {n:,}: d = 4, c = 7, B = 100, k = 50, {facts['sets']} focal sets")
        bounds.note("wall seconds", facts["wall"], digits=1)
        for stage, seconds in facts["stages"].items():
            bounds.note(f"CPU seconds, {stage}", seconds, digits=1)
        bounds.note("sweeps", facts["sweeps"], digits=0)
        bounds.note("objective", facts["objective"], digits=5)
        bounds.note("failed replicates", facts["failed"], digits=0)
        bounds.at_most("peak memory, GB", facts["peak"], 4.0, digits=2)
    if len(sizes) > 1:
        bounds.head("linear")
        ratio = found[sizes[-1]]["wall"] / found[sizes[0]]["wall"]
        cpu = [sum(found[n]["stages"].values()) for n in (sizes[-1], sizes[0])]
        bounds.note(f"CPU for {sizes[-1]:,} over {sizes[0]:,}", cpu[0] / cpu[1], digits=1)
        bound = 1.2 * sizes[-1] / sizes[0]
        bounds.at_most(f"time for {sizes[-1]:,} over {sizes[0]:,}", ratio, bound, digits=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["iris", "linear"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_fit(options.one)
        return 0
    bounds = Bounds()
    if "iris" in options.what:
        iris(bounds)
    if "linear" in options.what:
        linear(bounds, options.sizes)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

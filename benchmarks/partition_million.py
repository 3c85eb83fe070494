"""Labels, approximations, summary and scores of a credal partition of a million objects.

    python benchmarks/partition_million.py [--objects 1000000] [--clusters 10] [--store zarr|numpy]

Prints the wall time of each step and the largest memory beyond the masses themselves. The target
for 1,000,000 objects on 12 focal sets is 10 seconds and 1 GB for all steps together.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from threading import Event, Thread

import numpy as np
import psutil

from evdist import CredalPartition, FocalSets, metrics


def make_masses(n: int, focal: FocalSets, truth: np.ndarray) -> np.ndarray:
    """Masses as a clustering leaves them: most objects sure, some between, some outliers."""
    rng = np.random.default_rng(1)
    mass = np.empty((n, len(focal)), dtype=np.float32)
    for start in range(0, n, 1 << 16):
        y = truth[start : start + (1 << 16)]
        part = rng.gamma(0.2, size=(len(y), len(focal)))
        part[np.arange(len(y)), focal.singletons[y]] += rng.gamma(4.0, size=len(y))
        mass[start : start + len(y)] = part / part.sum(axis=1, keepdims=True)
    return mass


class PeakMemory(Thread):
    """Largest resident memory of this process while the thread runs, read every few ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.process = psutil.Process()
        self.base = self.peak = self.process.memory_info().rss
        self.done = Event()

    def run(self) -> None:
        while not self.done.wait(0.003):
            self.peak = max(self.peak, self.process.memory_info().rss)

    @property
    def beyond(self) -> float:
        """MB beyond what was in use at the start."""
        return (max(self.peak, self.process.memory_info().rss) - self.base) / 1e6


def steps_on(partition: CredalPartition, truth: np.ndarray) -> dict[str, Callable[[], object]]:
    return {
        "validate": partition.validate,
        "labels (three rules)": lambda: [
            partition.labels(rule) for rule in ("plausibility", "belief", "pignistic")
        ],
        "lower, upper (mass)": lambda: partition.rough("mass"),
        "lower, upper (dominance)": lambda: partition.rough("dominance"),
        "outliers": partition.outliers,
        "summary": partition.summary,
        "consistency CI": lambda: metrics.consistency(partition, truth),
        "nonspecificity NS": lambda: metrics.nonspecificity(partition),
    }


def measure(partition: CredalPartition, truth: np.ndarray) -> dict[str, object]:
    """Run and print all steps; the results are kept, as a user would keep them."""
    results, total = {}, 0.0
    memory = PeakMemory()
    memory.start()
    print(f"{'step':<26}{'seconds':>9}{'peak MB beyond the masses':>28}")
    for name, step in steps_on(partition, truth).items():
        start = time.perf_counter()
        results[name] = step()
        seconds = time.perf_counter() - start
        total += seconds
        print(f"{name:<26}{seconds:>9.2f}{memory.beyond:>28.0f}")
    memory.done.set()
    memory.join()
    print(f"{'all':<26}{total:>9.2f}{memory.beyond:>28.0f}")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--store", choices=["numpy", "zarr"], default="numpy")
    options = parser.parse_args()
    focal = FocalSets.simple(options.clusters)
    truth = np.random.default_rng(0).integers(options.clusters, size=options.objects)
    partition = CredalPartition(make_masses(options.objects, focal, truth), focal)
    with tempfile.TemporaryDirectory() as folder:
        if options.store == "zarr":
            partition.save(f"{folder}/masses.zarr")
            partition = CredalPartition.load(f"{folder}/masses.zarr")
        print(partition, end="\n\n")
        results = measure(partition, truth)
    print(f"\nCI {results['consistency CI']:.4f}  NS {results['nonspecificity NS']:.4f}\n")
    print(results["summary"])


if __name__ == "__main__":
    main()

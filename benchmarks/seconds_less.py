"""What small work costs, least of five: the import, a job of 200 rows by command, five new rows.

    python benchmarks/seconds_less.py            # needs compiled kernels: `evdist warm` first
    python benchmarks/seconds_less.py --full     # fits with all sets of clusters, on one thread

Where other programs use the same cores the wall clock says little: the processor's seconds stand
beside it. Numba imports coverage where it is installed, a tenth of a second that nobody pays who
uses evdist: it is hidden from the programs that are measured.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

RUNS = 5
#: Byte code is kept, as in every installation; without it 250 modules are compiled by each run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def customers(folder: Path) -> None:
    """The table of docs/first_ten_minutes.md: 200 rows, and five new ones."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 200)
    table = pd.DataFrame(
        {
            "customer": [f"c{i:03}" for i in range(200)],
            "age": rng.normal(np.array([25, 45, 70])[kind], 5).round(1),
            "spent": rng.normal(np.array([20, 90, 50])[kind], 8).round(2),
            "city": rng.choice(["Oslo", "Rome", "Lima"], 200),
        }
    )
    table.to_csv(folder / "customers.csv", index=False)
    table.head(5).to_csv(folder / "new.csv", index=False)


def least(words: list[str], folder: Path, removed: str | None = None) -> tuple[float, float]:
    """Seconds by the clock and of the processor, each the least of RUNS."""
    clock, processor = [], []
    for _ in range(RUNS):
        if removed is not None:
            shutil.rmtree(folder / removed, ignore_errors=True)
        before, began = _used(), time.perf_counter()
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
        clock.append(time.perf_counter() - began)
        processor.append(_used() - before)
    return min(clock), min(processor)


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def small(folder: Path) -> None:
    customers(folder)
    hidden = "import sys; sys.modules['coverage'] = None; "
    python = [sys.executable, "-c"]
    command = [*python, f"{hidden}from evdist.service.cli import main; main()"]
    cluster = ["cluster", "customers.csv", "-c", "3", "--id", "customer", "--encode"]
    print(
        f"| least of {RUNS}, on {os.cpu_count()} cores | clock, s | processor, s |\n|---|--:|--:|"
    )
    for name, words, removed in (
        ("`import numpy`", [*python, "import numpy"], None),
        ("`import sklearn.base`", [*python, "import sklearn.base"], None),
        ("`from evdist import EVCLUS`", [*python, f"{hidden}from evdist import EVCLUS"], None),
        ("`evdist cluster`, 200 rows", [*command, *cluster, "--out", "job", "-q"], "job"),
        ("`evdist predict`, 5 rows", [*command, "predict", "job", "new.csv", "--out", "new", "-q"],
         "new"),
    ):  # fmt: skip
        clock, processor = least(words, folder, removed)
        print(f"| {name} | {clock:.2f} | {processor:.2f} |", flush=True)


def full() -> None:
    from evdist import EVCLUS

    rng = np.random.default_rng(0)
    print("| objects | focal sets | processor, s |\n|--:|--:|--:|")
    for n, c in ((200, 5), (1000, 5), (4000, 5), (200, 6), (1000, 6), (200, 7)):
        X = rng.normal(size=(n, 2)) + 6 * rng.integers(0, 4, size=(n, 2))
        began = time.process_time()
        EVCLUS(c, metric="euclidean", focal_sets="full", random_state=0, n_jobs=1).fit(X)
        print(f"| {n:,} | {2**c} | {time.process_time() - began:.1f} |", flush=True)


if __name__ == "__main__":
    if "--full" in sys.argv:
        full()
    else:
        with tempfile.TemporaryDirectory() as name:
            small(Path(name))

"""How large reports are, and what writing them costs, by objects, columns and clusters.

python benchmarks/report_pages.py [FOLDER]    # keeps the pages there, to look at
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from evdist import CredalPartition, FocalSets
from evdist.report import write_report

CASES = ((200, 2, 3), (5_000, 2, 60), (5_000, 6, 12), (200_000, 8, 12), (1_000_000, 10, 12))


def partition(n: int, d: int, c: int) -> tuple[CredalPartition, pd.DataFrame]:
    """Gaussian clusters, three in a hundred objects anywhere, and masses by distance."""
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(c, d)) * (6 if d > 2 else 3 * np.sqrt(c))
    X = centre[rng.integers(0, c, n)] + rng.normal(size=(n, d))
    far = rng.random(n) < 0.03
    X[far] = rng.normal(size=(int(far.sum()), d)) * 6 * np.sqrt(c)
    away = np.stack([((X - one) ** 2).sum(axis=1) / 4 for one in centre], axis=1)
    chance = np.exp(away.min(axis=1, keepdims=True) - away)
    chance /= chance.sum(axis=1, keepdims=True)
    empty = 1 - np.exp(-away.min(axis=1) / 12)[:, None]
    anything = 0.1 * (1 - chance.max(axis=1, keepdims=True)) * (1 - empty)
    mass = np.hstack([empty, chance * (1 - empty - anything), anything])
    mass /= mass.sum(axis=1, keepdims=True)
    frame = pd.DataFrame(X, columns=[f"measure {j}" for j in range(d)])
    return CredalPartition(mass.astype(np.float32), FocalSets.simple(c)), frame


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else name)
        print("| objects | columns | clusters | page, KB | processor, s |\n|--:|--:|--:|--:|--:|")
        for n, d, c in CASES:
            found, X = partition(n, d, c)
            began = time.process_time()
            path = write_report(folder / f"{n}_{d}_{c}.html", found, X=X)
            seconds = time.process_time() - began
            size = path.stat().st_size // 1000
            print(f"| {n:,} | {d} | {c} | {size:,} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()

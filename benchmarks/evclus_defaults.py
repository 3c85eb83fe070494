"""What `EVCLUS(n_clusters=c).fit(X)` finds, beside the best that any d0 could have found.

    python benchmarks/evclus_defaults.py [--quick] [--jobs 2] [--sets iris wine ...]

For every labelled set: the adjusted Rand index (ARI) with defaults alone, the median of three
seeds, and the best over the grid of d0 quantiles, each of them solved from six starts of which the
lowest objective is kept. Where a set is small the ARI of one quantile moves by several hundredths
from one sample of dissimilarities to the next, so there each quantile too is the median of three
seeds. The best is chosen by the labels, which no method can see: the defaults may lie 0.03 below
it. The sets where they lie lower are listed in `EXCEPTIONS` with the reason, and with a bound of
their own. m(empty) is the mean mass on the empty set: how far the partition calls everyone an
outlier. Takes about five minutes on two cores; --quick takes the sets below 1,000 objects.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import NAMES, DataSet, load
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.evclus.d0 import QUANTILES
from evdist.evclus.resolution import TIE

SLACK = 0.03
SEEDS = range(3)
SMALL = 1000
#: How far below the best of the grid, and why; docs/evclus-accuracy.md says more.
EXCEPTIONS = {
    "bananas2000": (0.60, "interlocked arcs: best where all but a few are outliers"),
    "letters_IJL": (0.16, "no groups in the distances: best where most are outliers"),
    "heart": (0.07, "best where most are outliers; five objects of 270 differ"),
    "iris": (0.07, "best where two fifths are outliers; three objects of 150 differ"),
    "diabetes": (0.22, "the groups of the distances are not the classes"),
    "protein": (0.12, "0.9 and 1 are nearly tied, and half the matrix is sampled"),
}


@dataclass(frozen=True)
class Run:
    """One fit: ARI, mean mass on the empty set, and the quantile where d0 was left open."""

    ari: float
    outlying: float
    quantile: float | None


def run(data: DataSet, seed: int, jobs: int, **settings: Any) -> Run:
    fit = EVCLUS(
        n_clusters=data.n_clusters, metric=data.metric, n_jobs=jobs, random_state=seed, **settings
    ).fit(data.X)
    outlying = float(np.mean(np.asarray(fit.credal_partition_.mass)[:, 0]))
    score = float(adjusted_rand_score(data.y, fit.labels_))
    return Run(score, outlying, chosen(fit.d0_curve_))


def middle(runs: list[Run]) -> Run:
    """The run with the median ARI."""
    return sorted(runs, key=lambda r: r.ari)[len(runs) // 2]


def chosen(curve: list[tuple[float, float]]) -> float | None:
    if not curve:
        return None
    most = max(agreement for _, agreement in curve)
    equal = [q for q, agreement in curve if agreement >= most - TIE]
    return equal[-2] if len(equal) > 2 else equal[-1]


def measure(data: DataSet, jobs: int) -> tuple[list[Run], dict[float, Run]]:
    """Runs with defaults, one for each seed; the run of each quantile of the grid."""
    seeds = SEEDS if len(data.y) < SMALL else SEEDS[:1]
    grid = {q: middle([run(data, s, jobs, d0=f"q{q}") for s in seeds]) for q in QUANTILES}
    return [run(data, seed, jobs) for seed in SEEDS], grid


def line(data: DataSet, runs: list[Run], grid: dict[float, Run]) -> tuple[str, bool]:
    """A line of the table, and whether the bound was kept."""
    ours, best = middle(runs), max(grid, key=lambda q: grid[q].ari)
    below = grid[best].ari - ours.ari
    allowed, why = EXCEPTIONS.get(data.name, (SLACK, ""))
    kept = below <= allowed
    d = "-" if data.metric == "precomputed" else data.X.shape[1]
    picked = ", ".join(f"{q:g}" for q in sorted({r.quantile for r in runs if r.quantile}))
    return (
        f"{data.name:<15}{len(data.y):>6}{d:>5}{data.n_clusters:>4}  {data.scale:<16}"
        f"{ours.ari:>8.3f}{grid[best].ari:>7.3f}{below:>7.3f}  {picked:<13}{ours.outlying:>8.2f}"
        f"{best:>7g}{grid[best].outlying:>9.2f}  {'' if kept else 'MISSED '}{why}"
    ).rstrip(), kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="sets below 1,000 objects")
    parser.add_argument("--jobs", type=int, default=2, help="threads; the result does not change")
    parser.add_argument("--sets", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    options = parser.parse_args()
    # MNIST with a small d0 is still falling after 200 sweeps; the labels have long settled.
    warnings.simplefilter("ignore", ConvergenceWarning)
    missed = []
    head = f"{'set':<15}{'n':>6}{'d':>5}{'c':>4}  {'attributes':<16}{'default':>8}{'best':>7}"
    print(f"{head}{'below':>7}  {'default q':<13}{'m(empty)':>8}{'best q':>7}{'m(empty)':>9}")
    for name in options.sets:
        data = load(name)
        if options.quick and len(data.y) >= SMALL:
            continue
        text, kept = line(data, *measure(data, options.jobs))
        print(text, flush=True)
        if not kept:
            missed.append(name)
    print(f"\nmissed: {', '.join(missed)}" if missed else "\nall bounds kept")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""EVCLUS as it comes, on a public suite of labelled problems, beside k-means and a mixture.

    python benchmarks/answers_defaults.py [--most N] [--only PATTERN] [--auto] [--geodesic] [--jobs]

Reads ../shared/data/suite. A problem is a set and a number of clusters; its score is the best
adjusted Rand index over the reference partitions with that number, objects of label 0 left out.
Bounds: mean of EVCLUS with defaults at least .65; with --auto, of metric="auto", the setting that
is recommended for unknown shapes, at least .72. Takes ten minutes on two quiet cores with at most
1,000 objects each; --jobs N works on so many problems at once.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from bounds import Bounds
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from evdist import EVCLUS

SUITE = Path(__file__).resolve().parents[2] / "shared" / "data" / "suite"
Labels = np.ndarray
Methods = dict[str, Callable[[np.ndarray, int], Labels]]


def problems(most: int, only: str) -> Iterator[tuple[str, np.ndarray, list[Labels], int]]:
    """(name, X, references, c) of every problem, a random `most` of the objects of larger sets."""
    for file in sorted(SUITE.glob("*/*.data.gz")):
        name = f"{file.parent.name}/{file.name.removesuffix('.data.gz')}"
        if not re.search(only, name):
            continue
        X = np.loadtxt(file, ndmin=2)
        some = np.arange(len(X))
        if len(X) > most:
            some = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
        by_count: dict[int, list[Labels]] = {}
        for labels in sorted(file.parent.glob(file.name.replace(".data.gz", ".labels*.gz"))):
            y = np.loadtxt(labels).astype(int)
            by_count.setdefault(len(np.unique(y[y > 0])), []).append(y[some])
        for c, references in sorted(by_count.items()):
            yield f"{name}:{c}", X[some], references, c


def score(found: Labels, references: list[Labels]) -> float:
    return max(adjusted_rand_score(y[y > 0], found[y > 0]) for y in references)


def evclus(metric: str) -> Callable[[np.ndarray, int], Labels]:
    return lambda X, c: EVCLUS(c, metric=metric, random_state=0).fit(X).labels_


def _tried(
    methods: Methods, name: str, X: np.ndarray, references: list[Labels], c: int
) -> tuple[str, int, dict[str, tuple[float, float]]]:
    """Score and seconds of every method on one problem."""
    warnings.simplefilter("ignore")
    found = {}
    for method, fit in methods.items():
        began = time.perf_counter()
        ari = score(fit(X, c), references)
        found[method] = (ari, time.perf_counter() - began)
    return name, len(X), found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=1000, help="objects of a problem at most")
    parser.add_argument("--only", default="", help="regular expression for the names")
    parser.add_argument("--auto", action="store_true", help='also metric="auto"')
    parser.add_argument("--geodesic", action="store_true", help='also metric="geodesic"')
    parser.add_argument("--jobs", type=int, default=1, help="problems at once")
    given = parser.parse_args()
    methods: Methods = {
        "k-means": lambda X, c: KMeans(c, n_init=10, random_state=0).fit(X).labels_,
        "mixture": lambda X, c: GaussianMixture(c, n_init=5, random_state=0).fit(X).predict(X),
        "EVCLUS": evclus("euclidean"),
    }
    methods |= {name: evclus(name) for name in ("auto", "geodesic") if getattr(given, name)}
    scores: dict[str, list[float]] = {name: [] for name in methods}
    pool = Parallel(n_jobs=given.jobs, return_as="generator")
    for name, n, tried in pool(
        delayed(_tried)(methods, *problem) for problem in problems(given.most, given.only)
    ):
        line = []
        for method, (ari, seconds) in tried.items():
            scores[method].append(ari)
            line.append(f"{method} {ari:5.2f} ({seconds:4.1f} s)")
        print(f"{name:30s} n {n:5d}  " + "  ".join(line), flush=True)
    bounds = Bounds()
    for method, values in scores.items():
        print(f"mean of {len(values)}: {method} {np.mean(values):.3f}")
    bounds.at_least("EVCLUS, defaults", float(np.mean(scores["EVCLUS"])), 0.65)
    if given.auto:
        bounds.at_least('EVCLUS, metric="auto"', float(np.mean(scores["auto"])), 0.72)
    return bounds.finish()


if __name__ == "__main__":
    raise SystemExit(main())

"""The rest of the family at the sizes it must reach, each fitted once.

    python benchmarks/family_scale.py [delta_bel | eknnclus | classifiers | ccm | bpec] ...

Eight Gaussians of unit variance at the corners of a cube with sides of 6, in three dimensions (ten
for the classifiers), from one seed. Every line has the seconds of the wall clock and of the
processor, one thread, and the score it must keep; where neighbours are searched, also the share of
the processor's time that the search itself takes. Without arguments everything is run, which takes
about a quarter of an hour.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from bounds import Bounds
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from evdist import BPEC, CCM, EKNNClassifier, EKNNclus, EvidentialNN, delta_bel

SEED = 0


def gaussians(n: int, d: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(SEED)
    centres = np.zeros((8, d))
    centres[:, :3] = 6.0 * np.array(list(product((0, 1), repeat=3)))
    y = rng.integers(0, 8, n)
    return centres[y] + rng.normal(size=(n, d)), y


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    out = work()
    return out, time.perf_counter() - wall, time.process_time() - cpu


def times(bounds: Bounds, what: str, wall: float, cpu: float, search: float | None = None) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    share = "" if search is None else f", neighbour search {search / cpu:.0%} of it"
    bounds.note(f"{what}: seconds", wall, f"{cpu:.1f} s CPU{share}, peak {peak:.1f} GB", digits=1)


def search_seconds(X: NDArray, K: int) -> float:
    return timed(lambda: NearestNeighbors(n_neighbors=K).fit(X).kneighbors())[2]


def peaks(bounds: Bounds) -> None:
    bounds.head("delta_bel: 10^5 objects, K = 50")
    X, y = gaussians(100_000, 3)
    search = search_seconds(X, 50)
    found, wall, cpu = timed(lambda: delta_bel(X, 50))
    times(bounds, "delta_bel", wall, cpu, search)
    bounds.at_least("Gaussians with a centre", len(np.unique(y[found.largest(8)])), 8, digits=0)


def eknnclus(bounds: Bounds) -> None:
    bounds.head("EKNNclus: 10^6 objects, 50 neighbours")
    warm, _ = gaussians(1_000, 3)
    EKNNclus(20, random_state=SEED).fit(warm)
    X, y = gaussians(1_000_000, 3)
    model, wall, cpu = timed(lambda: EKNNclus(50, n_jobs=1, random_state=SEED).fit(X))
    times(bounds, "EKNNclus", wall, cpu)
    bounds.note("clusters found", model.n_clusters_, "8 Gaussians", digits=0)
    bounds.note("visits of all objects", model.n_iter_, digits=0)
    bounds.at_most("largest rise of the objective", max(np.diff(model.history_)), 0.0, digits=9)
    bounds.at_least("ARI", adjusted_rand_score(y, model.labels_), 0.97)


def classifiers(bounds: Bounds) -> None:
    X, y = gaussians(110_000, 10)
    train, test = slice(0, 100_000), slice(100_000, None)
    for name, model in (
        ("EKNNClassifier", EKNNClassifier(10)),
        ("EvidentialNN", EvidentialNN(16, max_iter=50, tol=1e-5, random_state=SEED)),
    ):
        bounds.head(f"{name}: 10^5 objects, d = 10, 8 classes")
        model.fit(X[:1_000], y[:1_000])
        _, wall, cpu = timed(lambda model=model: model.fit(X[train], y[train]))
        search = search_seconds(X[train], 11) if name == "EKNNClassifier" else None
        times(bounds, "fit", wall, cpu, search)
        _, wall, cpu = timed(lambda model=model: model.predict_mass(X[test]))
        times(bounds, "10^4 masses", wall, cpu)
        bounds.at_least("accuracy on 10^4 others", model.score(X[test], y[test]), 0.98)


def ccm(bounds: Bounds) -> None:
    bounds.head("CCM: 10^5 objects, 8 clusters, all pairs (38 focal sets)")
    X, y = gaussians(100_000, 3)
    CCM(8, random_state=SEED, n_jobs=1, max_iter=2, tol=1).fit(X[:1_000])
    model, wall, cpu = timed(lambda: CCM(8, delta=20, random_state=SEED, n_jobs=1).fit(X))
    times(bounds, "CCM", wall, cpu)
    bounds.at_most("largest rise of the objective", max(np.diff(model.history_)), 0.0, digits=9)
    bounds.at_least("ARI", adjusted_rand_score(y, model.labels_), 0.97)


def bpec(bounds: Bounds) -> None:
    bounds.head("BPEC: 10^5 objects, 8 clusters, 100 neighbours (the default), adaptive metric")
    # With 50 neighbours the peaks lie farther from the means, and the centres stay: 0.968.
    X, y = gaussians(100_000, 3)
    BPEC(8, n_jobs=1).fit(X[:1_000])
    search = search_seconds(X, 100)
    model, wall, cpu = timed(lambda: BPEC(8, delta=20, metric="adaptive", n_jobs=1).fit(X))
    times(bounds, "BPEC", wall, cpu, search)
    bounds.at_most("largest rise of the objective", max(np.diff(model.history_)), 0.0, digits=9)
    bounds.at_least("ARI", adjusted_rand_score(y, model.labels_), 0.97)


PARTS = {
    "delta_bel": peaks,
    "eknnclus": eknnclus,
    "classifiers": classifiers,
    "ccm": ccm,
    "bpec": bpec,
}


def main() -> int:
    names = sys.argv[1:] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"unknown part {unknown[0]!r}; there are {', '.join(PARTS)}")
        return 2
    bounds = Bounds()
    for name in names:
        PARTS[name](bounds)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

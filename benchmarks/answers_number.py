"""How many clusters: `n_clusters="auto"` on plain blobs and on a public suite, beside its peers.

    python benchmarks/answers_number.py [--most 4000] [--seeds 20] [--only PATTERN] [--jobs N]

* Blobs: c = 1 to 15 Gaussians of unit variance, centres drawn at least 10 standard deviations
  apart. Bound: 95 % right.
* ../shared/data/suite, the sets with the references that come with them: a number is right when a
  reference partition has it. The peers see the same objects: the silhouette of k-means, the BIC of
  a Gaussian mixture (both choose among 1 or 2 to the true number and five more, at least 15), and
  HDBSCAN with three smallest sizes. Bound: right in as many sets as the best of them. Every other
  set (A) was used to choose the rule; the others (B) were held back.

Takes six minutes on one core.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from answers_defaults import SUITE, problems
from bounds import Bounds
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture

from evdist.data.sources import AttributeSource
from evdist.estimators.number import find_modes

BLOBS = ((200, 2), (500, 2), (1000, 5), (1000, 20))


def counted(X: NDArray) -> int:
    """What EVCLUS("auto") takes."""
    return find_modes(AttributeSource.of(X, "euclidean")).choose()


# ---------------------------------------------------------------------- blobs
def blobs(c: int, n: int, d: int, seed: int) -> NDArray:
    rng = np.random.default_rng([seed, c])
    centres: list[NDArray] = []
    while len(centres) < c:
        x = rng.uniform(0, 16 * max(1.0, c ** (1 / d)), d)
        if all(np.linalg.norm(x - y) >= 10 for y in centres):
            centres.append(x)
    return np.array(centres)[np.arange(n) % c] + rng.normal(size=(n, d))


def _counted_blobs(c: int, n: int, d: int, seed: int) -> int:
    return counted(blobs(c, n, d, seed))


def plain(bounds: Bounds, seeds: int, pool: Parallel) -> None:
    print("blobs 10 standard deviations apart, c = 1 to 15: right, and the wrong answers")
    for n, d in BLOBS:
        true = [c for c in range(1, 16) for _ in range(seeds)]
        found = pool(delayed(_counted_blobs)(c, n, d, i % seeds) for i, c in enumerate(true))
        wrong = sorted((c, k) for c, k in zip(true, found, strict=True) if k != c)
        right = 1.0 - len(wrong) / len(true)
        print(f"n {n:5d}, d {d:3d}: {right:.1%}  {wrong}", flush=True)
        bounds.at_least(f"blobs, n {n}, d {d}", right, 0.95)


# ---------------------------------------------------------------------- the suite
def peers(X: NDArray, most: int) -> dict[str, int]:
    some = np.random.default_rng(0).choice(len(X), min(len(X), 1500), replace=False)
    sil, bic = {}, {}
    for c in range(1, most + 1):
        bic[c] = GaussianMixture(c, random_state=0).fit(X).bic(X)
        if c > 1:
            labels = KMeans(c, n_init=3, random_state=0).fit_predict(X)[some]
            sil[c] = silhouette_score(X[some], labels) if len(set(labels)) > 1 else -1.0
    found = {"silhouette": max(sil, key=sil.get), "BIC": min(bic, key=bic.get)}
    for size in (5, 10, 15):
        labels = HDBSCAN(min_cluster_size=size, copy=True).fit_predict(X)
        found[f"HDBSCAN {size}"] = max(len(set(labels) - {-1}), 1)
    return found


def _asked(X: NDArray, known: set[int]) -> tuple[dict[str, int], float]:
    """The number that every method takes, and the seconds of ours."""
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    found = {"evdist": counted(X)}
    seconds = time.perf_counter() - began
    return found | peers(X, max(15, max(known) + 5)), seconds


def suite(bounds: Bounds, most: int, only: str, pool: Parallel) -> None:
    by_set: dict[str, tuple[NDArray, set[int]]] = {}
    for name, X, _, c in problems(most, only):
        by_set.setdefault(name.rpartition(":")[0], (X, set()))[1].add(c)
    right: dict[str, list[bool]] = {}
    asked = pool(delayed(_asked)(*one) for one in by_set.values())
    for (name, (X, known)), (found, seconds) in zip(by_set.items(), asked, strict=True):
        for method, c in found.items():
            right.setdefault(method, []).append(c in known)
        words = "  ".join(f"{method} {c}{'' if c in known else '!'}" for method, c in found.items())
        print(f"{name:26s} {len(X):5d} {sorted(known)!s:10s} {words} ({seconds:.2f} s)", flush=True)
    for method, answers in right.items():
        half = sum(answers[::2]), sum(answers[1::2])
        print(f"{method:12s} right in {sum(answers)} of {len(answers)} (A {half[0]}, B {half[1]})")
    best = max(sum(answers) for method, answers in right.items() if method != "evdist")
    bounds.at_least("sets right", sum(right["evdist"]), best)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=4000, help="objects of a set at most")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="", help="regular expression for the names")
    parser.add_argument("--jobs", type=int, default=1, help="sets at once")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    bounds = Bounds()
    pool = Parallel(n_jobs=given.jobs)
    plain(bounds, given.seeds, pool)
    if SUITE.exists():
        suite(bounds, given.most, given.only, pool)
    return bounds.finish()


if __name__ == "__main__":
    raise SystemExit(main())

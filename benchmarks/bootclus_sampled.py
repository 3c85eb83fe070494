"""Bootclus with 50 sampled pairs of each object beside all pairs: masses, and coverage.

    python benchmarks/bootclus_sampled.py [--datasets 3] [--replicates 200]

On iris, and on the three mixtures of the paper's section 4.1 with n = 1000, each with its true
model: how far apart the masses are, and how often [Bel, Pl] of all pairs of objects hold the true
probability. The two coverages may differ by .02. What the paper prints of coverage is in
`reproduction.py`. Takes a few minutes on one core.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from bounds import Bounds
from datasets import load
from ledger.sets import mixture
from numpy.typing import NDArray

from evdist import Bootclus, CredalPartition

LEVELS = (0.90, 0.95)
TRUE_MODEL = {1: "EII", 2: "EEE", 3: "VVV"}
SOME = 50


def draw(number: int, n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Objects of a mixture, and the true probability of each pair i < j to be of one component."""
    truth, rng = mixture(number), np.random.default_rng(seed)
    y = rng.choice(truth.n_components, n, p=truth.weights)
    roots = np.linalg.cholesky(truth.covariances)
    X = truth.means[y] + np.einsum("nij,nj->ni", roots[y], rng.standard_normal((n, 2)))
    posterior = truth.posterior(X)
    return X, (posterior @ posterior.T)[np.triu_indices(n, 1)]


def coverage(partition: CredalPartition, true: NDArray[np.float64]) -> float:
    M, sets = np.asarray(partition.mass, dtype=float), partition.focal_sets
    pairs = np.triu_indices(len(M), 1)
    bel, pl = (M @ sets.S @ M.T)[pairs], 1.0 - (M @ sets.C @ M.T)[pairs]
    # Masses are rounded to float32.
    return float(((bel <= true + 1e-6) & (true <= pl + 1e-6)).mean())


def fit(X: NDArray[np.float64], k: int, **how: object) -> CredalPartition:
    model = Bootclus(3, n_dissimilarities=k, n_jobs=1, **how)  # type: ignore[arg-type]
    return model.fit(X).credal_partition_


def apart(a: CredalPartition, b: CredalPartition) -> float:
    return float(np.abs(np.asarray(a.mass) - np.asarray(b.mass)).mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--datasets", type=int, default=3)
    options = parser.parse_args()
    bounds, B = Bounds(), options.replicates
    bounds.head(f"k = {SOME} sampled pairs against all pairs")
    X = load("iris").X
    both = [fit(X, k, n_bootstrap=B, random_state=0) for k in (len(X) - 1, SOME)]
    bounds.note("iris: mean absolute difference", apart(*both))
    for number, model in TRUE_MODEL.items():
        differences: list[float] = []
        found: dict[float, list[tuple[float, float]]] = {level: [] for level in LEVELS}
        for seed in range(options.datasets):
            X, true = draw(number, 1000, 5000 + seed)
            for level in LEVELS:
                every, some = (
                    fit(X, k, n_bootstrap=B, covariance_models=model, confidence=level,
                        random_state=seed)
                    for k in (len(X) - 1, SOME)
                )  # fmt: skip
                differences.append(apart(every, some))
                found[level].append((coverage(every, true), coverage(some, true)))
        bounds.note(f"mixture {number}: mean absolute difference", float(np.mean(differences)))
        for level, pairs in found.items():
            a, b = np.mean(pairs, axis=0).tolist()
            bounds.note(f"mixture {number}, {level:.0%}: all pairs", a)
            bounds.note(f"mixture {number}, {level:.0%}: k = {SOME}", b)
            bounds.at_most(f"mixture {number}, {level:.0%}: difference", abs(a - b), 0.02)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

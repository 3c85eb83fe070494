"""EVCLUS with many clusters among outliers and heavy tails, beside k-means and a mixture.

    python benchmarks/many_outliers.py [--seeds 5]

Two kinds of data, with 16, 30 and 50 clusters: Gaussians (centres 3 N(0, 1), unit noise, ten
dimensions, n = 6,000) of which 3 % lie anywhere in the box of all; and clusters with the tails of
Student's t with three degrees of freedom (16 dimensions). The adjusted Rand index is that of the
objects that were not moved. Bounds: on average not below k-means(n_init=10) by more than .02; nine
of ten moved objects are outliers, at most 1 % of the others are; at most 1 % of the moved objects
are called sure members of a cluster.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from bounds import Bounds
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from evdist import EVCLUS

Data = tuple[np.ndarray, np.ndarray, np.ndarray]


def strewn(c: int, seed: int, n: int = 6000, d: int = 10) -> Data:
    """X, clusters, and which objects were moved."""
    rng = np.random.default_rng([seed, c])
    y = rng.integers(0, c, n)
    X = (3 * rng.normal(size=(c, d)))[y] + rng.normal(size=(n, d))
    moved = rng.random(n) < 0.03
    X[moved] = rng.uniform(X.min(), X.max(), (moved.sum(), d))
    return X, y, moved


def tails(c: int, seed: int, n: int = 6000, d: int = 16) -> Data:
    rng = np.random.default_rng([seed, c, 3])
    y = rng.integers(0, c, n)
    X = (3 * rng.normal(size=(c, d)))[y] + 0.7 * rng.standard_t(3, size=(n, d))
    return X, y, np.zeros(n, bool)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    bounds = Bounds()
    for name, draw in (("3 % anywhere", strewn), ("heavy tails", tails)):
        bounds.head(name)
        above, found, wrong, sure = [], [], [], []
        for c in (16, 30, 50):
            rows = []
            for seed in range(seeds):
                X, y, moved = draw(c, seed)
                fit = EVCLUS(c, metric="euclidean", random_state=0).fit(X)
                peers = [
                    KMeans(c, n_init=10, random_state=0).fit_predict(X),
                    GaussianMixture(c, random_state=0).fit_predict(X),
                ]
                rows.append(
                    [adjusted_rand_score(y[~moved], p[~moved]) for p in (fit.labels_, *peers)]
                )
                away = fit.credal_partition_.outliers()
                found += away[moved].tolist()
                wrong += away[~moved].tolist()
                sure += fit.credal_partition_.decide().sure[moved].tolist()
            ours, means, mixture = np.mean(rows, axis=0)
            print(f"c {c}: EVCLUS {ours:.3f}, k-means {means:.3f}, mixture {mixture:.3f}")
            above += [row[0] - row[1] for row in rows]
        bounds.at_least("mean ARI above k-means", float(np.mean(above)), -0.02)
        if found:
            bounds.at_least("moved objects that are outliers", float(np.mean(found)), 0.9)
            bounds.at_most("others that are", float(np.mean(wrong)), 0.01)
            bounds.at_most("moved objects that are called sure", float(np.mean(sure)), 0.01)
    return bounds.finish()


if __name__ == "__main__":
    raise SystemExit(main())

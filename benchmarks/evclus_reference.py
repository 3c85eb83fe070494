"""EVCLUS against results of R's evclust, from the same starts and with the same settings.

    python benchmarks/evclus_reference.py [--quick]

* protein, all dissimilarities, from R's start: the criterion may not be higher than R's;
* four plain Gaussians, 20 seeds for each size: none may end in the poor minimum (stress .043
  instead of .021) into which R falls in 3 of 12 runs;
* fourclass and S2: the loss and the adjusted Rand index that the papers print;
* k-CEVCLUS on iris with R's links, from R's start: the cost may not be higher than R's.

Criteria are computed here, in double precision, from the masses, and in R's normalisation: sum of
(kappa - delta)^2 divided by the sum of delta^2. Takes about three minutes on one core; --quick
takes 3 seeds and the two smaller sizes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from bounds import Bounds
from datasets import load, reference
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, CredalPartition, FocalSets

#: Stress in R's normalisation: the good minimum lies near .021, the poor one near .043.
POOR = 0.03
LOG_ALPHA = np.log(0.05)


def stress(partition: CredalPartition, delta: NDArray) -> float:
    """Eq. (4) of k-CEVCLUS over all pairs i < j; delta (n, n)."""
    M = np.asarray(partition.mass, dtype=float)
    kappa = M @ partition.focal_sets.C @ M.T
    upper = np.triu_indices(len(M), 1)
    return float(((kappa - delta)[upper] ** 2).sum() / (delta[upper] ** 2).sum())


def transformed(D: NDArray, d0: float) -> NDArray:
    """delta = 1 - exp(-gamma D^2), eqs. (5) and (6): .95 at d0."""
    return 1.0 - np.exp(LOG_ALPHA * (D / d0) ** 2)


def link_cost(partition: CredalPartition, must: NDArray, cannot: NDArray) -> float:
    """J_ML + J_CL, eq. (17): each link is counted once."""
    M, sets = np.asarray(partition.mass, dtype=float), partition.focal_sets
    C, E = sets.C.astype(float), sets.E.astype(float)

    def total(links: NDArray, A: NDArray) -> float:
        return float(np.einsum("ia,ab,ib->", M[links[:, 0]], A, M[links[:, 1]]))

    return total(must, C + E) + total(cannot, (1 - C) + (1 - E))


def protein(bounds: Bounds, seeds: Sequence[int]) -> None:
    bounds.head("protein: n = 213, c = 4, d0 = max, all dissimilarities")
    data, r = load("protein"), reference("kevclus_protein")["full"]
    delta = transformed(data.X, r["d0"])
    every = len(data.X) - 1
    ours: dict[str, Any] = {"n_dissimilarities": every, "metric": "precomputed", "n_jobs": 1}
    fit = EVCLUS(
        4, metric="euclidean", **ours, d0=r["d0"], init=np.array(r["m0"]), random_state=0
    ).fit(data.X)
    criterion = stress(fit.credal_partition_, delta)
    bounds.at_most("from R's start: stress", criterion, r["crit_exact"], digits=7)
    bounds.at_least("from R's start: ARI", adjusted_rand_score(data.y, fit.labels_), 0.98)
    fits = [
        EVCLUS(4, metric="euclidean", **ours, d0="q1.0", random_state=s).fit(data.X) for s in seeds
    ]
    best = min(fits, key=lambda f: f.objective_)
    low = stress(best.credal_partition_, delta)
    bounds.at_most(f"own start, best of {len(fits)}: stress", low, r["crit_exact"], digits=7)
    scores = [adjusted_rand_score(data.y, f.labels_) for f in fits]
    # Minima within 1e-7 of each other differ in two of the 213 labels.
    bounds.at_least(f"own start, median of {len(fits)}: ARI", float(np.median(scores)), 0.97)


def gaussians(bounds: Bounds, sizes: Sequence[int], seeds: Sequence[int]) -> None:
    bounds.head(f"four Gaussians: k = 100, d0 = q0.9, {len(seeds)} seeds for each size")
    for n in sizes:
        data = load(f"gauss4_n{n}")
        some = np.random.default_rng(0).integers(n, size=(2, 100_000))
        some = some[:, some[0] != some[1]]
        D = np.linalg.norm(data.X[some[0]] - data.X[some[1]], axis=1)
        found, scores = [], []
        for seed in seeds:
            fit = EVCLUS(4, metric="euclidean", d0="q0.9", random_state=seed, n_jobs=1).fit(data.X)
            # objective_ is the mean over kept pairs of (kappa - delta)^2.
            found.append(fit.objective_ / np.mean(transformed(D, fit.d0_) ** 2))
            scores.append(adjusted_rand_score(data.y, fit.labels_))
        poor = float(np.sum(np.array(found) > POOR))
        bounds.at_most(f"n = {n}: runs in the poor minimum", poor, 0, digits=0)
        bounds.note("  largest stress", max(found), digits=4)
        bounds.note("  smallest ARI", min(scores))


def printed(bounds: Bounds, seeds: Sequence[int]) -> None:
    bounds.head("fourclass and S2: what the papers print")
    data = load("fourclass")
    # 100 partners drawn for each object, not symmetric, are as many pairs as 200 symmetric ones.
    fits = [
        EVCLUS(
            4, metric="euclidean", n_dissimilarities=200, d0="q0.9", focal_sets="pairs",
            random_state=s, n_jobs=1,
        ).fit(data.X) for s in seeds
    ]  # fmt: skip
    best = min(fits, key=lambda f: f.objective_)
    bounds.at_most("fourclass, pairs: loss", best.objective_, 0.00475, digits=5)
    nn = 0.706  # R's NN-EVCLUS on this set; no paper prints an ARI of EVCLUS
    bounds.at_least("fourclass, pairs: ARI", adjusted_rand_score(data.y, best.labels_), nn)
    data = load("S2")
    fits = [
        EVCLUS(15, metric="euclidean", d0="q0.1", random_state=s, n_jobs=1).fit(data.X)
        for s in seeds
    ]
    best = min(fits, key=lambda f: f.objective_)
    bounds.at_least("S2, d0 = q0.1: ARI", adjusted_rand_score(data.y, best.labels_), 0.88)


def iris_links(bounds: Bounds) -> None:
    bounds.head("k-CEVCLUS on iris: R's 150 links, xi = 0.5, from R's start")
    data, r = load("iris"), reference("kcevclus_iris")
    must, cannot = (np.array(r[kind]) - 1 for kind in ("ML", "CL"))
    D = squareform(pdist(data.X))
    d0 = float(np.quantile(D[~np.eye(len(D), dtype=bool)], 0.9))
    delta = transformed(D, d0)
    xi, links = 0.5, len(must) + len(cannot)

    def cost(partition: CredalPartition) -> float:
        # R weighs the links with 2 xi / links, as we do.
        return stress(partition, delta) + 2 * xi / links * link_cost(partition, must, cannot)

    for family in ("full", "simple"):
        theirs = CredalPartition(np.array(r[family]["mass"]), getattr(FocalSets, family)(3))
        assert abs(cost(theirs) - r[family]["crit_exact"]) < 1e-9, "not R's criterion"
        fit = EVCLUS(
            3, n_dissimilarities=len(D) - 1, focal_sets=family, d0=d0, constraint_weight=xi,
            init=np.array(r[family]["m0"]), random_state=0, n_jobs=1,
        ).fit(data.X, must_link=must, cannot_link=cannot)  # fmt: skip
        bounds.at_most(f"{family}: cost", cost(fit.credal_partition_), r[family]["crit_exact"])
        score = adjusted_rand_score(data.y, fit.labels_)
        bounds.at_least(f"{family}: ARI", score, round(r[family]["ari_pl"], 3))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3 seeds, n = 1000 and 2000 only")
    quick = parser.parse_args().quick
    bounds = Bounds()
    protein(bounds, range(3 if quick else 10))
    iris_links(bounds)
    printed(bounds, range(2 if quick else 5))
    sizes = (1000, 2000) if quick else (1000, 2000, 5000, 10000)
    gaussians(bounds, sizes, range(3 if quick else 20))
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

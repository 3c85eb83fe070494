"""Which score finds planted outliers: mass on the empty set, `outlier_scores`, and two peers.

    python benchmarks/answers_outliers.py [--seeds 3] [--sets iris,wine] [--d0]

Two objects in a hundred (five at least) are drawn uniformly in the box of the data, a tenth wider
on every side; at most 500 objects of a set. AUROC, mean over the seeds. Bound: the mean over the
sets of `evdist.metrics.outlier_scores` is at least those of IsolationForest and LocalOutlierFactor
in the same run. Takes two minutes on two cores.

--d0 prints, instead, for each d0 how well the mass on the empty set ranks the planted objects, how
many objects would be called outliers, and how well the clusters are found: what a smaller d0 buys.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from bounds import Bounds
from datasets import load
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from evdist import EVCLUS
from evdist.metrics import outlier_scores

SETS = ("iris", "wine", "seeds", "gauss4_n1000", "S2")
SHARE, MOST = 0.02, 500
QUANTILES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9)


def planted(name: str, seed: int) -> tuple[NDArray, NDArray, NDArray, int]:
    """Attributes, which objects were planted, the classes of the others (first), their number."""
    data = load(name)
    X, rng, some = data.X, np.random.default_rng(seed), np.arange(len(data.y))
    if len(X) > MOST:
        some = rng.choice(len(X), MOST, replace=False)
        X = X[some]
    low, high = X.min(axis=0), X.max(axis=0)
    edge = 0.1 * (high - low)
    noise = rng.uniform(low - edge, high + edge, (max(5, round(SHARE * len(X))), X.shape[1]))
    y = np.concatenate([np.zeros(len(X)), np.ones(len(noise))])
    return np.concatenate([X, noise]), y, data.y[some], data.n_clusters


def scores(name: str, seed: int) -> dict[str, float]:
    X, y, _, c = planted(name, seed)
    partition = EVCLUS(c, random_state=seed).fit(X).credal_partition_
    found = {
        "IsolationForest": -IsolationForest(random_state=seed).fit(X).score_samples(X),
        "LocalOutlierFactor": -LocalOutlierFactor().fit(X).negative_outlier_factor_,
        "m(empty)": np.asarray(partition.mass)[:, 0],
        "outlier_scores": outlier_scores(partition, X),
    }
    return {name: float(roc_auc_score(y, score)) for name, score in found.items()}


def by_d0(name: str, seeds: int) -> None:
    """What each d0 gives: area, outliers, adjusted Rand index of the objects of the set."""
    for q in QUANTILES:
        rows = []
        for seed in range(seeds):
            X, y, classes, c = planted(name, seed)
            model = EVCLUS(c, d0=f"q{q}", random_state=seed).fit(X)
            partition = model.credal_partition_
            rows.append((roc_auc_score(y, np.asarray(partition.mass)[:, 0]),
                         partition.decide().outlier.mean(),
                         adjusted_rand_score(classes, model.labels_[: len(classes)])))  # fmt: skip
        area, outliers, ari = np.mean(rows, axis=0)
        print(f"{name:14s} q{q:<5} m(empty) {area:.3f}  outliers {outliers:4.0%}  ARI {ari:.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--d0", action="store_true", help="the mass on the empty set by d0")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table: dict[str, list[float]] = {}
    for name in given.sets.split(","):
        if given.d0:
            by_d0(name, given.seeds)
            continue
        rows = [scores(name, seed) for seed in range(given.seeds)]
        mean = {method: float(np.mean([row[method] for row in rows])) for method in rows[0]}
        print(f"{name:14s} " + "  ".join(f"{m} {v:.3f}" for m, v in mean.items()), flush=True)
        for method, value in mean.items():
            table.setdefault(method, []).append(value)
    if given.d0:
        return 0
    bounds = Bounds()
    total = {method: float(np.mean(values)) for method, values in table.items()}
    bounds.note("mass on the empty set", total["m(empty)"])
    for peer in ("IsolationForest", "LocalOutlierFactor"):
        bounds.at_least(f"outlier_scores against {peer}", total["outlier_scores"], total[peer])
    return bounds.finish()


if __name__ == "__main__":
    raise SystemExit(main())

"""ECM on the slides' seeds example, and the number of clusters by nonspecificity.

    python benchmarks/ecm_accuracy.py [seeds|select]

* seeds: credal Rand index between the partitions that the slides compare, and with the truth;
* select: the number of clusters by nonspecificity, where the true one is known.

Figures that the papers print are in `reproduction.py`. Takes about a minute on one core.
"""

from __future__ import annotations

import sys

from datasets import load
from sklearn.cluster import KMeans

from evdist import ECM, EVCLUS, CredalPartition, FocalSets, select
from evdist.metrics import credal_rand_index

#: Sets of at most four clusters, for the number of clusters.
SMALL = ("gauss4_n1000", "fourclass", "iris", "diabetes", "wine", "seeds", "ecoli3", "heart",
         "vehicle")  # fmt: skip


def seeds() -> int:
    data = load("seeds")
    X, y = data.X, data.y
    ecm = ECM(
        3, beta=2.0, focal_sets=FocalSets.pairs(3, omega=False), delta=5.0, random_state=0
    ).fit(X)
    simple = EVCLUS(3, metric="euclidean", n_dissimilarities=209, random_state=0).fit(X)
    full = EVCLUS(
        3, metric="euclidean", n_dissimilarities=209, focal_sets="full", random_state=0
    ).fit(X)
    parts = {
        "truth": CredalPartition.from_labels(y),
        "ECM": ecm.credal_partition_,
        "ECM hard": CredalPartition.from_labels(ecm.labels_),
        "ECM fuzzy": CredalPartition.from_fuzzy(ecm.credal_partition_.fuzzy()),
        "ECM rough": CredalPartition.from_rough(*ecm.credal_partition_.rough()),
        "EVCLUS simple": simple.credal_partition_,
        "EVCLUS full": full.credal_partition_,
        "k-means": CredalPartition.from_labels(KMeans(3, n_init=5, random_state=0).fit_predict(X)),
    }
    print("seeds, standardised: credal Rand index\n")
    print(" " * 14 + "".join(f"{name:>14}" for name in parts))
    for name, one in parts.items():
        row = "".join(f"{credal_rand_index(one, other):14.3f}" for other in parts.values())
        print(f"{name:<14}{row}")
    return 0


def numbers() -> int:
    print(f"{'':<14}{'true':>6}{'chosen':>8}   N* of 2, 3, ...")
    for name in SMALL:
        data = load(name)
        model = ECM(focal_sets="full", alpha=2.0, beta=2.0, random_state=0, max_iter=1000)
        found = select(data.X, model, range(2, 8))
        values = " ".join(f"{value:.3f}" for value in found.values)
        print(f"{name:<14}{data.n_clusters:>6}{found.best:>8}   {values}")
    return 0


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "seeds"
    sys.exit({"seeds": seeds, "select": numbers}[what]())

"""ECM and RECM beside the values printed in the NN-EVCLUS paper, and the slides' seeds example.

    python benchmarks/ecm_accuracy.py [table|seeds|select]

* table: adjusted Rand index of ECM on the sets of table 3 that are in the data folder, and of RECM
  on the protein data of table 6, with the paper's settings: delta = 5; the empty set, singletons
  and pairs, for more than three clusters only the pairs of mutual neighbours, found in a first
  fit; five starts, the best objective kept. Ours may be lower by .05; where it is lower still, a
  reason.
* seeds: credal Rand index between the partitions that the slides compare, and with the truth.
* select: the number of clusters by nonspecificity, where the true one is known.

Takes about a minute on one core.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from bounds import Bounds
from datasets import DataSet, load, raw
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from evdist import ECM, EVCLUS, RECM, CredalPartition, FocalSets, select
from evdist.belief import mutual_neighbour_pairs
from evdist.metrics import credal_rand_index

#: Table 3, column ECM, of the NN-EVCLUS paper.
PRINTED = {"wine": 0.85, "iris": 0.62, "ecoli3": 0.79, "heart": 0.38, "seeds": 0.73, "glass": 0.31,
           "S2": 0.93, "drybean": 0.73}  # fmt: skip
#: Sets of at most four clusters, for the number of clusters.
SMALL = ("gauss4_n1000", "fourclass", "iris", "diabetes", "wine", "seeds", "ecoli3", "heart",
         "vehicle")  # fmt: skip
#: What we know of values that are lower by more than .05.
REASONS = {
    "glass": "the paper lists ten attributes, the file has nine and the row number; see below",
}


def paper_set(name: str) -> DataSet:
    """A set as the paper has it: of drybean 200 objects of each class, standardised before."""
    if name != "drybean":
        return load(name)
    whole, rng = load(name), np.random.default_rng(0)
    rows = [rng.choice(np.flatnonzero(whole.y == k), 200, replace=False) for k in range(7)]
    return whole.take(np.concatenate(rows))


def paper_ecm(data: DataSet) -> ECM:
    """ECM as section 4.1 of the paper runs it; S2 is standardised there, as in R's package."""
    c, X = data.n_clusters, data.X
    options = {"delta": 5.0, "n_init": 5, "random_state": 0}
    if c <= 3:
        return ECM(c, beta=2.0, focal_sets=FocalSets.pairs(c, omega=False), **options).fit(X)
    first = ECM(c, beta=2.0, focal_sets=FocalSets.simple(c, omega=False), **options).fit(X)
    pl = np.asarray(first.credal_partition_.normalised_plausibility)
    sets = FocalSets.pairs(c, mutual_neighbour_pairs(pl, 1), omega=False)
    return ECM(c, beta=2.0, focal_sets=sets, init=first.prototypes_, **options).fit(X)


def random_starts(protein: DataSet) -> list[tuple[float, float]]:
    """Objective and adjusted Rand index of RECM from ten draws of masses."""
    D = protein.X
    out = []
    for seed in range(10):
        first = np.random.default_rng(seed).dirichlet(np.ones(6), len(D))
        model = RECM(4, alpha=1.0, beta=1.5, delta=np.sqrt(D.max()), init=first, tol=1e-6).fit(D)
        out.append((model.objective_, adjusted_rand_score(protein.y, model.labels_)))
    return out


def table() -> int:
    bounds = Bounds()
    bounds.head("ECM, adjusted Rand index; table 3 less .05")
    for name, printed in PRINTED.items():
        data = paper_set(name)
        data = data.standardised() if name == "S2" else data
        model = paper_ecm(data)
        value = adjusted_rand_score(data.y, model.labels_)
        what = f"{name} (printed {printed:.2f})"
        bounds.at_least(what, value, printed - 0.05, known=REASONS.get(name, ""))
    glass = raw("glass")
    numbered = replace(glass, X=np.c_[np.arange(len(glass.X)), glass.X]).standardised()
    value = adjusted_rand_score(glass.y, paper_ecm(numbered).labels_)
    bounds.at_least("glass with its row numbers (printed 0.31)", value, 0.31 - 0.05)
    protein = load("protein")
    D = protein.X
    options = {"focal_sets": "simple", "n_init": 5, "random_state": 0}
    model = RECM(4, alpha=1.0, beta=1.5, delta=np.sqrt(D.max()), **options).fit(D)
    value = adjusted_rand_score(protein.y, model.labels_)
    bounds.note("RECM, protein, our start", value, f"objective {model.objective_:.2f}")
    found = random_starts(protein)
    indices = [index for _, index in found]
    bounds.note("- ten random masses: least index", min(indices), "prototypes fall together")
    # All ten have the same objective: the index is that of a start, not of the method.
    bounds.at_least("- ten random masses: greatest (printed 0.863)", max(indices), 0.863 - 0.05)
    low, high = min(found)[0], max(found)[0]
    bounds.note("- ten random masses: least objective", low, f"greatest {high:.2f}", digits=2)
    for name, X, delta in (("dissimilarities", D, np.sqrt(20)), ("their squares", D * D, 20.0)):
        model = RECM(4, alpha=0.2, beta=1.1, delta=delta, **options).fit(X)
        value = adjusted_rand_score(protein.y, model.labels_)
        bounds.note(f"RECM, alpha .2, beta 1.1, {name}", value)
    return bounds.finish()


def seeds() -> int:
    data = load("seeds")
    X, y = data.X, data.y
    ecm = ECM(
        3, beta=2.0, focal_sets=FocalSets.pairs(3, omega=False), delta=5.0, random_state=0
    ).fit(X)
    simple = EVCLUS(3, n_dissimilarities=209, random_state=0).fit(X)
    full = EVCLUS(3, n_dissimilarities=209, focal_sets="full", random_state=0).fit(X)
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
    what = sys.argv[1] if len(sys.argv) > 1 else "table"
    sys.exit({"table": table, "seeds": seeds, "select": numbers}[what]())

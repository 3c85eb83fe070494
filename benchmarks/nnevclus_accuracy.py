"""NN-EVCLUS on the data of its paper, beside the figures that it prints.

    python benchmarks/nnevclus_accuracy.py [table3 | circles | links | protein] [--quick]

* table 3, columns NN-EVCLUS and NN-EVCLUS-bp: best of five runs by objective;
* example 5, circles: 50 links with KPCCA, 50 labels with KFDA;
* section 4.3, iris and glass: 50 to 200 random links, with and without PCCA, beside EVCLUS with the
  same links;
* section 4.2, protein.

The measure is the adjusted Rand index (ARI) of the labels of maximum plausibility. As in the paper:
pairs up to four clusters, singletons beyond; 1.5 units for each focal set. What the paper leaves
open, and how it was settled:

* nu = 0.5 for belief peaks. R's evclust, with which the paper was made, takes the mean over the
  clusters where eq. (21) prints the sum; that is label_weight = 1 / (1 + c) here.
* DryBean is standardised before 200 objects of each class are drawn: ECM then has the printed ARI
  (.71 to .74; printed .73), after the draw it has not (.64 to .67). The paper gives belief peaks
  for the sets whose clusters they all find, DryBean among them, so its draw is like those whose
  seven largest peaks lie in seven classes. Of twelve draws these count, by their median; the
  others are printed too. Mini-batches as for n > 1,000, ten of them as in R and in section 4.2. The
  settings were found on draws 0 to 9; those measured here are others.
* xi = 0.5 in eq. (17) for both methods. EVCLUS counts its constraint_weight otherwise: 4 times, and
  in units of the mean square of the transformed dissimilarities. It gets the weight that makes the
  two losses equal; its own 0.5 is printed too. The paper draws links ten times; here thirty, as
  the standard error of a difference is up to .015 with ten.

Takes about half an hour on one core; --quick leaves out S2 and DryBean and draws links three times.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from bounds import Bounds
from datasets import DataSet, load, raw
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, NNEVCLUS, FocalSets
from evdist.constraints import random_links
from evdist.features import PCCA, KernelFDA, KernelPCCA

SLACK = 0.03
#: Weight of the links, eq. (17).
XI = 0.5
#: Draws of links, and those of the paper: with ten, means on iris are off by .01 to .02.
DRAWS, TEN = 30, 10
#: Set, quantile of d0, printed ARI, and the penalty where it is not 0: on heart the runs differ
#: by a tenth without. DryBean has lines of its own.
TABLE_3: tuple[tuple[str, float, float, dict[str, Any]], ...] = (
    ("wine", 0.9, 0.91, {}),
    ("iris", 0.6, 0.77, {}),
    ("ecoli3", 0.9, 0.80, {}),
    ("heart", 0.9, 0.42, {"l2_penalty": 0.01}),
    ("seeds", 0.9, 0.80, {}),
    ("S2", 0.1, 0.81, {}),
)
#: The same with belief peaks as centres.
TABLE_3_BP: tuple[tuple[str, float, float, dict[str, Any]], ...] = (
    ("wine", 0.9, 0.93, {}),
    ("iris", 0.6, 0.70, {}),
    ("ecoli3", 0.9, 0.82, {}),
    ("heart", 0.9, 0.41, {}),
    ("seeds", 0.9, 0.75, {}),
    ("S2", 0.1, 0.93, {}),
)
#: DryBean: quantile of d0, printed ARI without and with peaks, draws, and ten mini-batches trained
#: until nothing is gained for long (R waits for 100 epochs).
BEANS_Q, BEANS_PRINTED, BEANS_PRINTED_BP, BEANS_DRAWS = 0.2, 0.63, 0.75, range(10, 22)
BEANS_TRAINING: dict[str, Any] = {"batch_size": 140, "n_iter_no_change": 30, "tol": 1e-4}


def family(c: int) -> tuple[str, int]:
    """Focal sets and hidden units of section 4.1."""
    name = "pairs" if c <= 4 else "simple"
    return name, int(1.5 * len(getattr(FocalSets, name)(c)))


def best_of_five(data: DataSet, q: float, **settings: Any) -> NNEVCLUS:
    c = data.n_clusters
    name, units = family(c)
    return NNEVCLUS(
        c, hidden=(units,), focal_sets=name, d0=f"q{q}", n_init=5, random_state=0, device="cpu",
        n_jobs=1, **settings,
    ).fit(data.X)  # fmt: skip


def ari(data: DataSet, model: NNEVCLUS | EVCLUS) -> float:
    return float(adjusted_rand_score(data.y, model.labels_))


def by_peaks(c: int) -> dict[str, Any]:
    """Belief peaks as labelled objects, nu = 0.5 with R's mean over the clusters for eq. (21)."""
    return {"centres": "peaks", "label_weight": 1 / (1 + c)}


def table_3(bounds: Bounds, quick: bool) -> None:
    for title, table, peaks in (
        ("table 3, NN-EVCLUS: best of five", TABLE_3, False),
        ("table 3, NN-EVCLUS-bp: best of five, belief peaks", TABLE_3_BP, True),
    ):
        bounds.head(title)
        for name, q, printed, extra in table:
            if quick and name == "S2":
                continue
            data = load(name)
            how = dict(extra) | (by_peaks(data.n_clusters) if peaks else {})
            if len(data.y) <= 2000 and not peaks:
                how["optimizer"] = "adaptive"
            score = ari(data, best_of_five(data, q, **how))
            said = "".join(f", {k}={v}" for k, v in extra.items())
            bounds.at_least(f"{name}, q{q}{said}", score, printed - SLACK)
    if not quick:
        beans(bounds)


def some_beans(seed: int) -> DataSet:
    """200 objects of each class from the standardised set."""
    whole, rng = load("drybean"), np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(whole.y == k), 200, replace=False) for k in range(7)]
    return whole.take(np.concatenate(rows))


def beans(bounds: Bounds) -> None:
    bounds.head(f"table 3, DryBean, 200 a class, q{BEANS_Q}: best of five")
    found: dict[bool, list[float]] = {True: [], False: []}
    plain = []
    for seed in BEANS_DRAWS:
        data = some_beans(seed)
        model = best_of_five(data, BEANS_Q, **by_peaks(7), **BEANS_TRAINING)
        in_all = len(np.unique(data.y[model.centres_])) == 7
        found[in_all].append(ari(data, model))
        if in_all:
            plain.append(ari(data, best_of_five(data, BEANS_Q, **BEANS_TRAINING)))
    for what, scores, printed in (
        ("NN-EVCLUS", plain, BEANS_PRINTED),
        ("NN-EVCLUS-bp, peaks in seven classes", found[True], BEANS_PRINTED_BP),
    ):
        bounds.at_least(f"{what}: median", float(np.median(scores)), printed - SLACK)
        bounds.note(f"  least of {len(scores)}", min(scores), f"greatest {max(scores):.3f}")
    rest = found[False]
    why = f"of {len(rest)}, from {min(rest):.3f} to {max(rest):.3f}"
    bounds.note("NN-EVCLUS-bp, peaks miss a class: median", float(np.median(rest)), why)


# ---------------------------------------------------------------------- example 5
def circle_data() -> tuple[NDArray, NDArray]:
    """A round cluster of 200 objects inside a ring of 300, as in figure 15."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [200, 300])
    angle = rng.uniform(0, 2 * np.pi, 300)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * 4 + rng.normal(0, 0.3, (300, 2))
    return np.vstack([rng.normal(0, 0.7, (200, 2)), ring]), y


def circles(bounds: Bounds) -> None:
    bounds.head("example 5, circles: n = 500, n_H = 30, lambda = 0.01, xi = 0.1, five draws")
    X, y = circle_data()
    common: dict[str, Any] = {"hidden": (30,), "focal_sets": "full", "d0": "q0.9", "n_init": 3,
                              "device": "cpu", "n_jobs": 1, "l2_penalty": 0.01}  # fmt: skip
    scores: dict[str, list[float]] = {"50 links, KPCCA": [], "50 labels, KFDA": [], "nothing": []}
    for seed in range(5):
        must, cannot = random_links(y, 50, seed)
        Z = KernelPCCA(1, gamma=0.3).fit(
            X, must_link=must, cannot_link=cannot).transform(X)  # fmt: skip
        model = NNEVCLUS(2, constraint_weight=0.1, random_state=seed, **common).fit(
            X, must_link=must, cannot_link=cannot, metric_features=Z
        )
        scores["50 links, KPCCA"].append(adjusted_rand_score(y, model.labels_))
        labels = np.full(500, -1)
        known = np.random.default_rng(seed).choice(500, 50, replace=False)
        labels[known] = y[known]
        Z = KernelFDA(1, gamma=0.3).fit(X, labels).transform(X)
        model = NNEVCLUS(2, random_state=seed, **common).fit(X, labels=labels, metric_features=Z)
        scores["50 labels, KFDA"].append(adjusted_rand_score(y, model.labels_))
    plain = NNEVCLUS(2, random_state=0, **common).fit(X)
    for name in ("50 links, KPCCA", "50 labels, KFDA"):
        bounds.at_least(f"{name}: median ARI", float(np.median(scores[name])), 0.98)
        bounds.note("  least of five", min(scores[name]))
    bounds.note("X alone", adjusted_rand_score(y, plain.labels_), "as the paper says: not found")


# ---------------------------------------------------------------------- section 4.3
def same_loss(X: NDArray, q: float, xi: float) -> float:
    """The constraint_weight of EVCLUS with which it minimises eq. (17) with this xi."""
    square = pdist(X, "sqeuclidean")
    delta = -np.expm1(np.log(0.05) * square / np.quantile(square, q))  # eq. (6)
    return xi / (4 * float((delta * delta).mean()))


def linked(data: DataSet, q: float, count: int, seed: int, p: int) -> tuple[float, ...]:
    """ARI of EVCLUS, of NN-EVCLUS, of both with PCCA, and of EVCLUS with its own xi = 0.5."""
    must, cannot = random_links(data.y, count, seed)
    links = {"must_link": must, "cannot_link": cannot}
    c = data.n_clusters
    name, units = family(c)
    Z = PCCA(p).fit(data.X, **links).transform(data.X)

    def free(rows: NDArray, weight: float) -> float:
        k = len(data.y) - 1
        return ari(data, EVCLUS(
            c, n_dissimilarities=k, focal_sets=name, d0=f"q{q}", constraint_weight=weight,
            n_jobs=1, random_state=seed,
        ).fit(rows, **links))  # fmt: skip

    def net(features: NDArray | None) -> float:
        return ari(data, NNEVCLUS(
            c, hidden=(units,), focal_sets=name, d0=f"q{q}", constraint_weight=XI,
            optimizer="adaptive", n_init=5, device="cpu", n_jobs=1, random_state=seed,
        ).fit(data.X, metric_features=features, **links))  # fmt: skip

    return (
        free(data.X, same_loss(data.X, q, XI)), net(None), free(Z, same_loss(Z, q, XI)), net(Z),
        free(data.X, XI),
    )  # fmt: skip


def compare(bounds: Bounds, what: str, ours: NDArray, theirs: NDArray) -> None:
    """The mean over all draws of links against that of others, and what ten draws would say."""
    difference = ours - theirs
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    bounds.at_least(what, float(ours.mean()), float(theirs.mean()))
    few = f"{ours[:TEN].mean():.3f} and {theirs[:TEN].mean():.3f}"
    why = f"standard error {error:.3f}; the first ten draws: {few}"
    bounds.note("  difference", float(difference.mean()), why)


def constrained(bounds: Bounds, draws: Sequence[int]) -> None:
    counts = (50, 100, 150, 200)
    for data, q, p in ((load("iris"), 0.9, 3), (raw("glass").standardised(), 0.5, 5)):
        bounds.head(f"section 4.3, {data.name}: xi = 0.5, mean ARI of {len(draws)} draws")
        means = []
        for count in counts:
            scores = np.array([linked(data, q, count, seed, p) for seed in draws]).T
            free, net, free_pcca, net_pcca, own = scores
            means.append((net.mean(), net_pcca.mean()))
            compare(bounds, f"{count} links: NN-EVCLUS (EVCLUS)", net, free)
            bounds.note(
                "  EVCLUS, its own xi = 0.5", own.mean(), f"first ten {own[:TEN].mean():.3f}"
            )
            compare(bounds, f"{count} links: NN-EVCLUS, PCCA (without)", net_pcca, net)
            why = f"first ten {free_pcca[:TEN].mean():.3f}"
            bounds.note("  EVCLUS, PCCA", free_pcca.mean(), why)
        for i, name in enumerate(("NN-EVCLUS", "NN-EVCLUS, PCCA")):
            bounds.at_least(f"{name}: 200 links against 50", means[-1][i], means[0][i])


def protein(bounds: Bounds) -> None:
    bounds.head("section 4.2, protein: p = 5, n_H = 20, d0 = max, best of five")
    data = load("protein")
    model = NNEVCLUS(
        4, hidden=(20,), metric="precomputed", n_components=5, d0="q1.0", n_init=5, tol=1e-4,
        optimizer="adaptive", device="cpu", n_jobs=1, random_state=0,
    ).fit(data.X)  # fmt: skip
    bounds.at_least("ARI", adjusted_rand_score(data.y, model.labels_), 0.98)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["table3", "circles", "links", "protein"])
    parser.add_argument("--quick", action="store_true", help="small sets, three draws of links")
    options = parser.parse_args()
    bounds = Bounds(width=52)
    if "table3" in options.what:
        table_3(bounds, options.quick)
    if "circles" in options.what:
        circles(bounds)
    if "links" in options.what:
        constrained(bounds, range(3 if options.quick else DRAWS))
    if "protein" in options.what:
        protein(bounds)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

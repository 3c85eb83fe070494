"""CCM, CCM-bp, sECMdd, wECMdd and BPEC against table 3 of NN-EVCLUS (2021): adjusted Rand indices.

    python benchmarks/family_accuracy.py [data set] ...

Settings are those of section 4.1 there: delta = 5; CCM with gamma = 1, beta = 2 and sets of at most
two clusters; sECMdd with alpha = beta = 2, eta = gamma = 1; wECMdd with alpha = beta = psi = 2 and
sharpness 5; BPEC with the adaptive metric, all pairs for up to three clusters and selected pairs
beyond; best of five starts. The paper's centres were chosen by hand in delta-Bel graphs that it
does not show; here they are the objects of largest delta * Bel with 50 neighbours (wine: 15).
Objects of DryBean are drawn, 200 of each class, as in the paper but not the same ones, from the
standardised whole. Ours may be lower by 0.05; where it is lower still, a reason stands beside it
and the next lines measure it. Takes about two minutes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from bounds import Bounds
from datasets import DataSet, load
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import BPEC, CCM, ECMdd, FocalSets, delta_bel

#: Table 3: CCM, CCM-bp, sECMdd, wECMdd, BPEC; None where the paper has no value.
PRINTED: dict[str, tuple[float | None, ...]] = {
    "wine": (0.45, 0.45, 0.24, 0.39, 0.80),
    "iris": (0.63, 0.63, 0.54, 0.66, 0.64),
    "ecoli3": (0.70, 0.70, 0.11, 0.64, 0.78),
    "heart": (0.37, 0.40, -0.0058, 0.39, 0.22),
    "seeds": (0.79, 0.79, 0.45, 0.69, 0.72),
    "glass": (0.21, None, 0.20, 0.26, None),
    "S2": (0.72, 0.94, None, None, 0.93),
    "drybean": (0.51, 0.60, 0.47, 0.28, 0.67),
}
METHODS = ("CCM", "CCM-bp", "sECMdd", "wECMdd", "BPEC")
NEIGHBOURS = {"wine": 15}
ALLOWED = 0.05
#: Why ours is lower than the printed value by more than that.
REASONS = {
    ("wine", "BPEC"): "falls with the objective; see the next lines",
}


def prepared(name: str) -> DataSet:
    data = load(name)
    if name == "glass":
        # Ten attributes in the paper: with the row number of the UCI file, which follows the class.
        number = np.arange(len(data.X), dtype=float)[:, None]
        return DataSet(name, np.concatenate([data.X, number], axis=1), data.y, "").standardised()
    if name == "drybean":
        rng = np.random.default_rng(0)
        drawn = [
            rng.choice(np.flatnonzero(data.y == k), 200, replace=False) for k in np.unique(data.y)
        ]
        return data.take(np.concatenate(drawn))
    return data.standardised() if name == "S2" else data


def fits(data: DataSet) -> dict[str, Callable[[], NDArray[np.int64]]]:
    X, c = data.X, data.n_clusters
    K = NEIGHBOURS.get(data.name, 50)
    sets = FocalSets.pairs(c, omega=c == 2)

    def centres() -> NDArray[np.float64]:
        return X[delta_bel(X, K).largest(c)]

    family = "pairs" if c <= 3 else "select"
    return {
        "CCM": lambda: CCM(c, beta=2.0, delta=5, focal_sets=sets, random_state=0).fit(X).labels_,
        "CCM-bp": lambda: CCM(c, beta=2.0, delta=5, focal_sets=sets, init=centres()).fit(X).labels_,
        "sECMdd": lambda: ECMdd(c, delta=5, random_state=0).fit(X).labels_,
        "wECMdd": lambda: ECMdd(c, weighted=True, delta=5, random_state=0).fit(X).labels_,
        "BPEC": lambda: (
            BPEC(c, n_neighbors=K, delta=5, metric="adaptive", focal_sets=family).fit(X).labels_
        ),
    }


def wine_metrics(bounds: Bounds, data: DataSet) -> None:
    """BPEC on wine: the adaptive metric stopped early, and the Euclidean one."""
    options = {"n_neighbors": NEIGHBOURS["wine"], "delta": 5, "focal_sets": "pairs"}
    for steps in (1, 2, 3, 5, 10, 20):
        model = BPEC(3, **options, metric="adaptive", max_iter=steps).fit(data.X)
        ari = adjusted_rand_score(data.y, model.labels_)
        bounds.note(f"- stopped after {steps}", ari, f"objective {model.objective_:.1f}")
    model = BPEC(3, **options, metric="euclidean").fit(data.X)
    ari = adjusted_rand_score(data.y, model.labels_)
    bounds.note("- Euclidean", ari, f"objective {model.objective_:.1f}")


def main() -> int:
    names = sys.argv[1:] or list(PRINTED)
    bounds = Bounds()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in names:
        data = prepared(name)
        n, d = data.X.shape
        bounds.head(f"{name}: n = {n}, d = {d}, c = {data.n_clusters}; bound: printed - {ALLOWED}")
        run = fits(data)
        for method, printed in zip(METHODS, PRINTED[name], strict=True):
            if printed is None:
                continue
            ari = adjusted_rand_score(data.y, run[method]())
            what = f"{method} (printed {printed:.2f})"
            bounds.at_least(what, ari, printed - ALLOWED, known=REASONS.get((name, method), ""))
        if name == "wine":
            wine_metrics(bounds, data)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

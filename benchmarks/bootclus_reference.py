"""Bootclus against R's bootclus, and the pictures of its GvHD example.

    python benchmarks/bootclus_reference.py [iris] [gvhd] [--figures FOLDER]

* iris: intervals from R's own replicates, and the criterion from R's start;
* gvhd: 1000 objects of GvHD_pos (which ones, the paper does not say), all models, 2 to 9 clusters
  by BIC; then seven clusters with VVV, the pairs of mutual nearest clusters (K = 2) and, with
  --figures, the lower approximations with the hulls of the upper ones (figure 21).

Figures that the paper prints are in `reproduction.py`. Takes a few minutes on one core.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from bounds import Bounds
from datasets import SHARED, reference
from numpy.typing import NDArray

from evdist import Bootclus, FocalSets, plot
from evdist.bootclus.intervals import IntervalPairs, draw_band, some_intervals
from evdist.bootclus.replicates import GaussianReplicates
from evdist.bootclus.solver import belief_projections
from evdist.evclus.irqp import Stop, minimise
from evdist.evclus.problem import MemoryPairs, Plan, Problem
from evdist.evclus.rows.numba import NumbaRows
from evdist.mixture import Parameters, select_mixture


def criterion(mass: NDArray, sets: FocalSets, lower: NDArray, upper: NDArray) -> float:
    """J(M), eq. (6), over all pairs i < j, in double precision."""
    M = np.asarray(mass, dtype=float)
    bel, pl = M @ sets.S @ M.T, 1.0 - M @ sets.C @ M.T
    pairs = np.triu_indices(len(M), 1)
    return float((((bel - lower) ** 2 + (pl - upper) ** 2)[pairs]).sum())


def r_replicates() -> tuple[GaussianReplicates, NDArray, NDArray]:
    """R's 200 bootstrap mixtures of iris, and its bounds: (n, n) each."""
    path = SHARED / "reference" / "bootclus_iris_replicates.json.gz"
    with gzip.open(path, "rt") as file:
        r = json.load(file)
    fitted = []
    for weights, means, covariances in zip(r["pro"], r["mean"], r["variance"], strict=True):
        values, axes = np.linalg.eigh(np.array(covariances))
        volumes = np.exp(np.log(values).mean(axis=1))
        shapes = values / volumes[:, None]
        fitted.append(Parameters("VVV", weights, np.transpose(means), volumes, shapes, axes))
    return GaussianReplicates.of(fitted), np.array(r["CI_lower"]), np.array(r["CI_upper"])


def from_bounds(lower: NDArray, upper: NDArray, sets: FocalSets, start: NDArray) -> NDArray:
    """Masses on the nonempty focal sets from square matrices of bounds, all pairs."""
    n = len(lower)
    partner = np.array([[j for j in range(n) if j != i] for i in range(n)])
    rows = np.arange(n)[:, None]
    target = np.concatenate([lower[rows, partner], 1.0 - upper[rows, partner]], axis=1)
    entry = np.concatenate([partner, partner + n], axis=1)
    width = 2 * (n - 1)
    pairs = MemoryPairs(
        np.arange(n) * width, np.full(n, width),
        entry.astype(np.uint32).ravel(), target.astype(np.float32).ravel(),
    )  # fmt: skip
    problem = Problem(sets, pairs, Plan.of(np.arange(n + 1)), projections=belief_projections(sets))
    with NumbaRows().executor(problem, start.astype(np.float32)) as executor:
        found = minimise(executor, 1.0, Stop(1e-8, 500)).value
    return np.concatenate([np.zeros((n, 1)), found], axis=1)


def iris(bounds: Bounds) -> None:
    X = pd.read_csv(SHARED / "data" / "iris.csv").iloc[:, :4].to_numpy(float)
    bounds.head("iris: from R's replicates and R's start")
    replicates, lower, upper = r_replicates()
    layout = draw_band(len(X), len(X) - 1, 0)
    pairs = IntervalPairs(X[layout.order], layout.graph, replicates, 0.9)
    kept = some_intervals(pairs.in_memory(), layout.order)
    apart = max(
        np.abs(kept.lower - lower[kept.i, kept.j]).max(),
        np.abs(kept.upper - upper[kept.i, kept.j]).max(),
    )
    bounds.at_most("largest difference of a bound", float(apart), 1e-6, digits=8)
    for case, sets in ((0, FocalSets.pairs(3, omega=False)), (2, FocalSets.simple(3))):
        r = reference("mass_from_P_iris")["cases"][case]
        theirs = criterion(np.array(r["mass"]), sets, lower, upper)
        ours = criterion(from_bounds(lower, upper, sets, np.array(r["m0"])), sets, lower, upper)
        bounds.at_most(f"criterion, {r['type']}", ours, theirs * (1 + 1e-9), digits=6)


def gvhd(bounds: Bounds, sample: int, folder: Path | None) -> None:
    X = pd.read_csv(SHARED / "data" / "GvHD_pos.csv.gz").to_numpy(float)
    X = X[np.random.default_rng(sample).choice(len(X), 1000, replace=False)]
    bounds.head("GvHD: 1000 objects, all models, 2 to 9 clusters")
    table = select_mixture(X, range(2, 10), random_state=0).bics
    number, model = table.stack().idxmax()
    bounds.note(f"clusters chosen by BIC, with {model}", float(number), digits=0)
    vvv = table["VVV"]
    bounds.note("clusters chosen by BIC, VVV alone", float(vvv.idxmax()), digits=0)
    bounds.note("best BIC", float(table.to_numpy().max()), digits=1)
    bounds.note("best BIC of VVV", float(vvv.max()), digits=1)
    bounds.note("BIC of VVV with seven clusters", float(vvv.loc[7]), digits=1)
    fit = Bootclus(7, covariance_models="VVV", n_bootstrap=500, focal_sets="select",
                   random_state=0).fit(X)  # fmt: skip
    bounds.head("GvHD: seven clusters, VVV, B = 500, K = 2, all pairs of objects")
    pairs = [s for s in fit.credal_partition_.focal_sets.sets if len(s) == 2]
    shown = ", ".join(f"({a + 1}, {b + 1})" for a, b in pairs)
    bounds.note("pairs of mutual neighbours", len(pairs), f"{shown}; printed: 5", digits=0)
    bounds.note("objective", fit.objective_, digits=5)
    doubtful = np.asarray(fit.credal_partition_.mass).argmax(axis=1) > fit.n_clusters_
    bounds.note("objects between two clusters", float(doubtful.mean()))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        ax = plot.approximations(fit.credal_partition_, X)
        (folder / "gvhd_approximations.png").write_bytes(plot.to_png(ax))
        figure = plot.calibration(*fit.calibration_pairs())
        (folder / "gvhd_calibration.png").write_bytes(plot.to_png(figure))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["iris", "gvhd"])
    # The choice depends on the sample, which the paper does not give: see docs/bootclus.md.
    parser.add_argument("--sample", type=int, default=4, help="seed of the objects of gvhd")
    parser.add_argument("--figures", type=Path, help="write the figures of gvhd there")
    options = parser.parse_args()
    bounds = Bounds()
    if "iris" in options.what:
        iris(bounds)
    if "gvhd" in options.what:
        gvhd(bounds, options.sample, options.figures)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

"""A first look: cluster a real data set, write its report and a figure, say what was found.

``python -m evdist.demo [--out DIR]`` takes the wine data that scikit-learn brings along (178 wines
of three growers, 13 chemical measurements), so it needs no network.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from evdist import plot
from evdist.partition import CredalPartition
from evdist.report import write_report

__all__ = ["cluster", "main"]

GROWERS = ("grower 1", "grower 2", "grower 3")
METHOD = "scikit-learn's GaussianMixture, its posteriors read as masses"
NOTE = (
    "The masses are the posteriors of a Gaussian mixture from scikit-learn. A mixture spreads its "
    "belief over single clusters only, so no object can lie between clusters or be an outlier here."
)


def cluster(
    X: NDArray[np.float64], n_clusters: int
) -> tuple[CredalPartition, NDArray[np.float64] | None]:
    """A credal partition of X (n, d) and the objective after each iteration, if there is one."""
    mixture = GaussianMixture(n_clusters, covariance_type="diag", n_init=5, random_state=0)
    return CredalPartition.from_fuzzy(mixture.fit(X).predict_proba(X)), None


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of ``python -m evdist.demo``."""
    parser = argparse.ArgumentParser(prog="python -m evdist.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the results")
    out: Path = parser.parse_args(argv).out
    out.mkdir(parents=True, exist_ok=True)

    wine = load_wine()
    began = perf_counter()
    X = StandardScaler().fit_transform(wine.data)
    scaled = perf_counter()
    partition, history = cluster(X, n_clusters=3)
    clustered = perf_counter()

    ari = float(adjusted_rand_score(wine.target, partition.labels()))
    figure_path = out / "partition.png"
    drawn = plot.approximations(partition, X, y=np.array(GROWERS)[wine.target])
    figure_path.write_bytes(plot.to_png(drawn))
    report_path = write_report(
        out / "report.html",
        partition,
        X=X,
        title="Wine: 178 wines of three growers",
        parameters={
            "method": METHOD,
            "data": "wine (scikit-learn), 13 attributes",
            "scale": "standard",
            "n_clusters": partition.n_clusters,
        },
        timings={"scale": scaled - began, "cluster": clustered - scaled},
        history=history,
        metrics={"adjusted Rand index against the known growers": ari},
        notes=NOTE,
    )

    found = partition.summary()
    sizes = ", ".join(str(size) for size in found.sizes.labels)
    print(f"wine: {found.n_objects} objects, {X.shape[1]} attributes, standardised")
    print(f"method: {METHOD}")
    print(f"found: {found.n_clusters} clusters of {sizes} objects")
    print(
        f"       {found.n_sure} sure members, {found.n_between} between clusters, "
        f"{found.n_outliers} outliers"
    )
    print(f"       adjusted Rand index against the known growers: {ari:.3f}")
    print(f"look at: {report_path} (open it in a browser) and {figure_path}")


if __name__ == "__main__":
    main()

"""A first look: cluster a real data set, write its report and a figure, say what was found.

``python -m evdist.demo [--out DIR]`` takes the petals of Fisher's irises, which scikit-learn brings
along (150 flowers of three species, two lengths), so it needs no network, and what it finds can be
seen in the plane.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from evdist import plot
from evdist.evclus.estimator import EVCLUS
from evdist.report import write_report

COLUMNS = ["petal length (cm)", "petal width (cm)"]
NOTE = (
    "EVCLUS gives each flower masses such that the conflict between the masses of two flowers "
    "matches their distance. Mass on a pair of clusters puts a flower between them; mass on the "
    "empty set, far from all others, makes it an outlier. The species were not shown to the "
    "method; each flower's id begins with its own, so that you can see where the method is right."
)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of ``python -m evdist.demo``."""
    parser = argparse.ArgumentParser(prog="python -m evdist.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the results")
    out: Path = parser.parse_args(argv).out
    out.mkdir(parents=True, exist_ok=True)

    iris = load_iris(as_frame=True)
    species = [str(iris.target_names[kind]) for kind in iris.target]
    X = iris.data[COLUMNS].set_axis([f"{name} {i}" for i, name in enumerate(species)])
    began = perf_counter()
    model = EVCLUS(n_clusters=3, focal_sets="pairs", random_state=0).fit(X)
    seconds = perf_counter() - began

    partition = model.credal_partition_
    ari = float(adjusted_rand_score(iris.target, model.labels_))
    figure_path = out / "partition.png"
    drawn = plot.approximations(partition, X, rule="decision")
    figure_path.write_bytes(plot.to_png(drawn))
    report_path = write_report(
        out / "report.html",
        partition,
        X=X,
        title="Irises: 150 flowers of three species",
        parameters={
            "method": "EVCLUS",
            "data": "iris (scikit-learn), length and width of the petals",
            "n_clusters": model.n_clusters,
            "focal_sets": model.focal_sets,
            "n_dissimilarities": model.n_dissimilarities,
            "metric": model.metric,
            "d0": f"{model.d0_:.4g}, found by {model.d0!r}",
            "random_state": model.random_state,
        },
        timings={"cluster": seconds},
        history=model.history_,
        shepard=model.shepard_pairs(),
        metrics={
            "adjusted Rand index against the known species": ari,
            "objective": model.objective_,
            "sweeps": model.n_iter_,
        },
        notes=NOTE,
    )

    found = partition.summary()
    sizes = ", ".join(str(size) for size in found.sizes.labels)
    print(f"iris: {found.n_objects} flowers, length and width of their petals")
    print(
        f"EVCLUS: {model.n_iter_} sweeps, objective {model.objective_:.5f}, d0 {model.d0_:.2f}, "
        f"{seconds:.1f} s"
    )
    print(f"found: {found.n_clusters} clusters of {sizes} flowers")
    outliers = f"{found.n_outliers} outlier" + ("" if found.n_outliers == 1 else "s")
    print(f"       {found.n_sure} sure members, {found.n_between} between clusters, {outliers}")
    print(f"       adjusted Rand index against the known species: {ari:.3f}")
    print(f"look at: {report_path} (open it in a browser) and {figure_path}")


if __name__ == "__main__":
    main()

"""Ordinary tables as they come: what EVCLUS and ECM say of them with defaults, beside k-means.

    python benchmarks/tables.py [--only PATTERN] [--most N] [--folder FOLDER] [--command]

Reads every table that index.csv of ../shared/data/tables names (mixed columns, blanks, names of
objects), encoded by `TableEncoder(drop_ids=True)`, at most N rows of each (2,000), with the number
of clusters of the index. Bounds, for each of the two methods:

* where the silhouette of k-means on the same rows is above .40, some object is sure, and at most a
  quarter are outliers;
* the mean silhouette of the labels is at most .01 below that of k-means, and on at most three
  tables by more than .05;
* EVCLUS calls at most .15 outliers where at most .03 lie beyond the fence on the distance to the
  fifth neighbour;
* n_clusters="auto" says one cluster only where the best silhouette of k-means is below .30 or
  HDBSCAN finds one cluster or none.

With --command each table is also clustered by `evdist cluster`, from its file.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from bounds import Bounds
from datasets import SHARED
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.neighbors import NearestNeighbors
from typer.testing import CliRunner

from evdist import ECM, EVCLUS
from evdist.features import TableEncoder
from evdist.service.cli.app import app

METHODS = {"EVCLUS": EVCLUS, "ECM": ECM}
CLEAR, FEW_BEYOND, VAGUE = 0.40, 0.03, 0.30


def tables(folder: Path, only: str, most: int) -> Iterator[tuple[str, pd.DataFrame, object, int]]:
    """(name, table without its label, label or None, c) of every table of the index."""
    for row in pd.read_csv(folder / "index.csv").itertuples():
        if not re.search(only, row.table):
            continue
        table = pd.read_csv(folder / f"{row.table}.csv.gz")
        if len(table) > most:
            some = np.sort(np.random.default_rng(0).choice(len(table), most, replace=False))
            table = table.iloc[some]
        table = table.loc[:, table.notna().any() & ~table.columns.str.startswith("Unnamed")]
        label = (
            table.pop(row.label).astype(object).fillna("").map(str)
            if isinstance(row.label, str)
            else None
        )
        yield row.table, table, label, int(row.c)


def beyond_fence(X: np.ndarray) -> float:
    """The share of objects whose fifth neighbour is farther than the fence of a box plot."""
    far = NearestNeighbors(n_neighbors=min(5, len(X) - 1)).fit(X).kneighbors()[0][:, -1]
    if not (far > 0).any():
        return 0.0
    far = np.log(np.maximum(far, far[far > 0].min()))
    low, high = np.quantile(far, [0.25, 0.75])
    return float((far > high + 1.5 * (high - low)).mean())


def silhouette(X: np.ndarray, labels: np.ndarray) -> float:
    return float(silhouette_score(X, labels)) if 1 < len(np.unique(labels)) < len(X) else 0.0


def is_one_too_few(X: np.ndarray, dense: int) -> bool:
    """Whether k-means, with the best of 2 to 8 clusters, and HDBSCAN see more than one cluster."""
    most = min(8, len(np.unique(X, axis=0)) - 1, len(X) // 10)
    found = [
        silhouette(X, KMeans(c, n_init=3, random_state=0).fit(X).labels_)
        for c in range(2, most + 1)
    ]
    return dense > 1 and max(found, default=0.0) >= VAGUE


def by_command(name: str, table: pd.DataFrame, method: str, c: int) -> str:
    """What the command says: its line of sure, between and outliers, or its error."""
    with tempfile.TemporaryDirectory() as folder:
        table.to_csv(f"{folder}/{name}.csv", index=False)
        words = ["cluster", f"{folder}/{name}.csv", "-c", str(c), "--algorithm", method.lower()]
        words += ["--encode", "--drop-ids", "auto", "--out", f"{folder}/job", "-q"]
        done = CliRunner().invoke(app, words)
        lines = [line for line in done.output.splitlines() if "sure members" in line]
        return lines[0] if lines else f"exit {done.exit_code}: {done.output.strip()[:200]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for the names")
    parser.add_argument("--most", type=int, default=2000, help="rows of a table at most")
    parser.add_argument("--folder", type=Path, default=SHARED / "data" / "tables")
    parser.add_argument("--command", action="store_true", help="also by the command")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    below: dict[str, list[float]] = {name: [] for name in METHODS}
    unsure: dict[str, list[str]] = {name: [] for name in METHODS}
    strange: dict[str, list[str]] = {name: [] for name in METHODS}
    too_few: list[str] = []
    for name, table, label, c in tables(given.folder, given.only, given.most):
        try:
            X = TableEncoder(drop_ids=True).fit_transform(table).to_numpy(float)
        except ValueError as error:
            print(f"{name:18s} refused: {str(error)[:120]}")
            continue
        c = min(c, len(np.unique(X, axis=0)))
        k_means = KMeans(c, n_init=10, random_state=0).fit(X).labels_
        peer, fence = silhouette(X, k_means), beyond_fence(X)
        dense = (
            HDBSCAN(min_cluster_size=10, copy=True).fit(X).labels_.max() + 1 if len(X) > 20 else 0
        )
        line = [
            f"{name:18s} n {len(X):5d} d {X.shape[1]:3d} c {c}  k-means {peer:.2f} HDBSCAN {dense}"
        ]
        for method, kind in METHODS.items():
            model = kind(c, random_state=0).fit(X)
            decided = model.credal_partition_.decide()
            sure, outliers = float(decided.sure.mean()), float(decided.outlier.mean())
            own = silhouette(X, model.labels_)
            below[method].append(own - peer)
            if peer > CLEAR and (sure == 0 or outliers > 0.25):
                unsure[method].append(name)
            if method == "EVCLUS" and fence < FEW_BEYOND and outliers > 0.15:
                strange[method].append(name)
            ari = "" if label is None else f" ARI {adjusted_rand_score(label, model.labels_):.2f}"
            line.append(f"{method} {own:.2f} sure {sure:.0%} out {outliers:.0%}{ari}")
        auto = EVCLUS("auto", random_state=0).fit(X).n_clusters_
        if auto == 1 and is_one_too_few(X, dense):
            too_few.append(name)
        print("  ".join([*line, f"auto {auto}"]), flush=True)
        if given.command:
            for method in METHODS:
                print(f"    {method}: {by_command(name, table, method, c)}", flush=True)
    bounds = Bounds()
    for method in METHODS:
        print(f"{method}: none sure or over a quarter outliers: {unsure[method]}")
        bounds.at_most(f"{method}: clear tables without sure members", len(unsure[method]), 0)
        bounds.at_least(
            f"{method}: mean silhouette less that of k-means", float(np.mean(below[method])), -0.01
        )
        worse = int((np.array(below[method]) < -0.05).sum())
        bounds.at_most(f"{method}: tables worse by more than .05", worse, 3)
    bounds.at_most("EVCLUS: outliers that no distance sees", len(strange["EVCLUS"]), 0)
    bounds.at_most(f'"auto" says one in spite of both peers {too_few}', len(too_few), 0)
    return bounds.finish()


if __name__ == "__main__":
    raise SystemExit(main())

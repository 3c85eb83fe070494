"""Large real data from end to end: covtype (581,012 x 54) and MNIST (70,000 x 784).

    python benchmarks/evclus_real.py [covtype|mnist] [--out DIR]

Reads the data folder beside the checkout, clusters with the defaults, writes DIR/NAME.html (the
report) and prints time, peak memory and the adjusted Rand index. Neither set is known for clusters
that agree with its classes; the figures say what EVCLUS finds, not how good a classifier it is.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from evdist import EVCLUS
from evdist.progress import ProgressBar
from evdist.report import write_report

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def covtype() -> tuple[np.ndarray, np.ndarray, str]:
    """Terrain in 54 columns of different units: standardised."""
    frame = pd.read_csv(DATA / "covtype.csv.gz")
    X = frame.iloc[:, :-1].to_numpy(np.float32)
    return StandardScaler().fit_transform(X), frame.iloc[:, -1].to_numpy(), "standard"


def mnist() -> tuple[np.ndarray, np.ndarray, str]:
    """Pixels, all in one unit: divided by 255."""
    with np.load(DATA / "mnist.npz") as z:
        X = z["X"].reshape(len(z["y"]), -1).astype(np.float32) / 255
        return X, z["y"], "divided by 255"


def run(name: str, out: Path) -> None:
    X, y, scale = {"covtype": covtype, "mnist": mnist}[name]()
    c = len(np.unique(y))
    EVCLUS(c, metric="euclidean", random_state=0).fit(X[:2000])  # compile
    begin, cpu = time.perf_counter(), time.process_time()
    model = EVCLUS(c, metric="euclidean", random_state=0, callbacks=[ProgressBar()]).fit(X)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    ari = adjusted_rand_score(y, model.labels_)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9 * 1024
    begin = time.perf_counter()
    path = write_report(
        out / f"{name}.html", model.credal_partition_, X=X, title=f"{name}: {len(X):,} objects",
        parameters={**model.get_params(), "scale": scale, "d0": f"{model.d0_:.4g}"},
        timings={"fit": wall}, history=model.history_, shepard=model.shepard_pairs(),
        metrics={"adjusted Rand index": ari, "objective": model.objective_},
    )  # fmt: skip
    report = time.perf_counter() - begin
    kmeans = adjusted_rand_score(y, KMeans(c, n_init=3, random_state=0).fit_predict(X))
    print(model.credal_partition_.summary())
    print(
        f"{name}: {len(X):,} x {X.shape[1]}, c = {c}: fit {wall:.1f} s wall, {cpu:.1f} s CPU, "
        f"{model.n_iter_} sweeps, converged {model.converged_}, peak memory {peak:.2f} GB; "
        f"report {report:.1f} s -> {path}"
    )
    print(f"adjusted Rand index {ari:.3f}; k-means on the same data {kmeans:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", choices=["covtype", "mnist"])
    parser.add_argument("--out", type=Path, default=Path("demo"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.name:
        run(args.name, args.out)
    else:
        for each in ("covtype", "mnist"):
            command = [sys.executable, __file__, each, "--out", str(args.out)]
            subprocess.run(command, check=True)

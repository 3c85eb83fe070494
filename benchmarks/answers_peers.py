"""MNIST and two sets that no default was tuned on: the recommended setting beside its peers.

    python benchmarks/answers_peers.py [--only PATTERN] [--set mnist --set digits ...]

Every method runs in a process of its own and gets the same coordinates: MNIST (70,000 objects of
the data folder) and scikit-learn's digits as their first fifty and twenty principal components,
scikit-learn's breast cancer standardised. Prints the adjusted Rand index with the classes, the
seconds of the second fit (the first one compiles, on 2,000 objects) and the most memory that the
process held, data and libraries included. UMAP with HDBSCAN takes part where umap-learn is
installed; what HDBSCAN leaves out counts as a cluster of its own. There are no bounds: the table
says how things are.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
Labels = np.ndarray


def mnist() -> tuple[np.ndarray, Labels]:
    with np.load(DATA / "mnist.npz") as stored:
        X, y = stored["X"].reshape(len(stored["y"]), -1), stored["y"]
    return PCA(50, random_state=0).fit_transform(X.astype(np.float32) / 255), y


def digits() -> tuple[np.ndarray, Labels]:
    X, y = load_digits(return_X_y=True)
    return PCA(20, random_state=0).fit_transform(X / 16), y


def cancer() -> tuple[np.ndarray, Labels]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


SETS: dict[str, Callable[[], tuple[np.ndarray, Labels]]] = {
    "mnist": mnist,
    "digits": digits,
    "cancer": cancer,
}


def evclus(metric: str) -> Callable[[np.ndarray, int], Labels]:
    def fit(X: np.ndarray, c: int) -> Labels:
        from evdist import EVCLUS

        return EVCLUS(c, metric=metric, random_state=0).fit(X).labels_

    return fit


def umap_hdbscan(X: np.ndarray, c: int) -> Labels:
    from umap import UMAP

    flat = UMAP(n_neighbors=15, min_dist=0.0, random_state=0).fit_transform(X)
    return HDBSCAN(min_cluster_size=max(15, len(X) // 100), copy=True).fit(flat).labels_


METHODS: dict[str, Callable[[np.ndarray, int], Labels]] = {
    "EVCLUS": evclus("euclidean"),
    "EVCLUS, auto": evclus("auto"),
    "k-means": lambda X, c: KMeans(c, n_init=10, random_state=0).fit(X).labels_,
    "mixture": lambda X, c: GaussianMixture(c, n_init=3, random_state=0).fit(X).predict(X),
    "UMAP + HDBSCAN": umap_hdbscan,
}


def peak() -> float:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(file: str, method: str) -> dict[str, float]:
    warnings.simplefilter("ignore")
    with np.load(file) as stored:
        X, y = stored["X"], stored["y"]
    c, fit = len(np.unique(y)), METHODS[method]
    fit(X[:2000], c)  # compiles
    began = time.perf_counter()
    found = fit(X, c)
    seconds = time.perf_counter() - began
    return {
        "ari": adjusted_rand_score(y, found),
        "clusters": len(np.unique(found[found >= 0])),
        "seconds": seconds,
        "peak": peak(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", action="append", choices=SETS, help="some of the sets")
    parser.add_argument("--only", default="", help="regular expression for the methods")
    parser.add_argument("--one", nargs=2, metavar=("FILE", "METHOD"), help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=2, metavar=("SET", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        X, y = SETS[given.make[0]]()
        np.savez(given.make[1], X=X, y=y)
        return 0
    if given.one:
        print(json.dumps(measure(*given.one)))
        return 0
    print("set      method              ARI  clusters  seconds  peak MB")
    with TemporaryDirectory() as folder:
        for name in given.set or SETS:
            file = f"{folder}/{name}.npz"
            # In a process of its own: a child inherits the peak of the memory of its parent.
            subprocess.run([sys.executable, __file__, "--make", name, file], check=True)
            table(name, file, given.only)
    return 0


def table(name: str, file: str, only: str) -> None:
    """Print a line for every method."""
    for method in METHODS:
        if not re.search(only, method):
            continue
        if method.startswith("UMAP") and importlib.util.find_spec("umap") is None:
            print(f"{name:8} {method:16} umap-learn is not installed")
            continue
        command = [sys.executable, __file__, "--one", file, method]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        row = json.loads(said.splitlines()[-1])
        print(
            f"{name:8} {method:16} {row['ari']:6.3f}  {row['clusters']:8d}  "
            f"{row['seconds']:7.1f}  {row['peak']:7.0f}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())

"""Views: metric="auto" and metric="layout" on real vectors, beside what people use instead.

    python benchmarks/views.py sets [--seeds 2] [--only wine digits]
    python benchmarks/views.py images [--seeds 5]
    python benchmarks/views.py texts [--seeds 2]

`sets`: labelled sets of six columns or more, at most 4,000 objects each. `images`: MNIST, 70,000
objects, 50 principal components. `texts`: descriptions of Debian packages, 384 columns, sections
that mix topics left out. Peers: k-means, a Gaussian mixture, and UMAP + HDBSCAN where umap-learn
and hdbscan are installed (they are no dependencies of evdist). For each: ARI, AMI, area under the
risk-coverage curve (AURC, by the difference of the two largest bets, distances or probabilities),
share of sure objects and of the wrong among them, and the processor's seconds. Reads
../shared/data. The exit code tells whether all bounds were kept.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from bounds import Bounds
from datasets import SHARED
from noise_floor import texts
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from evdist import EVCLUS
from evdist.partition.decisions import DECISIONS

Data = tuple[np.ndarray, np.ndarray]
#: Labels, how sure each object is, and which objects are called sure (None: nothing says).
Answer = tuple[np.ndarray, np.ndarray, np.ndarray | None]
TABLES = (
    "wine heart letters_IJL drybean vehicle ionosphere vowel segment covtype glass seeds ecoli272"
).split()
MOST = 4000


def real_sets() -> dict[str, Data]:
    found = {}
    for name in TABLES:
        table = pd.read_csv(SHARED / "data" / f"{name}.csv.gz")
        found[name] = _standard(table.drop(columns="label").to_numpy(float)), table["label"]
    mice = pd.read_csv(SHARED / "data" / "mice_trisomic.csv.gz")
    numbers = mice.select_dtypes("number")
    found["mice"] = _standard(numbers.fillna(numbers.mean()).to_numpy()), mice["class"]
    found["digits"] = load_digits(return_X_y=True)
    X, y = load_breast_cancer(return_X_y=True)
    found["cancer"] = _standard(X), y
    found["images"] = images()
    found["texts"] = texts()
    return {name: _some(X, pd.factorize(np.asarray(y))[0]) for name, (X, y) in found.items()}


def _standard(X: np.ndarray) -> np.ndarray:
    return StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])


def _some(X: np.ndarray, y: np.ndarray) -> Data:
    rows = np.random.default_rng(0).permutation(len(X))[:MOST]
    return np.asarray(X, np.float32)[rows], y[rows]


def images() -> Data:
    with np.load(SHARED / "data" / "mnist.npz") as stored:
        X, y = stored["X"].reshape(len(stored["y"]), -1), stored["y"].astype(int)
    components = PCA(50, svd_solver="covariance_eigh").fit_transform(X.astype(np.float32) / 255)
    return components.astype(np.float32), y


# ---------------------------------------------------------------------- who answers
def evclus(metric: str) -> Callable[[np.ndarray, int, int], Answer]:
    def fit(X: np.ndarray, c: int, seed: int) -> Answer:
        partition = EVCLUS(c, metric=metric, random_state=seed).fit(X).credal_partition_
        mass = np.asarray(partition.mass)
        sure = np.asarray(partition.decide().codes) == DECISIONS.index("sure")
        return partition.labels(), _margin(mass[:, 1:-1]), sure

    return fit


def k_means(X: np.ndarray, c: int, seed: int) -> Answer:
    found = KMeans(c, n_init=5, random_state=seed).fit(X)
    return found.labels_, _margin(-found.transform(X)), None


def mixture(X: np.ndarray, c: int, seed: int) -> Answer:
    found = GaussianMixture(c, reg_covar=1e-3, random_state=seed).fit(X)
    return found.predict(X), _margin(found.predict_proba(X)), None


def umap_hdbscan(X: np.ndarray, c: int, seed: int) -> Answer:
    umap, hdbscan = importlib.import_module("umap"), importlib.import_module("hdbscan")
    Z = umap.UMAP(n_components=5, min_dist=0.0, random_state=seed).fit_transform(X)
    found = hdbscan.HDBSCAN(min_cluster_size=max(10, len(X) // 100)).fit(Z)
    return found.labels_, found.probabilities_, None


def _margin(bets: np.ndarray) -> np.ndarray:
    two = np.sort(bets, axis=1)[:, -2:]
    return two[:, 1] - two[:, 0]


def wrong(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Whose class is not that of most of their cluster; all whom no cluster has."""
    out = np.ones(len(y), bool)
    for q in np.unique(labels[labels >= 0]):
        mine = labels == q
        out[mine] = y[mine] != np.bincount(y[mine]).argmax()
    return out


def risk_area(y: np.ndarray, labels: np.ndarray, sureness: np.ndarray) -> float:
    error = wrong(y, labels)[np.argsort(-sureness, kind="stable")]
    return float((np.cumsum(error) / np.arange(1, len(y) + 1)).mean())


OURS = {f'metric="{metric}"': evclus(metric) for metric in ("euclidean", "layout", "auto")}


# ---------------------------------------------------------------------- tables
def measured(sets: dict[str, Data], seeds: int) -> dict[str, np.ndarray]:
    """For each who answers: ARI, AMI, AURC, share sure, wrong among these, seconds; by set."""
    who = {**OURS, "k-means": k_means, "mixture": mixture}
    try:
        importlib.import_module("umap")
        who["UMAP + HDBSCAN"] = umap_hdbscan
    except ImportError:
        print("umap-learn is not installed: that peer is left out")
    table: dict[str, list[np.ndarray]] = {name: [] for name in who}
    for title, (X, y) in sets.items():
        c = len(np.unique(y))
        print(f"\n{title}: {len(X):,} x {X.shape[1]}, {c} classes")
        for name, answer in who.items():
            rows = []
            for seed in range(seeds):
                began = time.process_time()
                labels, sureness, sure = answer(X, c, seed)
                seconds = time.process_time() - began
                bad = wrong(y, labels)
                share = np.nan if sure is None else sure.mean()
                among = np.nan if sure is None or not sure.any() else bad[sure].mean()
                rows.append((
                    adjusted_rand_score(y, labels), adjusted_mutual_info_score(y, labels),
                    risk_area(y, labels, sureness), share, among, seconds,
                ))  # fmt: skip
            table[name].append(np.array(rows))
            ari, ami, area, share, among, seconds = np.mean(rows, axis=0)
            print(
                f"  {name:18s} ARI {ari:.3f}  AMI {ami:.3f}  AURC {area:.3f}  "
                f"sure {share:4.0%}, {among:5.1%} of them wrong  {seconds:6.1f} s"
            )
    return {name: np.array(values) for name, values in table.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("part", choices=("sets", "images", "texts"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    bounds = Bounds()
    bounds.head(given.part)
    if given.part == "sets":
        sets = {k: v for k, v in real_sets().items() if not given.only or k in given.only}
        found = measured(sets, given.seeds)
        mean = {name: values.mean(axis=(0, 1)) for name, values in found.items()}
        print("\nmean over sets: ARI, AMI, AURC")
        for name, values in mean.items():
            print(f"  {name:18s} {values[0]:.3f} {values[1]:.3f} {values[2]:.3f}")
        ours = mean['metric="auto"']
        peers = [mean[name] for name in mean if name not in OURS]
        bounds.at_least("mean ARI, less the best peer's", ours[0] - max(p[0] for p in peers), 0.0)
        bounds.at_most("mean AURC, over the best peer's", ours[2] / min(p[2] for p in peers), 1.0)
    elif given.part == "images":
        found = measured({"images": images()}, given.seeds)['metric="auto"'][0]
        bounds.at_least("least ARI of all seeds", found[:, 0].min(), 0.90)
        bounds.at_least("share of sure objects", found[:, 3].min(), 0.70)
        bounds.at_most("wrong among them", found[:, 4].max(), 0.04)
    else:
        table = measured({"texts": texts()}, given.seeds)
        mean = {name: values.mean(axis=(0, 1)) for name, values in table.items()}
        ours, plain = mean['metric="auto"'], mean["k-means"]
        bounds.at_least("ARI, less k-means'", ours[0] - plain[0], -0.02)
        bounds.at_least("AMI, less k-means'", ours[1] - plain[1], -0.02)
        bounds.at_least("share of sure objects", ours[3], 0.01)
    return bounds.finish()


if __name__ == "__main__":
    raise SystemExit(main())

"""Many dimensions: noise floors, and the number of clusters at which the ways to find them change.

    python benchmarks/noise_floor.py clusters [--seeds 2] [--only images]
    python benchmarks/noise_floor.py sets [--seeds 2]
    python benchmarks/noise_floor.py cost [-n 100000]

`clusters`: 10^4 images (MNIST, 50 principal components) and texts (cosine) in 12, 13, 20, 24, 25
and 28 clusters, ARI beside k-means: neighbouring numbers, 12 and 13, 24 and 25, must lie within .02
of each other against it. `sets`: sets in which distances vary more or less, with floors and
without: no mean ARI with the default may be more than .03 below that without floors. `cost`:
seconds of a fit with floors beside one without. Reads ../shared/data. The exit code tells whether
all bounds were kept.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from bounds import Bounds
from datasets import SHARED
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from evdist import EVCLUS

Data = tuple[np.ndarray, np.ndarray]
#: Sections that mix topics, and the objects that a section has at least.
MIXED = frozenset(
    """libs libdevel doc misc utils devel metapackages debug oldlibs localization tasks
    introspection otherosfs embedded education news zope shells cli-mono gnustep xfce tex comm x11
    kernel admin net interpreters text""".split()
)
LEAST = 45


def images(n: int = 10_000) -> Data:
    with np.load(SHARED / "data" / "mnist.npz") as stored:
        X, y = stored["X"].reshape(len(stored["y"]), -1), stored["y"].astype(int)
    # Components of all 70,000, then some of them.
    components = PCA(50, svd_solver="covariance_eigh").fit_transform(X.astype(np.float32) / 255)
    some = np.random.default_rng(0).choice(len(y), n, replace=False)
    return components[some].astype(np.float32), y[some]


def texts() -> Data:
    X = np.load(SHARED / "data" / "text" / "embeddings.npy").astype(np.float32)
    section = pd.read_csv(SHARED / "data" / "text" / "packages.csv.gz")["section"].astype(str)
    count = section.value_counts()
    known = [name for name in count.index if count[name] >= LEAST and name not in MIXED]
    there = section.isin(known).to_numpy()
    X = X[there] / np.linalg.norm(X[there], axis=1, keepdims=True)
    return X, pd.factorize(section[there])[0]


def clusters(bounds: Bounds, seeds: int, only: str) -> None:
    kinds = {"images": (images, "euclidean", (12, 13, 20, 24, 25)),
             "texts": (texts, "cosine", (12, 13, 24, 25, 28))}  # fmt: skip
    for name, (data, metric, counts) in kinds.items():
        if only not in ("", name):
            continue
        X, y = data()
        margin = {}
        for c in counts:
            theirs = [KMeans(c, random_state=s).fit_predict(X) for s in range(seeds + 1)]
            ours = [EVCLUS(c, metric=metric, random_state=s).fit_predict(X) for s in range(seeds)]
            found = {}
            for what, score in (("ARI", adjusted_rand_score), ("AMI", adjusted_mutual_info_score)):
                mine, other = (
                    float(np.mean([score(y, a) for a in some])) for some in (ours, theirs)
                )
                bounds.note(f"{name}, c = {c}: {what} of EVCLUS", mine, f"k-means {other:.3f}")
                found[what] = mine - other
            margin[c] = found["ARI"]
            if (name, c) == ("images", 20):
                bounds.at_least("images, c = 20: ARI above k-means", found["ARI"], 0.0)
            if (name, c) == ("texts", 28):
                for what, above in found.items():
                    bounds.at_least(f"texts, c = 28: {what} above k-means", above, -0.02)
        for a, b in ((12, 13), (24, 25)):
            bounds.at_most(f"{name}: {a} against {b} clusters", abs(margin[a] - margin[b]), 0.02)


def sets() -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    scaled = StandardScaler().fit_transform
    digits, wine, cancer = load_digits(), load_wine(), load_breast_cancer()
    found = {
        "digits": (digits.data, digits.target, 10),
        "wine": (scaled(wine.data), wine.target, 3),
        "cancer": (scaled(cancer.data), cancer.target, 2),
        "images": (*images(3000), 10),
    }
    for name, c in (("heart", 2), ("vowel", 11), ("segment", 7), ("letters_IJL", 3)):
        table = pd.read_csv(SHARED / "data" / f"{name}.csv.gz")
        label = table.columns[-1]
        X = table.drop(columns=label).to_numpy(float)
        found[name] = (scaled(X), pd.factorize(table[label])[0], c)
    X, y = texts()
    some = np.random.default_rng(0).choice(len(y), 1500, replace=False)
    found["texts"] = (X[some], y[some], 12)
    for d, spread, c in ((50, 0.5, 10), (30, 0.6, 6), (20, 0.8, 10), (10, 1.0, 8)):
        rng = np.random.default_rng(0)
        y = np.arange(2000) % c
        X = spread * rng.normal(size=(c, d))[y] + rng.normal(size=(2000, d))
        found[f"{c} Gaussians, d = {d}"] = (X, y, c)
    return found


def with_and_without(bounds: Bounds, seeds: int) -> None:
    for name, (X, y, c) in sets().items():
        ari, outliers, used = {}, {}, False
        for floor in (False, "auto"):
            models = [EVCLUS(c, noise_floor=floor, random_state=s).fit(X) for s in range(seeds)]
            ari[floor] = float(np.mean([adjusted_rand_score(y, m.labels_) for m in models]))
            outliers[floor] = np.mean([m.credal_partition_.outliers().mean() for m in models])
            used = models[0].noise_floor_
        said = "with floors" if used else "no floors"
        bounds.note(f"{name}: ARI", ari["auto"], f"without {ari[False]:.3f}; {said}; outliers "
                    f"{outliers['auto']:.2f}, without {outliers[False]:.2f}")  # fmt: skip
        bounds.at_least(f"{name}: above ARI without floors", ari["auto"] - ari[False], -0.03)


def cost(bounds: Bounds, n: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(20, size=n)
    X = (0.6 * rng.normal(size=(20, 50))[y] + rng.normal(size=(n, 50))).astype(np.float32)
    EVCLUS(20, random_state=0).fit(X[:5000])  # compiles
    took = {}
    for floor in (False, True, False, True):
        began = time.process_time()
        EVCLUS(20, noise_floor=floor, random_state=0).fit(X)
        took[floor] = min(time.process_time() - began, took.get(floor, np.inf))
    bounds.note(f"{n:,} x 50, c = 20, without floors: CPU s", took[False], digits=1)
    bounds.note(f"{n:,} x 50, c = 20, with floors: CPU s", took[True], digits=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=("clusters", "sets", "cost"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("-n", type=int, default=100_000)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    bounds = Bounds()
    bounds.head(asked.part)
    if asked.part == "clusters":
        clusters(bounds, asked.seeds, asked.only)
    elif asked.part == "sets":
        with_and_without(bounds, asked.seeds)
    else:
        cost(bounds, asked.n)
    return bounds.finish()


if __name__ == "__main__":
    raise SystemExit(main())

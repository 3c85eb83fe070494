"""Draw tell.png and clusterers.png: all clusterers, and three of scikit-learn, on the same points.

    python docs/images/clusterers.py

Colour is the cluster, matched to the classes that the points were drawn from; the surer an object,
the larger and the more solid its point; circles are outliers.
"""

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from scipy.optimize import linear_sum_assignment
from sklearn import cluster, datasets, mixture

import evdist
from evdist import plot

HERE = Path(__file__).resolve().parent
N = 300
INK, PALE = "#333333", "#999999"
#: Labels, and how sure each is, 0 to 1, or None where a method does not say.
Answer = tuple[np.ndarray, np.ndarray | None]
#: Columns: what the points look like -> points, classes. -1 is a stray object.
SETS: dict[str, tuple[np.ndarray, np.ndarray]] = {}


def main() -> None:
    """Entry point."""
    warnings.simplefilter("ignore")  # one that does not settle is drawn as it is
    _draw_sets()
    names = {"KMeans": "k-means", "HDBSCAN": "HDBSCAN", "GaussianMixture": "Gaussian mixture"}
    four = {label: METHODS[name] for name, label in names.items()} | {"EVCLUS": METHODS["EVCLUS"]}
    _save(_tell(four), "tell.png", 1400)
    _save(_all(METHODS), "clusterers.png", 1080)


def _draw_sets() -> None:
    rng = np.random.default_rng(7)
    SETS["rings"] = datasets.make_circles(N, factor=0.45, noise=0.05, random_state=30)
    SETS["moons"] = datasets.make_moons(N, noise=0.06, random_state=30)
    SETS["spreads"] = datasets.make_blobs(N, cluster_std=[1.0, 2.5, 0.5], random_state=170)
    X, y = datasets.make_blobs(N, random_state=170)
    SETS["bands"] = X @ [[0.6, -0.6], [-0.4, 0.8]], y
    SETS["overlap"] = datasets.make_blobs(
        N, centers=[[0, 0], [3.4, 0], [1.7, 3]], cluster_std=0.9, random_state=3
    )
    X, y = datasets.make_blobs(
        N - 12, centers=[[0, 0], [5, 0], [2.5, 4.5]], cluster_std=0.6, random_state=0
    )
    strays = rng.uniform([-5, -5], [10, 10], (12, 2))
    SETS["strays"] = np.vstack([X, strays]), np.r_[y, np.full(12, -1)]
    for name, (X, y) in SETS.items():
        SETS[name] = (X - X.mean(axis=0)) / X.std(axis=0), y


# ---------------------------------------------------------------------- the methods
def _kmeans(X: np.ndarray, c: int) -> Answer:
    return cluster.KMeans(c, n_init=5, random_state=0).fit_predict(X), None


def _gaussian(X: np.ndarray, c: int) -> Answer:
    p = mixture.GaussianMixture(c, n_init=3, random_state=0).fit(X).predict_proba(X)
    top = np.sort(p, axis=1)
    return p.argmax(axis=1), top[:, -1] - top[:, -2]


def _hdbscan(X: np.ndarray, c: int) -> Answer:
    fitted = cluster.HDBSCAN(min_cluster_size=15).fit(X)
    return fitted.labels_, fitted.probabilities_


def _of(name: str, **parameters: Any) -> Callable[[np.ndarray, int], Answer]:
    """A clusterer of evdist; one that finds the number of clusters is not told it."""

    def fit(X: np.ndarray, c: int) -> Answer:
        known = {} if name == "EKNNclus" else {"n_clusters": c}
        seed = {} if name == "BPEC" else {"random_state": 0}
        model = getattr(evdist, name)(**known, **seed, **parameters).fit(X)
        partition = model.credal_partition_
        return partition.labels(outlier=-1), partition.margin()

    return fit


METHODS = {
    "KMeans": _kmeans,
    "GaussianMixture": _gaussian,
    "HDBSCAN": _hdbscan,
    "EVCLUS": _of("EVCLUS", focal_sets="pairs"),
    'EVCLUS\nmetric="euclidean"': _of("EVCLUS", focal_sets="pairs", metric="euclidean"),
    'EVCLUS\nmetric="geodesic"': _of("EVCLUS", focal_sets="pairs", metric="geodesic"),
    "ECM": _of("ECM", focal_sets="pairs"),
    'ECM\nmetric="adaptive"': _of("ECM", focal_sets="pairs", metric="adaptive"),
    "CCM": _of("CCM"),
    "BCM": _of("BCM"),
    "BPEC": _of("BPEC", focal_sets="pairs"),
    "ECMdd": _of("ECMdd"),
    "MECM": _of("MECM"),
    "EGMM": _of("EGMM"),
    "Bootclus": _of("Bootclus", n_bootstrap=100),
    "EKNNclus": _of("EKNNclus"),
    "NNEVCLUS": _of("NNEVCLUS", focal_sets="pairs"),
}


# ---------------------------------------------------------------------- the figures
def _tell(methods: dict[str, Callable[[np.ndarray, int], Answer]]) -> Figure:
    """One set with strays and overlap, four answers."""
    rng = np.random.default_rng(3)
    X, y = datasets.make_blobs(
        390, centers=[[0, 0], [3.2, 0], [1.6, 2.9]], cluster_std=0.75, random_state=1
    )
    X = np.vstack([X, rng.uniform([-5, 4.5], [-3, 6], (4, 2)), [[7.5, 6], [8, 4.6], [7.2, -2.5]]])
    y = np.r_[y, np.full(7, -1)]
    figure = Figure(figsize=(14, 3.9), layout="constrained")
    said = ("one label for all", "between is noise", "far is 1.00", "sure, between, outlier")
    for ax, (name, method), words in zip(figure.subplots(1, 4), methods.items(), said, strict=True):
        _panel(ax, X, y, method(X, 3), 26)
        ax.set_title(name, fontsize=17, color=INK, weight="bold")
        ax.set_xlabel(words, fontsize=15, color=INK)
    return figure


def _all(methods: dict[str, Callable[[np.ndarray, int], Answer]]) -> Figure:
    figure = Figure(figsize=(10.6, 1.42 * len(methods) + 0.3), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.01, h_pad=0.01, wspace=0.01, hspace=0.01)
    panels = figure.subplots(len(methods), len(SETS))
    for row, (name, method) in zip(panels, methods.items(), strict=True):
        row[0].set_ylabel(name, fontsize=10, color=INK, rotation=0, ha="right", va="center")
        for ax, (X, y) in zip(row, SETS.values(), strict=True):
            _panel(ax, X, y, method(X, len(set(y[y >= 0]))), 9)
        print(name.replace("\n", " "), flush=True)
    for ax, name in zip(panels[0], SETS, strict=True):
        ax.set_title(name, fontsize=11, color=INK)
    return figure


def _panel(ax: Axes, X: np.ndarray, y: np.ndarray, answer: Answer, size: float) -> None:
    labels, sure = answer
    sure = np.ones(len(X)) if sure is None else np.clip(sure, 0.0, 1.0)
    names = _matched(labels, y)
    out = labels < 0
    colours = np.array([plot.cluster_colour(names[k]) if k >= 0 else INK for k in labels])
    ax.scatter(*X[~out].T, s=(size * (0.3 + 0.7 * sure))[~out], c=colours[~out],
               alpha=(0.25 + 0.75 * sure)[~out], linewidths=0)  # fmt: skip
    ax.scatter(*X[out].T, s=1.6 * size, facecolors="none", edgecolors=INK, linewidths=0.7)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color(PALE)
    ax.spines[:].set_linewidth(0.6)


def _matched(labels: np.ndarray, y: np.ndarray) -> dict[int, int]:
    """Found cluster -> the class that most of it is from, one to one; the others follow."""
    found, classes = np.unique(labels[labels >= 0]), np.unique(y[y >= 0])
    shared = [[-((labels == k) & (y == t)).sum() for t in classes] for k in found]
    names = {}
    if len(found):
        rows, columns = linear_sum_assignment(shared)
        names = dict(zip(found[rows].tolist(), classes[columns].tolist(), strict=True))
    free = iter(range(len(classes), len(classes) + len(found)))
    return {int(k): names[k] if k in names else next(free) for k in found}


def _save(figure: Figure, name: str, width: int) -> None:
    picture = Image.open(io.BytesIO(plot.to_png(figure))).convert("RGB")
    picture.thumbnail((width, 10 * width))
    picture.quantize(48).save(HERE / name, optimize=True)
    print(f"{name}: {(HERE / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

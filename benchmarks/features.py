"""Features from links, labels and dissimilarities: losses, separation, and cost against n.

    python benchmarks/features.py [circles | loss | metrics | dissimilarities | all]

* circles: NN-EVCLUS, example 5, over 20 draws: the smallest ARI of k-means and of EVCLUS on the
  feature, with clusters that do not touch (bound .95) and with ones that do (no bound);
* loss: PCCA and kernel PCCA against R's evclust (PCCA to the digits of its tol), and PCCA against
  the best of ten descents from random starts;
* metrics: k-means on iris, wine, glass, seeds and ecoli3 after LSI, DML-eig and PCCA, 50 and 200
  links, five draws: mean ARI, and how far LSI and DML-eig may be from the best metric (bound .01);
* dissimilarities: DissimilarityPCA through 500 landmarks, time for each of n = 10^4 and 10^5
  objects: the ratio may not be that of squares.

Takes about two minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np
from bounds import Bounds
from datasets import load, reference
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.constraints import random_links
from evdist.features import LSI, PCCA, DissimilarityPCA, DMLEig, KernelFDA, KernelPCCA
from evdist.features.links import pcca_loss

DRAWS = 20


def ring(seed: int, spread: float) -> tuple[NDArray, NDArray]:
    """500 objects, two fifths around the origin, the others at a distance of about 5."""
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, 300), rng.normal(5, 0.5, 300)
    outer = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X = np.concatenate([rng.normal(0, spread, (200, 2)), outer])
    return X, np.repeat([0, 1], [200, 300])


def features(X: NDArray, y: NDArray, seed: int) -> Iterator[tuple[str, NDArray]]:
    must, cannot = random_links(y, 50, seed)
    pcca = KernelPCCA(1, gamma=0.3).fit(X, must_link=must, cannot_link=cannot)
    yield "50 links, KernelPCCA", pcca.transform(X)
    labels = np.full(len(y), -1)
    known = np.random.default_rng(seed).choice(len(y), 50, replace=False)
    labels[known] = y[known]
    yield "50 labels, KernelFDA", KernelFDA(gamma=0.3).fit(X, labels).transform(X)
    yield "attributes alone", X


def circles(bounds: Bounds) -> None:
    for spread, title in ((0.8, "do not touch"), (1.0, "touch")):
        bounds.head(f"example 5, circles that {title}, {DRAWS} draws")
        scores: dict[str, list[float]] = {}
        for seed in range(DRAWS):
            X, y = ring(seed, spread)
            for name, Z in features(X, y, seed):
                plain = KMeans(2, n_init=3, random_state=0).fit_predict(Z)
                model = EVCLUS(2, metric="euclidean", n_jobs=1, random_state=0).fit(Z)
                for method, labels in (("k-means", plain), ("EVCLUS", model.labels_)):
                    score = adjusted_rand_score(y, labels)
                    scores.setdefault(f"{name}, {method}", []).append(score)
        for what, values in scores.items():
            if spread == 0.8 and not what.startswith("attributes"):
                bounds.at_least(f"{what}: least ARI", min(values), 0.95)
            else:
                bounds.note(f"{what}: least ARI", min(values))
            bounds.note(f"{what}: mean ARI", float(np.mean(values)))


def differences(X: NDArray, must: NDArray, cannot: NDArray) -> tuple[NDArray, NDArray]:
    pairs = np.concatenate([must, cannot])
    s = np.repeat([1.0, -1.0], [len(must), len(cannot)])
    return X[pairs[:, 0]] - X[pairs[:, 1]], s


def random_starts(Delta: NDArray, s: NDArray, r: int) -> float:
    """The lowest loss of ten descents from random maps of the same size."""
    shape = (r, Delta.shape[1])

    def flat(entries: NDArray) -> tuple[float, NDArray]:
        loss, gradient = pcca_loss(entries.reshape(shape), Delta, s, 1.0)
        return loss, gradient.ravel()

    found = []
    for seed in range(10):
        L = np.random.default_rng(seed).normal(size=shape)
        L /= np.sqrt(((Delta @ L.T) ** 2).sum(axis=1).mean())
        options = {"ftol": 1e-6, "gtol": 0.0, "maxiter": 1000, "maxfun": 20_000}
        found.append(minimize(flat, L.ravel(), jac=True, method="L-BFGS-B", options=options).fun)
    return float(min(found))


def loss(bounds: Bounds) -> None:
    bounds.head("loss against R's evclust")
    r = reference("pcca")
    must, cannot = (np.array(r["pcca"][kind]) - 1 for kind in ("ML", "CL"))
    model = PCCA(2).fit(load("iris").X, must_link=must, cannot_link=cannot)
    bounds.at_most("pcca, iris, 2 features", model.objective_, r["pcca"]["loss_final"] + 1e-4)
    must, cannot = (np.array(r["kpcca"][kind]) - 1 for kind in ("ML", "CL"))
    kernel = KernelPCCA(1, gamma=0.2).fit(r["kpcca"]["x"], must_link=must, cannot_link=cannot)
    bounds.at_most("kpcca, 60 objects", kernel.objective_, float(r["kpcca"]["log"][-1].split()[2]))

    bounds.head("loss against the best of ten random starts, at most 2 % above it")
    for name in ("glass", "iris", "wine", "vehicle", "vowel"):
        data = load(name)
        for n_links in (50, 200):
            must, cannot = random_links(data.y, n_links, 1)
            for r_features in (1, 2, 4):
                model = PCCA(r_features).fit(data.X, must_link=must, cannot_link=cannot)
                other = random_starts(*differences(data.X, must, cannot), r_features)
                what = f"{name}, {n_links} links, {r_features} features"
                bounds.at_most(what, model.objective_, 1.02 * other, digits=3)


def metrics(bounds: Bounds) -> None:
    gaps = []
    for name in ("iris", "wine", "glass", "seeds", "ecoli3"):
        data = load(name)
        c = data.n_clusters

        def index(Z: NDArray, c: int = c, y: NDArray = data.y) -> float:
            return adjusted_rand_score(y, KMeans(c, n_init=10, random_state=0).fit_predict(Z))

        bounds.head(f"{name}: mean ARI of k-means, five draws of links")
        bounds.note("attributes alone", index(data.X))
        for n_links in (50, 200):
            for model in (LSI(), DMLEig(), PCCA(3)):
                found = []
                for seed in range(5):
                    must, cannot = random_links(data.y, n_links, seed)
                    model.fit(data.X, must_link=must, cannot_link=cannot)
                    found.append(index(model.transform(data.X)))
                    if not isinstance(model, PCCA):
                        gaps.append(model.gap_ / model.objective_)
                bounds.note(f"{n_links} links, {type(model).__name__}", float(np.mean(found)))
    bounds.head("how far LSI and DML-eig may be from the best metric")
    bounds.at_most("largest share of the objective", max(gaps), 0.01)


def dissimilarities(bounds: Bounds) -> None:
    bounds.head("DissimilarityPCA, 10 attributes, 500 landmarks, 5 components")
    seconds = []
    DissimilarityPCA(5, n_landmarks=500, random_state=0).fit(np.eye(600, 10))  # compiles
    for n in (10_000, 100_000):
        X = np.random.default_rng(0).normal(size=(n, 10))
        model = DissimilarityPCA(5, n_landmarks=500, random_state=0)
        start = time.perf_counter()
        model.fit(X).transform(X)
        seconds.append(time.perf_counter() - start)
        bounds.note(f"n = {n:,}: seconds", seconds[-1], digits=2)
    bounds.at_most("ratio for ten times the objects", seconds[1] / seconds[0], 20, digits=1)


PARTS = {"circles": circles, "loss": loss, "metrics": metrics, "dissimilarities": dissimilarities}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", default="all", choices=[*PARTS, "all"])
    what = parser.parse_args().what
    bounds = Bounds()
    for name, part in PARTS.items():
        if what in (name, "all"):
            part(bounds)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

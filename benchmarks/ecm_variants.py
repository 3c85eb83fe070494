"""SECM on noisy images beside ECM and a Gaussian mixture; BCM beside ECM and CCM.

    python benchmarks/ecm_variants.py [images | belief | all]

* images: a disc on two wavy bands, 128 x 128 pixels, with normal noise; share of pixels that are
  wrong under the best naming of the segments, over five draws. SECM has to be below both others;
* belief: sets of table 3 of NN-EVCLUS with its settings for CCM (beta = 2, delta = 5, sets of at
  most two clusters): adjusted Rand index, and the share of objects whose largest mass is on a set
  of two clusters; BCM with its defaults too. No paper of the sources prints any.

Takes about a minute on one core.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
from bounds import Bounds
from datasets import load
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from evdist import BCM, CCM, ECM, SECM, FocalSets

SIDE, DRAWS = 128, 5
#: Normal noise, as a share of the distance between two grey levels.
NOISE = (0.3, 0.4, 0.5)


def noisy_image(noise: float, channels: int, seed: int) -> tuple[NDArray, NDArray]:
    """True regions, and the pixels: grey levels 0, 1, 2, or two channels of 0 and 1."""
    row, column = np.mgrid[:SIDE, :SIDE] / SIDE
    truth = (row + 0.15 * np.sin(2 * np.pi * column) > 0.5).astype(int)
    truth[(column - 0.5) ** 2 + (row - 0.5) ** 2 < 0.3**2] = 2
    levels = np.array([[0.0], [1], [2]]) if channels == 1 else np.array([[0.0, 0], [1, 0], [0, 1]])
    pixels = levels[truth].reshape(-1, channels)
    return truth, pixels + np.random.default_rng(seed).normal(0, noise, pixels.shape)


def wrong(truth: NDArray, labels: NDArray) -> float:
    counts = np.zeros((3, 3))
    np.add.at(counts, (truth.ravel(), labels), 1)
    return float(1 - counts[linear_sum_assignment(-counts)].sum() / truth.size)


def images(bounds: Bounds) -> None:
    for channels in (1, 2):
        for noise in NOISE:
            bounds.head(f"{channels} channels, noise {noise}: wrong pixels, mean of {DRAWS} draws")
            errors = []
            for seed in range(DRAWS):
                truth, X = noisy_image(noise, channels, seed)
                spatial = SECM(3, image_shape=truth.shape, random_state=0)
                mixture = GaussianMixture(3, n_init=5, random_state=0)
                models = (ECM(3, random_state=0), mixture, spatial)
                errors.append([wrong(truth, model.fit_predict(X)) for model in models])
            ecm, mixed, spatial_error = np.mean(errors, axis=0)
            bounds.note("ECM", ecm, digits=4)
            bounds.note("Gaussian mixture", mixed, digits=4)
            bounds.at_most("SECM", spatial_error, min(ecm, mixed))


def belief(bounds: Bounds) -> None:
    warnings.filterwarnings("ignore", message="The prototypes of clusters")  # heart, with ECM
    for name in ("wine", "iris", "ecoli3", "heart", "seeds"):
        data = load(name)
        c = data.n_clusters
        sets = FocalSets.pairs(c, omega=c == 2)
        bounds.head(f"{name}: adjusted Rand index; share of objects on pairs of clusters")
        for kind in (ECM, CCM, BCM):
            model = kind(c, beta=2, delta=5, focal_sets=sets, random_state=0).fit(data.X)
            mass = np.asarray(model.credal_partition_.mass)
            on_pairs = float((sets.cardinality[mass.argmax(axis=1)] == 2).mean())
            ari = adjusted_rand_score(data.y, model.labels_)
            bounds.note(kind.__name__, ari, f"{on_pairs:.3f}")
        labels = BCM(c, random_state=0).fit(data.X).labels_
        bounds.note("BCM, defaults", adjusted_rand_score(data.y, labels))


PARTS = {"images": images, "belief": belief}


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

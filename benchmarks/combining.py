"""Partitions combined, and classifiers fused: the examples of the two sets of slides.

    python benchmarks/combining.py [seeds | fusion | all]

* seeds: slides (2017), "Combining clustering structures": hard and soft partitions of the seeds
  data combined by Dempster's rule, by Dubois and Prade's and by the mean. The slides show figures
  without numbers. Bound: what Dubois and Prade's rule says contradicts the truth less than any
  of the soft partitions does;
* fusion: slides (2021), "Data fusion example": two classes, 60 objects, five attributes of one
  sensor and three of another; an evidential network for each, their masses combined by Dempster's
  rule. Means are chosen such that the Bayes errors are the printed .071 and .121; 20 draws. Bounds:
  .03 above what is printed for the evidential network.

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
from scipy.stats import norm
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from evdist import ECM, EVCLUS, CredalPartition, EvidentialNN, metrics
from evdist.belief import FocalSets, contour, dempster
from evdist.combine import combine

RULES = ("dempster", "dubois_prade", "average")
DRAWS, TEST = 20, 5_000
#: Printed for the evidential network: x alone, x' alone, both.
PRINTED = (0.106, 0.148, 0.061)


def seeds(bounds: Bounds) -> None:
    data = load("seeds")
    X, y = data.X, data.y
    ecm = ECM(3, focal_sets="pairs", random_state=0).fit(X).credal_partition_
    evclus = EVCLUS(3, metric="euclidean", random_state=0).fit(X).credal_partition_
    # Sets that cost 3^10 times as much, and no outliers, leave fuzzy c-means.
    fuzzy = ECM(3, alpha=10, delta=1_000, random_state=0).fit(X).credal_partition_.fuzzy()
    hard = {
        "k-means": KMeans(3, n_init=10, random_state=0).fit_predict(X),
        "ECM, labels": ecm.labels(),
        "EVCLUS, labels": evclus.labels(),
    }
    soft = {
        "ECM": ecm,
        "EVCLUS": evclus,
        "fuzzy c-means": CredalPartition.from_fuzzy(np.asarray(fuzzy)),
    }
    for kind, ensemble in (("hard", hard), ("soft", soft)):
        found = {
            rule: combine(list(ensemble.values()), 3, rule=rule, focal_sets="pairs")
            for rule in RULES
        }
        bounds.head(f"seeds, {kind} partitions: credal Rand index with the truth")
        for name, one in {**ensemble, **found}.items():
            ari = metrics.adjusted_rand_index(one, y)
            agree = metrics.consistency(_credal(one), y)
            vague = metrics.nonspecificity(_credal(one))
            why = f"ARI {ari:.3f}, consistency {agree:.3f}, nonspecificity {vague:.3f}"
            bounds.note(name, metrics.credal_rand_index(one, y), why)
    best = max(metrics.consistency(_credal(one), y) for one in soft.values())
    bounds.head("soft partitions: consistency with the truth")
    bounds.at_least("dubois_prade", metrics.consistency(found["dubois_prade"], y), best)


def _credal(one: CredalPartition | NDArray) -> CredalPartition:
    return one if isinstance(one, CredalPartition) else CredalPartition.from_labels(one)


def sensors(n: int, rng: np.random.Generator) -> tuple[NDArray, NDArray, NDArray]:
    """Classes, and Gaussian attributes (n, 5) and (n, 3), independent given the class."""
    y = rng.integers(0, 2, n)
    both = []
    for d, error in ((5, 0.071), (3, 0.121)):
        # Two unit Gaussians whose means are 2 t apart have the Bayes error Phi(-t).
        shift = -2 * norm.ppf(error) / np.sqrt(d)
        both.append(rng.normal(size=(n, d)) + shift * y[:, None])
    return y, both[0], both[1]


def fusion(bounds: Bounds) -> None:
    sets = FocalSets.simple(2)
    noises = (0.0, 1.0, 2.0, 4.0)
    errors = np.zeros((DRAWS, len(noises), 4))
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        y, a, b = sensors(60, rng)
        first, second, joint = (
            EvidentialNN(4, random_state=0).fit(x, y) for x in (a, b, np.column_stack([a, b]))
        )
        truth, a, b = sensors(TEST, rng)
        for k, noise in enumerate(noises):
            heard = a + rng.normal(0, noise, a.shape) if noise else a
            masses = [np.asarray(first.predict_mass(heard)), np.asarray(second.predict_mass(b))]
            fused, family = dempster([m.astype(float) for m in masses], sets)
            assert family == sets  # sets of one and both clusters meet in such sets again
            masses += [fused, np.asarray(joint.predict_mass(np.column_stack([heard, b])))]
            for j, mass in enumerate(masses):
                said = contour(mass, sets).argmax(axis=1)
                errors[seed, k, j] = (said != truth).mean()
    mean = errors.mean(axis=0)
    bounds.head(f"two sensors: test errors, mean of {DRAWS} draws; bound: printed + .03")
    names = ("x alone", "x' alone", "fused")
    for name, value, printed in zip(names, mean[0, :3], PRINTED, strict=True):
        bounds.at_most(f"{name} (printed {printed})", value, printed + 0.03)
    bounds.note("one network on all attributes", mean[0, 3], digits=4)
    bounds.head("noise on x when it is used: the fusion stays at or below the worse sensor")
    for k, noise in enumerate(noises[1:], start=1):
        bounds.note(f"noise {noise:g}: x alone", mean[k, 0], digits=4)
        bounds.note(f"noise {noise:g}: one network on all attributes", mean[k, 3], digits=4)
        bounds.at_most(f"noise {noise:g}: fused", mean[k, 2], max(mean[k, 0], mean[k, 1]))


PARTS = {"seeds": seeds, "fusion": fusion}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", default="all", choices=[*PARTS, "all"])
    what = parser.parse_args().what
    bounds = Bounds()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, part in PARTS.items():
        if what in (name, "all"):
            part(bounds)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

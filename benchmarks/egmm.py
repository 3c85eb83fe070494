"""EGMM: data drawn from its own model, and real sets beside ECM and mixtures.

    python benchmarks/egmm.py [model | sets | all]

* model: three clusters at the corners of a triangle, and objects halfway between each two; 20
  draws of 600. Bounds: the evidential BIC finds three clusters in 18 of them; proportions of the
  sets are found to .03 in the mean, and the sets of 95 % of the objects;
* sets: adjusted Rand index of the labels of maximum plausibility, the share of objects on sets of
  several clusters, and the number of clusters of the largest BIC, up to 8. Bound: the likelihood is
  not below that of the mixture with one covariance (EEE), which is EGMM without sets of several
  clusters. The article's figures were not at hand.

Takes about half a minute on one core.
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
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import ECM, EGMM, FocalSets
from evdist.mixture import select_mixture

DRAWS, N = 20, 600
CORNERS = np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 8.7]])
#: Of the corners, then of the pairs (0, 1), (0, 2), (1, 2).
SHARES = np.array([0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
SETS = FocalSets.pairs(3, omega=False)


def drawn(seed: int) -> tuple[NDArray, NDArray]:
    """Objects of the model, and the focal set (from 1) of each."""
    rng = np.random.default_rng(seed)
    which = 1 + rng.choice(len(SHARES), N, p=SHARES)
    centres = np.array([CORNERS[list(A)].mean(axis=0) for A in SETS.sets[1:]])
    root = np.linalg.cholesky([[1.0, 0.4], [0.4, 0.8]])
    return centres[which - 1] + rng.normal(size=(N, 2)) @ root.T, which


def model(bounds: Bounds) -> None:
    bounds.head(f"{DRAWS} draws of {N} objects from the model")
    right, apart, found = 0, [], []
    for seed in range(DRAWS):
        X, which = drawn(seed)
        right += EGMM(range(1, 6), random_state=0).fit(X).n_clusters_ == 3
        fit = EGMM(3, focal_sets=SETS, random_state=0).fit(X)
        far = np.linalg.norm(CORNERS[:, None] - fit.prototypes_, axis=2)
        named = linear_sum_assignment(far)[1]  # our cluster of each corner
        place = [SETS.sets.index(tuple(sorted(named[list(A)].tolist()))) for A in SETS.sets]
        apart.append(np.abs(fit.proportions_[place][1:] - SHARES).max())
        chosen = np.asarray(fit.credal_partition_.mass).argmax(axis=1)
        found.append((chosen == np.array(place)[which]).mean())
    bounds.at_least("draws in which the BIC finds three clusters", right, 18, digits=0)
    bounds.at_most("largest error of a proportion, mean", float(np.mean(apart)), 0.03)
    bounds.at_least("objects on the set they come from, mean", float(np.mean(found)), 0.95)


def sets(bounds: Bounds) -> None:
    for name in ("iris", "wine", "seeds", "ecoli3", "fourclass", "diabetes"):
        data = load(name)
        c = data.n_clusters
        bounds.head(f"{name}: c = {c}; adjusted Rand index")
        fit = EGMM(c, focal_sets="full", random_state=0).fit(data.X)
        plain = select_mixture(data.X, c, "EEE", n_init=5, random_state=0).best
        size = fit.credal_partition_.focal_sets.cardinality
        many = float((size[np.asarray(fit.credal_partition_.mass).argmax(axis=1)] > 1).mean())
        number = EGMM(range(1, 9), random_state=0).fit(data.X).n_clusters_
        said = f"{many:.3f} of the objects on several clusters; the BIC takes {number}"
        bounds.note("EGMM", adjusted_rand_score(data.y, fit.labels_), said)
        labels = plain.parameters.posterior(data.X).argmax(axis=1)
        bounds.note("mixture, EEE", adjusted_rand_score(data.y, labels))
        labels = ECM(c, focal_sets="full", random_state=0).fit(data.X).labels_
        bounds.note("ECM", adjusted_rand_score(data.y, labels))
        gain = (fit.loglik_ - plain.loglik) / len(data.y)
        bounds.at_least("log-likelihood of an object above EEE's", gain, -1e-4, digits=4)


PARTS = {"model": model, "sets": sets}


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

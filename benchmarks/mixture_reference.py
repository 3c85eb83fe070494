"""Gaussian mixtures against mclust's results, the papers' choices, and scikit-learn's speed.

    python benchmarks/mixture_reference.py [iris] [choice] [gvhd] [speed]

* iris: log-likelihood and BIC of the fourteen models with three components, none more than 1e-3
  (relative) below mclust's;
* choice: what BIC picks for iris and diabetes;
* gvhd: what it picks for 1,000 random objects of GvHD_pos, four samples (the paper: VVV, 7);
* speed: bootstrap replicates of iris and of three Gaussians, and one EM iteration of a million
  objects beside scikit-learn's. CPU seconds, one thread.

All of it takes about two minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
import pandas as pd
from bounds import Bounds
from datasets import SHARED, load, reference
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Reference

from evdist.mixture import (
    MODELS,
    Parameters,
    fit_em,
    fit_em_many,
    from_posterior,
    select_mixture,
)

#: User CPU seconds of R's bootclus on iris, B = 500, all steps together (reference/timings.json).
R_BOOTCLUS = 10.054


def raw_diabetes() -> NDArray[np.float64]:
    return pd.read_csv(SHARED / "data" / "diabetes.csv").iloc[:, 1:].to_numpy(float)


def iris(bounds: Bounds) -> None:
    bounds.head("iris, c = 3: the fourteen models, beside mclust 6.0.0")
    theirs = reference("gmm_iris")["models"]
    began = time.process_time()
    fits = {m: select_mixture(load("iris").X, 3, m, n_jobs=1) for m in MODELS}
    seconds = time.process_time() - began
    for model, fit in fits.items():
        for what, value in (("loglik", fit.best.loglik), ("bic", fit.bic)):
            bound = theirs[model][what]
            bounds.at_least(f"{model}: {what}", value, bound - 1e-3 * abs(bound))
        bounds.note(f"{model}: loglik above mclust's", fit.best.loglik - theirs[model]["loglik"])
    bounds.note("all fourteen, two starts each: CPU s", seconds, "with compiling, if not cached")


def choice(bounds: Bounds) -> None:
    for name, X, numbers, expected in (
        ("iris", load("iris").X, [3], "VEV 3"),
        ("iris", load("iris").X, range(1, 10), "VEV 2"),
        ("diabetes", raw_diabetes(), range(1, 10), "VVV 3"),
    ):
        bounds.head(f"{name}: BIC over fourteen models and c = {min(numbers)}..{max(numbers)}")
        began = time.process_time()
        chosen = select_mixture(X, numbers, n_jobs=1)
        seconds = time.process_time() - began
        found = chosen.best.parameters
        print(chosen.bics.round(1).T.to_string())
        picked = f"{found.model} {found.n_components}"
        bounds.at_least(f"picks {picked}; expected {expected}", float(picked == expected), 1.0)
        bounds.note("BIC", chosen.bic)
        bounds.note("CPU s", seconds)


def gvhd(bounds: Bounds) -> None:
    bounds.head("GvHD_pos: 1,000 random objects, c = 4..10, four starts for each fit")
    every = pd.read_csv(SHARED / "data" / "GvHD_pos.csv.gz").to_numpy(float)
    for seed in range(4):
        rows = np.random.default_rng(seed).choice(len(every), 1000, replace=False)
        began = time.process_time()
        chosen = select_mixture(every[rows], range(4, 11), n_init=4, random_state=0, n_jobs=1)
        seconds = time.process_time() - began
        p = chosen.best.parameters
        number = int(chosen.bics["VVV"].idxmax())
        gap = chosen.bic - chosen.bics["VVV"].max()
        why = f"BIC {gap:.0f} below the best, {p.model} {p.n_components}; CPU {seconds:.0f} s"
        bounds.note(f"sample {seed}: components with VVV", number, why, digits=0)


def cpu(job, repeats: int = 3) -> float:
    """The least CPU seconds of some runs."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        job()
        times.append(time.process_time() - began)
    return min(times)


def replicates(bounds: Bounds) -> None:
    bounds.head("bootstrap replicates: CPU ms each, from the fit of all objects")
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    gauss = np.array([[0, 0], [4, 4], [0, 5]])[y] + rng.normal(size=(300, 2))
    for name, X, model, B in (
        ("iris", load("iris").X, "VEV", 500),
        ("n=300, d=2", gauss, "VVV", 200),
    ):
        p = select_mixture(X, 3, model, n_jobs=1).best.parameters
        counts = rng.multinomial(len(X), np.full(len(X), 1 / len(X)), size=B)
        many = cpu(lambda X=X, p=p, counts=counts: fit_em_many(X, p, counts))
        one = cpu(lambda X=X, p=p, counts=counts: [fit_em(X, p, sample_weight=w) for w in counts])
        bounds.note(f"{name}, {model}: fit_em, one by one", 1e3 * one / B)
        bounds.note(f"{name}, {model}: fit_em_many, {B} at once", 1e3 * many / B)
        if name == "iris":
            share = f"of the {R_BOOTCLUS} s of R's bootclus, which does more than fit"
            bounds.note("iris: share of all 500 fits", many / R_BOOTCLUS, share)


def million(bounds: Bounds) -> None:
    bounds.head("one EM iteration, n = 10^6, d = 4, c = 7, VVV: CPU s, one thread")
    for spread in (4.0, 1.0):
        rng = np.random.default_rng(0)
        means, y = spread * rng.normal(size=(7, 4)), rng.integers(7, size=10**6)
        X = means[y] + rng.normal(size=(10**6, 4))
        some = slice(0, 50_000)
        start = from_posterior(X[some], np.eye(7)[y[some]], "VVV")
        fit_em(X[some], start, max_iter=1)  # compiled by now
        ours = iteration(lambda k, X=X, p=start: fit_em(X, p, tol=0, max_iter=k))
        theirs = iteration(lambda k, X=X, p=start: scikit_learn(X, p, k))
        bounds.note(f"means {spread:g} sd apart: evdist", ours)
        bounds.note(f"means {spread:g} sd apart: scikit-learn, full", theirs)
        bounds.at_least(f"means {spread:g} sd apart: times less", theirs / ours, 1.0, digits=1)


def iteration(run) -> float:
    """CPU seconds of one more iteration: what six cost more than two, divided."""
    return (cpu(lambda: run(6), 2) - cpu(lambda: run(2), 2)) / 4


def scikit_learn(X: NDArray, p: Parameters, steps: int) -> None:
    model = Reference(
        p.n_components, tol=0, max_iter=steps, weights_init=p.weights, means_init=p.means,
        precisions_init=np.linalg.inv(p.covariances), init_params="random_from_data",
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)


def speed(bounds: Bounds) -> None:
    replicates(bounds)
    million(bounds)


PARTS = {"iris": iris, "choice": choice, "gvhd": gvhd, "speed": speed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    wanted = parser.parse_args().what or list(PARTS)
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    bounds = Bounds()
    for part in wanted:
        PARTS[part](bounds)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

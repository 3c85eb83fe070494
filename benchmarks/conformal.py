"""How often conformal sets hold what they promise: drawn labels, true components, known classes.

Prints tables and fails when a promise is broken by more than two standard errors of the mean over
the repetitions.

* Mixtures of three Gaussians in the plane (equal spheres; ellipses of their own), of t
  distributions with 3 degrees of freedom, and three Gaussians fitted with two clusters: 200 objects
  fit, 200 calibrate, 500 are new. Of each set: does it hold a label drawn from the model's own
  masses (the promise), and the true component; how far the masses are from the true posterior
  probabilities (TV, which bounds what is lost); how many clusters it has; the same beside the
  decisions of the fitted level.
* Two labelled sets: the classes instead of the components; and sets of the fitted objects from a
  few known classes (`CredalPartition.conformal(labels=...)`), whose promise is about the classes.

A cluster is matched to the component or class with which it shares most fitted objects, one to one.
Coverage of drawn labels is their probability within the set, so that no draw adds noise.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from bounds import Bounds
from datasets import SHARED, load
from numpy.typing import NDArray
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.base import BaseEstimator

from evdist import ECM, EGMM, EVCLUS
from evdist.conformal import ConformalClustering
from evdist.mixture import GaussianMixture
from evdist.partition.calibrate import match

ALPHAS = (0.05, 0.1, 0.2)
SCORES = ("aps", "randomised-aps", "lac")
FIT, NEW = 400, 500
CENTRES = np.array([[0.0, 0.0], [3.0, 0.0], [1.5, 2.6]])
SPHERES = (np.eye(2),) * 3
ELLIPSES = (np.diag([2.0, 0.3]), np.diag([0.4, 1.5]), np.array([[1.0, 0.6], [0.6, 0.8]]))


#: Mixtures on which EVCLUS is measured.
LONG = ("spheres", "t with 3 df")


class Mixture:
    """Three components of equal weight: objects, their components, their posteriors."""

    def __init__(self, spreads: tuple[NDArray, ...], tails: float | None = None):
        if tails is None:
            self.parts: list[Any] = [
                multivariate_normal(mu, S) for mu, S in zip(CENTRES, spreads, strict=True)
            ]
        else:
            self.parts = [
                multivariate_t(mu, S / 2, df=tails) for mu, S in zip(CENTRES, spreads, strict=True)
            ]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
        y = rng.integers(0, 3, n)
        drawn = np.stack([part.rvs(size=n, random_state=rng) for part in self.parts])
        X = drawn[y, np.arange(n)]
        return X, y

    def posterior(self, X: NDArray) -> NDArray:
        density = np.column_stack([part.pdf(X) for part in self.parts])
        return density / density.sum(axis=1, keepdims=True)


def gaussians(c: int, model: str) -> Callable[[int], Any]:
    return lambda seed: GaussianMixture(c, covariance_models=model, random_state=seed, n_jobs=1)


def estimators(c: int, model: str) -> dict[str, Callable[[int], Any]]:
    return {
        "GaussianMixture": gaussians(c, model),
        "EGMM": lambda seed: EGMM(c, random_state=seed, n_jobs=1),
        "ECM": lambda seed: ECM(c, random_state=seed),
        "EVCLUS": lambda seed: EVCLUS(c, metric="euclidean", random_state=seed, n_jobs=1),
    }


#: Name -> mixture, clusters, covariance model of the Gaussian mixture.
SETTINGS: dict[str, tuple[Mixture, int, str]] = {
    "spheres": (Mixture(SPHERES), 3, "EII"),
    "ellipses": (Mixture(ELLIPSES), 3, "VVV"),
    "ellipses as spheres": (Mixture(ELLIPSES), 3, "EII"),
    "t with 3 df": (Mixture(SPHERES, 3.0), 3, "EII"),
    "two clusters of three": (Mixture(SPHERES), 2, "EII"),
}


class Once(BaseEstimator):
    """An estimator that is fitted once to the same objects, whatever sets are made of it."""

    fits: ClassVar[dict[Any, Any]] = {}

    def __init__(self, make: Callable[[int], Any], seed: int):
        self.make, self.seed = make, seed

    def fit(self, X: NDArray) -> Once:
        key = (self.make, self.seed, X.tobytes())
        if key not in self.fits:
            self.fits[key] = self.make(self.seed).fit(X)
        self.model_ = self.fits[key]
        return self

    def predict_proba(self, X: NDArray) -> NDArray:
        return np.asarray(self.model_.predict_proba(X))


class Line:
    """Means over repetitions, with their standard errors."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []

    def add(self, *values: float) -> None:
        self.rows.append(list(values))

    def of(self, j: int) -> tuple[float, float]:
        values = np.array(self.rows)[:, j]
        return float(np.nanmean(values)), float(np.nanstd(values) / np.sqrt(len(values)))


def sizes_by_decision(model: Any, X: NDArray, sizes: NDArray) -> tuple[float, float, float]:
    """Share of sure new objects, and mean sizes of the sets of sure ones and those between."""
    model = getattr(model, "model_", model)
    if not hasattr(model, "predict_partition"):
        return float("nan"), float("nan"), float("nan")
    decided = model.predict_partition(X).decide(model.credal_partition_.level())
    sure, between = np.asarray(decided.sure), np.asarray(decided.between)
    means = [float(sizes[some].mean()) if some.any() else float("nan") for some in (sure, between)]
    return float(sure.mean()), means[0], means[1]


def measured(
    conformal: ConformalClustering,
    data: tuple[NDArray, NDArray],
    new: tuple[NDArray, NDArray],
    posterior: Callable[[NDArray], NDArray] | None,
    lines: dict[Any, Line],
) -> None:
    """One repetition: each alpha of one fit."""
    (X, y), (Z, z) = data, new
    model, rows = conformal.estimator_, conformal.fitted_rows_
    c = conformal.n_clusters_
    q = np.asarray(model.predict_proba(Z))
    to = match(np.asarray(model.predict_proba(X[rows])).argmax(axis=1), y[rows], c)
    g, apart = q, np.nan
    if conformal.other_ is not None:
        # The labels promised are those of the second fit, with the clusters paired as in the fit.
        g = np.asarray(conformal.other_.predict_proba(Z))[:, conformal.pairs_]
    if posterior is not None:
        p = posterior(Z)
        own = np.zeros_like(p)
        for k in np.flatnonzero(to >= 0):
            own[:, to[k]] += q[:, k]
        apart = float(0.5 * np.abs(own - p).sum(axis=1).mean())
    for alpha in ALPHAS:
        sets = conformal.predict_set(Z, alpha)
        held = (g * sets.members).sum(axis=1).mean()
        true = (sets.members & (to == z[:, None])).any(axis=1).mean()
        told = sizes_by_decision(model, Z, sets.sizes)
        single = (sets.sizes == 1).mean()
        lines.setdefault(alpha, Line()).add(held, true, apart, sets.sizes.mean(), single, *told)


def told(name: str, lines: dict[Any, Line]) -> None:
    for alpha, line in lines.items():
        (held, e), (true, f), (apart, _), (size, _), (single, _), *by = (
            line.of(j) for j in range(8)
        )
        sure = "" if np.isnan(by[0][0]) else f"{by[0][0]:6.0%} {by[1][0]:5.2f} {by[2][0]:7.2f}"
        print(f"{name:<34}{1 - alpha:>5.0%}{held:>9.3f} ±{e:.3f}{true:>8.3f} ±{f:.3f}"
              f"{apart:>7.3f}{size:>7.2f}{single:>6.0%}  {sure}", flush=True)  # fmt: skip


HEAD = (f"{'':<34}{'1-a':>5}{'drawn label':>16}{'true':>15}{'TV':>7}{'size':>7}{'one':>6}"
        f"  {'sure  size between'}")  # fmt: skip


def judge(bounds: Bounds, name: str, lines: dict[Any, Line], m: int, exact: bool) -> None:
    """Two standard errors of the promise; of a true component, less the distance from the truth."""
    for alpha, line in lines.items():
        held, e = line.of(0)
        bounds.at_least(f"{name} {1 - alpha:.0%}: drawn", held, 1 - alpha - 2 * e, digits=4)
        if exact:
            bounds.at_most(f"{name} {1 - alpha:.0%}: drawn", held, 1 - alpha + 2 / m + 2 * e)
        true, f = line.of(1)
        apart = line.of(2)[0]
        if not np.isnan(apart):
            least = 1 - alpha - apart - 2 * f
            bounds.at_least(f"{name} {1 - alpha:.0%}: true, less TV", true, least, digits=4)


def mixtures(repetitions: int, bounds: Bounds, only: str | None, wanted: str | None) -> None:
    verdicts = []
    for setting, (mixture, c, model) in SETTINGS.items():
        if only is not None and only != setting:
            continue
        print(f"\n{setting}: {FIT} objects, half fit, half calibrate; {NEW} new; "
              f"{repetitions} repetitions\n{HEAD}")  # fmt: skip
        for name, make in estimators(c, model).items():
            if wanted not in (None, name) or (name == "EVCLUS" and setting not in LONG):
                continue  # EVCLUS takes half a second a fit
            variants = [("own", score) for score in SCORES]
            variants += [("refit", "aps")] if name in ("GaussianMixture", "ECM") else []
            found: dict[str, dict[Any, Line]] = {}
            for seed in range(repetitions):
                rng = np.random.default_rng(seed)
                data, new = mixture.draw(FIT, rng), mixture.draw(NEW, rng)
                for labels, score in variants:
                    what = f"{name} {score}{'' if labels == 'own' else ', refit'}"
                    conformal = ConformalClustering(
                        Once(make, seed), score=score, labels=labels, random_state=seed
                    ).fit(data[0])
                    lines = found.setdefault(what, {})
                    measured(conformal, data, new, mixture.posterior, lines)
                Once.fits.clear()
            for what, lines in found.items():
                told(what, lines)
                verdicts.append((f"{setting}: {what}", lines, "randomised" in what))
    bounds.head("Mixtures: within two standard errors of the promise")
    for what, lines, exact in verdicts:
        judge(bounds, what, lines, FIT // 2, exact)


# ---------------------------------------------------------------------- labelled sets
def halves(name: str, repetitions: int) -> Iterator[tuple[Any, Any, int]]:
    """Objects that fit and calibrate, others that are new; at most 400 and 500."""
    data = load(name)
    for seed in range(repetitions):
        order = np.random.default_rng(seed).permutation(len(data.y))
        n = min(FIT, 2 * len(order) // 3)
        some, others = order[:n], order[n : n + NEW]
        yield (data.X[some], data.y[some]), (data.X[others], data.y[others]), data.n_clusters


def labelled(repetitions: int, bounds: Bounds, wanted: str | None) -> None:
    verdicts, known = [], []
    for name in ("seeds", "drybean"):
        makes = estimators(load(name).n_clusters, "VVV" if name == "seeds" else "EII")
        slow = ("EGMM", "EVCLUS") if name == "drybean" else ()  # seconds a fit
        chosen = [what for what in makes if what not in slow and wanted in (None, what)]
        if chosen:
            print(f"\n{name}, {repetitions} repetitions\n{HEAD}")
        for what in chosen:
            make = makes[what]
            lines: dict[Any, Line] = {}
            classes: dict[Any, Line] = {}
            for seed, (data, new, _) in enumerate(halves(name, repetitions)):
                conformal = ConformalClustering(make(seed), random_state=seed).fit(data[0])
                measured(conformal, data, new, None, lines)
                if what in ("ECM", "EVCLUS"):
                    from_labels(make(seed), data, seed, classes)
            told(f"{what} aps", lines)
            verdicts.append((f"{name}: {what}", lines))
            if classes:
                known.append((f"{name}: {what}", classes))
    print("\nA third of the classes known: sets of the other objects hold the cluster of the class")
    print(f"{'':<34}{'1-a':>5}{'class':>9}{'size':>13}{'one':>6}{'refused':>9}")
    for what, classes in known:
        for alpha, line in classes.items():
            (true, e), (size, _), (one, _), (refused, _) = (line.of(j) for j in range(4))
            print(f"{what:<34}{1 - alpha:>5.0%}{true:>9.3f} ±{e:.3f}{size:>7.2f}{one:>6.0%}"
                  f"{refused:>9.0%}")  # fmt: skip
    bounds.head("Labelled sets: within two standard errors of the promise")
    for what, lines in verdicts:
        judge(bounds, what, lines, FIT // 2, exact=False)
    for what, classes in known:
        for alpha, line in classes.items():
            true, e = line.of(0)
            least = 1 - alpha - 2 * e
            bounds.at_least(f"{what} {1 - alpha:.0%}: class, from labels", true, least, digits=4)


def from_labels(
    model: Any, data: tuple[NDArray, NDArray], seed: int, lines: dict[Any, Line]
) -> None:
    """Sets of fitted objects from a third of their classes; a refused alpha counts as kept."""
    X, y = data
    partition = model.fit(X).credal_partition_
    rows = np.random.default_rng(seed).choice(len(y), len(y) // 3, replace=False)
    given = np.full(len(y), -1)
    given[rows] = y[rows]
    for alpha in ALPHAS:
        try:
            sets = partition.conformal(alpha, labels=given, random_state=seed)
        except ValueError:
            lines.setdefault(alpha, Line()).add(np.nan, np.nan, np.nan, 1.0)
            continue
        rest = given < 0
        held = (np.asarray(sets.members) & (np.array(sets.classes) == y[:, None]))[rest].any(axis=1)
        size = sets.sizes[rest]
        lines.setdefault(alpha, Line()).add(held.mean(), size.mean(), (size == 1).mean(), 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--only", help="one setting of the mixtures")
    parser.add_argument("--estimator", help="one estimator alone, such as ECM")
    parser.add_argument("--sets", action="store_true", help="the labelled sets alone")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    bounds = Bounds(width=70)
    if not args.sets:
        mixtures(args.repetitions, bounds, args.only, args.estimator)
    if args.only is None and SHARED.exists():
        labelled(args.repetitions, bounds, args.estimator)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())

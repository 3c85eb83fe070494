"""The parts that do not cluster: intervals of Bootclus, choices by BIC, classifiers, examples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from evdist import EKNNClassifier, EvidentialNN, FocalSets
from evdist.belief import contour, dempster, mutual_neighbour_pairs
from evdist.bootclus.replicates import bootstrap_gaussian
from evdist.bootclus.solver import bayesian_masses, fit_masses
from evdist.evclus.irqp import Stop
from evdist.evclus.sites import LocalSite
from evdist.metrics import pairwise_mass
from evdist.mixture import GaussianMixture, select_mixture
from evdist.partition import CredalPartition
from ledger.answer import Answer
from ledger.clusterers import CLUSTERERS
from ledger.sets import Given

LEVELS = (0.90, 0.95)


def coverage(given: Given, seed: int, *, model: str, B: str) -> Answer:
    """The bootstrap paper, section 4.1: intervals and [Bel, Pl] of all pairs, at both levels."""
    X, c, n = given.X, given.n_clusters, len(given.X)
    full = GaussianMixture(c, covariance_models=model, n_jobs=1, random_state=seed).fit(X)
    replicates = bootstrap_gaussian(X, full.parameters_, int(B), seed).replicates
    sets = FocalSets.pairs(c, omega=False)
    start = bayesian_masses(full.predict_proba(X), sets)
    i, j = np.triu_indices(n, 1)
    found: dict[str, tuple[Any, ...]] = {}
    for level in LEVELS:
        fit = fit_masses(X, replicates, sets, start, confidence=level, k=n - 1,
                         stop=Stop(1e-5, 200), seed=seed, site=LocalSite(1))  # fmt: skip
        kept, M = fit.intervals, fit.mass.astype(float)
        bel, pl = (M @ sets.S @ M.T)[i, j], 1.0 - (M @ sets.C @ M.T)[i, j]
        found[f"CI{100 * level:.0f}"] = (kept.i, kept.j, kept.lower, kept.upper)
        found[f"BelPl{100 * level:.0f}"] = (i, j, bel, pl)
    return Answer(intervals=found)


def bic(given: Given, seed: int, *, least: str, most: str) -> Answer:
    """What BIC chooses among all fourteen models, and the number of clusters with VVV alone."""
    chosen = select_mixture(given.X, range(int(least), int(most) + 1), n_init=4, random_state=seed,
                            n_jobs=1)  # fmt: skip
    p = chosen.best.parameters
    return Answer(values={"clusters": float(p.n_components), "vvv": float(p.model == "VVV"),
                          "vev": float(p.model == "VEV"),
                          "clusters with VVV": float(chosen.bics["VVV"].idxmax())})  # fmt: skip


def gvhd_pairs(given: Given, seed: int) -> Answer:
    """Seven clusters, VVV: the number of pairs of mutual nearest neighbours, K = 2."""
    full = GaussianMixture(7, covariance_models="VVV", n_jobs=1, random_state=seed).fit(given.X)
    pairs = len(mutual_neighbour_pairs(full.predict_proba(given.X), 2))
    return Answer(values={"pairs": float(pairs), "sets": 7.0 + pairs})


# ---------------------------------------------------------------------- classifiers
def eknn(given: Given, seed: int, *, K: str) -> Answer:
    return Answer(labels=EKNNClassifier(int(K)).fit(given.X, given.labels).predict(given.new))


def network(given: Given, seed: int, *, prototypes: str, max_iter: str = "300") -> Answer:
    model = EvidentialNN(int(prototypes), random_state=seed, max_iter=int(max_iter))
    return Answer(labels=model.fit(given.X, given.labels).predict(given.new))


SENSORS = {"x": slice(0, 5), "other": slice(5, 8)}


def fusion(given: Given, seed: int, *, use: str) -> Answer:
    """A network for each sensor, their masses combined by Dempster's rule."""
    masses = []
    for name in SENSORS if use == "both" else (use,):
        columns = SENSORS[name]
        model = EvidentialNN(4, random_state=0).fit(given.X[:, columns], given.labels)
        masses.append(np.asarray(model.predict_mass(given.new[:, columns])).astype(float))
    sets = FocalSets.simple(2)
    mass = masses[0] if len(masses) == 1 else dempster(masses, sets)[0]
    return Answer(labels=contour(mass, sets).argmax(axis=1))


# ---------------------------------------------------------------------- examples on paper
def rule(given: Given, seed: int, *, first: str, second: str, clusters: str) -> Answer:
    """Dempster's rule: masses as "TO:.9,GRTOS:.1"; the answer by sets of letters."""
    letters = {letter: k for k, letter in enumerate(clusters)}

    def parsed(text: str) -> dict[frozenset[int], float]:
        pairs = (item.split(":") for item in text.split(","))
        return {frozenset(letters[x] for x in A): float(m) for A, m in pairs}

    sets = FocalSets.full(len(letters))
    places = [frozenset(A) for A in sets.sets]
    masses = []
    for text in (first, second):
        m = np.zeros((1, len(sets)))
        for A, value in parsed(text).items():
            m[0, places.index(A)] = value
        masses.append(m)
    joint, family = dempster(masses, sets)
    back = {k: letter for letter, k in letters.items()}
    values = {"".join(sorted(back[k] for k in A)) or "empty": float(v)
              for A, v in zip(family.sets, np.asarray(joint)[0], strict=True)}  # fmt: skip
    conflict = 1.0 - sum(
        masses[0][0, a] * masses[1][0, b]
        for a, A in enumerate(places) for b, B in enumerate(places) if A & B
    )  # fmt: skip
    return Answer(values=values | {"conflict": float(conflict)})


def relation(given: Given, seed: int, *, masses: str) -> Answer:
    """Pairwise mass functions of objects with two clusters: masses as "0.3,0.6,0.1,0;..."."""
    mass = np.array([[float(v) for v in row.split(",")] for row in masses.split(";")])
    four = pairwise_mass(CredalPartition(mass, FocalSets.full(2)))
    values = {}
    for row, (i, j) in zip(four, combinations(range(1, len(mass) + 1), 2), strict=True):
        for name, value in zip(("empty", "same", "apart", "unknown"), row, strict=True):
            values[f"{name}{i}{j}"] = float(value)
        values[f"plausible{i}{j}"] = float(row[1] + row[3])
    return Answer(values=values)


PARTS: dict[str, Callable[..., Answer]] = CLUSTERERS | {
    part.__name__: part
    for part in (coverage, bic, gvhd_pairs, eknn, network, fusion, rule, relation)
}

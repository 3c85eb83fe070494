"""The parts that cluster, with the settings that the papers give.

A part is a plain function of what it is given, the seed of the draw and its arguments, and returns
an answer. It has no true class and no printed figure: what the papers leave open is settled here by
a rule, before a run:

* NN-EVCLUS, section 4.1: "run five times, best objective kept": five starts in each draw;
* belief peaks are the c objects of largest delta * Bel with K = 50 neighbours (example 4), where
  the paper's were picked by hand;
* nu = 0.5 for belief peaks: R's evclust, with which the paper was made, takes the mean over the
  clusters where eq. (21) prints the sum, which is label_weight = 1 / (1 + c) here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from evdist import (
    BPEC,
    CCM,
    CECM,
    ECM,
    EVCLUS,
    NNEVCLUS,
    RECM,
    Bootclus,
    CredalPartition,
    ECMdd,
    FocalSets,
    delta_bel,
)
from evdist.belief import mutual_neighbour_pairs
from evdist.features import PCCA, KernelFDA, KernelPCCA
from ledger.answer import Answer
from ledger.sets import Given

STARTS = 5
NEIGHBOURS = 50
#: NN-EVCLUS, section 4.1: batches beyond so many objects.
BATCH_ABOVE = 1000
DELTA = 5.0


def _answer(model: Any) -> Answer:
    return Answer(model.credal_partition_, values={"objective": float(model.objective_)})


def _family(given: Given) -> str:
    """Section 4.1: pairs up to four clusters; section 4.2, dissimilarities: never."""
    return "pairs" if given.n_clusters <= 4 and not given.precomputed else "simple"


def _peaks(given: Given) -> NDArray[np.float64]:
    return given.X[delta_bel(given.X, NEIGHBOURS).largest(given.n_clusters)]


def _pairs_after(first: Any, c: int, omega: bool) -> FocalSets:
    """The pairs of clusters that are mutual nearest neighbours after a first fit."""
    pl = np.asarray(first.credal_partition_.normalised_plausibility)
    return FocalSets.pairs(c, mutual_neighbour_pairs(pl, 1), omega=omega)


# ---------------------------------------------------------------------- EVCLUS and networks
def evclus(given: Given, seed: int, *, d0: str, k: str = "500", sets: str = "") -> Answer:
    n = len(given.X)
    return _answer(EVCLUS(
        given.n_clusters, n_dissimilarities=min(n - 1, int(k)), focal_sets=sets or _family(given),
        d0=d0, metric=given.metric, n_init=STARTS, n_jobs=1, random_state=seed,
    ).fit(given.X))  # fmt: skip


def _units(given: Given, family: str) -> int:
    """1.5 for each focal set."""
    return int(1.5 * len(getattr(FocalSets, family)(given.n_clusters)))


def nnevclus(
    given: Given, seed: int, *, d0: str, peaks: str = "no", units: str = "", p: str = "5"
) -> Answer:
    family, c = _family(given), given.n_clusters
    how: dict[str, Any] = {}
    if peaks == "yes":
        how |= {"centres": "peaks", "label_weight": 1 / (1 + c)}
    if len(given.X) <= BATCH_ABOVE:
        how["optimizer"] = "adaptive"
    if given.precomputed:
        how["n_components"] = int(p)
    return _answer(NNEVCLUS(
        c, hidden=(int(units) if units else _units(given, family),), focal_sets=family, d0=d0,
        metric=given.metric, n_init=STARTS, random_state=seed, device="cpu", n_jobs=1, **how,
    ).fit(given.X))  # fmt: skip


def fourclass_loss(given: Given, seed: int, *, method: str) -> Answer:
    """Examples 3 and 4: p = 100, pairs; 100 partners, not symmetric, are 200 symmetric ones."""
    common: dict[str, Any] = {"focal_sets": "pairs", "d0": "q0.9", "n_dissimilarities": 200,
                              "n_init": STARTS, "n_jobs": 1, "random_state": seed,
                              "metric": given.metric}  # fmt: skip
    if method == "evclus":
        model = EVCLUS(4, metric="euclidean", **common).fit(given.X)
    else:
        model = NNEVCLUS(4, hidden=(20,), optimizer="adaptive", device="cpu", **common).fit(given.X)
    return Answer(model.credal_partition_, values={"loss": float(model.objective_)})


# ---------------------------------------------------------------------- the family of ECM
def ecm(given: Given, seed: int, *, peaks: str = "no") -> Answer:
    """Section 4.1: the empty set, singletons and pairs; two steps beyond three clusters."""
    c, X = given.n_clusters, given.X
    how: dict[str, Any] = {"alpha": 1.0, "beta": 2.0, "delta": DELTA, "metric": "euclidean",
                           "n_init": STARTS, "n_jobs": 1, "random_state": seed}  # fmt: skip
    init: Any = _peaks(given) if peaks == "yes" else "k-means++"
    if c <= 3:
        return _answer(ECM(c, focal_sets=FocalSets.pairs(c, omega=False), init=init, **how).fit(X))
    first = ECM(c, focal_sets=FocalSets.simple(c, omega=False), init=init, **how).fit(X)
    sets = _pairs_after(first, c, omega=False)
    return _answer(ECM(c, focal_sets=sets, init=first.prototypes_, **how).fit(X))


def ccm(given: Given, seed: int, *, peaks: str = "no") -> Answer:
    c, X = given.n_clusters, given.X
    init: Any = _peaks(given) if peaks == "yes" else "k-means++"
    return _answer(CCM(
        c, gamma=1.0, beta=2.0, delta=DELTA, focal_sets=FocalSets.pairs(c, omega=c == 2),
        init=init, n_init=STARTS, n_jobs=1, random_state=seed,
    ).fit(X))  # fmt: skip


def ecmdd(given: Given, seed: int, *, weighted: str = "no") -> Answer:
    """On Euclidean distances, as section 4.1 has them; delta = 5, or table 5's greatest."""
    return _answer(ECMdd(
        given.n_clusters, weighted=weighted == "yes", alpha=2.0, beta=2.0, eta=1.0, gamma=1.0,
        psi=2.0, sharpness=5.0, delta=float(given.X.max()) if given.precomputed else DELTA,
        focal_sets="pairs", metric=given.metric, n_init=STARTS, random_state=seed,
    ).fit(given.X))  # fmt: skip


def bpec(given: Given, seed: int) -> Answer:
    c = given.n_clusters
    return _answer(BPEC(
        c, n_neighbors=NEIGHBOURS, alpha=1.0, beta=2.0, delta=DELTA, metric="adaptive",
        focal_sets="pairs" if c <= 3 else "select", n_jobs=1,
    ).fit(given.X))  # fmt: skip


def recm(given: Given, seed: int) -> Answer:
    """Table 5: alpha = 1, beta = 1.5, delta^2 the greatest dissimilarity."""
    return _answer(RECM(
        given.n_clusters, alpha=1.0, beta=1.5, delta=float(np.sqrt(given.X.max())),
        focal_sets="simple", n_init=STARTS, random_state=seed,
    ).fit(given.X))  # fmt: skip


def bootclus(given: Given, seed: int, *, B: str, model: str = "auto") -> Answer:
    fit = Bootclus(given.n_clusters, covariance_models=model, n_bootstrap=int(B), confidence=0.9,
                   n_jobs=1, random_state=seed).fit(given.X)  # fmt: skip
    return _answer(fit)


# ---------------------------------------------------------------------- links
@lru_cache(maxsize=4)
def _unlinked(data: bytes, shape: tuple[int, int], c: int, d0: str, seed: int) -> CredalPartition:
    X = np.frombuffer(data).reshape(shape)
    return EVCLUS(c, n_dissimilarities=len(X) - 1, focal_sets="simple", d0=d0, metric="euclidean",
                  init="random", n_init=3, n_jobs=1, random_state=seed,
                  ).fit(X).credal_partition_  # fmt: skip


def kcevclus(given: Given, seed: int, *, d0: str, xi: str) -> Answer:
    """k-CEVCLUS, section 4.2: all dissimilarities; no links, then xi = .05, then its own xi."""
    X = np.ascontiguousarray(given.X)
    masses = _unlinked(X.tobytes(), X.shape, given.n_clusters, d0, seed)
    for weight in dict.fromkeys((0.05, float(xi))):
        if float(xi) < weight:
            break
        masses = EVCLUS(
            given.n_clusters, n_dissimilarities=len(X) - 1, focal_sets="simple", d0=d0,
            metric="euclidean", init=masses, constraint_weight=weight, n_jobs=1, random_state=seed,
        ).fit(X, **given.links).credal_partition_  # fmt: skip
    return Answer(masses)


def sampled_links(given: Given, seed: int, *, d0: str, k: str, xi: str, K: str = "0") -> Answer:
    """k-CEVCLUS, sections 4.4 and 4.5: k dissimilarities each, links expanded K times."""
    return _answer(EVCLUS(
        given.n_clusters, n_dissimilarities=int(k), focal_sets="simple", d0=d0, metric="euclidean",
        constraint_weight=float(xi), expand_constraints=int(K), n_jobs=1, random_state=seed,
    ).fit(given.X, **given.links))  # fmt: skip


def _same_loss(X: NDArray[Any], q: float, xi: float) -> float:
    """The constraint_weight of EVCLUS with which it minimises eq. (17) with this xi."""
    square = pdist(X, "sqeuclidean")
    delta = -np.expm1(np.log(0.05) * square / np.quantile(square, q))  # eq. (6)
    return xi / (4 * float((delta * delta).mean()))


def linked(given: Given, seed: int, *, method: str, d0: str, p: str = "") -> Answer:
    """NN-EVCLUS, section 4.3, xi = 0.5: EVCLUS, the network or CECM; p features of PCCA."""
    X, c, family = given.X, given.n_clusters, _family(given)
    Z = PCCA(int(p)).fit(X, **given.links).transform(X) if p else None
    rows = X if Z is None else Z
    if method == "evclus":
        weight = _same_loss(rows, float(d0.removeprefix("q")), 0.5)
        return _answer(EVCLUS(
            c, n_dissimilarities=len(X) - 1, focal_sets=family, d0=d0, metric="euclidean",
            constraint_weight=weight, n_init=1, n_jobs=1, random_state=seed,
        ).fit(rows, **given.links))  # fmt: skip
    if method == "nnevclus":
        return _answer(NNEVCLUS(
            c, hidden=(_units(given, family),), focal_sets=family, d0=d0, metric="euclidean",
            constraint_weight=0.5, optimizer="adaptive", n_init=STARTS, device="cpu", n_jobs=1,
            random_state=seed,
        ).fit(X, metric_features=Z, **given.links))  # fmt: skip
    how: dict[str, Any] = {"delta": DELTA, "constraint_weight": 0.5, "metric": "euclidean",
                           "n_init": STARTS, "n_jobs": 1, "random_state": seed}  # fmt: skip
    if c <= 3:
        sets = FocalSets.pairs(c, omega=False)
        return _answer(CECM(c, focal_sets=sets, **how).fit(rows, **given.links))
    first = CECM(c, focal_sets=FocalSets.simple(c, omega=False), **how).fit(rows, **given.links)
    sets = _pairs_after(first, c, omega=False)
    return _answer(CECM(c, focal_sets=sets, init=first.prototypes_, **how).fit(rows, **given.links))


def circles(given: Given, seed: int, *, metric: str) -> Answer:
    """NN-EVCLUS, example 5: n_H = 30, lambda = 0.01, xi = 0.1, kernel width 0.3."""
    how: dict[str, Any] = {"hidden": (30,), "focal_sets": "full", "d0": "q0.9", "n_init": 3,
                           "metric": "euclidean", "device": "cpu", "n_jobs": 1,
                           "l2_penalty": 0.01, "random_state": seed}  # fmt: skip
    X = given.X
    if metric == "KPCCA":
        Z = KernelPCCA(1, gamma=0.3).fit(X, **given.links).transform(X)
        model = NNEVCLUS(2, constraint_weight=0.1, **how)
        return _answer(model.fit(X, metric_features=Z, **given.links))
    if metric == "KFDA":
        Z = KernelFDA(1, gamma=0.3).fit(X, given.labels).transform(X)
        return _answer(NNEVCLUS(2, **how).fit(X, labels=given.labels, metric_features=Z))
    return _answer(NNEVCLUS(2, **how).fit(X))


# ---------------------------------------------------------------------- the bootstrap paper, 4.2
def _standardised(X: NDArray[Any]) -> NDArray[Any]:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def rival_ecm(given: Given, seed: int, *, scale: str) -> Answer:
    """ECM in two steps: alpha = 1, beta = 2, delta = 100."""
    X = _standardised(given.X) if scale == "standardised" else given.X
    how: dict[str, Any] = {"alpha": 1.0, "beta": 2.0, "delta": 100.0, "metric": "euclidean",
                           "n_init": STARTS, "n_jobs": 1, "random_state": seed}  # fmt: skip
    first = ECM(3, focal_sets=FocalSets.simple(3, omega=False), **how).fit(X)
    sets = _pairs_after(first, 3, omega=False)
    return _answer(ECM(3, focal_sets=sets, init=first.prototypes_, **how).fit(X))


def rival_evclus(given: Given, seed: int) -> Answer:
    """k-EVCLUS in two steps on standardised attributes, k = 50, the whole frame too."""
    X = _standardised(given.X)
    how: dict[str, Any] = {"n_dissimilarities": 50, "d0": "q0.9", "metric": "euclidean",
                           "n_jobs": 1, "random_state": seed}  # fmt: skip
    first = EVCLUS(3, metric="euclidean", focal_sets=FocalSets.simple(3), **how).fit(X)
    sets = _pairs_after(first, 3, omega=True)
    return _answer(
        EVCLUS(3, metric="euclidean", focal_sets=sets, init=first.credal_partition_, **how).fit(X)
    )


def mixture(given: Given, seed: int, *, model: str) -> Answer:
    """The hard partition of the mixture that Bootclus starts from."""
    fit = Bootclus(3, covariance_models=model, n_bootstrap=10, n_jobs=1,
                   random_state=seed).fit(given.X)  # fmt: skip
    return Answer(labels=fit.mixture_.predict(given.X))


CLUSTERERS: dict[str, Callable[..., Answer]] = {
    part.__name__: part
    for part in (
        evclus, nnevclus, fourclass_loss, ecm, ccm, ecmdd, bpec, recm, bootclus, kcevclus,
        sampled_links, linked, circles, rival_ecm, rival_evclus, mixture,
    )
}  # fmt: skip

"""The bits of many small fits, to see that a change of the code has changed none of them.

    python benchmarks/bits.py record benchmarks/bits.json [--only PATTERN] [--device cuda]
    python benchmarks/bits.py check benchmarks/bits.json [--only PATTERN] [--device cuda]

Each case is one small fit by public names alone, of data that NumPy draws or scikit-learn brings;
its masses, labels, objectives and what it says of new objects are hashed with SHA-256. "record"
writes the hashes into a file, under the machine's architecture or the name of its GPU; "check"
computes them again, prints those that differ, and exits with an error when there are any. A case
that fails is recorded as its error. Other versions of NumPy, SciPy, scikit-learn, Numba or torch,
and other processors, may well give other bits: record on the machine that is to check. PATTERN is a
regular expression that the names of cases are searched for. Takes two minutes on two cores, four
when kernels have to be compiled first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_iris, load_wine
from threadpoolctl import threadpool_limits

import evdist
from evdist import EVCLUS, NNEVCLUS, Bootclus, FocalSets

Parts = dict[str, Any]
Case = Callable[[], Parts]

METRICS = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "hamming",
           "mahalanobis")  # fmt: skip
#: What a fit may leave, beside masses and labels.
COURSE = ("objective_", "history_", "n_iter_", "converged_")
SCALARS = ("d0_", "d0_curve_", "delta_", "shift_", "gamma_", "mu_", "cv_errors_", "n_clusters_",
           "covariance_model_", "n_failed_")  # fmt: skip
ARRAYS = ("prototypes_", "metric_", "medoids_", "weights_", "centres_", "membership_",
          "reliability_")  # fmt: skip


class Place:
    """A folder for the files of the cases, and two Dask workers, started when they are needed."""

    def __init__(self, stack: ExitStack):
        self._stack = stack
        self._client: Any = None
        self.root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bits-")))
        self._folders = 0

    def folder(self) -> Path:
        """A new one."""
        self._folders += 1
        made = self.root / f"case{self._folders}"
        made.mkdir()
        return made

    @property
    def client(self) -> Any:
        if self._client is None:
            from distributed import Client, LocalCluster

            cluster = LocalCluster(
                2, threads_per_worker=1, processes=True, dashboard_address=None,
                local_directory=str(self.folder()),
            )  # fmt: skip
            self._stack.enter_context(cluster)
            self._client = self._stack.enter_context(Client(cluster, set_as_default=False))
            self._client.wait_for_workers(2, timeout=60)
        return self._client


# ------------------------------------------------------------------ data
def blobs(n: int, d: int = 3, c: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal groups that overlap a little, and a few outliers."""
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    X = rng.normal(0, 5, (c, d))[y] + rng.normal(size=(n, d))
    X[: n // 50] = rng.uniform(-15, 15, (n // 50, d))
    return X, y


def links(y: np.ndarray, p: int = 12, seed: int = 5) -> dict[str, np.ndarray]:
    """p pairs of objects, divided into those of one class and those of two."""
    pairs = np.random.default_rng(seed).choice(len(y), (p, 2), replace=False)
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return {"must_link": pairs[same], "cannot_link": pairs[~same]}


def listed(X: np.ndarray, k: int = 15) -> np.ndarray:
    """Rows (i, j, dissimilarity) of some pairs."""
    rng = np.random.default_rng(9)
    found = {(i, int(j)) for i in range(len(X)) for j in rng.integers(len(X), size=k) if i < j}
    i, j = np.array(sorted(found | {(i, i + 1) for i in range(len(X) - 1)})).T
    return np.column_stack([i, j, np.linalg.norm(X[i] - X[j], axis=1)])


def largest(a: np.ndarray, b: np.ndarray) -> float:
    """A metric of the user's own."""
    return float(np.abs(a - b).max())


# ------------------------------------------------------------------ what is hashed
def feed(value: Any, into: Any) -> None:
    """All the bits of a value, with its type."""
    if isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
        into.update(f"{value.dtype.str}{value.shape}".encode())
        into.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        for key in sorted(value):
            into.update(f"{key}:".encode())
            feed(value[key], into)
    elif isinstance(value, list | tuple):
        into.update(f"({len(value)}".encode())
        for item in value:
            feed(item, into)
    elif isinstance(value, float):
        into.update(float(value).hex().encode())
    else:
        into.update(repr(value).encode())


def digest(value: Any) -> str:
    sha = hashlib.sha256()
    feed(value, sha)
    return sha.hexdigest()


def partition(found: Any) -> Parts:
    """Masses, and the sets they are on."""
    return {"mass": np.asarray(found.mass), "sets": list(found.focal_sets.names)}


def outcome(model: Any, new: Any = None) -> Parts:
    """What a fitted model has to say."""
    parts = partition(model.credal_partition_)
    parts["labels"] = np.asarray(getattr(model, "labels_", model.credal_partition_.labels()))
    for part, names in (("objective", COURSE), ("numbers", SCALARS), ("arrays", ARRAYS)):
        there = {name: getattr(model, name) for name in names if hasattr(model, name)}
        if callable(there.get("metric_")):
            del there["metric_"]  # prints its place in memory
        if there:
            parts[part] = there
    if new is not None:
        parts["new"] = np.asarray(model.predict_mass(new))
    return parts


def fitted(model: Any, X: Any, new: Any = None, **fit: Any) -> Case:
    """A case: fit the model, and place new objects."""
    return lambda: outcome(model.fit(X, **fit), new)


def on_workers(model: Any, place: Place, X: Any, new: Any = None, **fit: Any) -> Case:
    return lambda: outcome(model.fit(X, client=place.client, **fit), new)


# ------------------------------------------------------------------ cases
def evclus_cases(place: Place) -> dict[str, Case]:
    X, y = blobs(300)
    new = blobs(60, seed=0)[0] + 0.1
    small, small_y = blobs(120, seed=1)
    big, _ = blobs(20_000, d=4, c=5, seed=2)
    many, _ = blobs(6000, d=6, c=40, seed=2)
    apart = np.random.default_rng(3).integers(3, size=(200, 6)).astype(float)
    weight = np.random.default_rng(4).uniform(0.5, 2, 300)
    D = squareform(pdist(small))
    table = listed(small)
    i, j = table[:, :2].astype(int).T
    matrix = sparse.coo_matrix((table[:, 2], (i, j)), shape=(120, 120)).tocsr()
    masses = np.random.default_rng(6).dirichlet(np.ones(5), 300)
    EV = partial(EVCLUS, n_clusters=3, n_dissimilarities=40, max_iter=40, n_jobs=2, random_state=0)
    cases: dict[str, Case] = {
        "evclus-1-thread": fitted(EV(n_jobs=1), X, new),
        "evclus-2-threads": fitted(EV(), X, new),
        "evclus-workers": on_workers(EV(n_jobs=1), place, X, new),
        "evclus-defaults": fitted(EVCLUS(3, metric="euclidean", random_state=1), X, new),
        "evclus-float32": fitted(EV(), X.astype(np.float32), new),
        "evclus-iris": fitted(EV(), load_iris().data, load_iris().data[::7] + 0.05),
        "evclus-wine": fitted(EV(metric="mahalanobis"), load_wine().data),
        "evclus-all-pairs": fitted(EV(n_dissimilarities=10**6), small, new),
        "evclus-precomputed": fitted(EV(metric="precomputed"), D, D[:9] + 0.01),
        "evclus-precomputed-workers": on_workers(EV(metric="precomputed"), place, D),
        "evclus-pairs": fitted(EV(metric="pairs"), table),
        "evclus-pairs-workers": on_workers(EV(metric="pairs"), place, table),
        "evclus-sparse": fitted(EV(), matrix),
        "evclus-callable": fitted(EV(metric=largest, max_iter=15), small, new[:9]),
        "evclus-init-random": fitted(EV(init="random"), X, new),
        "evclus-init-random-workers": on_workers(EV(init="random"), place, X, new),
        "evclus-init-k-means++": fitted(EV(init="k-means++"), X, new),
        "evclus-init-landmarks": fitted(EV(init="landmarks"), X, new),
        "evclus-init-array": fitted(EV(init=masses), X, new),
        "evclus-n-init": fitted(EV(n_init=2), X, new),
        "evclus-n-init-random": fitted(EV(n_init=2, init="random", max_iter=20), X, new),
        "evclus-d0-quantile": fitted(EV(d0="q0.9"), X, new),
        "evclus-d0-number": fitted(EV(d0=6.0), X, new),
        "evclus-one-cluster": fitted(EV(n_clusters=1), small),
        "evclus-links": fitted(EV(), X, new, **links(y)),
        "evclus-links-workers": on_workers(EV(), place, X, new, **links(y)),
        "evclus-links-expanded": fitted(EV(expand_constraints=3), X, new, **links(y)),
        "evclus-links-precomputed": fitted(
            EV(metric="precomputed", expand_constraints=2), D, **links(small_y)
        ),
        "evclus-weights": fitted(EV(), X, new, sample_weight=weight),
        "evclus-weights-workers": on_workers(EV(), place, X, new, sample_weight=weight),
        "evclus-weights-links": fitted(EV(), X, new, sample_weight=weight, **links(y)),
        "evclus-resumed": partial(resumed, EV, place, X, new),
        "evclus-resumed-workers": partial(resumed, EV, place, X, new, workers=True),
        "evclus-saved": partial(saved, EV(), place, X, new),
        "evclus-large": fitted(EV(n_clusters=5, max_iter=8), big, big[:500] + 0.1),
        "evclus-large-workers": on_workers(EV(n_clusters=5, max_iter=8), place, big),
        "evclus-large-pairs": fitted(EV(n_clusters=5, max_iter=4, focal_sets="pairs"), big),
        "evclus-large-select": fitted(EV(n_clusters=5, max_iter=4, focal_sets="select"), big),
        "evclus-lists": fitted(
            EVCLUS(40, metric="euclidean", random_state=1), many, many[:300] + 0.1
        ),
        "evclus-lists-1-thread": fitted(
            EVCLUS(40, metric="euclidean", random_state=1, n_jobs=1), many
        ),
        "evclus-lists-workers": on_workers(
            EVCLUS(40, metric="euclidean", random_state=1), place, many
        ),
        "evclus-lists-weights": fitted(
            EVCLUS(40, metric="euclidean", random_state=1),
            many,
            sample_weight=np.linspace(0.5, 2, len(many)),
        ),
        "evclus-lists-over-256": fitted(EVCLUS(300, metric="euclidean", random_state=1), many),
    }
    for metric in METRICS:
        data = apart if metric == "hamming" else X
        cases[f"evclus-{metric}"] = fitted(EV(metric=metric), data, data[:40] + 0.5)
    some = FocalSets.simple(3, omega=False)
    for name, sets in {
        **{f: f for f in ("simple", "pairs", "full", "select")},
        "own": some,
    }.items():
        cases[f"evclus-sets-{name}"] = fitted(EV(focal_sets=sets), X, new)
    for name in ("pairs", "select"):
        cases[f"evclus-sets-{name}-workers"] = on_workers(EV(focal_sets=name), place, X, new)
    return cases


def resumed(make: Callable, place: Place, X: Any, new: Any, workers: bool = False) -> Parts:
    """A fit that is stopped after four sweeps and goes on in the same folder."""
    make = partial(make, checkpoint=place.folder() / "fit", checkpoint_every=4, tol=1e-9)
    more = {"client": place.client} if workers else {}
    first = outcome(make(max_iter=4).fit(X, **more))
    whole = outcome(make(max_iter=24).fit(X, **more), new)
    return {**whole, "first": first["mass"]}


def saved(model: Any, place: Place, X: Any, new: Any) -> Parts:
    """A model on disk, which predicts and grows."""
    folder = place.folder() / "model"
    model.fit(X).save(folder)
    again = type(model).load(folder)
    parts = {"new": np.asarray(again.predict_mass(new))}
    return {**parts, **partition(again.append(new).credal_partition_), "labels": again.labels_}


def nnevclus_cases(place: Place, device: str = "cpu") -> dict[str, Case]:
    X, y = blobs(200)
    new = blobs(60)[0] + 0.1
    many, many_y = blobs(1200, c=4, seed=3)
    known = np.where(np.arange(200) % 10 == 0, y, -1)
    NN = partial(
        NNEVCLUS,
        n_clusters=3,
        hidden=(8,),
        max_iter=25,
        n_init=1,
        n_jobs=2,
        device=device,
        random_state=0,
    )
    mini = partial(NN, n_clusters=4, batch_size=100, max_iter=4)
    cases = {
        "nnevclus-batch": fitted(NN(n_init=2), X, new),
        "nnevclus-batch-adaptive": fitted(NN(optimizer="adaptive"), X, new),
        "nnevclus-batch-partners": fitted(NN(n_dissimilarities=30), X, new),
        "nnevclus-links": fitted(NN(), X, new, **links(y)),
        "nnevclus-labels": fitted(NN(), X, new, labels=known),
        "nnevclus-gate": fitted(NN(gate=True), X, new),
        "nnevclus-pairs": fitted(NN(focal_sets="pairs", l2_penalty=1e-3), X, new),
        "nnevclus-mini": fitted(mini(), many, new),
        "nnevclus-mini-links": fitted(mini(), many, new, **links(many_y)),
        "nnevclus-mini-shards": fitted(mini(n_shards=2), many, new),
    }
    if device == "cpu":
        D = squareform(pdist(X))
        cases |= {
            "nnevclus-full": fitted(NN(focal_sets="full", hidden=(8, 6)), X, new),
            "nnevclus-d0-number": fitted(NN(d0=6.0), X, new),
            "nnevclus-precomputed": fitted(NN(metric="precomputed"), D, D[:9]),
            "nnevclus-cityblock": fitted(NN(metric="cityblock"), X, new),
            "nnevclus-centres-peaks": fitted(NN(centres="peaks"), X, new),
            "nnevclus-centres-evclus": fitted(NN(centres="evclus"), X, new),
            "nnevclus-validation": fitted(NN(validation_fraction=0.2), X, new),
            "nnevclus-mini-adam": fitted(mini(optimizer="adam"), many, new),
            "nnevclus-mini-gate": fitted(mini(gate=True), many, new),
            "nnevclus-mini-workers": on_workers(mini(n_shards=2), place, many, new),
            "nnevclus-mini-3-shards-workers": on_workers(mini(n_shards=3), place, many, new),
            "nnevclus-saved": partial(saved, NN(gate=True), place, X, new),
        }
    return cases


def bootclus_cases(place: Place, device: str = "cpu") -> dict[str, Case]:
    iris = load_iris().data
    many, _ = blobs(1500, d=2, seed=7)
    models = ["EEE", "VVV", "VVI"]
    Boot = partial(
        Bootclus, n_clusters=3, n_bootstrap=24, covariance_models=models, max_iter=30, n_init=2,
        n_jobs=2, device=device, random_state=0,
    )  # fmt: skip
    cases = {
        "bootclus-iris": lambda: boot(Boot().fit(iris), iris[::9] + 0.05),
        "bootclus-simple": lambda: boot(Boot(focal_sets="simple").fit(iris)),
        "bootclus-sampled-pairs": lambda: boot(Boot(n_dissimilarities=30).fit(many), many[:40]),
    }
    if device == "cpu":
        cases |= {
            "bootclus-all-models": lambda: boot(Boot(covariance_models="auto").fit(iris)),
            "bootclus-numbers": lambda: boot(Boot(n_clusters=[2, 3]).fit(iris)),
            "bootclus-full": lambda: boot(Boot(focal_sets="full", n_jobs=1).fit(iris)),
            "bootclus-select": lambda: boot(Boot(focal_sets="select").fit(many)),
            "bootclus-workers": lambda: boot(Boot().fit(iris, client=place.client), iris[::9]),
            "bootclus-sampled-pairs-workers": lambda: boot(
                Boot(n_dissimilarities=30).fit(many, client=place.client), many[:40]
            ),
            "bootclus-saved": partial(saved, Boot(), place, iris, iris[::9]),
        }
    return cases


def boot(model: Any, new: Any = None) -> Parts:
    found = model.intervals_
    return {**outcome(model, new), "intervals": [found.i, found.j, found.lower, found.upper]}


def family_cases(place: Place) -> dict[str, Case]:
    from evdist import BPEC, CCM, CECM, ECM, MECM, RECM, ECMdd, EKNNclus

    X, y = blobs(300)
    new = blobs(60)[0] + 0.1
    small, _ = blobs(120, seed=1)
    big, _ = blobs(20_000, d=4, c=5, seed=2)
    weight = np.random.default_rng(4).uniform(0.5, 2, 300)
    D2 = squareform(pdist(small, "sqeuclidean"))
    D = np.sqrt(D2)
    seeds = {"random_state": 0}
    threads = {"n_jobs": 2, "random_state": 0}
    cases = {
        "ecm": fitted(ECM(3, **threads), X, new),
        "ecm-1-thread": fitted(ECM(3, n_jobs=1, random_state=0), X, new),
        "ecm-workers": on_workers(ECM(3, **threads), place, X, new),
        "ecm-weights": fitted(ECM(3, **threads), X, new, sample_weight=weight),
        "ecm-adaptive": fitted(ECM(3, metric="adaptive", **threads), X, new),
        "ecm-adaptive-workers": on_workers(ECM(3, metric="adaptive", **threads), place, X, new),
        "ecm-pairs": fitted(ECM(3, focal_sets="pairs", alpha=2.0, **threads), X, new),
        "ecm-full": fitted(ECM(3, focal_sets="full", beta=1.5, **threads), X, new),
        "ecm-select": fitted(ECM(4, focal_sets="select", delta=8.0, **threads), X, new),
        "ecm-init": fitted(ECM(3, init=X[[20, 40, 60]], **threads), X, new),
        "ecm-large": fitted(ECM(5, max_iter=10, **threads), big),
        "ecm-large-workers": on_workers(ECM(5, max_iter=10, **threads), place, big),
        "ecm-saved": partial(saved, ECM(3, **threads), place, X, new),
        "cecm": fitted(CECM(3, **threads), X, new, **links(y)),
        "cecm-adaptive": fitted(CECM(3, metric="adaptive", **threads), X, new, **links(y)),
        "cecm-pairs-weights": fitted(
            CECM(3, focal_sets="pairs", **threads), X, new, sample_weight=weight, **links(y)
        ),
        "recm": fitted(RECM(3, **seeds), D2, D2[:9]),
        "recm-cityblock": fitted(RECM(3, metric="cityblock", **seeds), small, new),
        "recm-pairs": fitted(RECM(3, focal_sets="pairs", **seeds), D2, sample_weight=weight[:120]),
        "ccm": fitted(CCM(3, delta=10.0, **threads), X, new),
        "ccm-simple-weights": fitted(
            CCM(3, focal_sets="simple", gamma=2.0, delta=10.0, **threads),
            X,
            new,
            sample_weight=weight,
        ),
        "ccm-workers": on_workers(CCM(3, delta=10.0, **threads), place, X, new),
        "bpec": fitted(BPEC(3, metric="adaptive", delta=10.0, n_jobs=2), X, new),
        "bpec-euclidean-pairs": fitted(BPEC(3, delta=10.0, focal_sets="pairs", n_jobs=2), X, new),
        "bpec-select": fitted(
            BPEC(4, metric="adaptive", delta=10.0, focal_sets="select", n_jobs=2), X, new
        ),
        "ecmdd": fitted(ECMdd(3, delta=10.0, **seeds), small, new),
        "ecmdd-weighted": fitted(ECMdd(3, weighted=True, delta=10.0, **seeds), small, new),
        "ecmdd-precomputed": fitted(
            ECMdd(3, metric="precomputed", delta=10.0, **seeds), D2, D2[:9]
        ),
        "mecm": fitted(MECM(3, delta=10.0, **seeds), small, new),
        "mecm-precomputed": fitted(
            MECM(3, metric="precomputed", focal_sets="simple", delta=10.0, **seeds), D, D[:9]
        ),
        "eknnclus": fitted(EKNNclus(40, **threads), X, new),
        "eknnclus-precomputed": fitted(EKNNclus(25, metric="precomputed", **threads), D, D[:9]),
        "eknnclus-init": fitted(
            EKNNclus(30, init=6, n_init=2, symmetric=False, metric="cityblock", **threads), X, new
        ),
    }
    return cases


def classifier_cases() -> dict[str, Case]:
    from evdist import CredalPartition, EKNNClassifier, EvidentialNN

    X, y = load_iris(return_X_y=True)
    wine, kind = load_wine(return_X_y=True)
    new = X[::7] + 0.05
    soft = CredalPartition.from_fuzzy(np.random.default_rng(8).dirichlet(np.ones(3), 150))
    weight = np.random.default_rng(4).uniform(0.5, 2, 150)
    NN = partial(EvidentialNN, 6, max_iter=60, random_state=0)
    return {
        "eknn-classifier": fitted(EKNNClassifier(10, n_jobs=2), X, new, y=y),
        "eknn-classifier-gamma": fitted(EKNNClassifier(5, gamma=0.5), X, new, y=y),
        "eknn-classifier-soft": fitted(EKNNClassifier(8, max_iter=30), X, new, y=soft),
        "eknn-classifier-wine": fitted(EKNNClassifier(7), wine, wine[::7], y=kind),
        "evidential-nn": fitted(NN(), X, new, y=y),
        "evidential-nn-cv": fitted(NN(mu="cv", cv=3, max_iter=20), X, new, y=y),
        "evidential-nn-weights": fitted(NN(n_init=2), X, new, y=y, sample_weight=weight),
    }


def other_cases(place: Place) -> dict[str, Case]:
    """What stands around the estimators."""
    from evdist import ECM, delta_bel, expand_constraints, features, metrics, propose_links, select

    X, y = blobs(240, d=2)
    known = np.where(np.arange(240) % 4 == 0, y, -1)

    def chosen(*args: Any, **options: Any) -> Parts:
        found = select(X, *args, n_jobs=2, **options)
        parts = partition(found.model.credal_partition_)
        return {**parts, "best": found.best, "numbers": [found.n_clusters, found.values]}

    def asked() -> Parts:
        found = (
            EVCLUS(3, metric="euclidean", n_dissimilarities=40, random_state=0)
            .fit(X)
            .credal_partition_
        )
        return {"links": np.asarray(propose_links(found, 8, X=X, random_state=0))}

    def agreed() -> Parts:
        a, b = (
            EVCLUS(3, metric="euclidean", random_state=s, n_dissimilarities=30).fit(X)
            for s in (0, 1)
        )
        a, b = a.credal_partition_, b.credal_partition_
        kinds = "jousselme", "belief"
        return {
            "rand": [metrics.credal_rand_index(a, b, kind) for kind in kinds],
            "nonspecificity": metrics.nonspecificity(a),
            "plausibility": np.asarray(a.labels()),
        }

    def peaks() -> Parts:
        found = delta_bel(X, 30, n_jobs=2)
        return {"delta": found.delta, "bel": found.bel, "largest": found.largest(3)}

    def mapped(transformer: Any, **fit: Any) -> Case:
        return lambda: {"features": np.asarray(transformer.fit(X, **fit).transform(X))}

    return {
        "select-ecm": lambda: chosen(
            ECM(focal_sets="full", alpha=2.0, random_state=0), range(2, 6)
        ),
        "select-evclus": lambda: chosen(
            EVCLUS(
                metric="euclidean",
                focal_sets="pairs",
                n_dissimilarities=30,
                max_iter=15,
                random_state=0,
            ),
            [2, 3, 4],
        ),
        "links-expanded": lambda: {"links": list(expand_constraints(X, *links(y).values(), 4))},
        "links-proposed": asked,
        "metrics": agreed,
        "delta-bel": peaks,
        "features-pcca": mapped(features.PCCA(2), **links(y)),
        "features-kernel-pcca": mapped(features.KernelPCCA(2), **links(y)),
        "features-lfda": mapped(features.LFDA(), y=known),
        "features-kernel-fda": mapped(features.KernelFDA(), y=known),
        "features-dissimilarity": mapped(features.DissimilarityPCA(2, random_state=0)),
        "job-evclus": partial(job, place, "evclus", {"n_clusters": 3, "n_dissimilarities": 40}),
        "job-evclus-processes": partial(
            job, place, "evclus", {"n_clusters": 3, "n_dissimilarities": 40}, workers=True
        ),
        "job-ecm": partial(job, place, "ecm", {"n_clusters": 3}),
    }


def job(place: Place, algorithm: str, parameters: Parts, workers: bool = False) -> Parts:
    """A job from a table to a folder, then new objects placed and appended."""
    from evdist import JobConfig, run

    folder = place.folder()
    X, y = blobs(300)
    table = zip(X.tolist(), y.tolist(), strict=True)
    rows = ["a,b,c,class", *(f"{a!r},{b!r},{c!r},{k}" for (a, b, c), k in table)]
    (folder / "X.csv").write_text("\n".join(rows) + "\n")
    np.save(folder / "new.npy", X[:50] + 0.1)
    client = place.client if workers else None
    made = run(
        JobConfig.of(
            folder=str(folder / "job"), algorithm=algorithm,
            parameters={**parameters, "random_state": 0},
            data={"url": str(folder / "X.csv"), "label": "class", "scale": "standard"},
        ),
        client=client,
    )  # fmt: skip
    parts = partition(made.partition)
    timed = ("job", "seconds")
    parts["numbers"] = {k: repr(v) for k, v in made.metrics.items() if k not in timed}
    for task in ("predict", "append"):
        more = run(
            JobConfig.of(
                task=task, folder=str(folder / task), model=str(folder / "job"),
                data={"url": str(folder / "new.npy")},
            ),
            client=client,
        )  # fmt: skip
        parts[task] = np.asarray(more.partition.mass)
    return parts


def device_cases(place: Place, device: str) -> dict[str, Case]:
    """Those of a GPU."""
    X, y = blobs(2000, c=4)
    new = X[:300] + 0.1
    big, _ = blobs(20_000, d=4, c=5, seed=2)
    weight = np.random.default_rng(4).uniform(0.5, 2, 2000)
    D = squareform(pdist(X[:400]))
    EV = partial(
        EVCLUS,
        n_clusters=4,
        n_dissimilarities=50,
        max_iter=30,
        n_jobs=2,
        device=device,
        random_state=0,
    )
    masses = np.random.default_rng(6).dirichlet(np.ones(6), 2000)
    cases = {
        "evclus-d0-auto": fitted(EV(), X, new),
        "evclus-d0-quantile": fitted(EV(d0="q0.9"), X, new),
        "evclus-d0-number": fitted(EV(d0=6.0), X, new),
        "evclus-weights": fitted(EV(), X, new, sample_weight=weight),
        "evclus-links": fitted(EV(), X, new, **links(y, 40)),
        "evclus-weights-links": fitted(EV(), X, new, sample_weight=weight, **links(y, 40)),
        "evclus-init-random": fitted(EV(init="random"), X, new),
        "evclus-init-random-n-init": fitted(EV(init="random", n_init=2, max_iter=15), X, new),
        "evclus-init-k-means++": fitted(EV(init="k-means++"), X, new),
        "evclus-init-array": fitted(EV(init=masses), X, new),
        "evclus-n-init": fitted(EV(n_init=2), X, new),
        "evclus-precomputed": fitted(EV(metric="precomputed"), D, D[:9] + 0.01),
        "evclus-all-pairs": fitted(EV(n_dissimilarities=10**6), X[:400], new),
        "evclus-many-clusters": fitted(EV(n_clusters=20, focal_sets="select"), big[:5000]),
        "evclus-lists": fitted(EV(n_clusters=40), blobs(6000, 6, 40)[0]),
        "evclus-resumed": partial(resumed, EV, place, X, new),
        "evclus-saved": partial(saved, EV(), place, X, new),
        "evclus-large": fitted(EV(n_clusters=5), big, big[:500] + 0.1),
        "evclus-large-pairs": fitted(EV(n_clusters=5, focal_sets="pairs"), big, big[:500]),
        "evclus-large-weights": fitted(
            EV(n_clusters=5), big, sample_weight=np.random.default_rng(4).uniform(0.5, 2, 20_000)
        ),
    }
    for metric in ("sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "mahalanobis"):
        cases[f"evclus-{metric}"] = fitted(EV(metric=metric), X, new)
    for name in ("pairs", "full", "select"):
        cases[f"evclus-sets-{name}"] = fitted(EV(focal_sets=name), X, new)
    return cases | nnevclus_cases(place, device) | bootclus_cases(place, device)


def cpu_cases(place: Place) -> dict[str, Case]:
    return (
        evclus_cases(place)
        | nnevclus_cases(place)
        | bootclus_cases(place)
        | family_cases(place)
        | classifier_cases()
        | other_cases(place)
    )


# ------------------------------------------------------------------ running them
def computed(cases: dict[str, Case], root: Path) -> dict[str, str]:
    """Name and part of each case -> its hash, or what went wrong."""
    found = {}
    for name, case in cases.items():
        start = time.perf_counter()
        try:
            parts = case()
            found |= {f"{name}: {part}": digest(value) for part, value in parts.items()}
            note = ""
        except Exception as error:
            said = str(error).replace(str(root), "").partition("\n")[0]
            note = found[name] = f"error: {type(error).__name__}: {said}"
        print(f"  {time.perf_counter() - start:6.2f} s  {name}  {note}", flush=True)
    return found


def machine(device: str) -> str:
    if device == "cpu":
        return platform.machine()
    import torch

    return f"cuda {torch.cuda.get_device_name(device)}"


def record(file: Path, key: str, found: dict[str, str], whole: bool) -> None:
    """Hashes into the file: all of this machine, or (not `whole`) those of some cases."""
    known = json.loads(file.read_text()) if file.exists() else {}
    known[key] = found if whole else {**known.get(key, {}), **found}
    file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    print(f"{len(found)} hashes written to {file} under {key!r}.")


def check(file: Path, key: str, found: dict[str, str], wanted: Callable[[str], Any]) -> bool:
    """Print what differs; True where nothing does."""
    known = json.loads(file.read_text()).get(key)
    if known is None:
        print(f"{file} has nothing of {key!r}: record there first.")
        return False
    names = [n for n in sorted({*known, *found}) if wanted(n.partition(": ")[0])]
    wrong = [n for n in names if known.get(n) != found.get(n)]
    for name in wrong:
        was, now = (d.get(name, "not there") for d in (known, found))
        print(f"differs: {name}\n    was {was}\n    is  {now}")
    print(f"{len(names)} hashes, {len(wrong)} differ.")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("record", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda for the cases of a GPU")
    given = parser.parse_args()
    wanted = re.compile(given.only).search
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    # One thread in BLAS: how many cores there are must not matter.
    with ExitStack() as stack, threadpool_limits(1):
        place = Place(stack)
        cpu = given.device == "cpu"
        cases = cpu_cases(place) if cpu else device_cases(place, given.device)
        cases = {name: case for name, case in cases.items() if wanted(name)}
        key = machine(given.device)
        print(f"{len(cases)} cases of {evdist.__file__} on {key!r}")
        found = computed(cases, place.root)
    print(f"{time.perf_counter() - start:.0f} s")
    if given.what == "record":
        record(given.file, key, found, whole=not given.only)
        return 0
    return 0 if check(given.file, key, found, wanted) else 1


if __name__ == "__main__":
    sys.exit(main())

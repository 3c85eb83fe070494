"""How many clusters: one fit for each number, and the criterion that chooses between them.

Reference: Masson, Denoeux (2008), ECM; Denoeux, slides "Belief functions and clustering" (2017),
"Determining the number of groups": with a proper number of clusters most of the mass is on
singletons, so the nonspecificity N* is small. A mixture has the Bayesian information criterion.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

import evdist
from evdist.data.inputs import load
from evdist.estimators.checks import integer, one_of
from evdist.kernels.threads import thread_count

__all__ = ["CRITERIA", "Candidate", "Selection", "select"]

#: What N* needs where only a name is given.
_BY_NAME: dict[str, dict[str, Any]] = {
    "ECM": {"focal_sets": "full", "alpha": 2.0},
    "RECM": {"focal_sets": "full", "alpha": 2.0},
    "EVCLUS": {"focal_sets": "pairs"},
}
#: Criterion -> its name in tables and figures, and whether the least or the greatest is best.
CRITERIA = {"nonspecificity": ("nonspecificity N*", "least"), "bic": ("BIC", "greatest")}


@dataclass(frozen=True)
class Candidate:
    """One number of clusters that was tried."""

    n_clusters: int
    value: float
    objective: float
    n_iter: int
    converged: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class Selection:
    """What :func:`select` found: a table of candidates, the best number of clusters, its model.

    `evdist.plot.selection_curve(selection)` draws it.
    """

    criterion: str
    candidates: tuple[Candidate, ...]
    #: The fitted estimator with `best` clusters.
    model: Any

    @property
    def best(self) -> int:
        """Number of clusters with the best value; of equal ones the smallest number."""
        return self.candidates[_best(self.criterion, [c.value for c in self.candidates])].n_clusters

    @property
    def label(self) -> str:
        """The criterion's name in figures."""
        return CRITERIA[self.criterion][0]

    @property
    def n_clusters(self) -> list[int]:
        return [candidate.n_clusters for candidate in self.candidates]

    @property
    def values(self) -> list[float]:
        return [candidate.value for candidate in self.candidates]

    def to_frame(self) -> pd.DataFrame:
        """One row for each number of clusters."""
        frame = pd.DataFrame(self.candidates).set_index("n_clusters")
        return frame.rename(columns={"value": self.criterion})

    def __repr__(self) -> str:
        return f"{self.to_frame()}\nbest: {self.best} clusters"


def select(
    X: Any,
    estimator: str | BaseEstimator = "ECM",
    n_clusters: Iterable[int] = range(2, 11),
    *,
    criterion: str = "nonspecificity",
    n_jobs: int | None = None,
    **fit: Any,
) -> Selection:
    """Fit an estimator with each number of clusters and compare.

    Parameters
    ----------
    X : whatever the estimator takes
    estimator : str or estimator
        One with parameters of your own, which is cloned; or the name of one in evdist, with its
        defaults. For N* that is focal_sets="full", alpha=2 with ECM and RECM, and
        focal_sets="pairs" with EVCLUS: with few sets of clusters N* tends to fall with every
        further cluster.
    n_clusters : iterable of int
    criterion : {"nonspecificity", "bic"}
        "nonspecificity": the least N* of the credal partition; "bic": the greatest `bic_` of the
        fitted estimator, for those that have one.
    n_jobs : int, default=None
        Fits at a time, on threads; None is all cores. The result does not depend on it.
    **fit
        Passed to each fit, such as sample_weight or must_link.

    Returns
    -------
    Selection
        `.best`, the number of clusters; `.model`, the fit with that many; `.to_frame()`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> import evdist
    >>> X, _ = make_blobs(200, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    >>> evdist.select(X, "ECM", range(2, 6)).best
    3
    """
    one_of("criterion", criterion, tuple(CRITERIA))
    numbers = _numbers(n_clusters, criterion)
    threads = min(thread_count(n_jobs), len(numbers))
    models = _models(estimator, numbers, criterion, threads)
    X = load(X)  # once, not once for each number
    candidates: list[Candidate] = []
    best: Any = None
    for candidate, model in _fits(models, X, fit, criterion, threads):
        candidates.append(candidate)
        if _best(criterion, [c.value for c in candidates]) == len(candidates) - 1:
            best = model  # the others' masses need not be kept
    return Selection(criterion, tuple(candidates), best)


def _best(criterion: str, values: list[float]) -> int:
    """Position of the best value, the first of equal ones."""
    least = CRITERIA[criterion][1] == "least"
    return int(np.argmin(values) if least else np.argmax(values))


def _numbers(n_clusters: Iterable[int], criterion: str) -> list[int]:
    numbers = sorted({integer("n_clusters", c, 1) for c in n_clusters})
    if not numbers:
        raise ValueError("n_clusters must hold at least one number of clusters, got none.")
    if criterion == "nonspecificity" and numbers[0] < 2:
        raise ValueError(
            "The nonspecificity of a partition into one cluster is always 0: n_clusters must begin "
            f"at 2, got {numbers[0]}."
        )
    return numbers


def _models(estimator: Any, numbers: list[int], criterion: str, threads: int) -> list[Any]:
    """One estimator for each number of clusters."""
    if isinstance(estimator, str):
        kind = getattr(evdist, estimator, None)
        if not isinstance(kind, type):
            raise ValueError(
                f"estimator must be one of evdist's or its name, such as 'ECM', got {estimator!r}."
            )
        options = _BY_NAME.get(estimator, {}) if criterion == "nonspecificity" else {}
        estimator = kind(**options)
    if not hasattr(estimator, "get_params") or "n_clusters" not in estimator.get_params():
        raise ValueError(
            f"estimator must have the parameter n_clusters; {type(estimator).__name__} has not."
        )
    models = [clone(estimator).set_params(n_clusters=c) for c in numbers]
    for model in models:
        parameters = model.get_params()
        if threads > 1 and parameters.get("n_jobs", 1) is None:
            model.set_params(n_jobs=1)  # the threads are taken
        if isinstance(estimator.get_params().get("random_state"), np.random.RandomState):
            # Drawn here, in order: threads would draw from one generator in any order.
            seed = estimator.get_params()["random_state"].randint(2**31 - 1)
            model.set_params(random_state=seed)
    return models


def _fits(
    models: list[Any], X: Any, fit: dict[str, Any], criterion: str, threads: int
) -> Iterator[tuple[Candidate, Any]]:
    """Candidates in the order of their numbers, with their models."""
    with ThreadPoolExecutor(threads) as pool:
        jobs: list[Future] = [pool.submit(_fit, model, X, fit, criterion) for model in models]
        try:
            while jobs:
                yield jobs.pop(0).result()
        finally:
            for job in jobs:
                job.cancel()


def _fit(model: Any, X: Any, fit: dict[str, Any], criterion: str) -> tuple[Candidate, Any]:
    began = time.perf_counter()
    model.fit(X, **fit)
    if criterion == "bic":
        if not hasattr(model, "bic_"):
            raise ValueError(
                f"{type(model).__name__} has no BIC: that is for mixtures. Use "
                'criterion="nonspecificity".'
            )
        value = float(model.bic_)
    else:
        value = float(model.credal_partition_.nonspecificity())
    return Candidate(
        int(model.n_clusters),
        value,
        float(getattr(model, "objective_", np.nan)),
        int(getattr(model, "n_iter_", 0)),
        bool(getattr(model, "converged_", True)),
        time.perf_counter() - began,
    ), model

"""How many clusters: one fit for each number, and the criterion that chooses between them.

Reference: Masson, Denoeux (2008), ECM; Denoeux, slides "Belief functions and clustering" (2017),
"Determining the number of groups": with a proper number of clusters most of the mass is on
singletons, so the nonspecificity N* is small. A mixture has the Bayesian information criterion.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from evdist.data.inputs import load
from evdist.estimators.checks import integer, one_of
from evdist.kernels.threads import thread_count
from evdist.registry import ALGORITHMS, Algorithm

__all__ = ["CRITERIA", "Candidate", "Selection", "choose", "parameters_of", "select"]

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
        return int(self.model.n_clusters)

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
    criterion: str = "auto",
    n_jobs: int | None = None,
    **fit: Any,
) -> Selection:
    """Fit an estimator with each number of clusters and compare.

    Parameters
    ----------
    X : whatever the estimator takes
    estimator : str or estimator
        One with parameters of your own, which is cloned; or the name of one in evdist, which is
        then fitted as by the job or the command `select`: with random_state=0, focal_sets="full"
        and alpha=2 for ECM and RECM, focal_sets="pairs" for all others. With fewer sets of
        clusters N* tends to fall with every further cluster.
    n_clusters : iterable of int
    criterion : {"auto", "nonspecificity", "bic"}
        "nonspecificity": the least N* of the credal partition; "bic": the greatest `bic_` of the
        fitted estimator; "auto": BIC for estimators that have one, N* for all others.
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
    one_of("criterion", criterion, ("auto", *CRITERIA))
    numbers = sorted({integer("n_clusters", c, 1) for c in n_clusters})
    if not numbers:
        raise ValueError("n_clusters must hold at least one number of clusters, got none.")
    if criterion == "nonspecificity":
        _refuse_one_cluster(numbers[0])
    threads = min(thread_count(n_jobs), len(numbers))
    models = _models(estimator, numbers, threads)
    X = load(X)  # once, not once for each number
    scores: list[dict[str, Any]] = []
    best: Any = None
    for score, model in _fits(models, X, fit, criterion, threads):
        scores.append(score)
        chosen, at = choose(scores, criterion)
        if at == len(scores) - 1:
            best = model  # only the best model so far is kept in memory
    names = ("objective", "n_iter", "converged", "seconds")
    candidates = (
        Candidate(score["n_clusters"], score[chosen], *(score[name] for name in names))
        for score in scores
    )
    return Selection(chosen, tuple(candidates), best)


def parameters_of(algorithm: Algorithm) -> dict[str, Any]:
    """Parameters with which `select` fits an algorithm that is given by its name."""
    wanted = {"random_state": 0, **algorithm.select}
    return {k: v for k, v in wanted.items() if k in algorithm.parameters.model_fields}


def choose(scores: Sequence[Mapping[str, Any]], criterion: str = "auto") -> tuple[str, int]:
    """The criterion, and the position of the best of some fits, the first of equal ones.

    Parameters
    ----------
    scores : for each fit its "n_clusters" and its "nonspecificity", "bic" or both
    criterion : {"auto", "nonspecificity", "bic"}
    """
    if criterion == "auto":
        criterion = "bic" if all("bic" in score for score in scores) else "nonspecificity"
    if criterion == "nonspecificity":
        _refuse_one_cluster(min(score["n_clusters"] for score in scores))
    values = [score[criterion] for score in scores]
    least = CRITERIA[criterion][1] == "least"
    return criterion, int(np.argmin(values) if least else np.argmax(values))


def _refuse_one_cluster(smallest: int) -> None:
    if smallest < 2:
        raise ValueError(
            "The nonspecificity of a partition into one cluster is always 0: n_clusters must begin "
            f"at 2, got {smallest}."
        )


def _models(estimator: Any, numbers: list[int], threads: int) -> list[Any]:
    """One estimator for each number of clusters."""
    if isinstance(estimator, str):
        algorithm = ALGORITHMS.get(estimator.lower())
        if algorithm is None:
            raise ValueError(
                f"estimator must be one of evdist's or its name, such as 'ECM', got {estimator!r}."
            )
        estimator = algorithm.cls(**parameters_of(algorithm))
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
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Scores and fitted models, in the order of their numbers of clusters."""
    with ThreadPoolExecutor(threads) as pool:
        jobs: list[Future] = [pool.submit(_fit, model, X, fit, criterion) for model in models]
        try:
            while jobs:
                yield jobs.pop(0).result()
        finally:
            for job in jobs:
                job.cancel()


def _fit(model: Any, X: Any, fit: dict[str, Any], criterion: str) -> tuple[dict[str, Any], Any]:
    began = time.perf_counter()
    model.fit(X, **fit)
    score: dict[str, Any] = {"n_clusters": int(model.n_clusters)}
    if criterion != "nonspecificity" and hasattr(model, "bic_"):
        score["bic"] = float(model.bic_)
    elif criterion == "bic":
        raise ValueError(
            f"{type(model).__name__} has no BIC: that is for mixtures. Use "
            'criterion="nonspecificity".'
        )
    else:
        score["nonspecificity"] = float(model.credal_partition_.nonspecificity())
    return score | {
        "objective": float(getattr(model, "objective_", np.nan)),
        "n_iter": int(getattr(model, "n_iter_", 0)),
        "converged": bool(getattr(model, "converged_", True)),
        "seconds": time.perf_counter() - began,
    }, model

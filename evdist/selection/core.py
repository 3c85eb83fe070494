"""One call that finds the number of clusters: the curve, the choice, and a model with that many."""

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
from evdist.data.sources import is_pair_list
from evdist.estimators.checks import integer, one_of
from evdist.kernels.threads import thread_count
from evdist.registry import ALGORITHMS, Algorithm
from evdist.selection.criteria import (
    CRITERIA,
    best_of,
    criterion_for,
    curve_of,
    needs_fits,
    on_scale,
    refuse_one_cluster,
    score_of,
)

#: Numbers that criteria of fits compare where none are given.
NUMBERS = range(2, 11)


@dataclass(frozen=True)
class Candidate:
    """One number of clusters: the criterion, and for criteria of fits what came of the fit."""

    n_clusters: int
    value: float
    objective: float | None = None
    n_iter: int | None = None
    converged: bool = True
    seconds: float | None = None


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
        """The number of clusters chosen."""
        return int(getattr(self.model, "n_clusters_", self.model.n_clusters))

    @property
    def verdict(self) -> str:
        """The choice in words: "4 clusters", or that there is no structure."""
        return verdict(self.best)

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
        if frame["objective"].isna().all():
            frame = frame[["value"]]  # of the data: nothing was fitted for the others
        return frame.rename(columns={"value": self.criterion})

    def __repr__(self) -> str:
        return f"{self.to_frame()}\nbest: {self.verdict}"


def verdict(best: int) -> str:
    """A number of clusters in words."""
    return f"{best} clusters" if best > 1 else "1 cluster: the data show no structure"


def select(
    X: Any,
    estimator: str | BaseEstimator = "ECM",
    n_clusters: Iterable[int] | None = None,
    *,
    criterion: str = "auto",
    n_jobs: int | None = None,
    **fit: Any,
) -> Selection:
    """Find the number of clusters, and fit an estimator with it.

    Parameters
    ----------
    X : as for the estimator's `fit`
        The objects.
    estimator : str or estimator
        An estimator, which is cloned; or the name of one in evdist, which is then fitted as in
        the job or command `select`, with random_state=0. With
        "nonspecificity" it has focal_sets="full" and alpha=2 for ECM and RECM, focal_sets="pairs"
        otherwise: with fewer sets of clusters N* tends to fall with every further cluster.
    n_clusters : iterable of int, optional
        Numbers to choose from. The default is any number for "modes", 1 to 10 for "bic" and
        "gap", and 2 to 10 for the others.
    criterion : {"auto", "modes", "nonspecificity", "bic", "silhouette", "gap"}
        "modes": the number of prominent modes of the density, at least 1, for clusters of any
        shape. "gap": k-means against uniform samples. "bic": the largest BIC of a Gaussian mixture.
        These are computed from the data, and one fit is made with the chosen number.
        "nonspecificity": the smallest N* of the credal partition; "silhouette": the largest mean
        silhouette of the labels. These need a fit for each number. "auto" is "modes", or
        "nonspecificity" for a list of pairs.
    n_jobs : int, default=None
        Simultaneous fits, on threads; None is all cores. The result does not depend on it.
    **fit
        Passed to each fit, such as sample_weight or must_link.

    Returns
    -------
    Selection
        `.best`, the number of clusters; `.verdict`, in words; `.model`, the fit with that many;
        `.to_frame()`, the curve.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> import evdist
    >>> X, _ = make_blobs(200, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    >>> evdist.select(X).best
    3
    """
    one_of("criterion", criterion, ("auto", *CRITERIA))
    numbers = None
    if n_clusters is not None:
        numbers = sorted({integer("n_clusters", c, 1) for c in n_clusters})
        if not numbers:
            raise ValueError("n_clusters must hold at least one number of clusters, got none.")
    X = load(X)  # once, not once for each number
    wanted, chosen = _estimator(estimator, criterion, X)
    if not needs_fits(chosen):
        return _from_data(X, wanted, chosen, numbers, fit)
    numbers = numbers or list(NUMBERS)
    refuse_one_cluster(chosen, numbers)
    threads = min(thread_count(n_jobs), len(numbers))
    scores: list[dict[str, Any]] = []
    best: Any = None
    for score, model in _fits(_models(wanted, numbers, threads), X, fit, chosen, threads):
        scores.append(score)
        if best_of(chosen, scores) == len(scores) - 1:
            best = model  # only the best model so far is kept in memory
    names = ("objective", "n_iter", "converged", "seconds")
    candidates = (
        Candidate(score["n_clusters"], score[chosen], *(score[name] for name in names))
        for score in scores
    )
    return Selection(chosen, tuple(candidates), best)


def _from_data(
    X: Any, estimator: Any, criterion: str, numbers: Sequence[int] | None, fit: dict[str, Any]
) -> Selection:
    """The curve of the data, and one fit."""
    metric = getattr(estimator, "metric", None)
    table = X if is_pair_list(X, metric) or hasattr(X, "dtype") else np.asarray(X, dtype=float)
    table = on_scale(table, getattr(estimator, "scale", None))
    shown, values, best = curve_of(criterion, table, metric, numbers)
    model = clone(estimator).set_params(n_clusters=best).fit(X, **fit)
    candidates = (Candidate(c, value) for c, value in zip(shown, values, strict=True))
    return Selection(criterion, tuple(candidates), model)


def parameters_of(algorithm: Algorithm, criterion: str) -> dict[str, Any]:
    """Parameters with which `select` fits an algorithm that is given by its name."""
    wanted: dict[str, Any] = {"random_state": 0}
    if criterion == "nonspecificity":
        wanted |= algorithm.select
    return {k: v for k, v in wanted.items() if k in algorithm.parameters.model_fields}


def choose(scores: Sequence[Mapping[str, Any]], criterion: str) -> int:
    """The position of the best of some fits, the first of equal ones.

    Parameters
    ----------
    scores : for each fit its "n_clusters" and the value of the criterion
    criterion : {"nonspecificity", "silhouette"}
    """
    refuse_one_cluster(criterion, (score["n_clusters"] for score in scores))
    return best_of(criterion, scores)


def _estimator(estimator: Any, criterion: str, X: Any) -> tuple[Any, str]:
    """The estimator, and the criterion that "auto" stands for."""
    if isinstance(estimator, str):
        algorithm = ALGORITHMS.get(estimator.lower())
        if algorithm is None:
            raise ValueError(
                f"estimator must be one of evdist's or its name, such as 'ECM', got {estimator!r}."
            )
        criterion = criterion_for(criterion, X, getattr(algorithm.cls(), "metric", None))
        estimator = algorithm.cls(**parameters_of(algorithm, criterion))
    if not hasattr(estimator, "get_params") or "n_clusters" not in estimator.get_params():
        raise ValueError(
            f"estimator must have the parameter n_clusters; {type(estimator).__name__} has not."
        )
    return estimator, criterion_for(criterion, X, getattr(estimator, "metric", None))


def _models(estimator: Any, numbers: Sequence[int], threads: int) -> list[Any]:
    """One estimator for each number of clusters."""
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
        jobs: list[Future[Any]] = [pool.submit(_fit, model, X, fit, criterion) for model in models]
        try:
            while jobs:
                yield jobs.pop(0).result()
        finally:
            for job in jobs:
                job.cancel()


def _fit(model: Any, X: Any, fit: dict[str, Any], criterion: str) -> tuple[dict[str, Any], Any]:
    began = time.perf_counter()
    model.fit(X, **fit)
    return {
        "n_clusters": int(model.n_clusters),
        criterion: score_of(criterion, model, X),
        "objective": float(getattr(model, "objective_", np.nan)),
        "n_iter": int(getattr(model, "n_iter_", 0)),
        "converged": bool(getattr(model, "converged_", True)),
        "seconds": time.perf_counter() - began,
    }, model

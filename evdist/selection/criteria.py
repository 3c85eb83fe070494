"""Criteria for the number of clusters: some look at the data alone, some at a fit for each number.

==============  =======  ======================================================================
criterion       looks at  what is chosen
==============  =======  ======================================================================
modes           data     modes of the density that stand out (`evdist.estimators.number`)
gap             data     the first c with Gap(c) >= Gap(c + 1) - s(c + 1), by k-means;
                         Tibshirani, Walther, Hastie (2001)
bic             data     the greatest BIC of a Gaussian mixture, as mclust counts it
nonspecificity  fits     the least N*; Masson, Denoeux (2008)
silhouette      fits     the greatest mean silhouette of the labels; Rousseeuw (1987)
==============  =======  ======================================================================

modes, gap and bic may say that there is one cluster; the other two cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster, metrics, mixture

from evdist.data.scale import scale_of
from evdist.data.sources import MatrixSource, is_pair_list, make_source
from evdist.estimators.number import find_modes
from evdist.kernels.distances import METRICS

#: Criterion -> its name in tables and figures, and which value is best: the least, the greatest, or
#: one that a rule of its own chooses.
CRITERIA = {
    "modes": ("strength of the mode", "rule"),
    "nonspecificity": ("nonspecificity N*", "least"),
    "bic": ("BIC", "greatest"),
    "silhouette": ("mean silhouette", "greatest"),
    "gap": ("gap statistic", "rule"),
}
#: Objects that silhouettes, gaps and mixtures are computed on, at most.
SAMPLE = 2000
#: Uniform samples that the gap statistic compares with.
REFERENCES = 10


def criterion_for(criterion: str, X: Any, metric: Any) -> str:
    """What "auto" stands for: modes, or N* for a list of pairs."""
    if criterion != "auto":
        return criterion
    return "nonspecificity" if is_pair_list(X, metric) else "modes"


def needs_fits(criterion: str) -> bool:
    """Whether a fit for each number of clusters is asked for."""
    return criterion in ("nonspecificity", "silhouette")


# ---------------------------------------------------------------------- from the data alone
def curve_of(
    criterion: str, X: Any, metric: Any, numbers: Sequence[int] | None
) -> tuple[list[int], list[float], int]:
    """Numbers of clusters, the criterion of each, and the number chosen.

    `numbers` are those to choose from; None is as many as the data ask for ("modes"), or 1 to 10.
    """
    if criterion == "modes":
        modes = find_modes(make_source(X, known_metric_or_euclidean(metric)))
        best = modes.choose(numbers)
        shown = list(numbers or range(1, max(best + 4, 10) + 1))
        return shown, [modes.of(c) for c in shown], best
    rows = attributes(X, metric, criterion)
    tried = list(numbers or range(1, 11))
    _at_most(tried, len(rows))
    if criterion == "bic":
        values = [-float(_mixture(rows, c).bic(rows)) for c in tried]
        return tried, values, tried[int(np.argmax(values))]
    values, error = _gaps(rows, tried)
    return tried, values, tried[_first_gap(values, error)]


def on_scale(X: Any, kind: str | None) -> Any:
    """X on the scale that the estimator brings it to."""
    if kind is None:
        return X
    table = np.asarray(X, dtype=float)
    scale = scale_of(kind, table)
    return table if scale is None else scale(table)


def known_metric_or_euclidean(metric: Any) -> Any:
    """A metric of two objects; those that a method learns, such as "adaptive", are Euclidean."""
    known = callable(metric) or metric in (*METRICS, "precomputed", "pairs")
    return metric if known else "euclidean"


def attributes(X: Any, metric: Any, criterion: str) -> NDArray[np.float64]:
    """A sample of the rows of X, when they are attributes."""
    if is_pair_list(X, metric) or metric == "precomputed" or callable(metric):
        raise ValueError(
            f'criterion="{criterion}" needs attributes and Euclidean distances. Use "modes", '
            '"silhouette" or "nonspecificity".'
        )
    return np.asarray(X, dtype=float)[_sample(len(X))]


def _sample(n: int) -> NDArray[np.int64]:
    if n <= SAMPLE:
        return np.arange(n)
    return np.sort(np.random.default_rng([n, 31]).choice(n, SAMPLE, replace=False))


def _at_most(numbers: Sequence[int], n: int) -> None:
    if max(numbers) > n:
        raise ValueError(f"n_clusters must be at most the {n} objects, got {max(numbers)}.")


def _mixture(rows: NDArray[np.float64], c: int) -> mixture.GaussianMixture:
    return mixture.GaussianMixture(c, n_init=2, random_state=0).fit(rows)


def _gaps(rows: NDArray[np.float64], numbers: Sequence[int]) -> tuple[list[float], list[float]]:
    """Gap(c) and its error s(c), for uniform samples in the box of the principal components."""
    rng = np.random.default_rng(0)
    centred = rows - rows.mean(axis=0)
    turn = np.linalg.svd(centred, full_matrices=False)[2]
    box = centred @ turn.T
    low, high = box.min(axis=0), box.max(axis=0)
    drawn = [rng.uniform(low, high, box.shape) @ turn for _ in range(REFERENCES)]
    values, error = [], []
    for c in numbers:
        chance = np.array([_log_within(sample, c) for sample in drawn])
        values.append(float(chance.mean() - _log_within(centred, c)))
        error.append(float(chance.std() * np.sqrt(1.0 + 1.0 / REFERENCES)))
    return values, error


def _log_within(rows: NDArray[np.float64], c: int) -> float:
    return float(
        np.log(max(cluster.KMeans(c, n_init=3, random_state=0).fit(rows).inertia_, 1e-300))
    )


def _first_gap(values: Sequence[float], error: Sequence[float]) -> int:
    for at in range(len(values) - 1):
        if values[at] >= values[at + 1] - error[at + 1]:
            return at
    return len(values) - 1


# ---------------------------------------------------------------------- from fits
def score_of(criterion: str, model: Any, X: Any) -> float:
    """The criterion of one fit."""
    partition = model.credal_partition_
    if criterion == "nonspecificity":
        return float(partition.nonspecificity())
    return silhouette(np.asarray(partition.labels()), X, getattr(model, "metric", None))


def silhouette(labels: NDArray[np.int64], X: Any, metric: Any) -> float:
    """Mean silhouette of a sample; -1 where all labels are equal, or all different."""
    metric = known_metric_or_euclidean(metric)
    if is_pair_list(X, metric):
        raise ValueError(
            'criterion="silhouette" needs the dissimilarity of any two objects, which a list of '
            'pairs does not have. Use "nonspecificity".'
        )
    some = _sample(len(labels))
    source = make_source(X, metric)
    assert not isinstance(source, MatrixSource) or source.n == len(labels)
    part = source.subset(some.astype(np.uint32))  # type: ignore[union-attr]
    everyone = np.arange(len(some), dtype=np.uint32)
    D = part.distances(everyone, np.tile(everyone, (len(some), 1))).astype(float)
    D = (D + D.T) / 2
    np.fill_diagonal(D, 0.0)
    chosen = labels[some]
    if not 1 < len(np.unique(chosen)) < len(chosen):
        return -1.0
    return float(metrics.silhouette_score(D, chosen, metric="precomputed"))


def best_of(criterion: str, scores: Sequence[Mapping[str, Any]]) -> int:
    """Position of the best of some fits, the first of equal ones."""
    values = [score[criterion] for score in scores]
    least = CRITERIA[criterion][1] == "least"
    return int(np.argmin(values) if least else np.argmax(values))


def refuse_one_cluster(criterion: str, numbers: Iterable[int]) -> None:
    """N* and the silhouette say nothing about one cluster."""
    smallest = min(numbers)
    if criterion in ("nonspecificity", "silhouette") and smallest < 2:
        why = (
            "The nonspecificity of a partition into one cluster is always 0"
            if criterion == "nonspecificity"
            else "One cluster has no silhouette"
        )
        raise ValueError(
            f"{why}: n_clusters must begin at 2, got {smallest}. To ask whether there is more than "
            'one use criterion="modes".'
        )

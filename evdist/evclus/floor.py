"""The noise floor of distances: when it is taken off, and against which objects it is measured.

In many dimensions d(i, j)^2 = signal + noise_i + noise_j, distances hardly vary, and the
transformed dissimilarities of all pairs are nearly alike, whatever d0. An object's own part of the
noise is seen in the distances to its nearest others: half of their mean square is taken off every
squared distance of the object (`evdist.kernels.distances.Metric`). What was measured stands in
docs/decisions/noise-floor.md.

Symbols
-------
R       rows that floors are measured against: a sample, the same for fitted and for new objects
f       (n,) floors
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evdist.data.sources import AttributeSource, PairList, Source
from evdist.evclus.sampling import random_dissimilarities
from evdist.kernels.distances import METRICS

#: Rows of R, and for each cluster: less than that, and a cluster's nearest are those of others.
MIN_REFERENCE, REFERENCE_PER_CLUSTER = 1000, 20
#: "auto" takes floors off where distances vary less than this (their coefficient of variation),
#: and where floors are at least this share of the mean squared distance,
HARDLY_VARY, LARGE_SHARE = 0.2, 0.15
#: of so many objects or more, in so many clusters or fewer: R grows with the clusters.
FEWEST, MOST_CLUSTERS = 100, 200


def less_noise(
    data: Source | PairList, asked: Any, *, n_clusters: int, seed: int, n_threads: int = 1
) -> Source | PairList:
    """The same objects, their distances less the noise floors where that is asked for or pays."""
    can = isinstance(data, AttributeSource) and METRICS[data.name][0] == "squares"
    if asked is False:
        return data
    if not isinstance(data, AttributeSource) or not can:
        if asked is True:
            raise ValueError(
                "noise_floor=True is for dense attributes and metric euclidean, sqeuclidean, "
                f"cosine, correlation or mahalanobis, got metric {data.name!r}: leave it out."
            )
        return data
    count = max(MIN_REFERENCE, REFERENCE_PER_CLUSTER * n_clusters)
    if asked is not True and (
        data.n < FEWEST or n_clusters > MOST_CLUSTERS or not _pays(data, count, seed)
    ):
        return data
    return data.less_noise(_reference(data, count, seed), n_threads)


def is_less_noise(data: Any) -> bool:
    """Whether the dissimilarities of a source are those less the noise floors."""
    return isinstance(data, AttributeSource) and data.metric.floored


def check_noise_floor(value: Any) -> bool | str:
    """`value` if it is one of those that there are."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, str) and value == "auto":
        return value
    raise ValueError(f'noise_floor must be "auto", True or False, got {value!r}.')


def _reference(data: AttributeSource, count: int, seed: int) -> np.ndarray:
    if count >= data.n:
        return np.arange(data.n)
    return np.sort(np.random.default_rng([seed, 41, data.n]).choice(data.n, count, replace=False))


def _pays(data: AttributeSource, count: int, seed: int) -> bool:
    """Whether distances hardly vary, and floors are much of them: judged on samples."""
    end = METRICS[data.name][1]
    D = random_dissimilarities(data, seed).astype(float)
    squares = {"root": D * D, "none": D, "half": 2.0 * D}[end]
    mean, mean_square = float(np.sqrt(squares).mean()), float(squares.mean())
    if mean_square <= 0.0 or mean_square - mean**2 >= (HARDLY_VARY * mean) ** 2:
        return False
    some = data.subset(_reference(data, count, seed).astype(np.uint32))
    h = some.less_noise(np.arange(some.n)).table[:, len(some.metric.centre)].astype(float)
    return bool(2.0 * (h * h).mean() >= LARGE_SHARE * mean_square)

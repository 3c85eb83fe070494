"""Credal Rand indices: how far two credal partitions agree about pairs of objects.

Reference: Denoeux, Li, Sriboonchitta (2018), Evaluating and comparing soft partitions; slides,
"Credal Rand index". With m_ij, m'_ij the pairwise mass functions of the two partitions,

    CRI = 1 - mean over i < j of d(m_ij, m'_ij)

kind                  d(m, m')                                                   R's type
"jousselme"           sqrt(1/2 (m - m')' J (m - m')), J the Jaccard matrix       j
"squared-jousselme"   1/2 (m - m')' J (m - m')                                   -
"belief"              1/2 sum over non-empty A of |Bel(A) - Bel'(A)|             b
"conflict"            sum over disjoint A, B of m(A) m'(B)                       c

All equal the Rand index when both partitions are hard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evdist.metrics.moments import second_moments
from evdist.metrics.pairs import as_partition, same_objects, sample_pairs
from evdist.metrics.relation import THETA, pairwise_mass
from evdist.partition import CredalPartition

Kind = Literal["jousselme", "squared-jousselme", "belief", "conflict"]

#: Up to this many objects all pairs are visited.
ALL_PAIRS_OBJECTS = 2_000

#: Bel({s}), Bel({not s}) and Bel(Theta) from a pairwise mass function.
_BELIEF = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 1.0]])


@dataclass(frozen=True)
class Estimate:
    """What `estimate_credal_rand_index` gives: a mean over pairs and its standard error.

    Parameters
    ----------
    value : float
        The mean.
    standard_error : float
        Its standard error, 0 when exact.
    n_pairs : int
        Pairs that were sampled, or n(n-1)/2 when the value covers all of them.
    """

    value: float
    standard_error: float
    n_pairs: int


def credal_rand_index(
    a: CredalPartition | NDArray[Any],
    b: CredalPartition | NDArray[Any],
    kind: Kind = "jousselme",
    *,
    n_pairs: int = 200_000,
    random_state: int | np.random.Generator | None = 0,
) -> float:
    """Agreement of two partitions, between 0 and 1; see the module for the kinds.

    Parameters
    ----------
    a, b : CredalPartition or (n,) labels
        Over the same objects; numbers of clusters and focal sets may differ.
    kind : {"jousselme", "squared-jousselme", "belief", "conflict"}
        "conflict" is not 1 for two equal partitions unless they are hard: it asks how far one
        contradicts the other, not how far they look alike.
    n_pairs : int
        Pairs sampled for "jousselme" and "belief" above 2,000 objects. The two others are exact
        for any n, and so is everything up to 2,000 objects.
    random_state : int, Generator or None
        Decides the sampled pairs.

    Returns
    -------
    float
        The index, 1 for equal partitions but for "conflict".
    """
    return estimate_credal_rand_index(a, b, kind, n_pairs=n_pairs, random_state=random_state).value


def estimate_credal_rand_index(
    a: CredalPartition | NDArray[Any],
    b: CredalPartition | NDArray[Any],
    kind: Kind = "jousselme",
    *,
    n_pairs: int = 200_000,
    random_state: int | np.random.Generator | None = 0,
) -> Estimate:
    """:func:`credal_rand_index` with its standard error. Same parameters.

    Squared distances have exact means (see ``moments``), roots and absolute values do not. The
    sampled mean of d is therefore corrected by regression on a quadratic form q with known mean:
    mean(d) - beta (mean(q) - E q). For hard partitions d = q and nothing is left to chance.

    Parameters
    ----------
    a, b : CredalPartition or (n,) labels
        Over the same objects.
    kind : {"jousselme", "squared-jousselme", "belief", "conflict"}, default="jousselme"
        As in `credal_rand_index`.
    n_pairs : int, default=200000
        Pairs to sample, at least 100.
    random_state : int, Generator or None, default=0
        Decides the sampled pairs.

    Examples
    --------
    >>> from evdist.metrics import estimate_credal_rand_index
    >>> estimate_credal_rand_index([0, 0, 1, 1], [0, 0, 1, 0])
    Estimate(value=0.5, standard_error=0.0, n_pairs=6)
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}.")
    if n_pairs < 100:
        raise ValueError(f"n_pairs must be at least 100 for a standard error, got {n_pairs}.")
    first, second = as_partition(a), as_partition(b)
    n = same_objects(first, second)
    total = n * (n - 1) // 2
    if kind == "conflict":
        mean = float(np.sum(THETA.C * second_moments(first, second)))
        return Estimate(unit_interval(1.0 - mean), 0.0, total)
    if kind == "squared-jousselme":
        return Estimate(unit_interval(1.0 - _mean_square(first, second, kind)), 0.0, total)
    if n <= ALL_PAIRS_OBJECTS:
        d, _ = _distances(pairwise_mass(first) - pairwise_mass(second), kind)
        return Estimate(unit_interval(1.0 - float(d.mean())), 0.0, total)
    i, j = sample_pairs(n, n_pairs, np.random.default_rng(random_state))
    d, q = _distances(pairwise_mass(first, i, j) - pairwise_mass(second, i, j), kind)
    centred = q - q.mean()
    spread = float(centred @ centred)
    beta = float(centred @ d) / spread if spread > 0 else 0.0
    mean = float(d.mean()) - beta * (float(q.mean()) - _mean_square(first, second, kind))
    residual = d - d.mean() - beta * centred
    error = float(np.sqrt(residual @ residual / (n_pairs - 2) / n_pairs))
    return Estimate(unit_interval(1.0 - mean), error, n_pairs)


def _distances(gap: NDArray[Any], kind: Kind) -> tuple[NDArray[Any], NDArray[Any]]:
    """d and the quadratic form q = 1/2 gap' K gap of pairwise masses' differences (p, 4)."""
    if kind == "belief":
        belief = gap @ _BELIEF.T
        return 0.5 * np.abs(belief).sum(axis=1), 0.5 * (belief**2).sum(axis=1)
    q = 0.5 * (gap @ THETA.jaccard * gap).sum(axis=1)
    return np.sqrt(np.maximum(q, 0.0)), q


def _mean_square(a: CredalPartition, b: CredalPartition, kind: Kind) -> float:
    """Exact mean over all pairs of q = 1/2 (m_ij - m'_ij)' K (m_ij - m'_ij)."""
    K = _BELIEF.T @ _BELIEF if kind == "belief" else THETA.jaccard
    both = second_moments(a, a) + second_moments(b, b) - 2.0 * second_moments(a, b)
    return 0.5 * float(np.sum(K * both))


def unit_interval(value: float) -> float:
    """Rounding must not take an index out of [0, 1]."""
    return min(1.0, max(0.0, value))

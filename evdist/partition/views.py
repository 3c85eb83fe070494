"""What follows from a block of masses: labels, approximations, scores of each object.

Every function takes a (b, f) block of masses and the focal sets and gives one result per row.
A row's result never depends on the rows beside it, to the last bit: sums over focal sets are
added column by column, because a BLAS product rounds differently for blocks of different height
and a tie could then fall one way in one chunking and the other way in another.

Symbols
-------
m     (b, f) block of masses, column 0 the empty set
pl    (b, c) contour, pl_ik = Pl_i({k}), not normalised
A_i   the set of clusters that stands for object i

References: Li, Li, Denoeux (2018), k-CEVCLUS, section 2.2 and eq. (23); Denoeux, slides
"Belief functions and clustering" (2017), "From evidential to rough clustering".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets, normalise, singleton_belief
from evdist.partition import compiled

Floats = NDArray[np.float64]

#: Names that ``labels(rule=...)`` and ``lower(rule=...)`` take.
LABEL_RULES = ("plausibility", "belief", "pignistic")
APPROXIMATION_RULES = ("mass", "dominance")


def weigh(m: NDArray[Any], weights: Floats) -> Floats:
    """m W for a (f, k) matrix W, (b, k), each row rounded in the same way in any block."""
    q, k = np.nonzero(weights)
    return _weigh(m, q, k, weights[q, k], weights.shape[1])


def _weigh(
    m: NDArray[Any], q: NDArray[np.intp], k: NDArray[np.intp], weights: Floats, width: int
) -> Floats:
    """m W for a matrix W with these entries in rows q and columns k; (b, width)."""
    columns = np.ascontiguousarray(m.T, dtype=np.float64)
    out = np.zeros((width, m.shape[0]))
    for a, b, w in zip(q.tolist(), k.tolist(), weights.tolist(), strict=True):
        out[b] += columns[a] if w == 1.0 else w * columns[a]
    return out.T


@lru_cache(maxsize=32)
def _entries(focal: FocalSets) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Set and cluster for each cluster of each set: of thousands of clusters F is mostly zeros."""
    q = np.repeat(np.arange(len(focal)), [len(members) for members in focal.sets])
    return q, np.array([k for members in focal.sets for k in members], dtype=np.intp)


# ---------------------------------------------------------------------- one number per cluster
def contour(m: NDArray[Any], focal: FocalSets) -> Floats:
    """pl_ik, the sum of m_i(A) over the sets A that contain k; not normalised, (b, c)."""
    q, k = _entries(focal)
    return _weigh(m, q, k, np.ones(len(q)), focal.n_clusters)


def normalised_contour(m: NDArray[Any], focal: FocalSets) -> Floats:
    """Contour of the masses normalised by Dempster's rule, pl_ik / (1 - m_i(empty)); (b, c).

    Where m_i(empty) = 1 nothing is known, see :func:`evdist.belief.normalise`.
    """
    return contour(normalise(m.astype(np.float64), focal), focal)


def pignistic(m: NDArray[Any], focal: FocalSets) -> Floats:
    """BetP_i(k), each mass shared equally in its set; rows sum to 1 - m_i(empty), (b, c)."""
    q, k = _entries(focal)
    return _weigh(m, q, k, 1.0 / np.bincount(q)[q], focal.n_clusters)


def probability(m: NDArray[Any], focal: FocalSets) -> Floats:
    """BetP_i(k) / (1 - m_i(empty)), which sums to 1; 1 / c where m_i(empty) = 1, (b, c)."""
    p = pignistic(m, focal)
    total = weigh(p, np.ones((focal.n_clusters, 1)))
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / focal.n_clusters)


def fuzzy(m: NDArray[Any], focal: FocalSets) -> Floats:
    """u_ik = pl_ik / sum_l pl_il; k-CEVCLUS, eq. (3). 1 / c where m_i(empty) = 1; (b, c)."""
    pl = contour(m, focal)
    total = weigh(pl, np.ones((focal.n_clusters, 1)))
    return np.where(total > 0, pl / np.where(total > 0, total, 1.0), 1.0 / focal.n_clusters)


# ---------------------------------------------------------------------- one decision per object
def labels(
    m: NDArray[Any], focal: FocalSets, rule: str, outlier: int | None = None
) -> NDArray[np.int64]:
    """The cluster of greatest plausibility, belief or pignistic probability; ties to the first.

    Outliers get the number `outlier`, where there is one.
    """
    score = {"plausibility": contour, "belief": singleton_belief, "pignistic": pignistic}[rule]
    found = compiled.most_plausible(m, focal) if rule == "plausibility" else None
    if found is None:
        found = score(m, focal).argmax(axis=1)
    return found if outlier is None else np.where(outliers(m, focal), outlier, found)


def assigned_set(m: NDArray[Any], focal: FocalSets) -> NDArray[np.int64]:
    """Column of the focal set with the largest mass, ties to the first; (b,)."""
    return m.argmax(axis=1)


def outliers(m: NDArray[Any], focal: FocalSets) -> NDArray[np.bool_]:
    """Whether m_i(empty) >= m_i(A) for all A; (b,)."""
    return assigned_set(m, focal) == 0


def possible(m: NDArray[Any], focal: FocalSets, rule: str) -> NDArray[np.bool_]:
    """Upper approximations: whether k is in A_i; (b, c).

    ``rule="mass"``: A_i has the largest mass. ``rule="dominance"``: A_i = {k : for all l,
    Bel*_i({l}) <= Pl*_i({k})}, the clusters that no other dominates. Bel* and Pl* have the same
    divisor 1 - m_i(empty), which drops out of the comparison; where it is 0 no cluster dominates
    and A_i is the whole frame.
    """
    if rule == "mass":
        return focal.matrix[assigned_set(m, focal)]
    return contour(m, focal) >= singleton_belief(m, focal).max(axis=1)[:, None]


def certain(upper: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Lower approximations from the upper ones: whether A_i = {k}; (b, c)."""
    return upper & (upper.sum(axis=1) == 1)[:, None]


def approximations(m: NDArray[Any], focal: FocalSets, rule: str, which: str) -> NDArray[np.bool_]:
    """The lower (b, c), the upper (b, c), or both side by side (b, 2 c)."""
    upper = possible(m, focal, rule)
    if which == "upper":
        return upper
    lower = certain(upper)
    return lower if which == "lower" else np.hstack([lower, upper])


# ---------------------------------------------------------------------- imprecision
@lru_cache(maxsize=32)
def _log_sizes(focal: FocalSets) -> Floats:
    """log2 |A| / log2 c, the empty set counted as the whole frame; (f, 1)."""
    size = np.where(focal.cardinality == 0, focal.n_clusters, focal.cardinality)
    # With one cluster nothing can be imprecise: log2(1) = 0.
    return (np.log2(size) / max(np.log2(focal.n_clusters), 1.0))[:, None]


def specificity_loss(m: NDArray[Any], focal: FocalSets) -> Floats:
    """Nonspecificity of each object in [0, 1]: the summand of k-CEVCLUS, eq. (23); (b,).

    (sum over non-empty A of m_i(A) log2 |A| + m_i(empty) log2 c) / log2 c.
    """
    return weigh(m, _log_sizes(focal))[:, 0]

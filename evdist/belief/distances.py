"""Conflict and distances between mass functions.

Symbols
-------
C     (f, f) conflict matrix, 1 where two focal sets are disjoint
J     (f, f) Jaccard matrix |A and B| / |A or B|

References: Jousselme and Maupin (2012), Distances in evidence theory: comprehensive survey and
generalizations; Tessem (1993), Approximations for efficient computation in the theory of evidence;
Han, Dezert and Yang (2014), New distance measures of evidence based on belief intervals; Ristic and
Smets (2006) for the distance of Bhattacharyya; Martin (2012), About conflict in the theory of
belief functions.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_pair, by_blocks
from evdist.belief.families import on_power_set
from evdist.belief.focal import FocalSets
from evdist.belief.lattice import as_slice, binary_order, subset_sums
from evdist.belief.transforms import belief, commonality, contour, pignistic, plausibility


def conflict(m1: ArrayLike, m2: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Degree of conflict kappa = m1' C m2, row by row; NN-EVCLUS eq. (3); (n,).

    One minus it is the plausibility that two objects belong to the same cluster. A single mass
    function (f,) on either side is compared with every row of the other.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, conflict
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> float(conflict([0, 1, 0, 0], [0, .2, .7, .1], focal))
    0.7
    """
    a, b = as_pair(m1, m2, focal)
    order = binary_order(focal)
    if order is None:
        return np.einsum("...q,...q->...", a @ focal.C.astype(a.dtype), b)
    # Power set: kappa = sum over A of b(A) times the implicability of m1 at not A, O(f log f).
    here, complements = as_slice(order), as_slice(order[::-1])

    def kernel(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        return np.einsum("nq,nq->n", subset_sums(x, focal)[:, complements], y[:, here])

    return by_blocks(kernel, a, b)


def inclusion_conflict(m1: ArrayLike, m2: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Conflict that a source cannot have with one that it includes; Martin (2012); (n,).

    (1 - delta) d, where d is Jousselme's distance and delta the share of pairs of focal sets with
    mass where the first is included in the second, or the second in the first, whichever is
    larger. Unlike :func:`conflict` it is 0 between a mass function and itself.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, inclusion_conflict
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> inclusion_conflict([0, 1, 0, 0], [[0, 0, 1, 0], [0, .5, 0, .5]], focal).round(2)
    array([1., 0.])
    """
    a, b = as_pair(m1, m2, focal)
    included = focal.overlap == focal.cardinality[:, None]
    used, other = (a > 0).astype(float), (b > 0).astype(float)
    pairs = np.maximum(used.sum(axis=-1) * other.sum(axis=-1), 1)
    forth = np.einsum("...q,...q->...", used @ included, other)
    back = np.einsum("...q,...q->...", used @ included.T, other)
    delta = np.maximum(forth, back) / pairs
    return ((1 - delta) * jousselme(a, b, focal)).astype(np.result_type(a, b))


def jousselme(m1: ArrayLike, m2: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Jousselme's distance (0.5 (m1 - m2)' J (m1 - m2))^(1/2), row by row; (n,).

    A metric with values in [0, 1]; slides on evidential clustering (2017), "Jousselme's
    distance". The (f, f) matrix J is kept: count on 8 f^2 bytes.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, jousselme
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> float(jousselme([0, 1, 0, 0], [0, 0, 1, 0], focal))
    1.0
    """
    a, b = as_pair(m1, m2, focal)
    J = focal.jaccard.astype(np.result_type(a, b))

    def kernel(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        difference = x - y
        square = np.einsum("...q,...q->...", difference @ J, difference)
        # J is positive definite; rounding can still leave a square just below 0.
        return np.sqrt(np.maximum(0.5 * square, 0.0))

    return by_blocks(kernel, a, b)


def pignistic_distance(m1: ArrayLike, m2: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Largest difference of bets on any set, max over A of |BetP1(A) - BetP2(A)|; (n,).

    Tessem (1993). Half the sum of |BetP1(k) - BetP2(k)|, of normalised bets; in [0, 1]. Zero also
    between different masses that lead to the same bets.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, pignistic_distance
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> round(float(pignistic_distance([0, 1, 0, 0], [0, .2, .6, .2], focal)), 2)
    0.7
    """
    a, b = as_pair(m1, m2, focal)
    difference = pignistic(a, focal, normalised=True) - pignistic(b, focal, normalised=True)
    return 0.5 * np.abs(difference).sum(axis=-1)


_ON = {
    "mass": lambda m, focal: m,
    "belief": belief,
    "plausibility": plausibility,
    "commonality": commonality,
    "contour": contour,
}


def minkowski(
    m1: ArrayLike,
    m2: ArrayLike,
    focal: FocalSets,
    *,
    on: Literal["mass", "belief", "plausibility", "commonality", "contour"] = "plausibility",
    p: float = 2.0,
) -> NDArray[np.floating]:
    """Minkowski distance (sum over A of |g1(A) - g2(A)|^p)^(1/p) of functions g of sets; (n,).

    Jousselme and Maupin (2012). Not divided by anything.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.
    on : {"mass", "belief", "plausibility", "commonality", "contour"}
        The function g. All but "mass" and "contour" are taken on all 2^c sets, so that the
        distance does not depend on which sets are listed; "contour" on single clusters.
    p : float
        At least 1: 2 is Euclidean, 1 city block, ``np.inf`` the largest difference.

    Examples
    --------
    >>> from evdist.belief import FocalSets, minkowski
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> round(float(minkowski([0, 1, 0, 0], [0, .2, .7, .1], focal, on="contour")), 2)
    1.06
    """
    a, b = as_pair(m1, m2, focal)
    if on not in _ON:
        raise ValueError(f"on must be one of {', '.join(_ON)}, got {on!r}.")
    if not p >= 1:
        raise ValueError(f"p must be at least 1, got {p}.")
    if on not in ("mass", "contour"):
        (a, _), (b, focal) = on_power_set(a, focal), on_power_set(b, focal)

    def kernel(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        difference = np.abs(_ON[on](x, focal) - _ON[on](y, focal))
        if p == np.inf:
            return difference.max(axis=-1)
        return (difference**p).sum(axis=-1) ** (1 / p)

    return by_blocks(kernel, a, b)


def belief_interval_distance(
    m1: ArrayLike, m2: ArrayLike, focal: FocalSets
) -> NDArray[np.floating]:
    """Euclidean distance of the intervals [Bel(A), Pl(A)] over all sets A; (n,).

    Han, Dezert and Yang (2014): intervals are compared by Wasserstein's distance, the squares
    summed over the non-empty sets and divided by 2^(c-1), then the root. A metric in [0, 1].

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, belief_interval_distance
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> round(float(belief_interval_distance([0, 1, 0, 0], [0, .2, .7, .1], focal)), 2)
    0.75
    """
    pair = as_pair(m1, m2, focal)
    (a, _), (b, full) = (on_power_set(m, focal) for m in pair)

    def kernel(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        low = belief(x, full) - belief(y, full)
        high = plausibility(x, full) - plausibility(y, full)
        # Of intervals with centres u and half widths r: (u1 - u2)^2 + (r1 - r2)^2 / 3.
        square = ((low + high) / 2) ** 2 + ((high - low) / 2) ** 2 / 3
        return np.sqrt(square.sum(axis=-1) / 2 ** (full.n_clusters - 1))

    return by_blocks(kernel, a, b)


def bhattacharyya(m1: ArrayLike, m2: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """(1 - sum over A of (m1(A) m2(A))^(1/2))^(1/2); Ristic and Smets (2006); (n,).

    Compares set by set: masses on {0} and on {0,1} are as far as on {0} and on {1}.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, bhattacharyya
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> round(float(bhattacharyya([0, 1, 0, 0], [0, .64, .36, 0], focal)), 2)
    0.45
    """
    a, b = as_pair(m1, m2, focal)
    alike = np.sqrt(np.maximum(a, 0) * np.maximum(b, 0)).sum(axis=-1)
    return np.sqrt(np.maximum(1 - alike, 0))

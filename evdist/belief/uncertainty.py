"""How uncertain a mass function is: nonspecificity, kinds of conflict within it, and totals.

All in bits. The empty set counts as Omega, as in the nonspecificity of a credal partition: the mass
that fits no cluster says nothing of which it is. For Dempster's division by 1 - m(empty) instead,
apply :func:`evdist.belief.normalise` first.

References: Klir and Wierman (1999), Uncertainty-based information, for the measures of
1980 to 1995; Harmanec and Klir (1994), Measuring total uncertainty in Dempster-Shafer theory: a
novel approach; Pal, Bezdek and Hemasinha (1993); Deng (2016), Deng entropy; Jirousek and Shenoy
(2018), A new definition of entropy of belief functions in the Dempster-Shafer theory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_masses, by_blocks
from evdist.belief.families import grown, on_power_set
from evdist.belief.focal import FocalSets
from evdist.belief.transforms import belief, pignistic, plausibility, plausibility_transform

#: Two shares of belief that differ by less are equal but for rounding.
TIE = {"float32": 1e-6, "float64": 1e-12}


def nonspecificity(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Nonspecificity: sum of m(A) log2|A|, the empty set counting as Omega; (n,).

    The bracket of k-CEVCLUS eq. (23), whose average over objects, divided by log2 c, is N*.
    Between 0 (all mass on singletons) and log2 c. Dubois and Prade (1985).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, nonspecificity
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> nonspecificity([[0, 1, 0, 0], [0, 0, 0, 1]], focal)
    array([0., 1.])
    """
    M = as_masses(m, focal)
    size = np.where(focal.cardinality == 0, focal.n_clusters, focal.cardinality)
    return M @ np.log2(size).astype(M.dtype)


def dissonance(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Yager's dissonance: - sum of m(A) log2 Pl(A); (n,). Zero when all focal sets meet.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, dissonance
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> dissonance([[0, .5, .5, 0], [0, .5, 0, .5]], focal).round(2) + 0.0
    array([1., 0.])
    """
    return _measured(m, focal, lambda x, family: _expected_log(x, plausibility(x, family)))


def confusion(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Hoehle's confusion: - sum of m(A) log2 Bel(A); (n,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, confusion
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> confusion([[0, .5, .5, 0], [0, .5, 0, .5]], focal).round(2) + 0.0
    array([1. , 0.5])
    """
    return _measured(m, focal, lambda x, family: _expected_log(x, belief(x, family)))


def discord(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Klir and Ramer's discord: - sum over A of m(A) log2 sum over B of m(B) |A and B| / |B|; (n,).

    Each set B is held to contradict A by the part of B that lies outside A.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, discord
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> discord([[0, .5, .5, 0], [0, .5, 0, .5]], focal).round(2)
    array([1.  , 0.21])
    """

    def measure(x: NDArray[Any], family: FocalSets) -> NDArray[Any]:
        share = family.overlap / np.maximum(family.cardinality, 1)[:, None]
        return _expected_log(x, x @ share.astype(x.dtype))

    return _measured(m, focal, measure)


def strife(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Klir and Parviz's strife: - sum over A of m(A) log2 sum over B of m(B) |A and B| / |A|; (n,).

    Each set B is held to contradict A by the part of A that lies outside B.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, strife
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> strife([[0, .5, .5, 0], [0, .5, 0, .5]], focal).round(2)
    array([1.  , 0.21])
    """

    def measure(x: NDArray[Any], family: FocalSets) -> NDArray[Any]:
        share = family.overlap / np.maximum(family.cardinality, 1)
        return _expected_log(x, x @ share.astype(x.dtype))

    return _measured(m, focal, measure)


def mass_entropy(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Shannon's entropy of the masses themselves, - sum of m(A) log2 m(A) (Nguyen, 1987); (n,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, mass_entropy
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> mass_entropy([[0, .5, .5, 0], [0, .5, 0, .5]], focal).round(2)
    array([1., 1.])
    """
    return _measured(m, focal, lambda x, family: _expected_log(x, x))


def pignistic_entropy(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Shannon's entropy of the bets BetP (the ambiguity measure of Jousselme and others, 2006).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, pignistic_entropy
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> pignistic_entropy([[0, .5, .5, 0], [0, .5, 0, .5]], focal).round(2)
    array([1.  , 0.81])
    """

    def measure(x: NDArray[Any], family: FocalSets) -> NDArray[Any]:
        p = pignistic(x, family)
        return _expected_log(p, p)

    return _measured(m, focal, measure)


def pal_entropy(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Total uncertainty sum of m(A) log2(|A| / m(A)); Pal, Bezdek and Hemasinha (1993); (n,).

    Nonspecificity and :func:`mass_entropy` together; at most log2 of c 2^(c-1).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, pal_entropy
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> pal_entropy([[0, .5, .5, 0], [0, .5, 0, .5]], focal).round(2)
    array([1. , 1.5])
    """
    return nonspecificity(m, focal) + mass_entropy(m, focal)


def deng_entropy(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Deng's entropy - sum of m(A) log2(m(A) / (2^|A| - 1)); Deng (2016); (n,).

    Shannon's entropy where all mass lies on singletons; sets count by the number of their
    non-empty subsets.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, deng_entropy
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> deng_entropy([[0, .5, .5, 0], [0, .5, 0, .5]], focal).round(2)
    array([1.  , 1.79])
    """

    def measure(x: NDArray[Any], family: FocalSets) -> NDArray[Any]:
        # log2(2^k - 1), which for large sets is k; the empty set has no mass here.
        size = np.maximum(family.cardinality, 1).astype(float)
        log = size + np.log2(-np.expm1(-size * np.log(2)))
        return _expected_log(x, x) + x @ log.astype(x.dtype)

    return _measured(m, focal, measure)


def jirousek_shenoy_entropy(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Entropy of the plausibility transform plus nonspecificity; Jirousek and Shenoy (2018); (n,).

    At most 2 log2 c, when all is on Omega.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, jirousek_shenoy_entropy
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> jirousek_shenoy_entropy([[0, .5, .5, 0], [0, .5, 0, .5]], focal).round(2)
    array([1.  , 1.42])
    """

    def measure(x: NDArray[Any], family: FocalSets) -> NDArray[Any]:
        p = plausibility_transform(x, family)
        return _expected_log(p, p) + nonspecificity(x, family)

    return _measured(m, focal, measure)


def aggregated_uncertainty(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Largest Shannon entropy of the probabilities p that m allows, p(A) >= Bel(A); (n,).

    By the algorithm of Harmanec and Klir (1994): the set with the largest Bel(A) / |A| shares its
    belief equally, then the same of the clusters left, with Bel(A or B) - Bel(A) for Bel. All
    2^c sets are looked at, at most c times.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, aggregated_uncertainty
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> aggregated_uncertainty([[0, .5, .5, 0], [0, .7, 0, .3]], focal).round(2)  # p = (0.7, 0.3)
    array([1.  , 0.88])
    """

    def measure(x: NDArray[Any], family: FocalSets) -> NDArray[Any]:
        wide, full = on_power_set(x, family)
        return _largest_entropy(belief(wide, full), full)

    return _measured(m, focal, measure)


def _largest_entropy(bel: NDArray[Any], full: FocalSets) -> NDArray[Any]:
    n, f = bel.shape
    numbers = np.arange(f)
    size = full.cardinality.astype(bel.dtype)
    rows = np.arange(n)
    done = np.zeros(n, dtype=np.intp)  # the clusters that have their probability, as a bit mask
    entropy = np.zeros(n, dtype=bel.dtype)
    for _ in range(full.n_clusters):
        todo = np.flatnonzero(done < f - 1)
        if not len(todo):
            break
        fixed = done[todo][:, None]
        gain = bel[todo[:, None], numbers | fixed] - bel[rows[todo], done[todo]][:, None]
        free = (numbers & fixed) == 0
        free[:, 0] = False
        share = np.where(free, gain / np.maximum(size, 1), -1.0)
        # Of the sets with the largest share the largest one: that is their union.
        best = share.max(axis=1, keepdims=True)
        tied = share >= best - TIE[bel.dtype.name]
        chosen = np.bitwise_or.reduce(np.where(tied, numbers, 0), axis=1)
        count = size[chosen]
        p = np.maximum(gain[np.arange(len(todo)), chosen], 0) / count
        entropy[todo] -= count * p * _log2(p)
        done[todo] |= chosen
    return entropy


def _measured(
    m: ArrayLike, focal: FocalSets, measure: Callable[[NDArray[Any], FocalSets], NDArray[Any]]
) -> NDArray[np.floating]:
    """``measure`` of blocks of masses whose m(empty) has been given to Omega."""
    M = as_masses(m, focal)
    family = grown(focal, [(1 << focal.n_clusters) - 1])
    assert family.omega is not None

    def kernel(rows: NDArray[Any]) -> NDArray[Any]:
        x = np.zeros((len(rows), len(family)), dtype=M.dtype)
        x[:, : len(focal)] = np.maximum(rows, 0)
        x[:, family.omega] += x[:, 0]
        x[:, 0] = 0.0
        return measure(x, family)

    return by_blocks(kernel, M)


def _expected_log(m: NDArray[Any], of: NDArray[Any]) -> NDArray[Any]:
    """- sum of m(A) log2 of(A), 0 where there is no mass."""
    # Rounding may leave 1 + 1e-16, whose logarithm would make the sum just negative.
    log = _log2(np.minimum(np.where(m > 0, of, 1.0), 1.0))
    return -(m * log).sum(axis=-1)


def _log2(p: NDArray[Any]) -> NDArray[Any]:
    return np.log2(np.where(p > 0, p, 1.0))

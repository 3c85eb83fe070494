"""Belief, plausibility and their relatives, computed from masses.

Symbols
-------
m     (n, f) or (f,) masses
F     (f, c) focal sets
pl    (n, c) contour function, the plausibility of each single cluster

Reference: Denoeux (2021), NN-EVCLUS, section 2.1, eqs. (1) and (2).

With m(empty) > 0 these are the unnormalised functions: Bel(Omega) = Pl(Omega) = 1 - m(empty),
and an object with m(empty) = 1 has belief and plausibility 0 everywhere. Apply
:func:`evdist.belief.normalise` first for the normalised ones.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_masses, as_queries
from evdist.belief.focal import FocalSets
from evdist.belief.lattice import binary_order, meeting_sums, subset_sums, superset_sums
from evdist.belief.normalisation import normalise

Queries = FocalSets | Iterable[Iterable[int]] | None


def contour(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Contour function pl(k) = Pl({k}), unnormalised: M F; (n, c) or (c,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns of `m` are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, contour
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> contour([0, .5, .2, .3], focal)
    array([0.8, 0.5])
    """
    M = as_masses(m, focal)
    return M @ focal.matrix.astype(M.dtype)


def singleton_belief(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Bel({k}) = m({k}), 0 where {k} is not a focal set; (n, c) or (c,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns of `m` are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, singleton_belief
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> singleton_belief([0, .5, .2, .3], focal)
    array([0.5, 0.2])
    """
    M = as_masses(m, focal)
    # Column 0 stands in for absent singletons and is blanked afterwards.
    bel = M[..., np.maximum(focal.singletons, 0)]
    bel[..., focal.singletons < 0] = 0.0
    return bel


def pignistic(m: ArrayLike, focal: FocalSets, *, normalised: bool = False) -> NDArray[np.floating]:
    """Pignistic transform BetP(k) = sum over the sets A holding k of m(A) / |A|; (n, c) or (c,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns of `m` are for.
    normalised : bool
        Divide by 1 - m(empty), so that rows sum to one (a row with m(empty) = 1 becomes that of
        ``normalise``: uniform whenever Omega or all singletons are focal sets). Without it rows
        sum to 1 - m(empty) and Bel({k}) <= BetP(k) <= Pl({k}).

    Examples
    --------
    >>> from evdist.belief import FocalSets, pignistic
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> pignistic([0, .5, .2, .3], focal)
    array([0.65, 0.35])
    """
    M = normalise(m, focal) if normalised else as_masses(m, focal)
    share = focal.matrix / np.maximum(focal.cardinality, 1)[:, None]
    return M @ share.astype(M.dtype)


def plausibility_transform(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Probabilities pl(k) / sum over l of pl(l); Cobb and Shenoy (2006); (n, c) or (c,).

    The one transform to probabilities that commutes with Dempster's rule. A row with
    m(empty) = 1 becomes that of ``normalise``.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, plausibility_transform
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> plausibility_transform([0, .5, .2, .3], focal).round(2)
    array([0.62, 0.38])
    """
    pl = contour(normalise(m, focal), focal)
    return pl / pl.sum(axis=-1, keepdims=True)


def belief(m: ArrayLike, focal: FocalSets, sets: Queries = None) -> NDArray[np.floating]:
    """Bel(A) = sum of m(B) over non-empty B included in A; NN-EVCLUS eq. (1).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns of `m` are for.
    sets : FocalSets or iterable of iterables of int, optional
        The q sets A asked for, any sets of zero-based clusters; by default the focal sets.

    Returns
    -------
    (n, q) or (q,) array
        Bel of the q sets, for each row of `m`.

    Examples
    --------
    >>> from evdist.belief import FocalSets, belief
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> belief([0, .5, .2, .3], focal)
    array([0. , 0.5, 0.2, 1. ])
    """
    M = as_masses(m, focal)
    if sets is None:
        return subset_sums(M, focal, without_empty=True)
    Q = as_queries(sets, focal)
    size = focal.cardinality[:, None]
    supports = (focal.matrix.astype(float) @ Q.T.astype(float) == size) & (size > 0)
    return M @ supports.astype(M.dtype)


def plausibility(m: ArrayLike, focal: FocalSets, sets: Queries = None) -> NDArray[np.floating]:
    """Pl(A) = sum of m(B) over B that meet A; NN-EVCLUS eq. (2).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns of `m` are for.
    sets : FocalSets or iterable of iterables of int, optional
        The q sets A asked for, any sets of zero-based clusters; by default the focal sets.

    Returns
    -------
    (n, q) or (q,) array
        Pl of the q sets, for each row of `m`.

    Examples
    --------
    >>> from evdist.belief import FocalSets, plausibility
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> plausibility([0, .5, .2, .3], focal)
    array([0. , 0.8, 0.5, 1. ])
    """
    M = as_masses(m, focal)
    if sets is None and binary_order(focal) is not None:
        return meeting_sums(M, focal)
    Q = as_queries(focal if sets is None else sets, focal)
    meets = focal.matrix.astype(float) @ Q.T.astype(float) > 0
    return M @ meets.astype(M.dtype)


def commonality(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Q(A) = sum of m(B) over B that include A, for each focal set A; (n, f) or (f,).

    Q(empty) = 1, and the conjunctive sum multiplies commonalities.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns of `m` are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, commonality
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> commonality([0, .5, .2, .3], focal)
    array([1. , 0.8, 0.5, 0.3])
    """
    return superset_sums(as_masses(m, focal), focal)


def implicability(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """b(A) = Bel(A) + m(empty), for each focal set A; (n, f) or (f,).

    The disjunctive sum multiplies implicabilities.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns of `m` are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, implicability
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> implicability([.1, .5, .2, .2], focal).round(2)
    array([0.1, 0.6, 0.3, 1. ])
    """
    return subset_sums(as_masses(m, focal), focal)

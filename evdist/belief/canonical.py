"""Canonical decompositions into simple mass functions, and the cautious and bold rules.

A mass function with m(Omega) > 0 is, in one way only, the conjunctive sum of A^w(A) over the sets
A other than Omega, where A^w has mass 1 - w on A and w on Omega (for w > 1 a removal of evidence).
Dually, one with m(empty) > 0 is the disjunctive sum of A_v(A) over the non-empty sets, where A_v
has mass 1 - v on A and v on the empty set.

    ln w(A) = - sum over B including A of (-1)^(|B|-|A|) ln q(B)
    ln v(A) = - sum over B included in A of (-1)^(|A|-|B|) ln b(B)

Where a family holds all intersections of its sets and Omega, q(B) is that of the smallest of its
sets that include B, and so w = 1 on all sets outside it: the decomposition stays on the family.
The same holds of unions and v.

References: Smets (1995), The canonical decomposition of a weighted belief; Denoeux (2008),
Conjunctive and disjunctive combination of belief functions induced by nondistinct bodies of
evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import and_, or_
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import SLACK, as_masses, by_blocks
from evdist.belief.combine import Combined, sources
from evdist.belief.families import closed, grown, on_family
from evdist.belief.focal import FocalSets
from evdist.belief.lattice import (
    subset_differences,
    subset_sums,
    superset_differences,
    superset_sums,
)

Transform = Callable[[NDArray[Any], FocalSets], NDArray[Any]]


def conjunctive_weights(m: ArrayLike, focal: FocalSets) -> Combined:
    """Weights w of the conjunctive decomposition; Denoeux (2008).

    Parameters
    ----------
    focal : FocalSets
        The sets that the columns are for.
    m : (n, f) or (f,) array
        With m(Omega) > 0 in every row.

    Returns
    -------
    w : (n, f') or (f',) array
        Positive; 1 where nothing is said of a set, below 1 the evidence for it. All weights are
        at most 1 when the mass function is separable. The column of Omega is 1.
    focal : FocalSets
        The given sets, then those of their intersections that were missing, and Omega.

    Examples
    --------
    >>> from evdist.belief import FocalSets, conjunctive_weights
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> w, _ = conjunctive_weights([.48, .32, .12, .08], focal)
    >>> w.round(2)  # the conjunctive sum of {0} with mass 0.8 and {1} with mass 0.6
    array([1. , 0.2, 0.4, 1. ])
    """
    return _weights(as_masses(m, focal), focal, conjunctively=True)


def disjunctive_weights(m: ArrayLike, focal: FocalSets) -> Combined:
    """Weights v of the disjunctive decomposition; Denoeux (2008).

    Parameters and result as in :func:`conjunctive_weights`, with m(empty) > 0, unions for
    intersections, and 1 in the column of the empty set.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, disjunctive_weights
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> v, _ = disjunctive_weights([.1, .1, .4, .4], focal)
    >>> v.round(2)  # the disjunctive sum of {0} with mass 0.5 and {1} with mass 0.8
    array([1. , 0.5, 0.2, 1. ])
    """
    return _weights(as_masses(m, focal), focal, conjunctively=False)


def mass_from_conjunctive_weights(w: ArrayLike, focal: FocalSets) -> Combined:
    """The conjunctive sum of all A^w(A); the inverse of :func:`conjunctive_weights`.

    Parameters
    ----------
    focal : FocalSets
        The sets that the columns are for.
    w : (n, f) or (f,) array
        Positive; the column of Omega is not read.

    Returns
    -------
    mass : (n, f') or (f',) array
        Masses on the sets of the result.
    focal : FocalSets
        The given sets, then those of their intersections that were missing, and Omega. A
        ValueError where weights above 1 leave no mass function.

    Examples
    --------
    >>> from evdist.belief import FocalSets, mass_from_conjunctive_weights
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = mass_from_conjunctive_weights([1, .2, .4, 1], focal)
    >>> m.round(2)
    array([0.48, 0.32, 0.12, 0.08])
    """
    return _from_weights(w, focal, conjunctively=True)


def mass_from_disjunctive_weights(v: ArrayLike, focal: FocalSets) -> Combined:
    """The disjunctive sum of all A_v(A); the inverse of :func:`disjunctive_weights`.

    Parameters and result as in :func:`mass_from_conjunctive_weights`, with unions; the column of
    the empty set is not read.

    Parameters
    ----------
    v : (n, f) or (f,) array
        Disjunctive weights of the sets.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, mass_from_disjunctive_weights
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = mass_from_disjunctive_weights([1, .5, .2, 1], focal)
    >>> m.round(2)
    array([0.1, 0.1, 0.4, 0.4])
    """
    return _from_weights(v, focal, conjunctively=False)


def cautious(masses: Sequence[ArrayLike], focal: FocalSets) -> Combined:
    """Cautious rule: the least of the weights w; Denoeux (2008).

    Commutative, associative and idempotent: evidence that several sources share is counted once.
    Every source needs m(Omega) > 0 in every row: :func:`evdist.belief.discount` it otherwise. The
    result is not normalised. Masses that should be zero may be rounding errors.

    Parameters
    ----------
    focal : FocalSets
        The sets that the columns are for.
    masses : sequence of (n, f) or (f,) arrays
        One per source, all on ``focal``; a single mass function goes with every row.

    Returns
    -------
    mass : (n, f') or (f',) array
        Masses on the sets of the result.
    focal : FocalSets
        The given sets, then those of their intersections that were missing, and Omega.

    Examples
    --------
    >>> from evdist.belief import FocalSets, cautious
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = cautious([[0, .8, 0, .2], [0, .8, 0, .2]], focal)
    >>> m.round(2) + 0.0  # the same evidence twice counts once
    array([0. , 0.8, 0. , 0.2])
    """
    return _least(masses, focal, conjunctively=True)


def bold(masses: Sequence[ArrayLike], focal: FocalSets) -> Combined:
    """Bold rule: the least of the weights v; Denoeux (2008).

    The disjunctive counterpart of :func:`cautious`, for sources of which at least one is right.
    Every source needs m(empty) > 0 in every row. Parameters and result likewise, with unions.

    Parameters
    ----------
    masses : sequence of (n, f) or (f,) arrays
        One per source.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, bold
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = bold([[.2, .8, 0, 0], [.2, .8, 0, 0]], focal)
    >>> m.round(2) + 0.0  # the same evidence twice counts once
    array([0.2, 0.8, 0. , 0. ])
    """
    return _least(masses, focal, conjunctively=False)


def _least(masses: Sequence[ArrayLike], focal: FocalSets, *, conjunctively: bool) -> Combined:
    arrays = sources(masses, focal)
    least, family = _weights(arrays[0], focal, conjunctively=conjunctively)
    for m in arrays[1:]:
        other, _ = _weights(m, focal, conjunctively=conjunctively)
        least = np.minimum(least, other)
    return _from_weights(least, family, conjunctively=conjunctively)


def _weights(M: NDArray[np.floating], focal: FocalSets, *, conjunctively: bool) -> Combined:
    family, unsaid = _closed(focal, conjunctively)
    M = on_family(M, focal, family)
    _refuse_zero(M[..., unsaid], family.names[unsaid], conjunctively)
    totals: Transform = superset_sums if conjunctively else subset_sums
    inverse: Transform = superset_differences if conjunctively else subset_differences

    def kernel(rows: NDArray[Any]) -> NDArray[Any]:
        # Sums of masses that hold one above 0: the logarithm exists.
        whole = np.maximum(rows.astype(np.float64), 0.0)
        w = np.exp(-inverse(np.log(totals(whole, family)), family))
        w[:, unsaid] = 1.0
        return w.astype(M.dtype)

    return by_blocks(kernel, M), family


def _from_weights(weights: ArrayLike, focal: FocalSets, *, conjunctively: bool) -> Combined:
    W = as_masses(weights, focal, what="Weights")
    family, unsaid = _closed(focal, conjunctively)
    told = np.arange(len(focal)) != (focal.omega if conjunctively else 0)
    if W.size and not (np.atleast_2d(W).min(axis=0)[told] > 0).all():
        row, column = np.argwhere(~(np.atleast_2d(W) > 0) & told)[0]
        raise ValueError(
            f"Weights must be above 0, got {np.atleast_2d(W)[row, column]} for "
            f"{focal.names[column]} in row {row}."
        )
    totals: Transform = superset_sums if conjunctively else subset_sums
    inverse: Transform = superset_differences if conjunctively else subset_differences

    def kernel(rows: NDArray[Any]) -> NDArray[Any]:
        log = np.zeros((len(rows), len(family)))
        log[:, : len(focal)] = np.log(np.where(told, rows, 1.0))
        # Chosen so that all weights multiply to 1: then q(B), the product over the sets that do
        # not include B, is one over the product over those that do.
        log[:, unsaid] = -log.sum(axis=1)
        return inverse(np.exp(-totals(log, family)), family).astype(W.dtype)

    m = by_blocks(kernel, W, width=len(family))
    if m.size and m.min() < -1e3 * SLACK[m.dtype.name]:
        row, column = np.argwhere(np.atleast_2d(m) == m.min())[0]
        raise ValueError(
            f"The weights must be those of a mass function, got {m.min():.3g} for "
            f"{family.names[column]} in row {row}. Lower weights that are above 1."
        )
    return np.maximum(m, 0, out=m), family


def _closed(focal: FocalSets, conjunctively: bool) -> tuple[FocalSets, int]:
    """The family of the decomposition, and the column of the set that has no weight."""
    if not conjunctively:
        return closed(focal, or_), 0
    family = closed(grown(focal, [(1 << focal.n_clusters) - 1]), and_)
    assert family.omega is not None
    return family, family.omega


def _refuse_zero(mass: NDArray[Any], name: str, conjunctively: bool) -> None:
    bad = ~(np.atleast_1d(mass) > 0)
    if bad.any():
        cure = "Discount the masses first" if conjunctively else "Mix in some mass there first"
        which = "conjunctive" if conjunctively else "disjunctive"
        raise ValueError(
            f"The {which} decomposition needs mass on {name} in every row, got "
            f"{np.atleast_1d(mass)[bad][0]} in row {int(np.argmax(bad))}. {cure}."
        )

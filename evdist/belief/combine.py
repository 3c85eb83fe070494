"""Combination of mass functions by rules that say where two focal sets lead, and averages.

Every rule takes several mass arrays on one family of focal sets and returns ``(mass, focal)``:
intersections and unions of focal sets need not be focal sets, and the family returned has those
that were missing, after the given ones, by size. It depends on the family alone and not on the
masses, so blocks of rows of one array stay on one family. A family closed under the rule comes
back as it was: for the conjunctive rule, any made by ``FocalSets.simple``, ``.pairs`` or
``.full``.

References: Denoeux, slides on evidential machine learning (2021), eq. (1); NN-EVCLUS (2021),
section 2.1; Dubois and Prade (1986), A set-theoretic view of belief functions, for the disjunctive
and the exclusive rule, and (1988) for the one that bears their names; Yager (1987).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_masses
from evdist.belief.families import grown, on_family
from evdist.belief.focal import FocalSets
from evdist.belief.normalisation import normalise, rescale
from evdist.belief.products import Rule, combine_pair

Combined = tuple[NDArray[np.floating], FocalSets]


def conjunctive(masses: Sequence[ArrayLike], focal: FocalSets) -> Combined:
    """Conjunctive sum, unnormalised: m(A) = sum of m1(B) m2(C) over B, C that intersect in A.

    Parameters
    ----------
    focal : FocalSets
        The sets that the columns are for.
    masses : sequence of (n, f) or (f,) arrays
        One per source, all on ``focal``; a single mass function goes with every row. An (n, f)
        array given as the sequence combines its rows with each other.

    Returns
    -------
    mass : (n, f') or (f',) array
        Masses on the sets of the result.
    focal : FocalSets
        The f' >= f sets that the result lives on.

    Examples
    --------
    >>> from evdist.belief import FocalSets, conjunctive
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = conjunctive([[0, .8, 0, .2], [0, 0, .6, .4]], focal)
    >>> m.round(2)  # the sources disagree: mass on the empty set
    array([0.48, 0.32, 0.12, 0.08])
    """
    return _fold(masses, focal, "conjunctive")


def dempster(masses: Sequence[ArrayLike], focal: FocalSets) -> Combined:
    """Dempster's rule: the conjunctive sum, normalised; slides (2021), eq. (1).

    Rows in total conflict (kappa = 1), where the rule is undefined, come out vacuous, see
    :func:`evdist.belief.normalise`. Parameters and result as in :func:`conjunctive`.

    Parameters
    ----------
    masses : sequence of (n, f) or (f,) arrays
        One per source.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, dempster
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = dempster([[0, .8, 0, .2], [0, 0, .6, .4]], focal)
    >>> m.round(2)
    array([0.  , 0.62, 0.23, 0.15])
    """
    # Rescaled after every source, so that many sources do not underflow.
    m, family = _fold(masses, focal, "conjunctive", rescaled=True)
    return normalise(m, family), family


def disjunctive(masses: Sequence[ArrayLike], focal: FocalSets) -> Combined:
    """Disjunctive sum, m(A) = sum of m1(B) m2(C) over the B and C whose union is A.

    For sources of which at least one is right. Parameters and result as in :func:`conjunctive`.

    Parameters
    ----------
    masses : sequence of (n, f) or (f,) arrays
        One per source.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, disjunctive
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = disjunctive([[0, .8, 0, .2], [0, 0, .6, .4]], focal)
    >>> m.round(2)
    array([0., 0., 0., 1.])
    """
    return _fold(masses, focal, "disjunctive")


def exclusive(masses: Sequence[ArrayLike], focal: FocalSets) -> Combined:
    """Exclusive sum, m(A) = sum of m1(B) m2(C) over B, C whose symmetric difference is A.

    For two sources of which exactly one is right. On the power set masses that should be zero
    may be rounding errors of 1e-17. Parameters and result as in :func:`conjunctive`.

    Parameters
    ----------
    masses : sequence of (n, f) or (f,) arrays
        One per source.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, exclusive
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = exclusive([[0, .8, 0, .2], [0, 0, .6, .4]], focal)
    >>> m.round(2)
    array([0.08, 0.12, 0.32, 0.48])
    """
    return _fold(masses, focal, "exclusive")


def yager(masses: Sequence[ArrayLike], focal: FocalSets) -> Combined:
    """Yager's rule: the conjunctive sum of all sources, its conflict given to Omega.

    Not associative, and so taken of all sources at once. Omega joins the family where it is
    missing. Parameters and result as in :func:`conjunctive`.

    Parameters
    ----------
    masses : sequence of (n, f) or (f,) arrays
        One per source.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, yager
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = yager([[0, .8, 0, .2], [0, 0, .6, .4]], focal)
    >>> m.round(2)  # the conflict, 0.48, is on Omega
    array([0.  , 0.32, 0.12, 0.56])
    """
    m, family = _fold(masses, focal, "conjunctive")
    whole = grown(family, [(1 << focal.n_clusters) - 1])
    return normalise(on_family(m, family, whole), whole, "yager"), whole


def dubois_prade(masses: Sequence[ArrayLike], focal: FocalSets) -> Combined:
    """Dubois and Prade's rule: intersect sets that meet, unite sets that do not.

    Not associative: more than two sources are combined from first to last. The empty set meets
    nothing, so the result has m(empty) = m1(empty) m2(empty). Parameters and result as in
    :func:`conjunctive`.

    Parameters
    ----------
    masses : sequence of (n, f) or (f,) arrays
        One per source.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, dubois_prade
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = dubois_prade([[0, .8, 0, .2], [0, 0, .6, .4]], focal)
    >>> m.round(2)  # what they disagree about is on their union
    array([0.  , 0.32, 0.12, 0.56])
    """
    return _fold(masses, focal, "dubois_prade")


def average(
    masses: Sequence[ArrayLike], focal: FocalSets, *, weights: ArrayLike | None = None
) -> Combined:
    """Mean of the masses, or mixture; the family stays.

    Parameters and result as in :func:`conjunctive`.

    Parameters
    ----------
    masses : sequence of (n, f) or (f,) arrays
        One per source.
    focal : FocalSets
        The sets that the columns are for.
    weights : array with one number per source, optional
        How much each source counts, at least 0; by default all the same.

    Examples
    --------
    >>> from evdist.belief import FocalSets, average
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = average([[0, .8, 0, .2], [0, 0, .6, .4]], focal)
    >>> m.round(2)
    array([0. , 0.4, 0.3, 0.3])
    """
    arrays = sources(masses, focal)
    if weights is None:
        total = arrays[0]
        for m in arrays[1:]:
            total = total + m
        return total / total.dtype.type(len(arrays)), focal
    w = np.asarray(weights, dtype=float)
    if w.shape != (len(arrays),) or not ((w >= 0).all() and 0 < w.sum() < np.inf):
        raise ValueError(
            f"weights must be {len(arrays)} numbers of at least 0, one per source and not all 0, "
            f"got {w.tolist()}."
        )
    shares = w / w.sum()
    mixture = arrays[0] * arrays[0].dtype.type(shares[0])
    for m, share in zip(arrays[1:], shares[1:], strict=True):
        mixture = mixture + m * m.dtype.type(share)
    return mixture, focal


def _fold(
    masses: Sequence[ArrayLike], focal: FocalSets, rule: Rule, *, rescaled: bool = False
) -> Combined:
    arrays = sources(masses, focal)
    m, family = (arrays[0].copy() if len(arrays) == 1 else arrays[0]), focal
    for other in arrays[1:]:
        m, family = combine_pair((m, family), (other, focal), rule)
        if rescaled:
            m, _ = rescale(m)
    return m, family


def sources(masses: Sequence[ArrayLike], focal: FocalSets) -> list[NDArray[np.floating]]:
    """The mass arrays of all sources, at least one, with the same number of rows."""
    arrays = [as_masses(m, focal) for m in masses]
    if not arrays:
        raise ValueError("Combination needs at least one mass array, got none.")
    rows = {len(m) for m in arrays if m.ndim == 2}
    if len(rows) > 1:
        raise ValueError(
            f"Mass arrays must have the same number of rows, got {sorted(rows)}. "
            "Pass the same objects in the same order."
        )
    return arrays

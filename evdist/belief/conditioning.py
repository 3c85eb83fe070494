"""Conditioning and its inverse, and the generalised Bayesian theorem.

References: Shafer (1976), A mathematical theory of evidence (Dempster's conditioning);
Suppes and Zanotti (1977) for geometric conditioning; Smets (1993), Belief functions: the
disjunctive rule of combination and the generalized Bayesian theorem; Smets and Kennes (1994), The
transferable belief model.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import SLACK, as_mask, as_masses
from evdist.belief.families import carry, grown
from evdist.belief.focal import MAX_FULL_CLUSTERS, FocalSets
from evdist.belief.normalisation import rescale


def condition(
    m: ArrayLike, focal: FocalSets, given: Iterable[int], *, normalised: bool = False
) -> tuple[NDArray[np.floating], FocalSets]:
    """m[B](A) = sum of m(C) over the C that B cuts down to A; Smets and Kennes (1994).

    The same as the conjunctive sum with all mass on B.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    given : iterable of int
        B, the clusters among which the truth is known to be.
    normalised : bool
        Divide by 1 - m[B](empty), Dempster's conditioning. Rows that B contradicts completely,
        Pl(B) = 0, get all mass on B.

    Returns
    -------
    mass : (n, f') or (f',) array
        Masses on the sets of the result.
    focal : FocalSets
        The given sets, then what B leaves of them where that is missing, and B.

    Examples
    --------
    >>> from evdist.belief import FocalSets, condition
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = condition([0, .5, .2, .3], focal, [0])
    >>> m.round(2)  # what was for cluster 1 fits no longer
    array([0.2, 0.8, 0. , 0. ])
    """
    M, B = as_masses(m, focal), as_mask(given, focal.n_clusters)
    left = [mask & B for mask in focal.masks]
    family = grown(focal, [*left, B])
    out = carry(M, left, family)
    return (_divided(out, family, B) if normalised else out), family


def geometric_condition(
    m: ArrayLike, focal: FocalSets, given: Iterable[int]
) -> tuple[NDArray[np.floating], FocalSets]:
    """m(A) / Bel(B) for the non-empty A inside B; Suppes and Zanotti (1977).

    Bel(A | B) = Bel(A and B) / Bel(B): only what was for B counts, not what was merely
    compatible with it. Rows with Bel(B) = 0 get all mass on B. Parameters and result as in
    :func:`condition`.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    given : iterable of int
        The clusters that are known to hold the truth.

    Examples
    --------
    >>> from evdist.belief import FocalSets, geometric_condition
    >>> focal = FocalSets.pairs(3, [(0, 1)])  # ∅, {0}, {1}, {2}, {0,1}, Ω
    >>> m, _ = geometric_condition([0, .3, .1, .2, .1, .3], focal, [0, 1])
    >>> m.round(2)
    array([0. , 0.6, 0.2, 0. , 0.2, 0. ])
    """
    M, B = as_masses(m, focal), as_mask(given, focal.n_clusters)
    family = grown(focal, [B])
    out = np.zeros((*M.shape[:-1], len(family)), dtype=M.dtype)
    inside = [q for q, mask in enumerate(focal.masks) if mask and mask & ~B == 0]
    out[..., inside] = M[..., inside]
    return _divided(out, family, B), family


def decondition(
    m: ArrayLike, focal: FocalSets, given: Iterable[int]
) -> tuple[NDArray[np.floating], FocalSets]:
    """The least committed masses that :func:`condition` on B turns into ``m``; Smets (1993).

    Each set inside B is joined with the complement of B, of which nothing is known (the
    "ballooning extension"). Parameters and result as in :func:`condition`; all mass must lie on
    sets inside B.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    given : iterable of int
        The clusters that are known to hold the truth.

    Examples
    --------
    >>> from evdist.belief import FocalSets, decondition
    >>> focal = FocalSets.of([[0], [1]], 3)  # ∅, {0}, {1}
    >>> m, family = decondition([0, .6, .4], focal, [0, 1])
    >>> {name: mass for name, mass in zip(family.names, m.round(2).tolist()) if mass}
    {'{0,2}': 0.6, '{1,2}': 0.4}
    """
    M, B = as_masses(m, focal), as_mask(given, focal.n_clusters)
    outside = ((1 << focal.n_clusters) - 1) & ~B
    for q, mask in enumerate(focal.masks):
        if mask & outside and (M[..., q] > SLACK[M.dtype.name]).any():
            row = int(np.argmax(np.atleast_1d(M[..., q]) > SLACK[M.dtype.name]))
            raise ValueError(
                f"All mass must lie inside the set given, got mass on {focal.names[q]} in row "
                f"{row}. Condition on the set first."
            )
    joined = [mask if mask & outside else mask | outside for mask in focal.masks]
    family = grown(focal, joined)
    return carry(M, joined, family), family


def generalised_bayes(
    plausibility: ArrayLike,
) -> tuple[NDArray[np.floating], FocalSets]:
    """Masses on clusters from how plausible each makes what was observed; Smets (1993).

    m(A) = product of pl(k) over the k in A, times the product of 1 - pl(k) over the others.
    Conjunctively combined with a prior, such as probabilities, it is Bayes' theorem when the
    plausibilities are probabilities.

    Parameters
    ----------
    plausibility : (n, c) or (c,) array in [0, 1]
        pl(x | k), the plausibility of the observation x in cluster k alone, for instance
        ``plausibility(conditional, frame_of_x, [x])`` of one mass function per cluster.

    Returns
    -------
    mass : (n, 2^c) or (2^c,) array
        Masses on the sets of the result.
    focal : FocalSets
        The power set.

    Examples
    --------
    >>> from evdist.belief import generalised_bayes
    >>> m, focal = generalised_bayes([.8, .5])
    >>> focal.names
    ('∅', '{0}', '{1}', 'Ω')
    >>> m.round(2)
    array([0.1, 0.4, 0.1, 0.4])
    """
    p = np.asarray(plausibility)
    p = p if p.dtype == np.float32 else p.astype(np.float64)
    if p.ndim not in (1, 2) or not 1 <= p.shape[-1] <= MAX_FULL_CLUSTERS:
        raise ValueError(
            f"Plausibilities must have shape (n, c) or (c,) with at most {MAX_FULL_CLUSTERS} "
            f"clusters, got shape {p.shape}."
        )
    bad = ~((p >= 0) & (p <= 1))
    if bad.any():
        *row, k = np.argwhere(bad)[0]
        where = f" in row {row[0]}" if row else ""
        raise ValueError(
            f"Plausibilities must lie between 0 and 1, got {p[(*row, k)]} for cluster {k}{where}."
        )
    m = np.ones((*p.shape[:-1], 1), dtype=p.dtype)
    for k in range(p.shape[-1]):
        # Bit k of the column's number says whether k belongs to the set.
        m = np.concatenate([m * (1 - p[..., k : k + 1]), m * p[..., k : k + 1]], axis=-1)
    return m, FocalSets.full(p.shape[-1])


def _divided(m: NDArray[np.floating], family: FocalSets, B: int) -> NDArray[np.floating]:
    out, defined = rescale(m)
    vacuous = np.zeros(len(family), dtype=out.dtype)
    vacuous[family.masks.index(B)] = 1.0
    out[~defined] = vacuous
    return out

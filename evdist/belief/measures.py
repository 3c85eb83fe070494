"""Conflict and distance between mass functions, and how unspecific one is.

Symbols
-------
C     (f, f) conflict matrix, 1 where two focal sets are disjoint
J     (f, f) Jaccard matrix |A and B| / |A or B|
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_masses, as_pair
from evdist.belief.focal import FocalSets
from evdist.belief.lattice import binary_order, subset_sums


def conflict(m1: ArrayLike, m2: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Degree of conflict kappa = m1' C m2, row by row; NN-EVCLUS eq. (3); (n,).

    One minus it is the plausibility that two objects belong to the same cluster. A single mass
    function (f,) on either side is compared with every row of the other.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses.
    focal : FocalSets
        The sets that the columns of both are for.

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
    disjoint = subset_sums(a, focal)[..., order[::-1]]
    return np.einsum("...q,...q->...", disjoint, b[..., order])


def jousselme(m1: ArrayLike, m2: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Jousselme's distance (0.5 (m1 - m2)' J (m1 - m2))^(1/2), row by row; (n,).

    A metric with values in [0, 1]; slides on evidential clustering (2017), "Jousselme's
    distance". The (f, f) matrix J is kept: count on 8 f^2 bytes.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses.
    focal : FocalSets
        The sets that the columns of both are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, jousselme
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> float(jousselme([0, 1, 0, 0], [0, 0, 1, 0], focal))
    1.0
    """
    a, b = as_pair(m1, m2, focal)
    difference = a - b
    square = np.einsum("...q,...q->...", difference @ focal.jaccard.astype(a.dtype), difference)
    # J is positive definite; rounding can still leave a square just below 0.
    return np.sqrt(np.maximum(0.5 * square, 0.0))


def nonspecificity(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Nonspecificity in bits: sum of m(A) log2|A|, the empty set counting as Omega; (n,).

    The bracket of k-CEVCLUS eq. (23), whose average over objects, divided by log2 c, is N*.
    Between 0 (all mass on singletons) and log2 c.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns of `m` are for.

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

"""Back from belief, plausibility, commonality or implicability to masses (Moebius inversion).

Each is one of the equivalent representations of a mass function (slides on evidential machine
learning, 2021, "Relations between m, Bel and Pl"). The values are given on the focal sets, in
their order; they determine the masses when no other set carries any.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_masses
from evdist.belief.focal import FocalSets
from evdist.belief.lattice import subset_differences, superset_differences


def mass_from_implicability(b: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """m(A) = sum over B included in A of (-1)^(|A|-|B|) b(B), on the family; (n, f) or (f,).

    Parameters
    ----------
    b : (n, f) or (f,) array
        b of each focal set.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, mass_from_implicability
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> mass_from_implicability([.1, .6, .3, 1], focal).round(2)
    array([0.1, 0.5, 0.2, 0.2])
    """
    return subset_differences(as_masses(b, focal), focal)


def mass_from_commonality(q: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """m(A) = sum over B including A of (-1)^(|B|-|A|) Q(B), on the family; (n, f) or (f,).

    Parameters
    ----------
    q : (n, f) or (f,) array
        Q of each focal set.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, mass_from_commonality
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> mass_from_commonality([1, .8, .5, .3], focal).round(2) + 0.0
    array([0. , 0.5, 0.2, 0.3])
    """
    return superset_differences(as_masses(q, focal), focal)


def mass_from_belief(bel: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """m(A) = sum over non-empty B included in A of (-1)^(|A|-|B|) Bel(B); (n, f) or (f,).

    Belief says nothing of the empty set: it gets what the other sets leave, so that rows sum to
    one.

    Parameters
    ----------
    bel : (n, f) or (f,) array
        Bel of each focal set.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, mass_from_belief
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> mass_from_belief([0, .5, .2, 1], focal)
    array([0. , 0.5, 0.2, 0.3])
    """
    b = as_masses(bel, focal).copy()
    b[..., 0] = 0.0
    m = subset_differences(b, focal)
    m[..., 0] = 1.0 - m[..., 1:].sum(axis=-1)
    return m


def mass_from_plausibility(pl: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """Masses from Bel(A) = Pl(Omega) - Pl(not A); (n, f) or (f,).

    The complement of every focal set must be a focal set, as in the power set.

    Parameters
    ----------
    pl : (n, f) or (f,) array
        Pl of each focal set.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, mass_from_plausibility
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> mass_from_plausibility([0, .8, .5, 1], focal).round(2)
    array([0. , 0.5, 0.2, 0.3])
    """
    P = as_masses(pl, focal)
    column = {mask: q for q, mask in enumerate(focal.masks)}
    whole = (1 << focal.n_clusters) - 1
    complement = [column.get(whole ^ mask, -1) for mask in focal.masks]
    if -1 in complement:
        lonely = focal.names[complement.index(-1)]
        raise ValueError(
            "Plausibilities give the masses only where the complement of every focal set is a "
            f"focal set, got {lonely} without its complement. Use mass_from_belief, or the power "
            "set."
        )
    return mass_from_belief(P[..., [column[whole]]] - P[..., complement], focal)

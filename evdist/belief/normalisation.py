"""Normalisation: what to do with m(empty).

References: Denoeux, slides on evidential machine learning (2021), eq. (1) for Dempster's
division by 1 - m(empty); Yager (1987) for the transfer of m(empty) to Omega.

Differs: R's evclust returns NaN when m(empty) = 1. Here such a row, about which Dempster's
division says nothing, becomes the vacuous mass function.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_masses
from evdist.belief.focal import FocalSets


def normalise(
    m: ArrayLike, focal: FocalSets, rule: Literal["dempster", "yager"] = "dempster"
) -> NDArray[np.floating]:
    """Masses without mass on the empty set; (n, f) or (f,), column 0 is zero.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    rule : {"dempster", "yager"}
        ``"dempster"`` divides by 1 - m(empty). Where m(empty) = 1 that is undefined and the row
        becomes vacuous: all mass on Omega, or, when Omega is not a focal set, equal masses on the
        focal singletons (on all non-empty focal sets when there are none). ``"yager"`` moves
        m(empty) to Omega, which must then be a focal set.

    Examples
    --------
    >>> from evdist.belief import FocalSets, normalise
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> normalise([.2, .4, .4, 0], focal)
    array([0. , 0.5, 0.5, 0. ])
    """
    M = as_masses(m, focal)
    if rule == "dempster":
        out, defined = rescale(M)
        out[~defined] = _ignorance(focal)
        return out
    if rule == "yager":
        out = M.copy()
        out[..., omega_column(focal, "Yager's normalisation")] += M[..., 0]
        out[..., 0] = 0.0
        return out
    raise ValueError(f'rule must be "dempster" or "yager", got {rule!r}.')


def rescale(M: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Divide by the mass of the non-empty sets, and say for which rows that was possible.

    The divisor is the sum itself, not 1 - m(empty): near total conflict the difference would
    have lost its digits. Rows with nothing to rescale come back as they were.
    """
    rest = M[..., 1:].sum(axis=-1)
    defined = rest > 0
    out = M / np.where(defined, rest, 1.0).astype(M.dtype)[..., None]
    out[..., 0] = np.where(defined, 0.0, M[..., 0])
    return out, defined


def _ignorance(focal: FocalSets) -> NDArray[np.float64]:
    """The mass function that stands for knowing nothing within the family; (f,)."""
    if len(focal) == 1:
        raise ValueError(
            "Normalisation needs a non-empty focal set to hold the mass, got only the empty set."
        )
    if focal.omega is not None:
        columns = np.array([focal.omega])
    elif (focal.singletons >= 0).any():
        columns = focal.singletons[focal.singletons >= 0]
    else:
        columns = np.arange(1, len(focal))
    m = np.zeros(len(focal))
    m[columns] = 1.0 / len(columns)
    return m


def omega_column(focal: FocalSets, what: str) -> int:
    """Column of Omega, or a ValueError that says who needs it."""
    if focal.omega is None:
        raise ValueError(
            f"{what} moves mass to Omega, which is not a focal set of {focal!r}. "
            "Build the family with omega=True."
        )
    return focal.omega

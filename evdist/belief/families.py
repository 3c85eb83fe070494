"""Masses carried from one family of sets to another.

Conditioning, refining, coarsening and contextual discounting all say where each focal set goes;
the masses of those that go to the same set are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_masses, by_blocks
from evdist.belief.focal import MAX_FULL_CLUSTERS, FocalSets

#: As many as the power set of MAX_FULL_CLUSTERS clusters has.
MAX_SETS = 1 << MAX_FULL_CLUSTERS


def on_family(m: ArrayLike, focal: FocalSets, family: FocalSets) -> NDArray[np.floating]:
    """The same masses on another family; (n, g) or (g,), 0 on sets that were not focal.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    family : FocalSets
        About the same clusters. A focal set that it lacks must have no mass.

    Examples
    --------
    >>> from evdist.belief import FocalSets, on_family
    >>> focal = FocalSets.of([[0], [0, 1]], 2)  # ∅, {0}, {0,1}
    >>> on_family([0, .7, .3], focal, FocalSets.full(2))
    array([0. , 0.7, 0. , 0.3])
    """
    M = as_masses(m, focal)
    if family.n_clusters != focal.n_clusters:
        raise ValueError(
            f"Both families must be about the same clusters, got {focal.n_clusters} and "
            f"{family.n_clusters}. Use refine or coarsen to change the frame."
        )
    if family is focal:
        return M
    column = {mask: q for q, mask in enumerate(family.masks)}
    place = np.array([column.get(mask, -1) for mask in focal.masks])
    for q in np.flatnonzero(place < 0):
        if M[..., q].any():
            raise ValueError(
                f"{focal.names[q]} has mass and is no set of the other family. Add it there."
            )
    out = np.zeros((*M.shape[:-1], len(family)), dtype=M.dtype)
    out[..., place[place >= 0]] = M[..., place >= 0]
    return out


def on_power_set(m: ArrayLike, focal: FocalSets) -> tuple[NDArray[np.floating], FocalSets]:
    """The same masses with a column for every set of clusters, in the order of binary counting.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, on_power_set
    >>> m, full = on_power_set([0, .7, .3], FocalSets.of([[0], [0, 1]], 2))
    >>> full.names
    ('∅', '{0}', '{1}', 'Ω')
    >>> m
    array([0. , 0.7, 0. , 0.3])
    """
    full = FocalSets.full(focal.n_clusters)
    return on_family(m, focal, focal if focal == full else full), full


def grown(focal: FocalSets, masks: Iterable[int]) -> FocalSets:
    """``focal`` and those of the sets that it lacks, after its own, by size."""
    missing = set(masks) - set(focal.masks)
    if not missing:
        return focal
    if len(focal) + len(missing) > MAX_SETS:
        raise ValueError(
            f"The result must have at most {MAX_SETS} focal sets, got "
            f"{len(focal) + len(missing)}. Start from fewer focal sets."
        )
    return FocalSets(focal.n_clusters, focal.masks + by_size(missing))


def by_size(masks: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(masks, key=lambda mask: (mask.bit_count(), mask)))


def family_of(masks: Iterable[int], n_clusters: int) -> FocalSets:
    """The empty set and these sets by size; all of them in the order of binary counting."""
    sets = {0, *masks}
    if len(sets) == 1 << n_clusters:
        return FocalSets(n_clusters, tuple(range(len(sets))))
    return FocalSets(n_clusters, by_size(sets))


def closed(focal: FocalSets, operation: Callable[[int, int], int]) -> FocalSets:
    """The smallest family that holds ``focal`` and what ``operation`` makes of any two sets."""
    if len(focal) == 1 << focal.n_clusters:
        return focal
    found, new = set(focal.masks), set(focal.masks)
    while new:
        # By a focal set at a time: every intersection (or union) of several is reached so.
        new = {operation(a, b) for a in new for b in focal.masks} - found
        found |= new
        if len(found) > MAX_SETS:
            raise ValueError(
                f"The family with all intersections or unions must have at most {MAX_SETS} sets. "
                "Start from fewer focal sets."
            )
    return grown(focal, found)


def carry(
    M: NDArray[np.floating], goes_to: Sequence[int], family: FocalSets
) -> NDArray[np.floating]:
    """Masses (n, f) or (f,) on ``family``, the one of column q on the set ``goes_to[q]``."""
    way = ways(goes_to, family)

    def kernel(rows: NDArray[Any]) -> NDArray[Any]:
        return way(np.ascontiguousarray(rows.T)).T

    return by_blocks(kernel, M, width=len(goes_to) + len(family))


def ways(goes_to: Sequence[int], family: FocalSets) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """The function that adds rows of (f, b) arrays up to those of a (g, b) array on ``family``."""
    column = {mask: q for q, mask in enumerate(family.masks)}
    target = np.array([column[mask] for mask in goes_to])
    order = np.argsort(target, kind="stable")
    reached, starts = np.unique(target[order], return_index=True)

    def way(x: NDArray[Any]) -> NDArray[Any]:
        out = np.zeros((len(family), x.shape[1]), dtype=x.dtype)
        out[reached] = np.add.reduceat(x[order], starts, axis=0)
        return out

    return way

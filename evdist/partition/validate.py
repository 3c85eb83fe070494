"""What a table of masses must satisfy, and the sentences that say where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.kernels.sparse_rows import cluster_slots, mass_slots
from evdist.partition import compiled

#: How far from one a row may sum: solvers stop at about 1e-8, float32 rounds a row of a few
#: thousand masses by at most 1e-5.
SUM_TOLERANCE = {"float64": 1e-6, "float32": 1e-5}
_LIST_CURE = "The list is damaged: restore it from a copy, or make it with SparseMasses.of."


def check_shape(mass: Any, focal_sets: FocalSets) -> None:
    """Shape and kind of a table of masses, which are known without reading it."""
    if not isinstance(focal_sets, FocalSets):
        raise TypeError(
            f"focal_sets must be a FocalSets, got {type(focal_sets).__name__}. "
            "Build one with FocalSets.simple, .pairs, .full, .of or .from_matrix."
        )
    if len(mass.shape) != 2:
        raise ValueError(
            "mass must have two axes (objects, focal sets), got shape "
            f"{tuple(mass.shape)}. For one object write mass[None, :]."
        )
    if mass.dtype.kind not in "fiub":
        raise ValueError(f"mass must hold real numbers, got dtype {mass.dtype}.")
    if np.isnan(mass.shape[0]):
        raise ValueError(
            "The number of rows of this Dask array is not known. Call its compute_chunk_sizes() "
            "first."
        )
    if mass.shape[1] != len(focal_sets):
        raise ValueError(
            f"mass must have one column per focal set: got {mass.shape[1]} columns for "
            f"{len(focal_sets)} focal sets ({', '.join(focal_sets.names[:6])}"
            f"{', ...' if len(focal_sets) > 6 else ''})."
        )


def check_rows(block: NDArray[Any], first: int, names: tuple[str, ...]) -> None:
    """Refuse a block with a mass that is negative or not a number, or a row not summing to one.

    Parameters
    ----------
    block : (b, f) array
    first : int
        Number of the first row of the block in the whole table, for the message.
    names : tuple of str
        Names of the focal sets, for the message.
    """
    if block.size == 0:
        return
    # min() hands on a NaN, so that one comparison finds both faults.
    if not block.min() >= 0:
        row, column = np.argwhere(~(block >= 0))[0]
        value = block[row, column]
        cure = "replace or drop that object" if np.isnan(value) else "masses are at least 0"
        raise ValueError(
            f"Row {first + row} of mass has {value} on {names[column]} (column {column}); {cure}."
        )
    _check_sums(block.sum(axis=1, dtype=np.float64), first, block.dtype)


def check_lists(T: NDArray[np.float32], first: int, names: tuple[str, ...]) -> None:
    """As :func:`check_rows`, of encoded rows (`evdist.kernels.sparse_rows`), and their numbers.

    Clusters must be there, and ascend.
    """
    c = len(names) - 2
    if len(T) == 0 or compiled.are_lists(T, c, SUM_TOLERANCE["float32"]):
        return
    mass, cluster = mass_slots(T), cluster_slots(T)
    if not min(T[:, :2].min(), mass.min()) >= 0:
        _refuse_mass(T, first, names)
    total = T[:, :2].sum(axis=1, dtype=np.float64) + mass.sum(axis=1, dtype=np.float64)
    _check_sums(total, first, T.dtype)
    used = mass > 0
    unknown = used & (cluster >= c)
    if unknown.any():
        row, slot = np.argwhere(unknown)[0]
        raise ValueError(
            f"Row {first + row} of mass names cluster {cluster[row, slot]}; there are 0..{c - 1}. "
            f"{_LIST_CURE}"
        )
    # Numbers of free slots ascend, too, as they are written: other rows are looked at closely.
    some = np.flatnonzero((cluster[:, 1:] <= cluster[:, :-1]).any(axis=1))
    number = np.where(used[some], cluster[some].astype(np.int64), -1)
    before = np.maximum.accumulate(number, axis=1)[:, :-1]
    fall = used[some, 1:] & (number[:, 1:] <= before)
    if fall.any():
        row, slot = np.argwhere(fall)[0]
        raise ValueError(
            f"Row {first + some[row]} of mass names cluster {number[row, slot + 1]} after cluster "
            f"{before[row, slot]}; the clusters of a list ascend. {_LIST_CURE}"
        )


def _refuse_mass(T: NDArray[np.float32], first: int, names: tuple[str, ...]) -> None:
    """Say where in these lists a mass is negative or not a number."""
    table = np.column_stack([T[:, :2], mass_slots(T)])
    row, place = np.argwhere(~(table >= 0))[0]
    column = (0, len(names) - 1)[place] if place < 2 else 1 + int(cluster_slots(T)[row, place - 2])
    named = names[column] if column < len(names) else f"cluster {column - 1}"
    value = table[row, place]
    cure = "replace or drop that object" if np.isnan(value) else "masses are at least 0"
    raise ValueError(f"Row {first + row} of mass has {value} on {named} (column {column}); {cure}.")


def _check_sums(total: NDArray[np.float64], first: int, dtype: np.dtype) -> None:
    tolerance = SUM_TOLERANCE["float32" if dtype == np.float32 else "float64"]
    wrong = ~(np.abs(total - 1.0) <= tolerance)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"Row {first + row} of mass sums to {total[row]:.9g}; each row must sum to 1 within "
            f"{tolerance:g}. Divide the rows by their sums, or give the missing mass to a focal "
            "set (column 0, the empty set, stands for outliers)."
        )

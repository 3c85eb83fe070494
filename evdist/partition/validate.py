"""What a table of masses must satisfy, and the sentences that say where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets

#: How far from one a row may sum: solvers stop at about 1e-8, float32 rounds a row of a few
#: thousand masses by at most 1e-5.
SUM_TOLERANCE = {"float64": 1e-6, "float32": 1e-5}


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
    total = block.sum(axis=1, dtype=np.float64)
    tolerance = SUM_TOLERANCE["float32" if block.dtype == np.float32 else "float64"]
    wrong = ~(np.abs(total - 1.0) <= tolerance)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"Row {first + row} of mass sums to {total[row]:.9g}; each row must sum to 1 within "
            f"{tolerance:g}. Divide the rows by their sums, or give the missing mass to a focal "
            "set (column 0, the empty set, stands for outliers)."
        )

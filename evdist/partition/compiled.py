"""Views of a partition by compiled code, where the compiler is there already.

A fit has loaded it. To load it for a look alone, as in a client that reads an answer, takes longer
than it saves; then NumPy gives the same bits.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.kernels import sparse_rows
from evdist.registry import load

#: Kinds of masses that there is code for.
_TYPES = (np.dtype(np.float32), np.dtype(np.float64))


def most_plausible(m: NDArray[Any], focal: FocalSets) -> NDArray[np.int64] | None:
    """The cluster of greatest plausibility of each row; None where no compiled code is for it."""
    if not (_ready(m) and m.dtype in _TYPES and focal.is_simple):
        return None
    found: NDArray[np.int64] = load("evdist.kernels.looks:most_plausible")(m)
    return found


def most_mass(T: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """`evdist.kernels.sparse_rows.most_mass`, compiled where it can be."""
    look = load("evdist.kernels.looks:most_mass") if _ready(T) else sparse_rows.most_mass
    found: tuple[NDArray[np.int64], NDArray[np.float32]] = look(T)
    return found


def are_lists(T: NDArray[np.float32], n_clusters: int, tolerance: float) -> bool:
    """Whether compiled code is there and finds these encoded rows right: see `check_lists`."""
    return _ready(T) and load("evdist.kernels.looks:are_lists")(T, n_clusters, tolerance)


def _ready(table: NDArray[Any]) -> bool:
    """Whether a fit has loaded the compiler, and the rows lie as its code reads them."""
    return "numba" in sys.modules and table.flags.c_contiguous

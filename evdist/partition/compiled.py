"""Compiled code for views of a partition, where the compiler is there already.

A fit has loaded it. To load it for a look alone, as in a client that reads an answer, takes longer
than it saves; then NumPy gives the same bits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.registry import load

#: Kinds of masses that there is code for.
_TYPES = (np.dtype(np.float32), np.dtype(np.float64))


def most_plausible(m: NDArray[Any], focal: FocalSets) -> Callable[..., Any] | None:
    """`evdist.kernels.looks.most_plausible` for such a block over such focal sets."""
    if "numba" not in sys.modules or not m.flags.c_contiguous or m.dtype not in _TYPES:
        return None
    return load("evdist.kernels.looks:most_plausible") if is_simple(focal) else None


def is_simple(focal: FocalSets) -> bool:
    """Whether the sets are the empty one, the singletons and Omega, in this order."""
    c = focal.n_clusters
    return (
        len(focal) == c + 2
        and focal.omega == c + 1
        and np.array_equal(focal.singletons, np.arange(1, c + 1))
    )


def most_mass(T: NDArray[Any]) -> Callable[..., Any] | None:
    """`evdist.kernels.looks.most_mass` for such rows."""
    ready = "numba" in sys.modules and T.flags.c_contiguous
    return load("evdist.kernels.looks:most_mass") if ready else None

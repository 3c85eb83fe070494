"""Lists of clusters as sweeps see them: the first lines of all rows, then all second lines.

An encoded row (`evdist.kernels.sparse_rows`) has two cache lines, and the first says nearly every
row. Side by side in memory the first lines of all rows take half the room of whole rows, and more
of them stay in the processor's cache.

A module of its own: who only looks at masses does not wait for numba.

Symbols
-------
T     (2 n, LANES) float32; T[j] is the first line of row j, T[n + j] the second
ids   the same memory as uint16
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evdist.kernels import sparse_rows
from evdist.kernels.jit import njit
from evdist.kernels.lanes import LANES
from evdist.kernels.sparse_rows import FIRST_ID, FIRST_MASS, IDS_AHEAD, MASSES_AHEAD, WORDS
from evdist.kernels.vector import aligned_zeros

_inline = njit(inline="always")
_id_at, _mass_at = _inline(sparse_rows.id_at), _inline(sparse_rows.mass_at)


def split(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Encoded rows (n, WORDS) line by line: T."""
    T = aligned_zeros(2 * len(rows), LANES)
    T[: len(rows)], T[len(rows) :] = rows[:, :LANES], rows[:, LANES:]
    return T


def joined(T: NDArray[np.float32], rows: NDArray | slice) -> NDArray[np.float32]:
    """Some of the encoded rows: a copy."""
    lines = T.reshape(2, -1, LANES)[:, rows]
    return lines.transpose(1, 0, 2).reshape(-1, WORDS)


@njit(inline="always")
def slot_id(ids, n, j, q):
    """The cluster number of slot q of row j."""
    return ids[j, FIRST_ID + q] if q < IDS_AHEAD else ids[n + j, _id_at(q) - 2 * LANES]


@njit(inline="always")
def slot_mass(T, n, j, q):
    """The mass of slot q of row j."""
    return T[j, FIRST_MASS + q] if q < MASSES_AHEAD else T[n + j, _mass_at(q) - LANES]


@njit(inline="always")
def put_slot(T, ids, n, j, q, cluster, mass):
    """Give slot q of row j a cluster and its mass."""
    if q < IDS_AHEAD:
        ids[j, FIRST_ID + q] = cluster
    else:
        ids[n + j, _id_at(q) - 2 * LANES] = cluster
    if q < MASSES_AHEAD:
        T[j, FIRST_MASS + q] = mass
    else:
        T[n + j, _mass_at(q) - LANES] = mass

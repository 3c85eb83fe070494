"""The objective of sparse rows, and masses put on the grid; see `sparse_sweep` for symbols."""

from __future__ import annotations

import numpy as np

from evdist.kernels.grid import quantise
from evdist.kernels.jit import njit, njit_inner
from evdist.kernels.lanes import LANES
from evdist.kernels.slots import put_slot, slot_id, slot_mass
from evdist.kernels.sparse_rows import FIRST_ID, FIRST_MASS, FREE, SLOTS
from evdist.kernels.vector import fetch_row

#: Pairs between the one whose row is fetched into the cache and the one that is looked at.
_AHEAD = 16
#: Slots that are read at a time: free ones hold no mass and add nothing.
_FOUR = 4


@njit_inner
def _shared(T, ids, n, j, x):
    """sum_a x(a) s_j(a); exact on the grid, so the order of terms does not matter."""
    total = 0.0
    for q in range(_FOUR):
        total += x[ids[j, FIRST_ID + q]] * T[j, FIRST_MASS + q]
    if T[j, FIRST_MASS + _FOUR] > 0.0:
        for q in range(_FOUR, 2 * _FOUR):
            total += x[ids[j, FIRST_ID + q]] * T[j, FIRST_MASS + q]
        if T[j, FIRST_MASS + 2 * _FOUR - 1] > 0.0:
            for q in range(2 * _FOUR, SLOTS):
                total += x[slot_id(ids, n, j, q)] * slot_mass(T, n, j, q)
    return total


@njit(error_model="numpy")
def sparse_objective(T, ids, block, weight, lo, hi):
    """Sum over the pairs of rows lo..hi-1 of their weighted squared residuals."""
    n = T.shape[0] // 2
    row0, first, degree, partner, delta, _ = block
    x = np.zeros(FREE + SLOTS)  # cluster numbers and those of free slots
    stress = 0.0
    for i in range(lo, hi):
        row = i - row0
        for q in range(SLOTS):
            x[slot_id(ids, n, i, q)] += slot_mass(T, n, i, q)
        empty, omega = np.float64(T[i, 0]), np.float64(T[i, 1])
        rest = 1.0 - empty - omega
        for t in range(first[row], first[row] + degree[row]):
            j = np.int64(partner[t])
            ahead = np.int64(partner[min(t + _AHEAD, partner.size - 1)])
            fetch_row(T, LANES, ahead)
            kappa = empty + omega * T[j, 0] + rest * (1.0 - T[j, 1]) - _shared(T, ids, n, j, x)
            residual = kappa - delta[t]
            if weight.size:
                stress += weight[i] * weight[j % n] * residual * residual
            else:
                stress += residual * residual
        for q in range(SLOTS):
            x[slot_id(ids, n, i, q)] = 0.0
    return stress


@njit(error_model="numpy")
def put_on_grid(T, ids, lo, hi):
    """Round the masses of rows lo..hi-1 to the grid of the kernels."""
    n, m = T.shape[0] // 2, np.empty(SLOTS + 2)
    for i in range(lo, hi):
        m[0], m[1] = T[i, 0], T[i, 1]
        for q in range(SLOTS):
            m[2 + q] = slot_mass(T, n, i, q)
        quantise(m, SLOTS + 2)
        T[i, 0], T[i, 1] = m[0], m[1]
        p = 0
        for q in range(SLOTS):
            if m[2 + q] > 0.0:
                put_slot(T, ids, n, i, p, slot_id(ids, n, i, q), m[2 + q])
                p += 1
        for q in range(p, SLOTS):
            put_slot(T, ids, n, i, q, FREE + q, 0.0)

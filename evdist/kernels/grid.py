"""Masses on a grid: multiples of 2**-24 of sum one, so that what is made of them is exact.

Products of two such numbers have 48 bits and their sums stay below one: conflicts are exact in
float64, and rows of the table in float32, in whatever order they are summed.

M is (n, f) float32, P (v, f, F) float32 the projections, and row i + q n of `table` (v n, F)
is m_i P_q.
"""

from __future__ import annotations

import numpy as np

from evdist.kernels.jit import njit, njit_inner
from evdist.kernels.vector import project_line

#: Masses are multiples of 1 / GRID: exact in float32, and so are all their partial sums.
GRID = float(1 << 24)


@njit(error_model="numpy")
def quantise(m, f):
    """Round m (f,) >= 0, of sum one but for rounding, to multiples of 1 / GRID of sum one.

    In place; the largest component absorbs what the others lose.
    """
    for j in range(f):
        m[j] = np.floor(m[j] * GRID + 0.5)
    total = most = 0.0
    for j in range(f):
        total += m[j]
        most = m[j] if m[j] > most else most
    big = 0
    while m[big] < most:
        big += 1
    m[big] += GRID - total
    for j in range(f):
        m[j] *= 1.0 / GRID


@njit_inner
def project_row(m, f, P, table, n, i):
    """table[i + q n] = m P_q for every projection q: exact on the grid."""
    for q in range(P.shape[0]):
        project_line(m, f, P, q, table, i + q * n)


@njit(error_model="numpy")
def project_rows(M, P, table, lo, hi):
    """Put the rows lo..hi-1 of M on the grid and fill their rows of the table."""
    n, f = M.shape
    m = np.empty(f)
    for i in range(lo, hi):
        for j in range(f):
            m[j] = M[i, j]
        quantise(m, f)
        for j in range(f):
            M[i, j] = m[j]
        project_row(m, f, P, table, n, i)


@njit(error_model="numpy")
def project_some(M, P, table, rows):
    """Fill the table's rows of the given rows of M, which are on the grid."""
    n, f = M.shape
    m = np.empty(f)
    for i in rows:
        for j in range(f):
            m[j] = M[i, j]
        project_row(m, f, P, table, n, i)

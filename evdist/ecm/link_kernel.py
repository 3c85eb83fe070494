"""One pass over the linked objects of constrained evidential c-means: each row's exact minimum.

Reference: Antoine, Quost, Masson, Denoeux (2012), CECM, with beta = 2. With all other rows fixed,
the cost of row i is

    sum_j q_ij m_ij^2 + g' m_i,   g = sum over links of R m_partner,

on the simplex: q >= 0 from the distances, g from the links. Its matrix is diagonal, so the minimum
is m_j = max(0, (lambda - g_j) / (2 q_j)), with lambda found by filling the sets in the order of g.

Symbols
-------
M        (n, f) float64, masses, updated in place
q        (n, f) float64
first    (p + 1,), link q of the p-th linked object is in first[p] : first[p + 1]
partner, kind   other end of the link; 0 for a must-link, 1 for a cannot-link
R        (2, f, f), weight of the links times E (must-link) and 1 - C (cannot-link)
"""

from __future__ import annotations

import numpy as np

from evdist.kernels.jit import njit

#: An object on a prototype costs nothing there; this part of its largest cost takes the place of 0.
_LEAST = 1e-14


@njit(error_model="numpy")
def _fill(q, g, order, m):
    """Minimise sum_j q_j m_j^2 + g_j m_j on the simplex; `order` sorts g."""
    least = _LEAST * q.max()
    slope, level, lam = 0.0, 0.0, 0.0
    for j in order:
        size = 2.0 * max(q[j], least)
        slope_with = slope + 1.0 / size
        lam_with = (1.0 + level + g[j] / size) / slope_with
        if lam_with <= g[j]:
            break
        slope, level, lam = slope_with, level + g[j] / size, lam_with
    total = 0.0
    for j in range(len(m)):
        m[j] = max(0.0, (lam - g[j]) / (2.0 * max(q[j], least)))
        total += m[j]
    for j in range(len(m)):
        m[j] /= total


@njit(error_model="numpy")
def update_linked(M, q, objects, first, partner, kind, R):
    """Put every linked object to the minimum of its own cost, one after the other."""
    f = M.shape[1]
    g = np.empty(f)
    for p in range(len(objects)):
        i = objects[p]
        for j in range(f):
            g[j] = 0.0
        for at in range(first[p], first[p + 1]):
            A, other = R[kind[at]], M[partner[at]]
            for j in range(f):
                s = 0.0
                for h in range(f):
                    s += A[j, h] * other[h]
                g[j] += s
        _fill(q[i], g, np.argsort(g, kind="mergesort"), M[i])

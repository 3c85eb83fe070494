"""One block of evidential c-means: masses of its objects, and the sums that move the prototypes.

Reference: Masson, Denoeux (2008), ECM; Denoeux, slides "Belief functions and clustering" (2017),
"ECM algorithm". The adaptive metric is that of Antoine, Quost, Masson, Denoeux (2012), CECM.

Symbols
-------
X       (n, d), objects
V       (c, d) float64, prototypes of the clusters
vbar    (f, d) float64, centres of mass of the prototypes of each focal set; row 0 is not read
b_ij    |A_j|^alpha d_ij^2, what a unit of mass of object i on A_j costs; delta^2 for the empty set
m_ij    b_ij^(-1/(beta-1)), divided by the sum over j: slides, "update equations"
J_i     sum_j m_ij^beta b_ij = (sum_j b_ij^(-1/(beta-1)))^(1-beta) at those masses
w       (n,) float64, weights of the objects; empty when all are one

Objects are taken in tiles of TILE, turned so that the inner loops run over objects. All powers are
those of r_j = min_l b_l / b_j, which lies in [0, 1]: nothing overflows, and an object that sits on
a prototype (b = 0) needs no case of its own. Every sum runs in a fixed order in float64, so the
bits do not depend on the machine's vector width.

In the Euclidean metric the distances to the centres of mass follow from those to the prototypes,

    |x - vbar_j|^2 = mean_{k in A_j} |x - v_k|^2 - mean_{k in A_j} |v_k - vbar_j|^2,

so that a set costs as many additions as it has clusters, whatever the number of attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.jit import njit, njit_inner

#: Objects in a tile; a tile's table of f = 60 focal sets stays in the first cache.
TILE = 64


class Costs(NamedTuple):
    """What the masses depend on beside distances, one entry per focal set; see `ecm_costs`."""

    first: NDArray[np.int64]  # (f + 1,) focal set j holds member[first[j] : first[j + 1]]
    member: NDArray[np.int64]  # clusters
    weight: NDArray[np.float64]  # (f,) |A_j|^alpha
    share: NDArray[np.float64]  # (f,) |A_j|^(alpha - 1), zero for the empty set
    delta2: float
    beta: float


@njit_inner
def _dot(x, y):
    """Sum over a tile of x y, in eight sums of their own: a fixed order that vectorises."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for t in range(0, TILE, 8):
        s0 += x[t] * y[t]
        s1 += x[t + 1] * y[t + 1]
        s2 += x[t + 2] * y[t + 2]
        s3 += x[t + 3] * y[t + 3]
        s4 += x[t + 4] * y[t + 4]
        s5 += x[t + 5] * y[t + 5]
        s6 += x[t + 6] * y[t + 6]
        s7 += x[t + 7] * y[t + 7]
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


@njit_inner
def _load(X, w, lo, centre, Y, wt):
    """Rows lo.. of X minus the centre, turned, and their weights; rows past the end weigh nothing.

    Returns the number of rows that are there.
    """
    rows = min(TILE, X.shape[0] - lo)
    for a in range(Y.shape[0]):
        for t in range(rows):
            Y[a, t] = X[lo + t, a] - centre[a]
        for t in range(rows, TILE):
            Y[a, t] = 0.0
    for t in range(TILE):
        wt[t] = 0.0 if t >= rows else (w[lo + t] if w.size else 1.0)
    return rows


@njit_inner
def _euclidean(Y, V, spread, costs, D, D1):
    """b of every focal set, D (f, TILE), from the squared distances D1 (c, TILE)."""
    for k in range(V.shape[0]):
        row = D1[k]
        for t in range(TILE):
            row[t] = 0.0
        for a in range(V.shape[1]):
            v, y = V[k, a], Y[a]
            for t in range(TILE):
                row[t] += (y[t] - v) * (y[t] - v)
    for j in range(1, D.shape[0]):
        lo, hi = costs.first[j], costs.first[j + 1]
        row, one = D[j], D1[costs.member[lo]]
        for t in range(TILE):
            row[t] = one[t]
        if hi - lo > 1:
            for q in range(lo + 1, hi):
                one = D1[costs.member[q]]
                for t in range(TILE):
                    row[t] += one[t]
            part, off, weight = 1.0 / (hi - lo), spread[j], costs.weight[j]
            for t in range(TILE):
                # Rounding may bring a distance of zero below zero.
                row[t] = weight * max(part * row[t] - off, 0.0)


@njit_inner
def _adaptive(Y, j, vbar, L, weight, Z, row):
    """b of focal set j under S_j = L_j L_j'; Z (d + 1, TILE) keeps y = x - vbar_j in its rows."""
    d = Y.shape[0]
    z = Z[d]
    for a in range(d):
        v, y, here = vbar[j, a], Y[a], Z[a]
        for t in range(TILE):
            here[t] = y[t] - v
    for t in range(TILE):
        row[t] = 0.0
    for a in range(d):
        for t in range(TILE):
            z[t] = 0.0
        for b in range(a, d):
            factor, here = L[j, b, a], Z[b]
            for t in range(TILE):
                z[t] += factor * here[t]
        for t in range(TILE):
            row[t] += weight * (z[t] * z[t])


@njit_inner
def _powers(D, P, costs, least, Z):
    """From b in D: r in D, p = r^(1/(beta-1)) in P, and per object min_j b_j and Z = sum_j p_j."""
    f = D.shape[0]
    for t in range(TILE):
        D[0, t] = least[t] = costs.delta2
        Z[t] = 0.0
    for j in range(1, f):
        row = D[j]
        for t in range(TILE):
            least[t] = min(least[t], row[t])
    e = 1.0 / (costs.beta - 1.0)
    for j in range(f):
        row, p = D[j], P[j]
        for t in range(TILE):
            # 0 / 0, an object on a prototype, is 1.
            row[t] = 1.0 if row[t] <= least[t] else least[t] / row[t]
        if e == 1.0:
            for t in range(TILE):
                p[t] = row[t]
        else:
            for t in range(TILE):
                p[t] = row[t] ** e
        for t in range(TILE):
            Z[t] += p[t]


@njit(error_model="numpy")
def _shares(D, P, costs, least, Z, wt):
    """Turn P into w m^beta; returns the sum of w J over the tile."""
    scale = np.empty(TILE)
    J = np.empty(TILE)
    for t in range(TILE):
        z = Z[t] if costs.beta == 2.0 else Z[t] ** (costs.beta - 1.0)
        J[t] = least[t] / z
        scale[t] = wt[t] / (z * Z[t])
    for j in range(D.shape[0]):
        r, p = D[j], P[j]
        for t in range(TILE):
            # m^beta = p^beta / Z^beta, and p^(beta-1) = r.
            p[t] = p[t] * r[t] * scale[t]
    return _dot(J, wt)


@njit(error_model="numpy")
def euclidean_sums(X, w, centre, V, spread, costs, W, B):
    """Add a block to W (f,) and B (c, d); returns its sum of w J.

    W_j = sum_i w_i m_ij^beta, B_k = sum_i w_i (x_i - centre) sum_{A_j holds k} |A_j|^(alpha-1)
    m_ij^beta. `V` (c, d) is relative to `centre`; `spread` (f,) is the mean over A_j of
    |v_k - vbar_j|^2.
    """
    c, d = V.shape
    f = len(costs.weight)
    Y, wt = np.empty((d, TILE)), np.empty(TILE)
    D, P, D1 = np.empty((f, TILE)), np.empty((f, TILE)), np.empty((c, TILE))
    least, Z, one = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for t in range(TILE):
        one[t] = 1.0
    J = 0.0
    for lo in range(0, X.shape[0], TILE):
        _load(X, w, lo, centre, Y, wt)
        _euclidean(Y, V, spread, costs, D, D1)
        _powers(D, P, costs, least, Z)
        J += _shares(D, P, costs, least, Z, wt)
        U = D1  # the distances are used up
        for k in range(c):
            for t in range(TILE):
                U[k, t] = 0.0
        for j in range(f):
            g, share = P[j], costs.share[j]
            W[j] += _dot(g, one)
            for q in range(costs.first[j], costs.first[j + 1]):
                u = U[costs.member[q]]
                for t in range(TILE):
                    u[t] += share * g[t]
        for k in range(c):
            for a in range(d):
                B[k, a] += _dot(U[k], Y[a])
    return J


@njit(error_model="numpy")
def euclidean_masses(X, centre, V, spread, costs, M):
    """Write the masses of a block to M (n, f)."""
    c, d = V.shape
    f = len(costs.weight)
    Y, wt = np.empty((d, TILE)), np.empty(TILE)
    D, P, D1 = np.empty((f, TILE)), np.empty((f, TILE)), np.empty((c, TILE))
    least, Z, none = np.empty(TILE), np.empty(TILE), np.empty(0)
    for lo in range(0, X.shape[0], TILE):
        rows = _load(X, none, lo, centre, Y, wt)
        _euclidean(Y, V, spread, costs, D, D1)
        _powers(D, P, costs, least, Z)
        _write(P, Z, lo, rows, M)


@njit_inner
def _write(P, Z, lo, rows, M):
    for t in range(rows):
        scale = 1.0 / Z[t]
        for j in range(P.shape[0]):
            M[lo + t, j] = P[j, t] * scale


@njit(error_model="numpy")
def adaptive_sums(X, w, centre, vbar, L, costs, W, T, Q):
    """Add a block to W (f,), T (f, d) and the lower triangles of Q (f, d, d); returns sum of w J.

    T_j = sum_i w_i m_ij^beta (x_i - vbar_j), Q_j = sum_i w_i m_ij^beta (x_i - vbar_j)(x_i -
    vbar_j)'. `vbar` (f, d) is relative to `centre`; S_j = L_j L_j', L (f, d, d) lower triangular.
    """
    f, d = vbar.shape
    Y, wt, Zd = np.empty((d, TILE)), np.empty(TILE), np.empty((d + 1, TILE))
    D, P = np.empty((f, TILE)), np.empty((f, TILE))
    least, Z, one = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for t in range(TILE):
        one[t] = 1.0
    J = 0.0
    for lo in range(0, X.shape[0], TILE):
        _load(X, w, lo, centre, Y, wt)
        for j in range(1, f):
            _adaptive(Y, j, vbar, L, costs.weight[j], Zd, D[j])
        _powers(D, P, costs, least, Z)
        J += _shares(D, P, costs, least, Z, wt)
        W[0] += _dot(P[0], one)
        for j in range(1, f):
            g, gy = P[j], Zd[d]
            W[j] += _dot(g, one)
            for a in range(d):
                v, y, here = vbar[j, a], Y[a], Zd[a]
                for t in range(TILE):
                    here[t] = y[t] - v
            for a in range(d):
                here = Zd[a]
                for t in range(TILE):
                    gy[t] = g[t] * here[t]
                T[j, a] += _dot(gy, one)
                for b in range(a + 1):
                    Q[j, a, b] += _dot(gy, Zd[b])
    return J


@njit(error_model="numpy")
def adaptive_masses(X, centre, vbar, L, costs, M):
    """Write the masses of a block under the adaptive metric to M (n, f)."""
    f, d = vbar.shape
    Y, wt, Zd = np.empty((d, TILE)), np.empty(TILE), np.empty((d + 1, TILE))
    D, P = np.empty((f, TILE)), np.empty((f, TILE))
    least, Z, none = np.empty(TILE), np.empty(TILE), np.empty(0)
    for lo in range(0, X.shape[0], TILE):
        rows = _load(X, none, lo, centre, Y, wt)
        for j in range(1, f):
            _adaptive(Y, j, vbar, L, costs.weight[j], Zd, D[j])
        _powers(D, P, costs, least, Z)
        _write(P, Z, lo, rows, M)

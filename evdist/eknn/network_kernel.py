"""The evidential neural network, forwards and backwards, in compiled code.

Symbols: P (r, d) prototypes, alpha, gamma (r,), U (r, c) memberships, a_i = alpha_i exp(-gamma_i
|x - p_i|^2), t_ik = 1 - a_i (1 - u_ik). Prototype i gives mass a_i u_ik to class k and 1 - a_i to
all classes; plausibilities and the mass of all classes multiply (Dempster's rule):

    pl_k = T_k / N,  m(Omega) = T_0 / N,  T_k = prod_i t_ik,  T_0 = prod_i (1 - a_i),
    N = sum_k T_k - (c - 1) T_0.

With L = log T:  d pl_k / d L_l = pl_k ([k = l] - pl_l),  d pl_k / d L_0 = (c - 1) pl_k m(Omega).
"""

from __future__ import annotations

import numpy as np

from evdist.kernels.jit import njit

#: Products this small are scaled up; the scale cancels.
_SMALL = 1e-100


@njit
def _combine(x, P, alpha, gamma, U, a, near, s, T):
    """Fill s (r,) = squared distances, near = exp(-gamma s), a = alpha near, and T (c + 1,).

    T holds the products of t, and last that of 1 - a.
    """
    r, d = P.shape
    c = U.shape[1]
    for k in range(len(T)):
        T[k] = 1.0
    for i in range(r):
        d2 = 0.0
        for j in range(d):
            d2 += (x[j] - P[i, j]) ** 2
        s[i] = d2
        near[i] = np.exp(-gamma[i] * d2)
        a[i] = alpha[i] * near[i]
        most = 0.0
        for k in range(c):
            T[k] *= 1.0 - a[i] * (1.0 - U[i, k])
            most = max(most, T[k])
        T[c] *= 1.0 - a[i]
        if most < _SMALL:
            for k in range(c + 1):
                T[k] /= most


@njit
def forward(X, P, alpha, gamma, U, mass):
    """mass (n, c + 1): of the single classes, and last of all classes."""
    r, c = U.shape
    a, near, s, T = np.empty(r), np.empty(r), np.empty(r), np.empty(c + 1)
    for row in range(X.shape[0]):
        _combine(X[row], P, alpha, gamma, U, a, near, s, T)
        N = (1.0 - c) * T[c]
        for k in range(c):
            N += T[k]
        for k in range(c):
            mass[row, k] = max(T[k] - T[c], 0.0) / N
        mass[row, c] = T[c] / N


@njit
def gradient(X, y, w, P, alpha, gamma, U, dP, dalpha, dgamma, dU):
    """Sum over rows of w sum_k (pl_k - [k = y])^2; adds its derivatives to dP, dalpha, ..."""
    r, c = U.shape
    d = P.shape[1]
    a, near, s, T, G = np.empty(r), np.empty(r), np.empty(r), np.empty(c + 1), np.empty(c)
    total = 0.0
    for row in range(X.shape[0]):
        _combine(X[row], P, alpha, gamma, U, a, near, s, T)
        N = (1.0 - c) * T[c]
        for k in range(c):
            N += T[k]
        shared = 0.0
        for k in range(c):
            pl = T[k] / N
            error = pl - (1.0 if k == y[row] else 0.0)
            total += w[row] * error * error
            G[k] = 2.0 * w[row] * error
            shared += G[k] * pl
        for k in range(c):
            G[k] = (T[k] / N) * (G[k] - shared)
        G0 = (c - 1.0) * shared * T[c] / N
        for i in range(r):
            da = -G0 / (1.0 - a[i])
            for k in range(c):
                t = G[k] / (1.0 - a[i] * (1.0 - U[i, k]))
                da -= t * (1.0 - U[i, k])
                dU[i, k] += t * a[i]
            dalpha[i] += da * near[i]
            dgamma[i] -= da * a[i] * s[i]
            pull = 2.0 * da * a[i] * gamma[i]
            for j in range(d):
                dP[i, j] += pull * (X[row, j] - P[i, j])
    return total

"""Loss of the evidential K-NN classifier and its gradient, in compiled code.

Symbols: d2 (n, K) squared distances to neighbours, y their classes, phi = alpha exp(-gamma_y d2),
u_k = -sum of log(1 - phi) over the neighbours of class k; then Dempster's rule gives

    pl_k = exp(u_k) / N,  N = 1 + sum_l (exp(u_l) - 1),  d pl_k / d u_l = pl_k ([k = l] - pl_l).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["evidence", "loss"]


@njit(cache=True, nogil=True)
def evidence(
    d2: NDArray[np.float64],
    who: NDArray[np.int32],
    y: NDArray[np.int32],
    alpha: float,
    gamma: NDArray[np.float64],
    u: NDArray[np.float64],
) -> None:
    """u (rows, c), zero before: weight of evidence for each class from the neighbours `who`."""
    for i in range(d2.shape[0]):
        for e in range(d2.shape[1]):
            k = y[who[i, e]]
            u[i, k] -= np.log1p(-alpha * np.exp(-gamma[k] * d2[i, e]))


@njit(cache=True, nogil=True)
def loss(
    d2: NDArray[np.float64],
    who: NDArray[np.int32],
    y: NDArray[np.int32],
    alpha: float,
    gamma: NDArray[np.float64],
    slope: NDArray[np.float64],
) -> float:
    """Sum over objects and classes of (pl - [own class])^2; adds dJ / dgamma (c,) to `slope`."""
    n, K = d2.shape
    c = gamma.shape[0]
    u, du = np.empty(c), np.empty(c)
    pl, back = np.empty(c), np.empty(c)
    total = 0.0
    for i in range(n):
        u[:] = 0.0
        du[:] = 0.0
        for e in range(K):
            k = y[who[i, e]]
            phi = alpha * np.exp(-gamma[k] * d2[i, e])
            u[k] -= np.log1p(-phi)
            du[k] -= d2[i, e] * phi / (1.0 - phi)
        top = u.max()
        N = (1.0 - c) * np.exp(-top)
        for k in range(c):
            pl[k] = np.exp(u[k] - top)
            N += pl[k]
        shared = 0.0
        for k in range(c):
            pl[k] /= N
            error = pl[k] - (1.0 if k == y[i] else 0.0)
            total += error * error
            back[k] = 2.0 * error
            shared += back[k] * pl[k]
        for k in range(c):
            slope[k] += pl[k] * (back[k] - shared) * du[k]
    return total

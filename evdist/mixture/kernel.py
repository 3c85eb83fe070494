"""One block of rows of a Gaussian mixture: posteriors, sufficient statistics; and common axes.

Symbols
-------
X       (n, d) data
w       (n,) weights of the rows; a row of weight zero costs nothing
U       (c, d, d) whitening: z = U_k (x - mu_k) is standard normal in component k
mu      (c, d) means
a       (c,) log of mixing weight and of the factor of the density in front of exp(-z'z / 2)
r       posterior probability of a component, given a row

Sums are taken of z, not of x: a tight component far from the origin loses no digit. Rows go through
in tiles, so that the inner loops run over contiguous rows of one coordinate.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.jit import njit

#: Rows of a tile: a few coordinates of it fit the first-level cache.
_TILE = 64
#: exp of less adds nothing to a sum of one or more: below half of the last bit, and not computed.
_NOTHING = -46.0
#: A squared distance at most: the logarithm stays finite wherever a row lies.
_FAR = 1e300


# Sums may be reordered into vector lanes; the order is that of the machine code, always the same.
@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _responsibilities(x, count, U, mu, a, diff, z, r, total):
    """Posteriors r (c, tile) and log densities `total` (tile) of the first `count` rows of x."""
    c, d = mu.shape
    for k in range(c):
        for j in range(d):
            for t in range(count):
                diff[j, t] = x[j, t] - mu[k, j]
        for t in range(count):
            r[k, t] = 0.0
        for i in range(d):
            for t in range(count):
                z[k, i, t] = 0.0
            for j in range(d):
                u = U[k, i, j]
                if u != 0.0:
                    for t in range(count):
                        z[k, i, t] += u * diff[j, t]
            for t in range(count):
                r[k, t] += z[k, i, t] * z[k, i, t]
        for t in range(count):
            r[k, t] = a[k] - 0.5 * min(r[k, t], _FAR)
    for t in range(count):
        most = r[0, t]
        for k in range(1, c):
            most = max(most, r[k, t])
        sum_ = 0.0
        for k in range(c):
            e = r[k, t] - most
            p = math.exp(e) if e > _NOTHING else 0.0
            r[k, t] = p
            sum_ += p
        for k in range(c):
            r[k, t] /= sum_
        total[t] = most + math.log(sum_)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _add_block(X, w, first, last, U, mu, a, scratch, R, Z, ZZ):
    """Add sums over rows first..last to R (c,), Z (c, d), ZZ (c, d, d); returns log-likelihood."""
    c, d = mu.shape
    x, diff, z, r, total, weight = scratch
    loglik = 0.0
    row = first
    while row < last:
        count = 0
        while row < last and count < _TILE:
            if w[row] != 0.0:
                weight[count] = w[row]
                for j in range(d):
                    x[j, count] = X[row, j]
                count += 1
            row += 1
        _responsibilities(x, count, U, mu, a, diff, z, r, total)
        for t in range(count):
            loglik += weight[t] * total[t]
        for k in range(c):
            s = 0.0
            for t in range(count):
                r[k, t] *= weight[t]
                s += r[k, t]
            if s == 0.0:
                continue
            R[k] += s
            for i in range(d):
                s = 0.0
                for t in range(count):
                    diff[0, t] = r[k, t] * z[k, i, t]
                    s += diff[0, t]
                Z[k, i] += s
                for j in range(i + 1):
                    s = 0.0
                    for t in range(count):
                        s += diff[0, t] * z[k, j, t]
                    ZZ[k, i, j] += s
    return loglik


@njit
def _scratch(c, d):
    return (
        np.empty((d, _TILE)), np.empty((d, _TILE)), np.empty((c, d, _TILE)),
        np.empty((c, _TILE)), np.empty(_TILE), np.empty(_TILE),
    )  # fmt: skip


@njit(error_model="numpy")
def accumulate(X, w, items, rows, U, mu, a, R, Z, ZZ, loglik):
    """Sums of some blocks of some replicates: E-step and statistics in one pass.

    Parameters
    ----------
    X : (n, d) float64, C order
    w : (weightings, n) float64
    items : (m, 3) int64
        (b, weighting, block) to do: replicate b has that row of w, and block q holds rows
        q * rows .. (q + 1) * rows.
    rows : int
    U, mu, a : (B, c, d, d), (B, c, d), (B, c)
    R, Z, ZZ, loglik : (B, blocks, c), (B, blocks, c, d), (B, blocks, c, d, d), (B, blocks)
        Out: sums of r, r z, r z z' (lower triangle) and the log-likelihood, zero before.
    """
    c, d = mu.shape[1:]
    scratch = _scratch(c, d)
    for m in range(items.shape[0]):
        b, i, q = items[m]
        last = min(X.shape[0], (q + 1) * rows)
        loglik[b, q] = _add_block(
            X, w[i], q * rows, last, U[b], mu[b], a[b], scratch, R[b, q], Z[b, q], ZZ[b, q]
        )


@njit(error_model="numpy")
def posteriors(X, first, last, U, mu, a, P, density):
    """Posterior probabilities P (n, c) and log densities (n,) of rows first..last, in place."""
    c, d = mu.shape
    x, diff, z, r, total, _ = _scratch(c, d)
    for lo in range(first, last, _TILE):
        count = min(_TILE, last - lo)
        for t in range(count):
            for j in range(d):
                x[j, t] = X[lo + t, j]
        _responsibilities(x, count, U, mu, a, diff, z, r, total)
        for t in range(count):
            density[lo + t] = total[t]
            for k in range(c):
                P[lo + t, k] = r[k, t]


@njit(error_model="numpy")
def _rotate(G: NDArray[Any], inverse: NDArray[Any], D: NDArray[Any]) -> None:
    """One sweep of plane rotations that lower sum_k tr(diag(inverse_k) D'W_kD); G_k = D'W_kD."""
    c, d, _ = G.shape
    for p in range(d):
        for q in range(p + 1, d):
            # As a function of the angle t the sum is const + P cos 2t + Q sin 2t.
            P = Q = 0.0
            for k in range(c):
                b = inverse[k, p] - inverse[k, q]
                P += b * 0.5 * (G[k, p, p] - G[k, q, q])
                Q += b * G[k, p, q]
            if math.hypot(P, Q) == 0.0:
                continue
            t = 0.5 * math.atan2(-Q, -P)
            cos, sin = math.cos(t), math.sin(t)
            for i in range(d):
                D[i, p], D[i, q] = cos * D[i, p] + sin * D[i, q], cos * D[i, q] - sin * D[i, p]
            for k in range(c):
                for i in range(d):
                    g, h = G[k, i, p], G[k, i, q]
                    G[k, i, p], G[k, i, q] = cos * g + sin * h, cos * h - sin * g
                for i in range(d):
                    g, h = G[k, p, i], G[k, q, i]
                    G[k, p, i], G[k, q, i] = cos * g + sin * h, cos * h - sin * g


@njit(error_model="numpy")
def common_axes(G, sizes, equal_volume, floor, sweeps, D):
    """Axes common to all components whose variances along them differ; D (B, d, d), in place.

    Minimises sum_k tr(D A_k^-1 D' W_k) in turn over D, by rotations in the planes of two axes (each
    takes the exact minimum; Flury and Gautschi 1986), and over A_k: variances with one volume for
    all components or a volume for each. Every step lowers the criterion.

    Parameters
    ----------
    G : (B, c, d, d)
        D' W_k D, the scatter matrices along the axes of the start; overwritten.
    sizes : (B, c)
    equal_volume : bool
    floor : (B,)
        Smallest variance.
    sweeps : int
    D : (B, d, d)
        Start, and result.
    """
    B, c, d, _ = G.shape
    inverse = np.empty((c, d))
    for b in range(B):
        for _ in range(sweeps):
            for k in range(c):
                logs = 0.0
                for j in range(d):
                    v = max(G[b, k, j, j], floor[b] * sizes[b, k])
                    logs += math.log(v)
                    inverse[k, j] = 1.0 / v
                scale = math.exp(logs / d) if equal_volume else sizes[b, k]
                for j in range(d):
                    inverse[k, j] *= scale
            _rotate(G[b], inverse, D[b])

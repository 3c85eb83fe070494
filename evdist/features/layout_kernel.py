"""The neighbour graph and its layout, compiled: see `evdist.features.layout`.

Symbols
-------
k           neighbours of an object
w_ij        weight of the edge i-j: 1 - (1 - p_ij)(1 - p_ji)
s_i         sum of an object's weights
Y           (n, 8 h) float32 positions, columns beyond the dimension zero
Z           (dim, n) the same positions, objects in a random order
q(y)        1 / (1 + A |y|^(2 B)): likeness of two objects that lie y apart
"""

from __future__ import annotations

import numpy as np

from evdist.kernels.jit import njit

#: Of q: the curve that McInnes et al. fit for clusters without a least distance, its power rounded
#: from .79 to one that two square roots give. With B = 1 near clusters grew together (MNIST: ARI
#: .91 instead of .93, and HDBSCAN finds six clusters instead of nine).
A, B = np.float32(1.9), np.float32(0.75)
#: Below this squared distance objects count as being so far apart.
_NEAR, _TOUCH = np.float32(1e-6), np.float32(1e-3)
#: A stranger pushes by at most so much in each direction, as in the authors' program.
_STRONGEST = np.float32(4.0)
_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(error_model="numpy")
def fuzzy_weights(squared, weight):
    """p_ij = exp(-(d_ij - r_i) / s_i), r_i the least of d_ij, s_i such that they sum to log2 k.

    squared (rows, k) rises in every row. McInnes, Healy, Melville (2018), section 3.1.
    """
    k = squared.shape[1]
    target = np.log2(k)
    far = np.empty(k)
    for i in range(squared.shape[0]):
        nearest = np.sqrt(squared[i, 0])
        for t in range(k):
            far[t] = max(np.sqrt(squared[i, t]) - nearest, 0.0)
        low, high = 0.0, np.inf
        scale = far[k - 1]
        for _ in range(48):
            total = 0.0
            for t in range(k):
                total += np.exp(-far[t] / scale) if far[t] > 0 else 1.0
            if total > target:
                high = scale
            else:
                low = scale
            scale = 2.0 * scale if np.isinf(high) else 0.5 * (low + high)
        for t in range(k):
            weight[i, t] = np.exp(-far[t] / scale) if far[t] > 0 else 1.0


@njit(error_model="numpy")
def reverse_lists(places, first, who):
    """Who has each object among its k: who[first[j] .. first[j + 1] - 1], in rising order."""
    n, k = places.shape
    first[:] = 0
    for i in range(n):
        for t in range(k):
            first[places[i, t] + 1] += 1
    for j in range(n):
        first[j + 1] += first[j]
    at = first[:-1].copy()
    for i in range(n):
        for t in range(k):
            j = places[i, t]
            who[at[j]] = i
            at[j] += 1


@njit(error_model="numpy")
def _weight_of(places, weight, i, j):
    """p_ij, 0 where j is not among i's."""
    for t in range(places.shape[1]):
        if places[i, t] == j:
            return weight[i, t]
    return _ZERO


@njit(error_model="numpy")
def edges_of(places, weight, back, who, least, lo, hi, first, other, joint):
    """Edges of objects lo..hi-1 with w_ij >= least: other ends and weights, from first[i] on.

    With `other` empty only first[i + 1] is set, to how many there are.
    """
    counting = other.size == 0
    for i in range(lo, hi):
        count = 0
        for t in range(places.shape[1]):
            j = places[i, t]
            p, q = weight[i, t], _weight_of(places, weight, j, i)
            w = p + q - p * q
            if w >= least:
                if not counting:
                    other[first[i] + count] = j
                    joint[first[i] + count] = w
                count += 1
        for u in range(back[i], back[i + 1]):
            j = who[u]
            q = _weight_of(places, weight, j, i)
            if q >= least and _weight_of(places, weight, i, j) == 0:
                if not counting:
                    other[first[i] + count] = j
                    joint[first[i] + count] = q
                count += 1
        if counting:
            first[i + 1] = count


@njit(error_model="numpy")
def scatter(Y, order, lo, hi, Z):
    """Z[:, t] = Y[order[t]] for t from lo to hi - 1."""
    for t in range(lo, hi):
        for q in range(Z.shape[0]):
            Z[q, t] = Y[order[t], q]


@njit(error_model="numpy", fastmath=_FAST)
def move(Y, V, Z, after, first, other, joint, total, lo, hi, strangers, turn, push, rate, keep):
    """One step of objects lo..hi-1, from positions Y to `after`; V holds their last steps.

    Object i is drawn along its edges and pushed by `strangers` objects, those that stand from
    place turn + i strangers on in Z; these stand for `push` s_i drawn ones. The pull is linearly
    implicit: with c_i the sum of its coefficients the step is rate F_i / (1 + rate c_i), so that
    no rate makes it overshoot. A share `keep` of the last step is added.
    """
    n, width = Y.shape
    dim = Z.shape[0]
    s = np.empty(strangers, np.float32)
    F = np.empty(width, np.float32)
    for i in range(lo, hi):
        F[:] = _ZERO
        c = _ZERO
        for e in range(first[i], first[i + 1]):
            j = other[e]
            d = _ZERO
            for h in range(0, width, 8):
                for q in range(8):
                    x = Y[i, h + q] - Y[j, h + q]
                    d += x * x
            d = max(d, _NEAR)
            # Twice: i is pulled as an end of (i, j) and of (j, i).
            g = _TWO * _TWO * A * B * joint[e] / (np.sqrt(np.sqrt(d)) + A * d)
            c += g
            for h in range(0, width, 8):
                for q in range(8):
                    F[h + q] -= g * (Y[i, h + q] - Y[j, h + q])
        at = (turn + i * strangers) % n
        at = min(at, n - strangers)
        s[:] = _ZERO
        for q in range(dim):
            for t in range(strangers):
                x = Y[i, q] - Z[q, at + t]
                s[t] += x * x
        share = push * total[i] / np.float32(strangers)
        for t in range(strangers):
            root = np.sqrt(s[t])
            s[t] = _TWO * B / ((_TOUCH + s[t]) * (_ONE + A * root * np.sqrt(root)))
        for q in range(dim):
            f = _ZERO
            for t in range(strangers):
                f += min(max(s[t] * (Y[i, q] - Z[q, at + t]), -_STRONGEST), _STRONGEST)
            F[q] += share * f
        a = rate / (_ONE + rate * c)
        for q in range(width):
            V[i, q] = keep * V[i, q] + a * F[q]
            after[i, q] = Y[i, q] + V[i, q]

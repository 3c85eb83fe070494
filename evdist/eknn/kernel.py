"""Votes of neighbours, in compiled code: the inner loops of the evidential K-NN rule.

The neighbours of object i are neighbour[start[i] : start[i + 1]], int32, with their weights,
float64; labels and classes are int32.

The loss of the classifier and its gradient. Symbols: d2 (n, K) squared distances to neighbours, y
their classes, phi = alpha exp(-gamma_y d2), u_k = -sum of log(1 - phi) over the neighbours of class
k; then Dempster's rule gives

    pl_k = exp(u_k) / N,  N = 1 + sum_l (exp(u_l) - 1),  d pl_k / d u_l = pl_k ([k = l] - pl_l).
"""

from __future__ import annotations

import numpy as np

from evdist.kernels.jit import njit


@njit
def relabel(start, neighbour, weight, order, label, vote):
    """Visit the objects in `order`; each takes the label with the largest sum of weights.

    An object keeps its label unless another one has strictly more; of several, the one met first
    among its neighbours wins. `label` (n,) changes in place; `vote` (labels,) holds zeros before
    and after. Returns the number of objects that changed.
    """
    changed = 0
    for i in order:
        a, b = start[i], start[i + 1]
        for e in range(a, b):
            vote[label[neighbour[e]]] += weight[e]
        best = label[i]
        most = vote[best]
        for e in range(a, b):
            k = label[neighbour[e]]
            if vote[k] > most:
                most = vote[k]
                best = k
        for e in range(a, b):
            vote[label[neighbour[e]]] = 0.0
        if best != label[i]:
            label[i] = best
            changed += 1
    return changed


@njit
def sum_votes(start, neighbour, weight, label, lo, vote):
    """vote[i - lo, k] = sum of the weights of the neighbours of i with label k; `vote` is zero."""
    for row in range(vote.shape[0]):
        for e in range(start[lo + row], start[lo + row + 1]):
            vote[row, label[neighbour[e]]] += weight[e]


@njit
def weight_between(start, neighbour, weight, label):
    """Sum of the weights of pairs with different labels."""
    total = 0.0
    for i in range(start.shape[0] - 1):
        for e in range(start[i], start[i + 1]):
            if label[neighbour[e]] != label[i]:
                total += weight[e]
    return total


@njit
def evidence(d2, who, y, alpha, gamma, u):
    """u (rows, c), zero before: weight of evidence for each class from the neighbours `who`."""
    for i in range(d2.shape[0]):
        for e in range(d2.shape[1]):
            k = y[who[i, e]]
            u[i, k] -= np.log1p(-alpha * np.exp(-gamma[k] * d2[i, e]))


@njit
def loss(d2, who, y, alpha, gamma, slope):
    """Sum over objects and classes of (pl - [own class])^2; adds dJ / dgamma (c,) to `slope`."""
    n, K = d2.shape
    c = gamma.shape[0]
    u, du = np.empty(c), np.empty(c)
    pl, back = np.empty(c), np.empty(c)
    total = 0.0
    for i in range(n):
        for k in range(c):
            u[k] = du[k] = 0.0
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

"""Modes of a density on a neighbour graph, and how far each stands out.

Reference: Chazal, Guibas, Oudot, Skraba (2013), Persistence-based clustering in Riemannian
manifolds, JACM 60(6). Objects are taken from dense to sparse. One that has no denser neighbour is a
mode; where two modes meet, the lower one ends, and its prominence is the fall from its top to the
meeting point. The highest mode of every part of the graph never ends: its prominence is infinite.

Symbols
-------
rho     (n,) logarithm of the density at each object
near    (n, K) neighbours
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.jit import njit


@njit
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit
def _merge(rho, first, second, level, order):
    n = len(rho)
    parent, prominence = np.arange(n), np.full(n, np.inf)
    for edge in order:
        a, b = _root(parent, first[edge]), _root(parent, second[edge])
        if a == b:
            continue
        # A root is the densest object of its part; of equal ones the first.
        if rho[a] < rho[b] or (rho[a] == rho[b] and b < a):
            a, b = b, a
        prominence[b] = rho[b] - level[edge]
        parent[b] = a
    return prominence


def prominences(rho: NDArray[np.float64], near: NDArray[np.integer]) -> NDArray[np.float64]:
    """How far each object's density stands above the way to a denser one, greatest first; (n,).

    Zero for all objects that are no modes; infinite for the highest mode of each part of the graph.
    """
    n, K = near.shape
    first, second = np.repeat(np.arange(n), K), near.ravel().astype(np.int64)
    level = np.minimum(rho[first], rho[second])
    order = np.argsort(-level, kind="stable")
    return np.sort(_merge(rho, first, second, level, order))[::-1]

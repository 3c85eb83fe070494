"""Votes of neighbours, in compiled code: the inner loops of the evidential K-NN rule."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["relabel", "sum_votes", "weight_between"]


@njit(cache=True, nogil=True)
def relabel(
    start: NDArray[np.int64],
    neighbour: NDArray[np.int32],
    weight: NDArray[np.float64],
    order: NDArray[np.int64],
    label: NDArray[np.int32],
    vote: NDArray[np.float64],
) -> int:
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


@njit(cache=True, nogil=True)
def sum_votes(
    start: NDArray[np.int64],
    neighbour: NDArray[np.int32],
    weight: NDArray[np.float64],
    label: NDArray[np.int32],
    lo: int,
    vote: NDArray[np.float64],
) -> None:
    """vote[i - lo, k] = sum of the weights of the neighbours of i with label k; `vote` is zero."""
    for row in range(vote.shape[0]):
        for e in range(start[lo + row], start[lo + row + 1]):
            vote[row, label[neighbour[e]]] += weight[e]


@njit(cache=True, nogil=True)
def weight_between(
    start: NDArray[np.int64],
    neighbour: NDArray[np.int32],
    weight: NDArray[np.float64],
    label: NDArray[np.int32],
) -> float:
    """Sum of the weights of pairs with different labels."""
    total = 0.0
    for i in range(start.shape[0] - 1):
        for e in range(start[i], start[i + 1]):
            if label[neighbour[e]] != label[i]:
                total += weight[e]
    return total

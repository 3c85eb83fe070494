"""Scatter matrices of local Fisher discriminant analysis.

Reference: Sugiyama (2006), LFDA; NN-EVCLUS, section 3.3, takes it as its [50].

Symbols
-------
X   (n, d) labelled objects
A   (n_l, n_l) affinities within class l, 1 for near objects, 0 for far ones
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import spatial


def local_affinity(X: NDArray[Any], k: int) -> NDArray[np.float64]:
    """A[i, j] = exp(-|x_i - x_j|^2 / (sigma_i sigma_j)), sigma_i the distance to neighbour k of i.

    Neighbours are those within X, the objects of one class; a class of k or fewer objects uses its
    farthest. Where a sigma is zero (k copies of one object) only the copies are near.
    """
    D = spatial.distance.cdist(X, X, "sqeuclidean")
    k = min(k, len(X) - 1)  # place 0 is the object itself
    sigma = np.sqrt(np.partition(D, k, axis=1)[:, k])
    scale = np.outer(sigma, sigma)
    nowhere = scale == 0
    A = np.exp(-D / np.where(nowhere, 1.0, scale))
    A[nowhere] = D[nowhere] == 0
    return A


def local_scatter(
    classes: list[NDArray[Any]], affinities: list[NDArray[Any]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Local within-class and between-class scatter, (d, d) each.

    S = 1/2 sum over pairs of W[i, j] (x_i - x_j)(x_i - x_j)', with the weights

        within    A[i, j] / n_l             in the same class l      0     in different classes
        between   A[i, j] (1/n - 1/n_l)     in the same class l      1/n   in different classes

    All A = 1 gives the within-class and between-class scatter of Fisher. The weights 1/n of the
    different classes are those of all pairs, the total scatter, less those within classes: nothing
    larger than (n_l, n_l) is made.
    """
    X = np.concatenate(classes)
    n, mean = len(X), X.mean(axis=0)
    within = np.zeros((X.shape[1], X.shape[1]))
    between = (X - mean).T @ (X - mean)
    for Z, A in zip(classes, affinities, strict=True):
        m = len(Z)
        Z = Z - Z.mean(axis=0)
        near = (Z * A.sum(axis=1)[:, None]).T @ Z - Z.T @ (A @ Z)
        within += near / m
        between += near * (1 / n - 1 / m) - (m / n) * (Z.T @ Z)
    return within, between

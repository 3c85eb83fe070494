"""Positive definite kernels: coordinates of the span of some objects, and maps from it.

Symbols
-------
B   (m, d) objects of a basis
K   (m, m) their kernel matrix, K[a, b] = k(B[a], B[b])
R   (m, r) such that R'KR = I; the columns are orthonormal functions in the span of k(B[a], .)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn import metrics

from evdist.estimators.checks import positive
from evdist.partition.rows import block_rows

#: scikit-learn's kernels that are positive semidefinite at its defaults, and read gamma or nothing.
KERNELS = ("rbf", "laplacian", "poly", "linear", "cosine")
#: Eigenvalues of K below this share of the largest are rounding errors.
_NOISE = 1e-10

Kernel = str | Callable[[NDArray[Any], NDArray[Any]], float]


def check_kernel(kernel: Any, gamma: Any) -> None:
    """Refuse a kernel that is neither known nor callable, and a gamma that is not positive."""
    if not callable(kernel) and kernel not in KERNELS:
        raise ValueError(
            f"kernel must be one of {', '.join(KERNELS)} or a function of two rows, got {kernel!r}."
        )
    if gamma is not None:
        positive("gamma", gamma)


def kernel_bytes(m: int) -> int:
    """Kernel matrix of m objects, its eigenvectors, LAPACK's workspace of twice that, and R."""
    return 8 * 5 * m * m


def _matrix(
    X: NDArray[Any], B: NDArray[Any], kernel: Kernel, gamma: float | None
) -> NDArray[np.float64]:
    options = {} if callable(kernel) else {"gamma": gamma, "filter_params": True}
    return metrics.pairwise_kernels(X, B, metric=kernel, **options)


def orthonormal_functions(
    B: NDArray[Any], kernel: Kernel, gamma: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """R (m, r) and the coordinates K R (m, r) of the basis objects.

    The differences of coordinates have the inner products of the differences of the objects in
    the kernel's feature space, so that a linear method applied to them is its kernel version
    (kernel PCA plus the linear method; Yang et al. (2004), from which NN-EVCLUS takes KFDA).
    """
    K = _matrix(B, B, kernel, gamma)
    values, vectors = eigh(K)
    if values[-1] <= 0 or values[0] < -1e-6 * values[-1]:
        raise ValueError(
            "The kernel must be positive semidefinite, but its matrix has eigenvalues from "
            f"{values[0]:.3g} to {values[-1]:.3g}. Choose another kernel, such as 'rbf'."
        )
    keep = values > _NOISE * values[-1]
    root = np.sqrt(values[keep])
    return vectors[:, keep] / root, vectors[:, keep] * root


def kernel_map(
    X: NDArray[Any], B: NDArray[Any], A: NDArray[Any], kernel: Kernel, gamma: float | None
) -> NDArray[np.float64]:
    """Sums over a of A[a] k(x, B[a]) for the rows x of X, (rows, A.shape[1]); in blocks of rows."""
    out = np.empty((len(X), A.shape[1]))
    step = block_rows(len(B))
    for lo in range(0, len(X), step):
        out[lo : lo + step] = _matrix(X[lo : lo + step], B, kernel, gamma) @ A
    return out

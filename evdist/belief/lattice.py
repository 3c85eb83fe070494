"""Sums over subsets and supersets within a family of sets, and their inverses (Moebius).

On the power set a sum over all subsets costs c 2^(c-1) additions per row (Yates' method, the
fast zeta transform). On any other family it is one product with the (f, f) inclusion matrix, and
the inverse goes up (or down) one cardinality at a time.

Symbols
-------
a   (..., f) values on the sets of a family, in the order of its columns
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief.focal import FocalSets


def binary_order(focal: FocalSets) -> NDArray[np.intp] | None:
    """Columns of a power set in the order of binary counting; None when sets are missing.

    Read backwards, that order lists the complements.
    """
    if len(focal) != 1 << focal.n_clusters:
        return None
    return np.argsort(np.array(focal.masks))


def subset_sums(a: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """Sum of a(B) over the sets B of the family with B included in A, for each A; (..., f)."""
    order = binary_order(focal)
    if order is None:
        return a @ _inclusion(focal).astype(a.dtype)
    return _restored(_butterfly(a[..., order], focal.n_clusters, np.add), order)


def superset_sums(a: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """Sum of a(B) over the sets B of the family that include A, for each A; (..., f)."""
    order = binary_order(focal)
    if order is None:
        return a @ _inclusion(focal).T.astype(a.dtype)
    order = order[::-1]
    return _restored(_butterfly(a[..., order], focal.n_clusters, np.add), order)


def subset_differences(b: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """The a whose :func:`subset_sums` are b: the Moebius transform on the family; (..., f)."""
    order = binary_order(focal)
    if order is None:
        return _by_levels(b, _inclusion(focal), focal.cardinality)
    return _restored(_butterfly(b[..., order], focal.n_clusters, np.subtract), order)


def superset_differences(q: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """The a whose :func:`superset_sums` are q; (..., f)."""
    order = binary_order(focal)
    if order is None:
        return _by_levels(q, _inclusion(focal).T, -focal.cardinality)
    order = order[::-1]
    return _restored(_butterfly(q[..., order], focal.n_clusters, np.subtract), order)


def _inclusion(focal: FocalSets) -> NDArray[np.bool_]:
    """(f, f) bool, true at [B, A] when B is included in A: |A and B| = |B|."""
    return focal.overlap == focal.cardinality[:, None]


def _butterfly(a: NDArray[Any], c: int, step: np.ufunc) -> NDArray[Any]:
    """Add (or subtract) the value without cluster k to the one with it, for k = 0..c-1.

    ``a`` is (..., 2^c) in binary order, a fresh array: it is overwritten.
    """
    a = np.ascontiguousarray(a)
    for k in range(c):
        halves = a.reshape(*a.shape[:-1], 1 << (c - k - 1), 2, 1 << k)
        step(halves[..., 1, :], halves[..., 0, :], out=halves[..., 1, :])
    return a


def _restored(a: NDArray[Any], order: NDArray[np.intp]) -> NDArray[Any]:
    out = np.empty_like(a)
    out[..., order] = a
    return out


def _by_levels(
    b: NDArray[Any], included: NDArray[np.bool_], level: NDArray[np.int64]
) -> NDArray[Any]:
    """Solve sum over B of a(B) included[B, A] = b(A), sets of lower ``level`` first.

    Two different sets of one size never include each other, so a whole level is found at once.
    """
    a = b.copy()
    for size in np.unique(level)[1:]:
        here, below = np.flatnonzero(level == size), np.flatnonzero(level < size)
        a[..., here] -= a[..., below] @ included[np.ix_(below, here)].astype(b.dtype)
    return a

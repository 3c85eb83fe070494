"""Sums over subsets and supersets within a family of sets, and their inverses (Moebius).

On the power set a sum over all subsets costs c 2^(c-1) additions per row (Yates' method, the
fast zeta transform). On any other family it is one product with the (f, f) inclusion matrix, and
the inverse goes up (or down) one cardinality at a time.

Symbols
-------
a   (..., f) values on the sets of a family, in the order of its columns
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief.focal import FocalSets

#: Numbers in a piece of a transform: half a megabyte.
PIECE = 1 << 16


def binary_order(focal: FocalSets) -> NDArray[np.intp] | None:
    """Columns of a power set in the order of binary counting; None when sets are missing.

    Read backwards, that order lists the complements.
    """
    if len(focal) != 1 << focal.n_clusters:
        return None
    return np.argsort(np.array(focal.masks))


def as_slice(order: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """The same columns as a slice where they ascend or descend, since slices copy nothing."""
    counted = np.arange(len(order))
    if (order == counted).all():
        return slice(None)
    if (order == counted[::-1]).all():
        return slice(None, None, -1)
    return order


def subset_sums(a: NDArray[Any], focal: FocalSets, *, without_empty: bool = False) -> NDArray[Any]:
    """Sum of a(B) over the sets B of the family with B included in A, for each A; (..., f).

    ``without_empty`` leaves a(empty) out of all sums.
    """
    order = binary_order(focal)
    if order is None:
        included = _inclusion(focal).astype(a.dtype)
        included[0] *= not without_empty
        return a @ included

    def work(x: NDArray[Any]) -> NDArray[Any]:
        if without_empty:
            x[0] = 0.0
        return _butterfly(x, np.add)

    return _by_columns(a, order, work)


def superset_sums(a: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """Sum of a(B) over the sets B of the family that include A, for each A; (..., f)."""
    order = binary_order(focal)
    if order is None:
        return a @ _inclusion(focal).T.astype(a.dtype)
    return _by_columns(a, order[::-1], lambda x: _butterfly(x, np.add))


def meeting_sums(a: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """Sum of a(B) over the sets B of a power set that meet A, for each A; (..., f).

    The sum over all non-empty sets less that over those in the complement of A.
    """
    order = binary_order(focal)
    assert order is not None, "the sums of other families are one matrix product"

    def work(x: NDArray[Any]) -> NDArray[Any]:
        x[0] = 0.0
        _butterfly(x, np.add)
        # The order reversed lists the complements. Rounding could leave a sum just below 0.
        return np.maximum(x[-1] - x[::-1], 0.0)

    return _by_columns(a, order, work)


def subset_differences(b: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """The a whose :func:`subset_sums` are b: the Moebius transform on the family; (..., f)."""
    order = binary_order(focal)
    if order is None:
        return _by_levels(b, _inclusion(focal), focal.cardinality)
    return _by_columns(b, order, lambda x: _butterfly(x, np.subtract))


def superset_differences(q: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """The a whose :func:`superset_sums` are q; (..., f)."""
    order = binary_order(focal)
    if order is None:
        return _by_levels(q, _inclusion(focal).T, -focal.cardinality)
    return _by_columns(q, order[::-1], lambda x: _butterfly(x, np.subtract))


def _inclusion(focal: FocalSets) -> NDArray[np.bool_]:
    """(f, f) bool, true at [B, A] when B is included in A: |A and B| = |B|."""
    return focal.overlap == focal.cardinality[:, None]


def _by_columns(
    a: NDArray[Any], order: NDArray[np.intp], work: Callable[[NDArray[Any]], NDArray[Any]]
) -> NDArray[Any]:
    """``work`` on (2^c, rows) pieces of ``a`` in binary order; (..., f) in the family's own.

    Rows lie side by side in a piece, so that each addition is one of long contiguous vectors, and
    a piece fits a processor's cache.
    """
    flat = a.reshape(-1, a.shape[-1])
    out, columns = np.empty_like(flat), as_slice(order)
    size = max(1, PIECE // flat.shape[1])
    for start in range(0, len(flat), size):
        rows = slice(start, start + size)
        out[rows, columns] = work(np.array(flat[rows].T[columns], order="C")).T
    return out.reshape(a.shape)


def _butterfly(x: NDArray[Any], step: np.ufunc) -> NDArray[Any]:
    """Add (or subtract) the value without cluster k to the one with it, for k = 0..c-1.

    ``x`` is (2^c, rows) in binary order; it is overwritten.
    """
    size, rows = x.shape
    for k in range(size.bit_length() - 1):
        halves = x.reshape(size >> (k + 1), 2, 1 << k, rows)
        step(halves[:, 1], halves[:, 0], out=halves[:, 1])
    return x


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

"""What every function of masses expects of its arguments, checked in one place, and blocks of rows.

Checked are shapes and values: a mass that is negative, infinite or not a number is refused, with
its row. Whether rows sum to one is not asked: most formulas are linear in the masses, and
:class:`evdist.CredalPartition` asks it of what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.focal import FocalSets

#: Sums and differences may leave a mass this far below zero; what is lower is a mistake.
SLACK = {"float32": 1e-5, "float64": 1e-9}

#: Numbers in a block of rows: few enough to stay in a processor's cache.
BLOCK = 1 << 18


def as_masses(m: ArrayLike, focal: FocalSets, *, what: str = "Masses") -> NDArray[np.floating]:
    """``m`` as a float (n, f) or (f,) array; float32 stays, everything else becomes float64.

    Parameters
    ----------
    what : str
        What the numbers are, for the message: beliefs and plausibilities are checked likewise.
    """
    a = np.asarray(m)
    if a.dtype not in (np.float32, np.float64):
        a = a.astype(np.float64)
    if a.ndim not in (1, 2) or a.shape[-1] != len(focal):
        raise ValueError(
            f"{what} must have shape (n, {len(focal)}) or ({len(focal)},), one column per focal "
            f"set of {focal!r}, got shape {a.shape}."
        )
    # min() and max() hand on a NaN.
    if a.size and not (a.min() >= -SLACK[a.dtype.name] and a.max() < np.inf):
        _refuse(a, focal, what)
    return a


def _refuse(a: NDArray[np.floating], focal: FocalSets, what: str) -> None:
    *row, column = np.argwhere(~((a >= -SLACK[a.dtype.name]) & (a < np.inf)))[0]
    value = a[(*row, column)]
    cure = (
        f"replace or drop that row: {what.lower()} are finite numbers"
        if not np.isfinite(value)
        else f"{what.lower()} are at least 0"
    )
    where = f" in row {row[0]}" if row else ""
    raise ValueError(f"Got {value} for {focal.names[column]} (column {column}){where}; {cure}.")


def as_pair(
    m1: ArrayLike, m2: ArrayLike, focal: FocalSets
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Two mass arrays about the same objects; a single mass function goes with any number."""
    a, b = as_masses(m1, focal), as_masses(m2, focal)
    if a.ndim == b.ndim == 2 and a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0]):
        raise ValueError(
            f"Mass arrays must have the same number of rows, got {a.shape[0]} and {b.shape[0]}. "
            "Pass the same objects in the same order."
        )
    return a, b


def as_queries(sets: FocalSets | Iterable[Iterable[int]], focal: FocalSets) -> NDArray[np.bool_]:
    """Sets of clusters as a (q, c) bool matrix; they may repeat and need no empty set."""
    c = focal.n_clusters
    if isinstance(sets, FocalSets):
        if sets.n_clusters != c:
            raise ValueError(
                f"Both families must be about the same clusters, got {sets.n_clusters} clusters "
                f"asked of masses on {c}."
            )
        return sets.matrix
    members = [[int(k) for k in s] for s in sets]
    Q = np.zeros((len(members), c), dtype=bool)
    for row, clusters in enumerate(members):
        outside = [k for k in clusters if not 0 <= k < c]
        if outside:
            raise ValueError(
                f"Query set {row} names cluster {outside[0]}; clusters are numbered 0..{c - 1}."
            )
        Q[row, clusters] = True
    return Q


def as_mask(members: Iterable[int], n_clusters: int) -> int:
    """One set of clusters as a bit mask."""
    mask = 0
    for k in members:
        if not 0 <= k < n_clusters:
            raise ValueError(
                f"The set names cluster {k}; clusters are numbered 0..{n_clusters - 1}."
            )
        mask |= 1 << int(k)
    return mask


def by_blocks(
    kernel: Callable[..., NDArray[Any]],
    *arrays: NDArray[Any],
    width: int | None = None,
) -> NDArray[Any]:
    """``kernel`` of some rows at a time, so that its temporaries stay small.

    Parameters
    ----------
    kernel : function of (b, f) arrays
        Returns (b, ...) for each block of b rows.
    *arrays : (n, f) or (f,) arrays
        Single rows go with all of the others; when all are single, so is the result.
    width : int, optional
        Numbers that a row needs; by default the columns of the first array.
    """
    single = all(a.ndim == 1 for a in arrays)
    rows = [np.atleast_2d(a) for a in arrays]
    n = 0 if any(len(a) == 0 for a in rows) else max(len(a) for a in rows)
    size = max(1, BLOCK // (width or rows[0].shape[1]))
    out: NDArray[Any] | None = None
    for start in range(0, n, size):
        part = kernel(*(a if len(a) == 1 else a[start : start + size] for a in rows))
        if start == 0 and n <= size:
            out = part
            break
        if out is None:
            out = np.empty((n, *part.shape[1:]), dtype=part.dtype)
        out[start : start + size] = part
    if out is None:
        out = kernel(*(a[:0] for a in rows))
    return out[0] if single else out

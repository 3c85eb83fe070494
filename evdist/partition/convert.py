"""Masses from other kinds of partitions, and masses on other focal sets.

A credal partition contains hard, fuzzy, rough and possibilistic partitions as special cases
(k-CEVCLUS, section 2.2): certain, Bayesian, logical and consonant mass functions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.partition.rows import as_table, gather_rows, map_rows
from evdist.partition.validate import SUM_TOLERANCE

#: Sets of clusters are held as bits of an int64 while a partition is converted.
MAX_CODED_CLUSTERS = 62
#: More focal sets than this found in the data would make a mass table too wide to store.
MAX_FOUND_SETS = 4096


# ---------------------------------------------------------------------- other focal sets
def enclosing(mask: int, kept: FocalSets) -> int:
    """Column of the smallest kept set that contains this one, ties to the first.

    The empty set is always kept and stays where it is: doubt about the frame is not doubt
    between clusters.
    """
    if mask == 0:
        return 0
    around = [q for q, other in enumerate(kept.masks) if mask & other == mask]
    if not around:
        members = [k for k in range(mask.bit_length()) if mask >> k & 1]
        raise ValueError(
            f"No kept focal set contains {members} (zero-based clusters), so its mass has no "
            "place to go. Keep a set that contains it, such as the whole frame."
        )
    return min(around, key=lambda q: kept.masks[q].bit_count())


def project_masses(mass: Any, focal: FocalSets, kept: FocalSets) -> Any:
    """Masses on the kept sets, (n, f'); each set's mass goes to its :func:`enclosing` set."""
    if kept.n_clusters != focal.n_clusters:
        raise ValueError(
            f"The kept focal sets must be about the same {focal.n_clusters} clusters, got "
            f"{kept.n_clusters}."
        )
    columns = np.array([enclosing(mask, kept) for mask in focal.masks])
    move = partial(_move_block, columns=columns, width=len(kept))
    return map_rows(move, mass, width=len(kept), dtype=_stored(mass.dtype))


def _move_block(block: NDArray[Any], first: int, columns: NDArray[Any], width: int) -> NDArray[Any]:
    out = np.zeros((len(block), width))
    for q, column in enumerate(columns):
        out[:, column] += block[:, q]
    return out


def _stored(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


# ---------------------------------------------------------------------- hard and fuzzy
def masses_from_labels(
    labels: ArrayLike, n_clusters: int | None
) -> tuple[NDArray[np.float32], FocalSets]:
    """Certain masses, (n, c + 1) on the empty set and the singletons."""
    y = np.asarray(labels)
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be one integer per object, got dtype {y.dtype}, shape {y.shape}."
        )
    if y.size and y.min() < -1:
        row = int(np.argmax(y < -1))
        raise ValueError(f"Label {y[row]} of object {row}: only -1 (outlier) may be negative.")
    if n_clusters is None:
        known, rank = np.unique(y, return_inverse=True)
        outlier_first = known.size > 0 and known[0] == -1
        column = rank if outlier_first else rank + 1
        n_clusters = known.size - int(outlier_first)
        if n_clusters == 0:
            raise ValueError("No object has a cluster. Give n_clusters to say how many there are.")
    else:
        column = y.astype(np.int64) + 1
        if y.size and y.max() >= n_clusters:
            row = int(np.argmax(y >= n_clusters))
            raise ValueError(
                f"Label {y[row]} of object {row} is not one of 0..{n_clusters - 1}. Leave "
                "n_clusters out to number the labels in their order."
            )
    # Zero and one are exact in float32.
    mass = np.zeros((y.size, n_clusters + 1), dtype=np.float32)
    mass[np.arange(y.size), column] = 1.0
    return mass, FocalSets.simple(n_clusters, omega=False)


def masses_from_fuzzy(membership: Any) -> tuple[Any, FocalSets]:
    """Bayesian masses, (n, c + 1); what a row lacks to one goes to the empty set."""
    u = _columns_of(membership, "membership")
    dtype, c = _stored(u.dtype), u.shape[1]
    mass = map_rows(_fuzzy_block, u, width=c + 1, dtype=dtype)
    return mass, FocalSets.simple(c, omega=False)


def _fuzzy_block(block: NDArray[Any], first: int) -> NDArray[Any]:
    _check_degrees(block, first, "membership")
    total = block.sum(axis=1, dtype=np.float64)
    excess = total > 1.0 + SUM_TOLERANCE[_stored(block.dtype).name]
    if excess.any():
        row = int(np.argmax(excess))
        raise ValueError(
            f"Row {first + row} of membership sums to {total[row]:.9g}; memberships sum to at "
            "most 1. Divide the rows by their sums, or use from_possibilistic."
        )
    return np.column_stack([np.maximum(1.0 - total, 0.0), block])


# ---------------------------------------------------------------------- possibilistic and rough
def masses_from_possibilistic(
    possibility: Any, focal_sets: FocalSets | None
) -> tuple[Any, FocalSets]:
    """Consonant masses with the given contour, (n, f).

    With degrees pi_(1) >= ... >= pi_(c), the set of the first k clusters receives
    pi_(k) - pi_(k+1), and the empty set 1 - pi_(1). Sets that are not in ``focal_sets`` give
    their mass to their :func:`enclosing` set.
    """
    pi = _columns_of(possibility, "possibility")
    focal = focal_sets or _found_sets(_possible_codes, pi, pi.shape[1])
    if focal.n_clusters != pi.shape[1]:
        raise ValueError(
            f"possibility has {pi.shape[1]} columns, focal_sets have {focal.n_clusters} clusters."
        )
    block = partial(_spread_block, codes=_possible_codes, focal=focal)
    return map_rows(block, pi, width=len(focal), dtype=_stored(pi.dtype)), focal


def masses_from_rough(lower: Any, upper: Any) -> tuple[Any, FocalSets]:
    """Logical masses on the set of clusters whose upper approximation holds the object, (n, f)."""
    lower, upper = _columns_of(lower, "lower"), _columns_of(upper, "upper")
    if lower.shape != upper.shape:
        raise ValueError(
            "lower and upper must have the same shape (n, c), got "
            f"{tuple(lower.shape)} and {tuple(upper.shape)}."
        )
    both = np.concatenate([lower, upper], axis=1)
    focal = _found_sets(_rough_codes, both, upper.shape[1])
    block = partial(_spread_block, codes=_rough_codes, focal=focal)
    return map_rows(block, both, width=len(focal), dtype=np.float32), focal


def _possible_codes(
    block: NDArray[Any], first: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Nested sets of each row as bits, (b, c + 1) the empty set first, and their masses."""
    _check_degrees(block, first, "possibility")
    order = np.argsort(-block, axis=1, kind="stable")
    degree = np.take_along_axis(block, order, axis=1).astype(np.float64)
    if block.size and degree[:, 0].max() > 1.0:
        row = int(np.argmax(degree[:, 0]))
        raise ValueError(
            f"Row {first + row} of possibility reaches {degree[row, 0]:.9g}; degrees of "
            "possibility are at most 1."
        )
    edge = np.ones((len(block), 1))
    steps = -np.diff(np.hstack([edge, degree, edge * 0.0]), axis=1)
    nested = np.cumsum(np.int64(1) << order, axis=1)
    return np.hstack([np.zeros((len(block), 1), dtype=np.int64), nested]), steps


def _rough_codes(block: NDArray[Any], first: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The set A_i of each row as bits, (b, 1), and its mass one."""
    block = block.astype(bool)
    lower, upper = np.hsplit(block, 2)
    sure = upper & (upper.sum(axis=1) == 1)[:, None]
    wrong = (lower != sure).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"Row {first + row}: lower holds clusters {np.flatnonzero(lower[row]).tolist()} and "
            f"upper {np.flatnonzero(upper[row]).tolist()} (zero-based). An object is in a lower "
            "approximation when, and only when, it is in that one upper approximation."
        )
    bits = np.int64(1) << np.arange(upper.shape[1])
    return (upper @ bits)[:, None], np.ones((len(block), 1))


def _found_sets(codes: Any, table: Any, n_clusters: int) -> FocalSets:
    """The empty set, the singletons and every other set that some row needs, small ones first."""
    if n_clusters > MAX_CODED_CLUSTERS:
        raise ValueError(
            f"This conversion handles at most {MAX_CODED_CLUSTERS} clusters, got {n_clusters}."
        )
    per_block = gather_rows(partial(_unique_codes, codes=codes), table)
    found = {int(code) for part in per_block for code in part}
    found |= {1 << k for k in range(n_clusters)}
    if len(found) > MAX_FOUND_SETS:
        raise ValueError(
            f"The rows need {len(found)} different focal sets, at most {MAX_FOUND_SETS} are "
            "kept. Pass focal_sets to from_possibilistic, with the whole frame among them, or "
            "round the degrees."
        )
    members = [tuple(k for k in range(n_clusters) if code >> k & 1) for code in found]
    members.sort(key=lambda s: (len(s), s))
    return FocalSets.of(members, n_clusters)


def _unique_codes(block: NDArray[Any], first: int, codes: Any) -> NDArray[np.int64]:
    code, mass = codes(block, first)
    return np.unique(code[mass > 0])


def _spread_block(block: NDArray[Any], first: int, codes: Any, focal: FocalSets) -> NDArray[Any]:
    """Masses (b, f) from the coded sets of each row."""
    code, mass = codes(block, first)
    row, _ = np.nonzero(mass > 0)
    known, rank = np.unique(code[mass > 0], return_inverse=True)
    column = np.array([enclosing(int(k), focal) for k in known], dtype=np.int64)
    out = np.zeros((len(block), len(focal)))
    np.add.at(out, (row, column[rank]), mass[mass > 0])
    return out


# ---------------------------------------------------------------------- checks
def _columns_of(table: Any, name: str) -> Any:
    table = as_table(table)
    if len(table.shape) != 2 or table.shape[1] == 0 or table.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must be a table of numbers (objects, clusters), got dtype {table.dtype}, "
            f"shape {tuple(table.shape)}."
        )
    return table


def _check_degrees(block: NDArray[Any], first: int, name: str) -> None:
    if block.size and not block.min() >= 0:
        row, column = np.argwhere(~(block >= 0))[0]
        raise ValueError(
            f"Row {first + row} of {name} has {block[row, column]} in column {column}; degrees "
            "are at least 0."
        )

"""Links as a person gives them: read, checked, and refused where they contradict each other.

Reference: Li, Li, Denoeux (2018), k-CEVCLUS, section 2.4.

Symbols
-------
ml, cl   (p, 2) and (q, 2) int64, objects known to be in the same, in different clusters
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph, csr_array

Pairs = NDArray[np.int64]

#: A chain of must-links with more objects than this is shown by its ends.
_LONG_CHAIN = 7


def check_links(must_link: Any, cannot_link: Any, n: int) -> tuple[Pairs, Pairs]:
    """The links as two arrays of pairs, or a ValueError that names the pair that cannot be.

    A link has no direction. One that is given twice, in either direction, is kept once, where it
    stood first; the order is kept otherwise.

    Parameters
    ----------
    must_link, cannot_link : (p, 2) integers or None
        Pairs of zero-based objects: a list, an array, a DataFrame of two columns. None and an
        empty list are no links.
    n : int
        Number of objects.

    Returns
    -------
    ml : (p, 2) int64
    cl : (q, 2) int64

    Raises
    ------
    ValueError
        For what are not pairs of two different objects of 0..n-1, and for a cannot-link between
        objects that must-links join, directly or through others.
    """
    ml = as_pairs(must_link, n, "must_link")
    cl = as_pairs(cannot_link, n, "cannot_link")
    _refuse_contradictions(ml, cl)
    return _without_repeats(ml, n), _without_repeats(cl, n)


def as_pairs(links: Any, n: int, name: str) -> Pairs:
    """Pairs of different objects among 0..n-1 as (p, 2) int64; `name` is for the error text."""
    if links is None:
        return np.empty((0, 2), np.int64)
    try:
        pairs = np.asarray(links)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{name} must be pairs of objects, shape (p, 2): {error}") from error
    if pairs.shape == (0,):
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(
            f"{name} must be pairs of objects, shape (p, 2), got shape {pairs.shape}. "
            "For one pair write [(i, j)]."
        )
    _refuse(~_whole(pairs), pairs, name, f"must hold whole numbers, objects 0..{n - 1}")
    _refuse((pairs < 0) | (pairs >= n), pairs, name, f"must name objects 0..{n - 1}")
    itself = pairs[:, [0]] == pairs[:, [1]]
    _refuse(itself, pairs, name, "must join two different objects")
    return pairs.astype(np.int64)


def _whole(pairs: NDArray[Any]) -> NDArray[np.bool_]:
    if pairs.dtype.kind in "iu":
        return np.ones(pairs.shape, bool)
    if pairs.dtype.kind == "f":
        return pairs == np.floor(pairs)
    if pairs.dtype.kind == "O":
        known = [isinstance(v, numbers.Integral) and not isinstance(v, bool) for v in pairs.flat]
        return np.array(known, bool).reshape(pairs.shape)
    return np.zeros(pairs.shape, bool)


def _refuse(bad: NDArray[np.bool_], pairs: NDArray[Any], name: str, must: str) -> None:
    rows = np.flatnonzero(bad.any(axis=1))
    if len(rows):
        i, j = pairs[rows[0]].tolist()
        more = f" ({len(rows)} such rows)" if len(rows) > 1 else ""
        raise ValueError(f"{name} {must}, but row {rows[0]} is ({i!r}, {j!r}){more}.")


def pair_keys(pairs: Pairs, n: int) -> NDArray[np.int64]:
    """One number for each pair, the same for (i, j) and (j, i)."""
    return pairs.min(axis=1, initial=n) * n + pairs.max(axis=1, initial=0)


def _without_repeats(pairs: Pairs, n: int) -> Pairs:
    _, first = np.unique(pair_keys(pairs, n), return_index=True)
    return pairs[np.sort(first)]


def _refuse_contradictions(ml: Pairs, cl: Pairs) -> None:
    # Only objects with links are numbered: the cost does not depend on n.
    objects, where = np.unique(np.concatenate([ml, cl]), return_inverse=True)
    where = where.reshape(-1, 2)
    a, b = where[: len(ml)].T
    size = len(objects)
    joined = csr_array((np.ones(len(ml), np.int8), (a, b)), shape=(size, size))
    _, component = csgraph.connected_components(joined, directed=False)
    apart = where[len(ml) :]
    bad = np.flatnonzero(component[apart[:, 0]] == component[apart[:, 1]])
    if not len(bad):
        return
    start, end = apart[bad[0]]
    chain = objects[_chain(joined, int(start), int(end))]
    more = f" {len(bad) - 1} more cannot-links contradict." if len(bad) > 1 else ""
    raise ValueError(
        f"cannot_link row {bad[0]}, ({objects[start]}, {objects[end]}), contradicts must_link, "
        f"which joins the two: {_show(chain)}. Remove one of these links.{more}"
    )


def _chain(joined: csr_array, start: int, end: int) -> list[int]:
    """Objects on a shortest way from start to end, both included."""
    _, before = csgraph.breadth_first_order(joined, start, directed=False)
    chain = [end]
    while chain[-1] != start:
        chain.append(int(before[chain[-1]]))
    return chain[::-1]


def _show(chain: NDArray[np.int64]) -> str:
    names = [str(i) for i in chain]
    if len(names) > _LONG_CHAIN:
        names = [*names[:3], f"... ({len(names) - 6} more) ...", *names[-3:]]
    return " - ".join(names)

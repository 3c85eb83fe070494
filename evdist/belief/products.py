"""Products of two mass arrays, gathered on the sets that pairs of focal sets lead to.

Two ways, with the same result. On the power set each cluster splits a product in three (instead
of four) half-sized ones: 3^c multiplications per row. On any other family the map from pairs of
sets to the set they lead to is built once per family and the products are summed along it, in
pieces of bounded size. Both add non-negative terms only: no mass comes out negative, and a mass
that should be zero is zero. (Not so the exclusive rule on the power set, which rounds.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evdist.belief.families import grown
from evdist.belief.focal import FocalSets
from evdist.belief.lattice import as_slice, binary_order

Rule = Literal["conjunctive", "disjunctive", "exclusive", "dubois_prade"]

#: Elements of a temporary, and rows taken at a time: few enough to stay in a processor's cache.
PIECE = 1 << 18
ROWS = 1 << 10

#: A set that more than this share of all pairs lead to is summed by a matrix product.
HUB = 1 / 16

#: Refuse results larger than this many bytes: unions of many sets can fill any memory.
MAX_RESULT_BYTES = 1 << 33

_WORD = (1 << 64) - 1


def combine_pair(
    left: tuple[NDArray[Any], FocalSets], right: tuple[NDArray[Any], FocalSets], rule: Rule
) -> tuple[NDArray[Any], FocalSets]:
    """Products of two mass arrays by ``rule``: (n, g) on a family that starts with left's."""
    (m1, family1), (m2, family2) = left, right
    flat = m1.ndim == m2.ndim == 1
    a, b = np.atleast_2d(m1), np.atleast_2d(m2)
    n = max(len(a), len(b))
    a, b = (np.broadcast_to(m, (n, m.shape[1])) for m in (a, b))
    order1, order2 = binary_order(family1), binary_order(family2)
    if order1 is not None and order2 is not None:
        columns = as_slice(order1)
        out = _on_power_set(a[:, columns], b[:, as_slice(order2)], rule)
        if not isinstance(columns, slice):
            out, ordered = np.empty_like(out), out
            out[:, columns] = ordered
        family = family1
    else:
        plan = _plan(family1, family2, rule)
        out, family = _along(plan, a, b), plan.family
    return (out[0] if flat else out), family


# ---------------------------------------------------------------------- the power set
def _on_power_set(a: NDArray[Any], b: NDArray[Any], rule: Rule) -> NDArray[Any]:
    """(n, 2^c) arrays in binary order, a piece of rows at a time."""
    f = a.shape[1]
    rows = max(1, min(len(a), 4 * PIECE // f))
    out = np.empty_like(a, dtype=np.result_type(a, b))
    # Made once: memory that is new to the process costs more than what is done with it here.
    x, y, z, apart = (np.empty((f, rows), dtype=out.dtype) for _ in range(4))
    space = np.empty((2 * f, rows), dtype=out.dtype)
    for i in range(0, len(a), rows):
        n = min(rows, len(a) - i)
        if n < rows:
            x, y, z, apart, space = (m[:, :n] for m in (x, y, z, apart, space))
        _turn(a[i : i + n], x)
        _turn(b[i : i + n], y)
        if rule == "disjunctive":
            _unions(x, y, z, space, disjoint=False)
        elif rule == "exclusive":
            z = _differences(x, y)
        else:
            # De Morgan: the order reversed lists the complements.
            _unions(x[::-1], y[::-1], z[::-1], space, disjoint=False)
            if rule == "dubois_prade":
                _unions(x, y, apart, space, disjoint=True)
                z[0] = 0.0
                z += apart
        out[i : i + n] = z.T
    return out


def _turn(m: NDArray[Any], into: NDArray[Any]) -> None:
    """Rows to columns, some at a time: each line of memory is read once."""
    for r in range(0, len(m), 64):
        into[:, r : r + 64] = m[r : r + 64].T


def _unions(
    a: NDArray[Any],
    b: NDArray[Any],
    out: NDArray[Any],
    space: NDArray[Any],
    *,
    disjoint: bool,
) -> None:
    """Sum of a(B) b(C) over B or C = A, of all pairs or of disjoint ones; (2^c, rows) arrays.

    By the last cluster, write x- and x+ for the halves of x without and with it. Then
    out- = a- b- and out+ = a+ (b- + b+) + a- b+, or a+ b- + a- b+ for disjoint pairs.
    ``space`` holds what is between: two arrays of each half, quarter, ... taken from its end, which
    all products of one size use one after another.
    """
    if len(a) == 1:
        np.multiply(a, b, out=out)
        return
    half = len(a) // 2
    either, more = space[-half:], space[-len(a) : -half]
    rest = space[: -len(a)]
    if disjoint:
        either = b[:half]
    else:
        np.add(b[:half], b[half:], out=either)
    _unions(a[:half], b[:half], out[:half], rest, disjoint=disjoint)
    _unions(a[half:], either, out[half:], rest, disjoint=disjoint)
    _unions(a[:half], b[half:], more, rest, disjoint=disjoint)
    out[half:] += more


def _differences(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Sum of a(B) b(C) over the B and C with symmetric difference A; (2^c, rows) arrays.

    Walsh-Hadamard transforms multiply: c 2^c additions instead of the 4^c products of a sum of
    non-negative terms. What rounding leaves below 0 is 0. Both arrays are overwritten.
    """
    return np.maximum(_walsh(_walsh(a) * _walsh(b)) / len(a), 0)


def _walsh(a: NDArray[Any]) -> NDArray[Any]:
    size, rows = a.shape
    for k in range(size.bit_length() - 1):
        halves = a.reshape(size >> (k + 1), 2, 1 << k, rows)
        difference = halves[:, 0] - halves[:, 1]
        halves[:, 0] += halves[:, 1]
        halves[:, 1] = difference
    return a


# ---------------------------------------------------------------------- any family
@dataclass(frozen=True)
class _Plan:
    """Which pair (i, j) of focal sets leads to which set of the result.

    Pairs are sorted by target; ``starts[t]`` is the first pair of ``targets[t]``. Hubs, the few
    targets of very many pairs, are kept apart as (target, (f1, f2) bool matrix).
    """

    family: FocalSets
    i: NDArray[np.int32]
    j: NDArray[np.int32]
    starts: NDArray[np.int64]
    targets: NDArray[np.int64]
    hubs: tuple[tuple[int, NDArray[np.bool_]], ...]


def _dubois_prade(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    meet = x & y
    return np.where(meet.any(axis=-1, keepdims=True), meet, x | y)


_RULES: dict[Rule, Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]] = {
    "conjunctive": np.bitwise_and,
    "disjunctive": np.bitwise_or,
    "exclusive": np.bitwise_xor,
    "dubois_prade": _dubois_prade,
}


@lru_cache(maxsize=4)
def _plan(left: FocalSets, right: FocalSets, rule: Rule) -> _Plan:
    x, y = _words(left), _words(right)
    result = _RULES[rule](x[:, None, :], y[None, :, :]).reshape(-1, x.shape[1])
    order = np.lexsort(result.T)
    result = result[order]
    new = np.ones(len(result), dtype=bool)
    new[1:] = (result[1:] != result[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    masks = [sum(int(w) << 64 * p for p, w in enumerate(row)) for row in result[starts]]
    del result

    family = grown(left, masks)
    column = {mask: q for q, mask in enumerate(family.masks)}
    targets = np.array([column[mask] for mask in masks])
    counts = np.diff(starts, append=len(order))
    hub = counts > max(HUB * len(order), 1)
    hubs = []
    for t in np.flatnonzero(hub):
        pairs = np.zeros(len(order), dtype=bool)
        pairs[order[starts[t] : starts[t] + counts[t]]] = True
        hubs.append((int(targets[t]), pairs.reshape(len(left), len(right))))
    order = order[~np.repeat(hub, counts)]
    return _Plan(
        family=family,
        i=(order // len(right)).astype(np.int32),
        j=(order % len(right)).astype(np.int32),
        starts=np.cumsum(counts[~hub]) - counts[~hub],
        targets=targets[~hub],
        hubs=tuple(hubs),
    )


def _along(plan: _Plan, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    n, g = len(a), len(plan.family)
    dtype = np.result_type(a, b)
    if n * g * dtype.itemsize > MAX_RESULT_BYTES:
        raise MemoryError(
            f"The combined masses must fit {MAX_RESULT_BYTES >> 30} GiB, got {n} rows on {g} sets "
            f"({n * g * dtype.itemsize / 2**30:.1f} GiB). Combine fewer rows at a time, or start "
            "from fewer focal sets."
        )
    out = np.empty((n, g), dtype=dtype)
    hubs = [(target, pairs.astype(dtype)) for target, pairs in plan.hubs]
    for r in range(0, n, ROWS):
        rows = slice(r, r + ROWS)
        out[rows] = _sums(plan, hubs, a[rows], b[rows]).T
    return out


def _sums(
    plan: _Plan, hubs: list[tuple[int, NDArray[Any]]], a: NDArray[Any], b: NDArray[Any]
) -> NDArray[Any]:
    """Combined masses of a block of rows, transposed so that pairs are contiguous; (g, rows)."""
    x, y = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    out = np.zeros((len(plan.family), len(a)), dtype=np.result_type(a, b))
    for target, pairs in hubs:
        out[target] = np.einsum("nq,nq->n", a @ pairs, b)
    size = PIECE // len(a)
    for begin in range(0, len(plan.i), size):
        piece = slice(begin, begin + size)
        products = x[plan.i[piece]] * y[plan.j[piece]]
        # The targets of this piece; the first may have begun in an earlier one.
        first = np.searchsorted(plan.starts, begin, side="right") - 1
        last = np.searchsorted(plan.starts, begin + size, side="left")
        starts = np.maximum(plan.starts[first:last] - begin, 0)
        out[plan.targets[first:last]] += np.add.reduceat(products, starts, axis=0)
    return out


def _words(focal: FocalSets) -> NDArray[np.uint64]:
    """Focal sets as (f, words) bit masks of 64 clusters each."""
    words = range(-(-focal.n_clusters // 64))
    return np.array(
        [[mask >> 64 * w & _WORD for w in words] for mask in focal.masks], dtype=np.uint64
    )

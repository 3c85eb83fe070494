"""Which of two mass functions says more: orders of commitment, and specialisation.

Each order compares two mass functions, some pairs of which it leaves open. Of the five, "w" and "v"
imply "s", and "s" implies "pl" and "q".

References: Yager (1986), The entailment principle for Dempster-Shafer granules; Dubois and Prade
(1986), A set-theoretic view of belief functions; Klawonn and Smets (1992), The dynamic of belief
in the transferable belief model and specialization-generalization matrices; Denoeux (2008).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import SLACK, as_masses, as_pair, by_blocks
from evdist.belief.canonical import conjunctive_weights, disjunctive_weights
from evdist.belief.families import on_power_set
from evdist.belief.focal import FocalSets
from evdist.belief.transforms import commonality, plausibility

#: Relative rounding of weights, which are products of many quotients.
WEIGHT_SLACK = {"float32": 1e-3, "float64": 1e-7}

Order = Literal["pl", "q", "s", "w", "v"]


def is_more_committed(
    m1: ArrayLike, m2: ArrayLike, focal: FocalSets, *, order: Order = "pl"
) -> NDArray[np.bool_]:
    """Whether m1 is at least as committed as m2, row by row; (n,) bool.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.
    order : {"pl", "q", "s", "w", "v"}
        ``"pl"``: pl1(A) <= pl2(A) for all A. ``"q"``: q1(A) <= q2(A) for all A. ``"s"``: m1 is a
        specialisation of m2, see :func:`specialisation`; a flow problem per row. ``"w"``:
        w1 <= w2, where m(Omega) > 0. ``"v"``: v1 >= v2, where m(empty) > 0.

    Examples
    --------
    >>> from evdist.belief import FocalSets, is_more_committed
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> is_more_committed([[0, .8, 0, .2], [0, 0, .8, .2]], [0, .5, 0, .5], focal)
    array([ True, False])
    """
    a, b = as_pair(m1, m2, focal)
    if order == "s":
        return np.asarray(~np.isnan(specialisation(a, b, focal)).any(axis=(-2, -1)))
    if order in ("w", "v"):
        weights = conjunctive_weights if order == "w" else disjunctive_weights
        (low, _), (high, _) = weights(a, focal), weights(b, focal)
        if order == "v":
            low, high = high, low
        return np.asarray((low <= high * (1 + WEIGHT_SLACK[low.dtype.name])).all(axis=-1))
    if order not in ("pl", "q"):
        raise ValueError(f'order must be "pl", "q", "s", "w" or "v", got {order!r}.')
    (a, _), (b, full) = on_power_set(a, focal), on_power_set(b, focal)
    function = plausibility if order == "pl" else commonality
    slack = SLACK[np.result_type(a, b).name]

    def kernel(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        return np.asarray((function(x, full) <= function(y, full) + slack).all(axis=-1))

    return np.asarray(by_blocks(kernel, a, b))


def dempsterian_matrix(m: ArrayLike, focal: FocalSets) -> NDArray[np.floating]:
    """S with S[A, B] = m[B](A), so that S m2 is the conjunctive sum of m and m2.

    Klawonn and Smets (1992): every column is the mass function conditioned on one set.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses on a family that holds the intersections of its sets.
    focal : FocalSets
        The sets that the columns are for.

    Returns
    -------
    (n, f, f) or (f, f) array
        S; one for each mass function.


    Examples
    --------
    >>> from evdist.belief import FocalSets, dempsterian_matrix
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> S = dempsterian_matrix([0, .8, 0, .2], focal)
    >>> (S @ [0, 0, .6, .4]).round(2)  # the conjunctive sum
    array([0.48, 0.32, 0.12, 0.08])
    """
    M = as_masses(m, focal)
    column = {mask: q for q, mask in enumerate(focal.masks)}
    meet = [[column.get(A & B, -1) for B in focal.masks] for A in focal.masks]
    target = np.array(meet)
    if (target < 0).any():
        first, second = np.argwhere(target < 0)[0]
        raise ValueError(
            f"The family must hold the intersections of its sets, got {focal.names[first]} and "
            f"{focal.names[second]} without theirs. Use FocalSets.full, .simple or .pairs."
        )
    S = np.zeros((*M.shape, len(focal)), dtype=M.dtype)
    every = np.arange(len(focal))
    for q in range(len(focal)):
        S[..., target[q], every] += M[..., q, None]
    return S


def specialisation(m1: ArrayLike, m2: ArrayLike, focal: FocalSets) -> NDArray[np.float64]:
    """A matrix S that moves the masses of m2 to subsets so that they become m1, S m2 = m1.

    Yager (1986), Dubois and Prade (1986). Its columns sum to one and S[A, B] is 0 unless A is
    inside B. There can be several; this one is the first that the method of Ford and Fulkerson
    finds, a search per row in Python: for thousands of rows, not millions.

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.

    Returns
    -------
    (n, f, f) or (f, f) array
        NaN where there is none, m1 not being a specialisation of m2.

    Examples
    --------
    >>> from evdist.belief import FocalSets, specialisation
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> S = specialisation([0, .8, 0, .2], [0, .5, 0, .5], focal)
    >>> S[:, 3].round(2)  # where the mass of {0,1} goes
    array([0. , 0.6, 0. , 0.4])
    """
    pair = as_pair(m1, m2, focal)
    slack = max(SLACK[m.dtype.name] for m in pair)
    a, b = (np.atleast_2d(m).astype(np.float64) for m in pair)
    inside = focal.overlap == focal.cardinality[:, None]
    n = 0 if min(len(a), len(b)) == 0 else max(len(a), len(b))
    out = np.full((n, len(focal), len(focal)), np.nan)
    for row, (x, y) in enumerate(zip(*np.broadcast_arrays(a, b), strict=True)):
        flow = _flow(x, y, inside, slack)
        if flow is not None:
            out[row] = _columns(flow, y)
    return out[0] if pair[0].ndim == pair[1].ndim == 1 else out


def _flow(
    x: NDArray[Any], y: NDArray[Any], inside: NDArray[np.bool_], slack: float
) -> NDArray[Any] | None:
    """(f, f) masses moved from the columns' sets to the rows' subsets; None if it cannot be."""
    missing, left = x.copy(), y.copy()
    flow = np.zeros(inside.shape)
    # Equal sets first: what need not move stays.
    stays = np.minimum(x, y)
    flow[np.diag_indices_from(flow)] = stays
    missing, left = missing - stays, left - stays
    while missing.max() > slack:
        path = _augmenting(missing, left, flow, inside, slack)
        if path is None:
            return None
        start, steps, end = path
        # Along the path mass is added at even steps and taken back at odd ones.
        amount = min(left[start], missing[end])
        amount = min([amount, *(flow[A, B] for A, B, sign in steps if sign < 0)])
        for A, B, sign in steps:
            flow[A, B] += sign * amount
        left[start] -= amount
        missing[end] -= amount
    return flow


def _augmenting(
    missing: NDArray[Any],
    left: NDArray[Any],
    flow: NDArray[Any],
    inside: NDArray[np.bool_],
    slack: float,
) -> tuple[int, list[tuple[int, int, int]], int] | None:
    """A shortest way from a set of m2 with mass left to a set of m1 that misses some."""
    came_from: dict[tuple[str, int], tuple[str, int] | None] = {}
    queue: list[tuple[str, int]] = [("from", int(B)) for B in np.flatnonzero(left > slack * 1e-3)]
    came_from.update(dict.fromkeys(queue))
    for node in queue:
        side, q = node
        if side == "to" and missing[q] > slack * 1e-3:
            return _traced(node, came_from)
        near = inside[:, q] if side == "from" else flow[q] > slack * 1e-3
        for other in np.flatnonzero(near):
            step = ("to" if side == "from" else "from", int(other))
            if step not in came_from:
                came_from[step] = node
                queue.append(step)
    return None


def _traced(
    end: tuple[str, int], came_from: dict[tuple[str, int], tuple[str, int] | None]
) -> tuple[int, list[tuple[int, int, int]], int]:
    steps: list[tuple[int, int, int]] = []
    node = end
    while (before := came_from[node]) is not None:
        forward = node[0] == "to"
        steps.append((node[1], before[1], 1) if forward else (before[1], node[1], -1))
        node = before
    return node[1], steps, end[1]


def _columns(flow: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Shares of each column's mass; a set without mass keeps what it would have."""
    moved = flow.sum(axis=0)
    S = np.divide(flow, moved, out=np.zeros_like(flow), where=moved > 0)
    empty = np.flatnonzero(~(moved > 0))
    S[empty, empty] = 1.0
    return S

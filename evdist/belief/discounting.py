"""Discounting: what is left of the masses of a source that is not fully reliable.

References: Shafer (1976); Mercier, Quost and Denoeux (2008), Refined modeling of sensor
reliability in the belief function framework using contextual discounting; Mercier, Lefevre and
Delmotte (2012) for contextual reinforcement; Denoeux and Smets (2006) for the inverse of
discounting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import and_, or_
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import SLACK, as_mask, as_masses, by_blocks
from evdist.belief.families import grown, ways
from evdist.belief.focal import FocalSets
from evdist.belief.normalisation import omega_column


def discount(m: ArrayLike, focal: FocalSets, rate: ArrayLike) -> NDArray[np.floating]:
    """Keep a share 1 - rate of every mass and give the rest to Omega; (n, f) or (f,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    rate : float or (n,) array in [0, 1]
        0 trusts the source and changes nothing, 1 leaves the vacuous mass function.

    Examples
    --------
    >>> from evdist.belief import FocalSets, discount
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> discount([0, .5, .5, 0], focal, 0.2)
    array([0. , 0.4, 0.4, 0.2])
    """
    M = as_masses(m, focal)
    omega = omega_column(focal, "Discounting")
    r = _rate(rate, M)
    out = M * (1 - r[..., None])
    out[..., omega] += r
    return out


def dediscount(m: ArrayLike, focal: FocalSets, rate: ArrayLike) -> NDArray[np.floating]:
    """The masses that :func:`discount` by this rate turns into ``m``; (n, f) or (f,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    rate : float or (n,) array in [0, 1)
        At most m(Omega), since discounting leaves that much there.

    Examples
    --------
    >>> from evdist.belief import FocalSets, dediscount
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> dediscount([0, .4, .4, .2], focal, 0.2).round(2)
    array([0. , 0.5, 0.5, 0. ])
    """
    M = as_masses(m, focal)
    omega = omega_column(focal, "De-discounting")
    r = _rate(rate, M)
    short = (M[..., omega] < r - SLACK[M.dtype.name]) | (r == 1)
    if short.any():
        row = int(np.argmax(np.atleast_1d(short)))
        raise ValueError(
            f"De-discounting needs a rate below 1 and of at most m(Omega), got "
            f"{np.broadcast_to(r, short.shape).flat[row]} and m(Omega) = "
            f"{np.atleast_1d(M[..., omega])[row]} in row {row}. Lower the rate."
        )
    out = M / (1 - r[..., None])
    out[..., omega] = np.maximum(M[..., omega] - r, 0) / (1 - r)
    return out


def contextual_discount(
    m: ArrayLike,
    focal: FocalSets,
    rates: ArrayLike,
    contexts: Iterable[Iterable[int]] | None = None,
) -> tuple[NDArray[np.floating], FocalSets]:
    """Discounting by contexts: a source that may fail to see some clusters.

    In context A the source is unreliable with the given rate: every focal set is joined with A to
    that share, the disjunctive sum with rate on A and 1 - rate on the empty set. Mercier, Quost
    and Denoeux (2008); the one context Omega is :func:`discount`.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    rates : (k,) or (n, k) array in [0, 1]
        One per context, and per row when they differ.
    contexts : iterable of k iterables of int, optional
        Sets of clusters; by default every single cluster.

    Returns
    -------
    mass : (n, f') or (f',) array
        Masses on the sets of the result.
    focal : FocalSets
        The given sets, then their unions with contexts: up to 2^k times as many.

    Examples
    --------
    >>> from evdist.belief import FocalSets, contextual_discount
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = contextual_discount([0, 1, 0, 0], focal, [.1, .4])
    >>> m.round(2)  # cluster 1 would be missed with rate 0.4
    array([0. , 0.6, 0. , 0.4])
    """
    return _by_contexts(_contexts(m, focal, rates, contexts), focal, or_)


def contextual_reinforce(
    m: ArrayLike,
    focal: FocalSets,
    rates: ArrayLike,
    contexts: Iterable[Iterable[int]],
) -> tuple[NDArray[np.floating], FocalSets]:
    """Reinforcement by contexts, the dual of discounting: to the given share only A is left.

    Every focal set is cut down to A to that share, the conjunctive sum with rate on A and
    1 - rate on Omega, for each context A; Mercier, Lefevre and Delmotte (2012). Where
    :func:`contextual_discount` lowers a weight of the disjunctive decomposition, this lowers one
    of the conjunctive. Parameters and result likewise, with intersections.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    rates : (k,) or (n, k) array
        A rate for each context.
    contexts : iterable of k iterables of int
        The clusters of each context.

    Examples
    --------
    >>> from evdist.belief import FocalSets, contextual_reinforce
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = contextual_reinforce([0, 0, 0, 1], focal, [.4], [[0]])
    >>> m.round(2)
    array([0. , 0.4, 0. , 0.6])
    """
    return _by_contexts(_contexts(m, focal, rates, contexts), focal, and_)


def _by_contexts(
    given: tuple[NDArray[np.floating], list[int], NDArray[np.floating]],
    focal: FocalSets,
    operation: Callable[[int, int], int],
) -> tuple[NDArray[np.floating], FocalSets]:
    """For each context in turn a share of each mass goes to another set, the rest stays."""
    M, masks, r = given
    steps, family = [], focal
    for A in masks:
        goes_to = [operation(mask, A) for mask in family.masks]
        family = grown(family, goes_to)
        steps.append(ways(goes_to, family))

    def kernel(rows: NDArray[Any], rates: NDArray[Any]) -> NDArray[Any]:
        x = np.ascontiguousarray(rows.T)
        for step, rate in zip(steps, rates.T, strict=True):
            moved = step(x * rate)
            moved[: len(x)] += x * (1 - rate)
            x = moved
        return x.T

    return by_blocks(kernel, M, r, width=8 * len(family)), family  # several arrays at once


def _contexts(
    m: ArrayLike, focal: FocalSets, rates: ArrayLike, contexts: Iterable[Iterable[int]] | None
) -> tuple[NDArray[np.floating], list[int], NDArray[np.floating]]:
    M = as_masses(m, focal)
    sets = [[k] for k in range(focal.n_clusters)] if contexts is None else contexts
    masks = [as_mask(s, focal.n_clusters) for s in sets]
    r = np.asarray(rates, dtype=M.dtype)
    if r.shape != (len(masks),) and r.shape != (*M.shape[:-1], len(masks)):
        raise ValueError(
            f"rates must have shape ({len(masks)},), one per context, or one such row per row of "
            f"masses of shape {M.shape}, got shape {r.shape}."
        )
    _within(r)
    return M, masks, r


def _rate(rate: ArrayLike, M: NDArray[np.floating]) -> NDArray[np.floating]:
    r = np.asarray(rate, dtype=M.dtype)
    if r.ndim > 1 or (r.ndim == 1 and (M.ndim == 1 or r.shape[0] != M.shape[0])):
        raise ValueError(
            f"rate must be one number or one per row of masses of shape {M.shape}, got shape "
            f"{r.shape}."
        )
    _within(r)
    return r


def _within(r: NDArray[np.floating]) -> None:
    bad = ~((r >= 0) & (r <= 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"Discount rates must lie between 0 and 1, got {r.flat[row]} at row {row}."
        )

"""Decisions from masses and a matrix of losses, and Appriou's rule for deciding on sets.

Symbols
-------
L     (a, c) losses, L[i, k] what act i costs when cluster k is the true one

A mass function allows many probabilities; an act's expected loss is an interval. The rules that
choose one act look at an end of it, a mixture of both, or the pignistic probabilities between;
others keep every act that is not clearly worse. Masses are normalised first (Dempster): the empty
set speaks for no act, and a row with m(empty) = 1 counts as vacuous.

References: Denoeux (2019), Decision-making with belief functions: a review;
Smets (1990) for the pignistic expectation; Strat (1990) for Hurwicz's criterion; Walley (1991) for
maximality; Appriou (2014), Uncertainty theories and multisensor data fusion, for the decision
on sets.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_masses, as_queries, by_blocks
from evdist.belief.focal import FocalSets
from evdist.belief.normalisation import normalise
from evdist.belief.transforms import Queries, pignistic, plausibility

Expectation = Literal["lower", "upper", "hurwicz", "pignistic"]


def expected_loss(
    m: ArrayLike,
    focal: FocalSets,
    loss: ArrayLike,
    *,
    expectation: Expectation = "pignistic",
    pessimism: float = 0.5,
) -> NDArray[np.floating]:
    """Expected loss of every act; (n, a) or (a,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    loss : (a, c) array
        One row per act, one column per cluster.
    expectation : {"lower", "upper", "hurwicz", "pignistic"}
        Of the clusters of a focal set, which counts: the cheapest, the dearest, ``pessimism``
        times the dearest plus the rest of the cheapest, or their mean.
    pessimism : float in [0, 1]
        For ``"hurwicz"``.

    Examples
    --------
    >>> from evdist.belief import FocalSets, expected_loss
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> loss = [[0, 1], [1, 0], [.2, .2]]  # say 0, say 1, ask an expert
    >>> expected_loss([0, .3, .1, .6], focal, loss).round(2)
    array([0.4, 0.6, 0.2])
    >>> expected_loss([0, .3, .1, .6], focal, loss, expectation="upper").round(2)
    array([0.7, 0.9, 0.2])
    """
    M, L = as_masses(m, focal), _losses(loss, focal)
    if expectation not in get_args(Expectation):
        raise ValueError(
            f"expectation must be one of {', '.join(get_args(Expectation))}, got {expectation!r}."
        )
    if not 0 <= pessimism <= 1:
        raise ValueError(f"pessimism must lie between 0 and 1, got {pessimism}.")
    if expectation == "pignistic":
        return pignistic(M, focal, normalised=True) @ L.T.astype(M.dtype)
    low, high = _extremes(L, focal)
    share = {"lower": 0.0, "upper": 1.0}.get(expectation, pessimism)
    of_sets = ((1 - share) * low + share * high).astype(M.dtype)
    return by_blocks(lambda x: normalise(x, focal) @ of_sets, M)


def best_act(
    m: ArrayLike,
    focal: FocalSets,
    loss: ArrayLike,
    *,
    expectation: Expectation = "pignistic",
    pessimism: float = 0.5,
) -> NDArray[np.intp]:
    """Number of the act with the least :func:`expected_loss`, ties to the first; (n,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    loss : (a, c) array
        Loss of each act for each cluster.
    expectation : {"pignistic", "lower", "upper", "hurwicz"}, default="pignistic"
        As in :func:`expected_loss`.
    pessimism : float, default=0.5
        As in :func:`expected_loss`.

    Examples
    --------
    >>> from evdist.belief import FocalSets, best_act
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> loss = [[0, 1], [1, 0], [.2, .2]]  # say 0, say 1, ask an expert
    >>> best_act([[0, .9, 0, .1], [0, .3, .1, .6]], focal, loss)
    array([0, 2])
    """
    expected = expected_loss(m, focal, loss, expectation=expectation, pessimism=pessimism)
    return expected.argmin(axis=-1)


def interval_dominance(m: ArrayLike, focal: FocalSets, loss: ArrayLike) -> NDArray[np.bool_]:
    """The acts that no other beats in every case: least loss <= smallest greatest loss; (n, a).

    An act is ruled out when its lower expected loss is above the upper expected loss of another.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    loss : (a, c) array
        Loss of each act for each cluster.

    Examples
    --------
    >>> from evdist.belief import FocalSets, interval_dominance
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> loss = [[0, 1], [1, 0], [.1, 1.1]]  # the last always costs more than the first
    >>> interval_dominance([0, .3, .1, .6], focal, loss)
    array([ True,  True,  True])
    """
    low = expected_loss(m, focal, loss, expectation="lower")
    high = expected_loss(m, focal, loss, expectation="upper")
    return np.asarray(low <= _just_above(high.min(axis=-1, keepdims=True)))


def maximality(m: ArrayLike, focal: FocalSets, loss: ArrayLike) -> NDArray[np.bool_]:
    """The acts that no other beats whatever the probabilities are; (n, a) bool.

    An act is ruled out when another has a smaller expected loss under all probabilities that the
    masses allow: when the lower expectation of their difference is positive. Keeps no more acts
    than :func:`interval_dominance`.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    loss : (a, c) array
        Loss of each act for each cluster.

    Examples
    --------
    >>> from evdist.belief import FocalSets, maximality
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> loss = [[0, 1], [1, 0], [.1, 1.1]]  # the last always costs more than the first
    >>> maximality([0, .3, .1, .6], focal, loss)
    array([ True,  True, False])
    """
    M, L = as_masses(m, focal), _losses(loss, focal)
    acts = len(L)

    def kernel(rows: NDArray[Any]) -> NDArray[Any]:
        x = normalise(rows, focal)
        kept = np.ones((len(x), acts), dtype=bool)
        for other in range(acts):
            low, _ = _extremes(L - L[other], focal)
            kept &= x @ low.astype(x.dtype) <= _just_above(np.zeros((), dtype=x.dtype))
        return kept

    return by_blocks(kernel, M, width=len(focal) + acts)


def appriou(
    m: ArrayLike,
    focal: FocalSets,
    *,
    exponent: float = 0.5,
    sets: Queries = None,
    weights: ArrayLike | None = None,
) -> NDArray[np.intp]:
    """Appriou's decision on sets: the A with the largest weight(A) Pl(A) / |A|^exponent; (n,).

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    exponent : float in [0, 1]
        0 leaves everything open (Pl grows with A), 1 decides for single clusters, between these
        doubtful objects get sets of several.
    sets : FocalSets or iterable of iterables of int, optional
        What may be decided; by default the focal sets. The empty set is never chosen.
    weights : array with one number per set of ``sets``, optional
        How good a decision each set is; by default all the same.

    Returns
    -------
    (n,) array or number
        The number of the set, in ``sets``, or its column of ``focal`` by default. Ties go to the
        smaller set, then to the first.

    Examples
    --------
    >>> from evdist.belief import FocalSets, appriou
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> appriou([[0, .9, .05, .05], [0, .4, .4, .2]], focal)  # the second could be either
    array([1, 3])
    """
    M = as_masses(m, focal)
    if not 0 <= exponent <= 1:
        raise ValueError(f"exponent must lie between 0 and 1, got {exponent}.")
    Q = as_queries(focal if sets is None else sets, focal)
    size = Q.sum(axis=1)
    open_to = np.flatnonzero(size > 0)  # a family begins with the empty set
    if not len(open_to):
        raise ValueError("Decisions are non-empty sets of clusters, got none.")
    w = np.ones(len(Q)) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != (len(Q),) or not (w >= 0).all():
        raise ValueError(f"weights must be {len(Q)} numbers of at least 0, got {w.tolist()}.")
    ranked = open_to[np.argsort(size[open_to], kind="stable")]
    prefer = (w / np.maximum(size, 1.0) ** exponent).astype(M.dtype)

    def kernel(rows: NDArray[Any]) -> NDArray[Any]:
        value = plausibility(rows, focal, sets) * prefer
        best = value.max(axis=1, keepdims=True)
        # Sums in another order must not decide between sets that are worth the same.
        return ranked[(_just_above(value) >= best)[:, ranked].argmax(axis=1)]

    return by_blocks(kernel, M, width=len(focal) + len(Q))


def _just_above(x: NDArray[Any]) -> NDArray[Any]:
    """x and what rounding may have taken from it."""
    return x + 64 * np.finfo(x.dtype).eps * np.maximum(np.abs(x), 1)


def _losses(loss: ArrayLike, focal: FocalSets) -> NDArray[np.float64]:
    L = np.asarray(loss, dtype=float)
    if L.ndim != 2 or L.shape[1] != focal.n_clusters or not len(L):
        raise ValueError(
            f"loss must have shape (a, {focal.n_clusters}), a row per act and a column per "
            f"cluster, got shape {L.shape}."
        )
    if not np.isfinite(L).all():
        raise ValueError("Losses must be finite numbers. Use a large one for what must not be.")
    return L


def _extremes(
    L: NDArray[np.float64], focal: FocalSets
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least and greatest loss of each act over the clusters of each focal set, (f, a) each."""
    F = focal.matrix[:, None, :]
    low, high = np.where(F, L, np.inf).min(axis=2), np.where(F, L, -np.inf).max(axis=2)
    low[0] = high[0] = 0.0  # the empty set has no mass when this is used
    return low, high

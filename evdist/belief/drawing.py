"""Random mass functions, to try methods on.

Reference: Burger and Destercke (2013), How to randomly generate mass functions, for what the kinds
cover: flat draws on all sets are almost never consonant, Bayesian or sure of anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evdist.belief.focal import FocalSets

Kind = Literal["uniform", "sparse", "bayesian", "consonant", "simple", "categorical"]


def random_masses(
    n: int,
    focal: FocalSets,
    rng: np.random.Generator,
    *,
    kind: Kind = "uniform",
    n_sets: int = 3,
    empty: bool = False,
) -> NDArray[np.float64]:
    """Draw ``n`` mass functions on ``focal``; (n, f).

    Parameters
    ----------
    n : int
        How many mass functions.
    focal : FocalSets
        The sets that the columns are for.
    rng : numpy.random.Generator
        ``np.random.default_rng(seed)``.
    kind : {"uniform", "sparse", "bayesian", "consonant", "simple", "categorical"}
        ``"uniform"``: uniformly from all masses on the family. ``"sparse"``: uniformly on
        ``n_sets`` sets, any as likely. ``"bayesian"``: uniformly on the single clusters.
        ``"consonant"``: clusters in random order, uniform masses on those of the sets {first},
        {first, second}, ... that are in the family. ``"simple"``: one set, any as likely, with a
        uniform mass, the rest on Omega. ``"categorical"``: all mass on one set.
    n_sets : int
        For ``"sparse"``: at most the number of sets there are.
    empty : bool
        Whether the empty set takes part as any other set does; otherwise it gets no mass.

    Examples
    --------
    >>> import numpy as np
    >>> from evdist.belief import FocalSets, random_masses
    >>> m = random_masses(3, FocalSets.full(2), np.random.default_rng(0))
    >>> m.shape
    (3, 4)
    >>> m.sum(axis=1).round(2)
    array([1., 1., 1.])
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}.")
    first = 0 if empty else 1
    allowed = np.arange(first, len(focal))
    if not len(allowed):
        raise ValueError("The family must have a set that may get mass, got only the empty set.")
    if kind == "sparse" and not 1 <= n_sets <= len(allowed):
        raise ValueError(f"n_sets must be in 1..{len(allowed)}, got {n_sets}.")
    return _KINDS[kind](n, focal, allowed, rng, n_sets)


def _uniform(
    n: int, focal: FocalSets, allowed: NDArray[Any], rng: np.random.Generator, n_sets: int
) -> NDArray[Any]:
    return _spread(np.broadcast_to(_member(focal, allowed), (n, len(focal))), rng)


def _sparse(
    n: int, focal: FocalSets, allowed: NDArray[Any], rng: np.random.Generator, n_sets: int
) -> NDArray[Any]:
    keys = rng.random((n, len(allowed)))
    chosen = np.argpartition(keys, n_sets - 1, axis=1)[:, :n_sets]
    used = np.zeros((n, len(focal)), dtype=bool)
    np.put_along_axis(used, allowed[chosen], True, axis=1)
    return _spread(used, rng)


def _bayesian(
    n: int, focal: FocalSets, allowed: NDArray[Any], rng: np.random.Generator, n_sets: int
) -> NDArray[Any]:
    single = focal.singletons[focal.singletons >= 0]
    if not len(single):
        raise ValueError("Bayesian masses need single clusters among the focal sets, got none.")
    columns = np.concatenate([[0], single]) if allowed[0] == 0 else single
    return _spread(np.broadcast_to(_member(focal, columns), (n, len(focal))), rng)


def _consonant(
    n: int, focal: FocalSets, allowed: NDArray[Any], rng: np.random.Generator, n_sets: int
) -> NDArray[Any]:
    c = focal.n_clusters
    if focal.omega is None:
        raise ValueError("Consonant masses need Omega among the focal sets: the last set of all.")
    # rank[i, k]: the place of cluster k. A set is in the chain when its clusters come first.
    rank = np.argsort(rng.random((n, c)), axis=1)
    used = np.zeros((n, len(focal)), dtype=bool)
    for q in allowed:
        members = rank[:, focal.matrix[q]]
        used[:, q] = members.max(axis=1, initial=-1) == focal.cardinality[q] - 1
    return _spread(used, rng)


def _simple(
    n: int, focal: FocalSets, allowed: NDArray[Any], rng: np.random.Generator, n_sets: int
) -> NDArray[Any]:
    if focal.omega is None:
        raise ValueError("Simple mass functions need Omega among the focal sets for the rest.")
    m = np.zeros((n, len(focal)))
    support = rng.random(n)
    m[np.arange(n), rng.choice(allowed, n)] = support
    m[:, focal.omega] += 1 - support
    return m


def _categorical(
    n: int, focal: FocalSets, allowed: NDArray[Any], rng: np.random.Generator, n_sets: int
) -> NDArray[Any]:
    m = np.zeros((n, len(focal)))
    m[np.arange(n), rng.choice(allowed, n)] = 1.0
    return m


_KINDS: dict[str, Callable[..., NDArray[Any]]] = {
    "uniform": _uniform,
    "sparse": _sparse,
    "bayesian": _bayesian,
    "consonant": _consonant,
    "simple": _simple,
    "categorical": _categorical,
}


def _member(focal: FocalSets, columns: NDArray[Any]) -> NDArray[np.bool_]:
    used = np.zeros(len(focal), dtype=bool)
    used[columns] = True
    return used


def _spread(used: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[Any]:
    """A uniform draw from the simplex of the sets used, row by row: exponentials, normalised."""
    m = np.where(used, rng.standard_exponential(used.shape), 0.0)
    return m / m.sum(axis=1, keepdims=True)

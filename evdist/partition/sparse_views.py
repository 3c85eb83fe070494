"""What follows from rows that are lists of clusters, read from the lists.

The list versions of functions of `views`, `decisions` and `summary`: the same numbers to the last
bit, because additions have the same order, for a cost that does not know the number of clusters.
The focal sets are the empty set, the singletons in order, and Omega:

    pl_k = m_k + Om,  p_k = m_k + Om / c;  of a cluster that a row does not name Om and Om / c.

No cluster has less than one that is not named. So the largest of a row is that of a named cluster,
or all are alike.

Symbols
-------
T         (b, WORDS) block of encoded rows, see `evdist.kernels.sparse_rows`
m         (SLOTS, b) masses of the named clusters, 0 in free slots: slots first, because NumPy works
          through long rows faster than through short ones
empty, Om (b,) masses on the empty set and on Omega
r         (SLOTS, b) doubt of the named clusters, see `decisions`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.kernels.sparse_rows import SLOTS, cluster_slots, mass_slots
from evdist.partition import decisions, summary, views
from evdist.partition.open_sets import OpenTable

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]


def has_list_views(focal: FocalSets) -> bool:
    """Whether the functions here know these focal sets, and there are as many clusters as slots."""
    c = focal.n_clusters
    if c < SLOTS or len(focal) != c + 2 or focal.omega != c + 1:
        return False
    return bool(np.array_equal(focal.singletons, np.arange(1, c + 1)))


class _Lists(NamedTuple):
    empty: Floats
    Om: Floats
    m: Floats
    cluster: NDArray[np.int64]  # (SLOTS, b), anything in free slots


def _read(T: Rows) -> _Lists:
    empty, Om = T[:, 0].astype(np.float64), T[:, 1].astype(np.float64)
    m = np.ascontiguousarray(mass_slots(T).T, dtype=np.float64)
    return _Lists(empty, Om, m, np.ascontiguousarray(cluster_slots(T).T, dtype=np.int64))


class _Top(NamedTuple):
    slot: NDArray[np.int64]  # of the largest, ties to the first
    largest: Floats
    second: Floats


def _top(values: Iterable[Floats]) -> _Top:
    """The two largest of some (b,) arrays, each counted once."""
    first, *others = values
    slot, largest = np.zeros(len(first), np.int64), first.copy()
    second = np.full(len(first), -np.inf)
    for s, x in enumerate(others, 1):
        slot[x > largest] = s
        np.maximum(second, np.minimum(largest, x), out=second)
        np.maximum(largest, x, out=largest)
    return _Top(slot, largest, second)


def _at(table: NDArray[Any], slot: NDArray[np.int64]) -> NDArray[Any]:
    return table[slot, np.arange(len(slot))]


# ---------------------------------------------------------------------- one decision per object
def labels(T: Rows, focal: FocalSets, rule: str, outlier: int | None = None) -> NDArray[np.int64]:
    """`views.labels`."""
    lists = _read(T)
    weight = {"plausibility": 1.0, "belief": 0.0, "pignistic": 1.0 / focal.n_clusters}[rule]
    found = _label(lists, weight)
    return found if outlier is None else np.where(_outliers(lists), outlier, found)


def _label(lists: _Lists, weight: float) -> NDArray[np.int64]:
    """The cluster of the largest m_k + weight Om, ties to the first."""
    other = weight * lists.Om
    best = _top(lists.m + other)
    return np.where(best.largest > other, _at(lists.cluster, best.slot), 0)


def assigned_set(T: Rows, focal: FocalSets) -> NDArray[np.int64]:
    """`views.assigned_set`."""
    return _assigned(_read(T), focal.n_clusters)


def _assigned(lists: _Lists, c: int) -> NDArray[np.int64]:
    best = _top(lists.m)
    found = np.where(best.largest >= lists.Om, 1 + _at(lists.cluster, best.slot), c + 1)
    return np.where(lists.empty >= np.maximum(best.largest, lists.Om), 0, found)


def outliers(T: Rows, focal: FocalSets) -> NDArray[np.bool_]:
    """`views.outliers`."""
    return _outliers(_read(T))


def _outliers(lists: _Lists) -> NDArray[np.bool_]:
    return lists.empty >= np.maximum(lists.m.max(axis=0), lists.Om)


def label_probability(T: Rows, focal: FocalSets) -> tuple[NDArray[np.int64], Floats]:
    """The label, and p_k of its cluster over the sum of all, 1 / c where m(empty) = 1; (b,).

    The sum is that of the masses, not of c probabilities as in `views.probability`: the last bits
    may differ.
    """
    lists, c = _read(T), focal.n_clusters
    label = _label(lists, 1.0)
    own = np.where((lists.cluster == label) & (lists.m > 0), lists.m, 0.0).sum(axis=0)
    total = lists.m.sum(axis=0) + lists.Om
    share = (own + (1.0 / c) * lists.Om) / np.where(total > 0, total, 1.0)
    return label, np.where(total > 0, share, 1.0 / c)


def specificity_loss(T: Rows, focal: FocalSets) -> Floats:
    """`views.specificity_loss`: singletons lose nothing, the empty set and Omega all."""
    return T[:, 0].astype(np.float64) + T[:, 1].astype(np.float64)


def margin(T: Rows, focal: FocalSets) -> Floats:
    """`decisions.margin`."""
    lists = _read(T)
    pl = _top(lists.m + lists.Om)
    return (pl.largest - pl.second) / np.maximum(1.0 - lists.empty, 0.5)


# ---------------------------------------------------------------------- open clusters
class _Doubt(NamedTuple):
    r: Floats
    other: Floats  # (b,) that of a cluster that is not named
    second: Floats  # (b,) the second largest of all clusters


def _doubt(lists: _Lists, c: int) -> _Doubt:
    """`decisions.doubt`; divisions may round two different shares to the wrong order, so the
    clusters that are not named count, too: two of them at most."""
    other = (1.0 / c) * lists.Om
    p = lists.m + other
    best = p.max(axis=0)
    r, rest = _share(p, best), _share(other, best)
    return _Doubt(r, rest, _top([*r, *[rest] * min(2, c - SLOTS)]).second)


def _share(p: Floats, best: Floats) -> Floats:
    total = p + best
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0)


def second_doubt(T: Rows, focal: FocalSets) -> Floats:
    """`decisions.second_doubt`."""
    return _doubt(_read(T), focal.n_clusters).second


def counts(T: Rows, focal: FocalSets, levels: tuple[float, ...]) -> NDArray[np.int64]:
    """`decisions.counts`."""
    lists = _read(T)
    second = _doubt(lists, focal.n_clusters).second[~_outliers(lists)]
    return decisions.counted(second, levels, focal.n_clusters)


class OpenSets(NamedTuple):
    """What is decided of some objects, and their open clusters as lists.

    Where `rest` is false the open clusters are those that are listed, where it is true all others.
    """

    codes: NDArray[np.uint8]  # (b,)
    rest: NDArray[np.bool_]  # (b,)
    many: NDArray[np.int64]  # (b,) clusters listed of each row
    cluster: NDArray[np.uint16]  # row after row, ascending


def open_sets(T: Rows, focal: FocalSets, level: float) -> OpenSets:
    """`decisions.decide`, but for the shape of the answer."""
    lists, c = _read(T), focal.n_clusters
    doubt, out = _doubt(lists, c), _outliers(lists)
    least = 1.0 - level if level < 1.0 else np.minimum(doubt.second, decisions.NAMED)
    named = lists.m > 0
    stay, rest = (doubt.r >= least) & named, doubt.other >= least
    many = stay.sum(axis=0) + rest * (c - named.sum(axis=0))
    listed = (stay != rest) & named & ~out
    codes = np.where(out, 2, many > 1).astype(np.uint8)
    cluster = lists.cluster.T[listed.T].astype(np.uint16)
    return OpenSets(codes, rest & ~out, listed.sum(axis=0), cluster)


def joined(blocks: list[OpenSets], c: int) -> tuple[NDArray[np.uint8], OpenTable]:
    """The codes of all objects, and the table of their open clusters."""
    none = np.zeros(0, np.uint8)
    empty = OpenSets(none, none.astype(bool), none.astype(np.int64), none.astype(np.uint16))
    codes, rest, many, cluster = (np.concatenate(p) for p in zip(empty, *blocks, strict=True))
    return codes, OpenTable(rest, many, cluster, c)


# ---------------------------------------------------------------------- the tally of a summary
def tally(T: Rows, focal: FocalSets, rule: str, levels: tuple[float, ...]) -> summary.Tally:
    """`summary.tally`."""
    lists, c = _read(T), focal.n_clusters
    lower, upper = _members(lists, c, rule)
    second = _doubt(lists, c).second[~_outliers(lists)]
    return summary.Tally(
        objects=len(T),
        mass=_total(lists, c),
        labels=np.bincount(_label(lists, 1.0), minlength=c),
        lower=lower,
        upper=upper,
        decided=decisions.counted(second, levels, c),
    )


def _total(lists: _Lists, c: int) -> Floats:
    """Sum of each focal set's masses, added row after row as a sum over a dense block is."""
    named = lists.m > 0
    column = np.zeros((2 + SLOTS, len(lists.Om)), np.int64)
    column[1:-1], column[-1] = np.where(named, 1 + lists.cluster, 0), c + 1
    mass = np.vstack([lists.empty, lists.m, lists.Om])  # free slots add 0 to the empty set
    total = np.bincount(column.T.ravel(), weights=mass.T.ravel(), minlength=c + 2)
    return total.astype(np.float64)  # of no rows, too


def _members(lists: _Lists, c: int, rule: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Objects of the lower and of the upper approximation of each cluster; (c,)."""
    if rule == "mass":
        many = np.bincount(_assigned(lists, c), minlength=c + 2)
        return many[1:-1], many[1:-1] + many[-1]
    largest = lists.m.max(axis=0)
    every = lists.Om >= largest  # then no cluster is dominated, named or not
    possible = (lists.m > 0) & (lists.m + lists.Om >= largest) & ~every
    single = possible & (possible.sum(axis=0) == 1)
    lower = np.bincount(lists.cluster[single], minlength=c)
    return lower, np.bincount(lists.cluster[possible], minlength=c) + every.sum()


#: The list version of a view, where there is one.
LIST_VIEWS: dict[Callable[..., Any], Callable[..., Any]] = {
    views.labels: labels,
    views.assigned_set: assigned_set,
    views.outliers: outliers,
    views.specificity_loss: specificity_loss,
    decisions.margin: margin,
    decisions.decide: open_sets,
    decisions.second_doubt: second_doubt,
    decisions.counts: counts,
    summary.tally: tally,
}

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
from evdist.kernels.sparse_rows import (
    SLOTS,
    WORDS,
    cluster_slots,
    clusters_at,
    decode,
    mass_slots,
)
from evdist.partition import compiled, decisions, summary, views
from evdist.partition.open_sets import OpenTable

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]


def has_list_views(focal: FocalSets) -> bool:
    """Whether the functions here know these focal sets, and there are as many clusters as slots."""
    return focal.n_clusters >= SLOTS and focal.is_simple


class _Lists(NamedTuple):
    T: Rows
    empty: Floats
    Om: Floats
    m: Floats

    @property
    def cluster(self) -> NDArray[np.uint16]:
        """(SLOTS, b), anything in free slots."""
        return np.ascontiguousarray(cluster_slots(self.T).T)


def _read(T: Rows) -> _Lists:
    empty, Om = T[:, 0].astype(np.float64), T[:, 1].astype(np.float64)
    return _Lists(T, empty, Om, np.ascontiguousarray(mass_slots(T).T, dtype=np.float64))


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


# ---------------------------------------------------------------------- one decision per object
def labels(T: Rows, focal: FocalSets, rule: str, outlier: int | None = None) -> NDArray[np.int64]:
    """`views.labels`."""
    weight = {"plausibility": 1.0, "belief": 0.0, "pignistic": 1.0 / focal.n_clusters}[rule]
    found = _label(T, weight)
    return found if outlier is None else np.where(outliers(T, focal), outlier, found)


def _label(T: Rows, weight: float) -> NDArray[np.int64]:
    """The cluster of the largest m_k + weight Om, ties to the first."""
    found, largest = compiled.most_mass(T)
    # Two masses differ by 2^-24 of the larger at least. Only beside a far larger Omega their sums,
    # with 53 bits, may be alike.
    close = np.flatnonzero((largest > 0) & (largest <= 2.0**-26 * weight * T[:, 1]))
    if len(close):
        some = _read(T[close])
        other = weight * some.Om
        best = _top(some.m + other)
        found[close] = np.where(best.largest > other, clusters_at(some.T, best.slot), 0)
    return found


def assigned_set(T: Rows, focal: FocalSets) -> NDArray[np.int64]:
    """`views.assigned_set`."""
    return _assigned(_read(T), focal.n_clusters)


def _assigned(lists: _Lists, c: int) -> NDArray[np.int64]:
    best = _top(lists.m)
    found = np.where(best.largest >= lists.Om, 1 + clusters_at(lists.T, best.slot), c + 1)
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
    label = _label(T, 1.0)
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
    return _counted(T, _read(T), focal, levels)


def _counted(
    T: Rows, lists: _Lists, focal: FocalSets, levels: tuple[float, ...]
) -> NDArray[np.int64]:
    second = _doubt(lists, focal.n_clusters).second[~_outliers(lists)]
    found = decisions.counted(second, levels, focal.n_clusters)
    for j, level in enumerate(levels):
        if decisions.pairs_of(level) is not None:
            found[2 + j] = int((open_sets(T, focal, level).codes == 0).sum())
    return found


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
    if decisions.pairs_of(level) is not None:  # of few clusters
        both = decisions.decide(decode(T, focal.n_clusters).astype(np.float64), focal, level)
        stays = both[:, 1:].astype(bool)
        listed_only = np.zeros(len(both), bool)
        return OpenSets(
            both[:, 0], listed_only, stays.sum(axis=1), np.nonzero(stays)[1].astype(np.uint16)
        )
    lists, c = _read(T), focal.n_clusters
    doubt, out = _doubt(lists, c), _outliers(lists)
    least = 1.0 - level if level < 1.0 else np.minimum(doubt.second, decisions.NAMED)
    named = lists.m > 0
    stay, rest = (doubt.r >= least) & named, doubt.other >= least
    many = stay.sum(axis=0) + rest * (c - named.sum(axis=0))
    listed = (stay != rest) & named & ~out
    codes = np.where(out, 2, many > 1).astype(np.uint8)
    cluster = lists.cluster.T[listed.T]
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
    return summary.Tally(
        objects=len(T),
        mass=_total(lists, c),
        labels=np.bincount(_label(T, 1.0), minlength=c),
        lower=lower,
        upper=upper,
        decided=_counted(T, lists, focal, levels),
        pairs=_pair_counts(T, focal, levels),
    )


def _pair_counts(T: Rows, focal: FocalSets, levels: tuple[float, ...]) -> NDArray[np.int64] | None:
    if not decisions.is_local(focal.n_clusters):
        return None
    return summary.pair_counts(decode(T, focal.n_clusters).astype(np.float64), focal, levels)


def _total(lists: _Lists, c: int) -> Floats:
    """Sum of each focal set's masses, added row after row as a sum over a dense block is."""
    total = np.zeros(c + 2)
    if len(lists.T):
        total[0], total[-1] = (np.cumsum(m)[-1] for m in (lists.empty, lists.Om))
        mass = mass_slots(lists.T)
        named = mass > 0
        cluster = cluster_slots(lists.T)[named]
        total[1:-1] = np.bincount(cluster, weights=mass[named], minlength=c)
    return total


def _members(lists: _Lists, c: int, rule: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Objects of the lower and of the upper approximation of each cluster; (c,)."""
    if rule == "mass":
        many = np.bincount(_assigned(lists, c), minlength=c + 2)
        return many[1:-1], many[1:-1] + many[-1]
    largest = lists.m.max(axis=0)
    every = lists.Om >= largest  # then no cluster is dominated, named or not
    possible = (lists.m > 0) & (lists.m + lists.Om >= largest) & ~every
    single = possible & (possible.sum(axis=0) == 1)
    cluster = lists.cluster
    lower = np.bincount(cluster[single], minlength=c)
    return lower, np.bincount(cluster[possible], minlength=c) + every.sum()


#: Columns that a block of lists counts as; with smaller ones threads wait for each other.
BLOCK_WIDTH = WORDS
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

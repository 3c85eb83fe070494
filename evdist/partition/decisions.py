"""Sure, between or outlier: the one notion of how far an object's cluster is settled.

An object is an *outlier* when no mass of it is larger than that on the empty set. Of the others,
with the pignistic probabilities p_k and the best cluster 1, cluster k stays *open at level q* when

    r_k = p_k / (p_1 + p_k) >= 1 - q,

that is, when a bet on k against the best cluster, these two alone, wins with probability 1 - q
or more. One open cluster: the object is *sure*; more: it is *between* them.
The empty set drops out of r_k, so normalised and unnormalised masses decide alike.

Symbols
-------
m     (b, f) block of masses, column 0 the empty set
p     (b, c) pignistic probabilities
r     (b, c) doubt, the share of k in p_1 + p_k: 1/2 for the best cluster itself
q     level, from 1/2 to 1

Level 1 says that no object is sure. The default level is one for each pair of clusters, see
`local_level`: an object has that of its two best. Why pignistic odds, and not the margin p_1 - p_k
or the plausibilities: they rank errors alike, but of objects made halfway between two of four or
ten clusters the odds name the two, where the margin leaves all clusters open as soon as it finds
them (benchmarks/answers_sure.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.partition import views
from evdist.partition.open_sets import OpenTable, set_name

Floats = NDArray[np.float64]

#: What is decided of an object, by its code.
DECISIONS = ("sure", "between", "outlier")
#: Levels that :func:`auto_level` may give, the last of them for "no object is sure".
LEVELS = (*(round(0.70 + 0.01 * j, 2) for j in range(27)), 1.0)
#: An object counts as undecided when two clusters have odds of less than 65 to 35.
UNDECIDED = 0.35
#: Levels are found by pair of clusters up to so many clusters; more hardly touch each other.
MOST_LOCAL = 24
#: With a larger share of undecided objects the masses do not tell clusters apart at all.
NOTHING_KNOWN = 0.3
#: Eight bytes whose order is that of the bytes.
_WORD = np.dtype(">u8")
#: At level 1 the second best cluster stays open too, and others with at least this share.
NAMED = 0.05


# ---------------------------------------------------------------------- one block
def doubt(m: NDArray[Any], focal: FocalSets) -> Floats:
    """r_k = p_k / (p_1 + p_k), 0 where p_k = 0, 1/2 at the best cluster; (b, c)."""
    p = views.pignistic(m, focal)
    total = p + p.max(axis=1)[:, None]
    return np.divide(p, total, out=np.zeros_like(p), where=total > 0)


def margin(m: NDArray[Any], focal: FocalSets) -> Floats:
    """(Pl_(1) - Pl_(2)) / max(1 - m(empty), 1/2), the plausibility margin; (b,).

    The masses are normalised, but never by less than one half: the margin of an object of which
    more than half the mass is on the empty set shrinks to 0 with what is left. Of the scores that
    were measured (belief, pignistic probability, both margins and ratios, each normalised and
    not) this one ranks errors best on average.
    """
    pl = np.sort(views.contour(m, focal), axis=1)
    second = pl[:, -2] if pl.shape[1] > 1 else 0.0
    return (pl[:, -1] - second) / np.maximum(1.0 - m[:, 0], 0.5)


def decide(m: NDArray[Any], focal: FocalSets, level: float) -> NDArray[np.uint8]:
    """Code of the decision, then whether each cluster is open (none for outliers); (b, 1 + c)."""
    r = doubt(m, focal)
    out = views.outliers(m, focal)
    least = 1.0 - _own_level(r, level)
    # At level 1 the second best cluster stays open too.
    stay = r >= np.where(least > 0.0, least, np.minimum(_second(r), NAMED))[:, None]
    between = stay.sum(axis=1) > 1
    stay[out] = False
    return np.column_stack([np.where(out, 2, between), stay]).astype(np.uint8)


def _own_level(r: Floats, level: float) -> Floats:
    """The level of each object: that of its two best clusters, where pairs have their own; (b,)."""
    pairs = pairs_of(level)
    if pairs is None:
        return np.full(len(r), float(level))
    best, second = _two_best(r)
    return pairs[best, second]


def _two_best(r: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    best = r.argmax(axis=1)
    other = r.copy()
    other[np.arange(len(r)), best] = -1.0
    return best, other.argmax(axis=1)


def counts(m: NDArray[Any], focal: FocalSets, levels: tuple[float, ...]) -> NDArray[np.int64]:
    """Objects that are no outliers, undecided ones of them, and sure ones at each level.

    (2 + len(levels),); counts of blocks are added, so that one pass finds a level and its counts.
    """
    second = second_doubt(m, focal)[~views.outliers(m, focal)]
    found = counted(second, levels, focal.n_clusters)
    for j, level in enumerate(levels):
        if pairs_of(level) is not None:
            found[2 + j] = int((decide(m, focal, level)[:, 0] == 0).sum())
    return found


def pair_counts(m: NDArray[Any], focal: FocalSets, levels: tuple[float, ...]) -> NDArray[np.int64]:
    """What :func:`counts` counts, by the two best clusters: see :class:`PairCounts`."""
    r, c = doubt(m, focal)[~views.outliers(m, focal)], focal.n_clusters
    best, second = _two_best(r)
    far, pair = r[np.arange(len(r)), second], best * c + second

    def of(some: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(pair[some], minlength=c * c)

    parts = [of(np.ones(len(r), bool)), of(far >= UNDECIDED), *(of(far < 1.0 - q) for q in levels)]
    return np.concatenate(parts)


@dataclass(frozen=True)
class PairCounts:
    """Objects that are no outliers, undecided ones, and sure ones at each level, of all blocks.

    Each is a (c, c) array by the best and the second best cluster.
    """

    judged: NDArray[np.int64]
    undecided: NDArray[np.int64]
    sure: NDArray[np.int64]  # (levels, c, c)

    @classmethod
    def of(cls, blocks: Sequence[NDArray[np.int64]], c: int) -> PairCounts:
        """The sum of :func:`pair_counts` of blocks."""
        if not blocks:
            blocks = [np.zeros(2 * c * c, np.int64)]
        table = np.sum(blocks, axis=0).reshape(-1, c, c)
        return cls(table[0], table[1], table[2:])

    def level(self) -> float:
        """:func:`local_level`."""
        return local_level(self.judged.sum(axis=1), self.undecided + self.undecided.T)

    def count_sure(self, level: float, levels: tuple[float, ...]) -> int:
        """Sure objects at one of the levels, or at one for each pair."""
        c = len(self.judged)
        pairs = pairs_of(level)
        pairs = np.full((c, c), float(level)) if pairs is None else pairs
        return int(sum(self.sure[j][pairs == q].sum() for j, q in enumerate(levels)))


def counted(second: Floats, levels: tuple[float, ...], c: int) -> NDArray[np.int64]:
    """:func:`counts` from the :func:`second_doubt` of objects that are no outliers."""
    # With one cluster there is nothing to be unsure of, not even at level 1.
    sure = [np.sum(second < 1.0 - q) if q < 1.0 else len(second) * (c == 1) for q in levels]
    return np.array([len(second), np.sum(second >= UNDECIDED), *sure], dtype=np.int64)


def second_doubt(m: NDArray[Any], focal: FocalSets) -> Floats:
    """The second largest r_k, 0 where there is one cluster: the doubt of the object; (b,)."""
    return _second(doubt(m, focal))


def _second(r: Floats) -> Floats:
    """The second largest of each row, 0 where there is one cluster; (b,)."""
    return np.partition(r, -2, axis=1)[:, -2] if r.shape[1] > 1 else np.zeros(len(r))


# ---------------------------------------------------------------------- the level
def auto_level(judged: int, undecided: int) -> float:
    """The default level, from the share a of undecided objects among those that are no outliers.

        q = 1/2 + 1 / (7.2 - 29 a), at least 0.70; 1 (no object is sure) beyond 0.96

    Masses say how near an object is to the border between two clusters, not how many objects of
    the other cluster are on this side of it. What tells that is how crowded the border is. For
    two Gaussians the posterior log odds are linear in (p_1 - p_2) / (p_1 + p_2), with a slope
    that falls with a: about 7.3 for centres 4 standard deviations apart (a = .07), 4.8 for 3
    (.135), 3.7 for 2.5 (.17). The formula asks for a posterior probability of about .94 at the
    threshold, which makes about .98 among all that are sure. At 2 standard deviations and less
    the density has one mode: nothing in the data says that there are two clusters.

    Between .96 and 1 the estimate of a is too rough to tell the two cases apart (at 2 standard
    deviations and n = 1,000 up to 4 % of the sure members were wrong), so 1 is taken.

    Few objects tell little about a, so 50 more are counted, 5 of them undecided.
    """
    return _level_for((undecided + 5.0) / (judged + 50.0))


def _level_for(a: float) -> float:
    slack = 7.2 - 29.0 * a
    q = 0.5 + 1.0 / slack if slack > 0 else 1.0
    return next((level for level in LEVELS if level >= q - 1e-9), 1.0)


class Level(float):
    """A level for each pair of clusters.

    As a number it is the level that all objects together ask for; where that would say that none
    is sure, the largest of a pair below 1.

    Attributes
    ----------
    pairs : (c, c) array
        By the best and the second best cluster; on the diagonal 0.5.
    """

    pairs: Floats

    def __new__(cls, whole: float, pairs: Any) -> Level:
        pairs = np.asarray(pairs, dtype=float)
        some = pairs[(pairs < 1.0) & ~np.eye(len(pairs), dtype=bool)]
        found = super().__new__(cls, some.max() if whole >= 1.0 and some.size else whole)
        found.pairs = pairs
        return found

    def __reduce__(self) -> Any:
        return Level, (float(self), self.pairs)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest level of a pair."""
        apart = self.pairs[~np.eye(len(self.pairs), dtype=bool)]
        return float(apart.min()), float(apart.max())


def pairs_of(level: float) -> Floats | None:
    """The levels of the pairs of clusters, None where there is one for all."""
    return level.pairs if isinstance(level, Level) else None


def is_local(c: int) -> bool:
    """Whether each pair of so many clusters has a level of its own: of two there is one pair."""
    return 2 < c <= MOST_LOCAL


def level_told(told: Mapping[str, Any]) -> float | None:
    """The level that `metrics.json` tells: "level", and "levels" of pairs where they differ."""
    if told.get("level") is None:
        return None
    pairs = told.get("levels")
    return float(told["level"]) if pairs is None else Level(float(told["level"]), pairs)


def local_level(judged: NDArray[np.int64], undecided: NDArray[np.int64]) -> float:
    """:func:`auto_level` by pair of clusters, so that two that overlap leave a third alone.

    Of clusters k and l with `judged` n_k and n_l objects, `undecided` u_kl between them, the share
    of undecided objects is a geometric mean of that of the pair and, twice, that of all, each with
    the 50 objects of :func:`auto_level`:

        a_kl^3 = (u_kl + 5) / (n_k + n_l + 50)  ((u + 5) / (n + 50))^2

    A cluster that cannot be told from another one has no sure members. With two clusters both
    shares are one. The share of the pair alone would be small with many clusters,
    where objects of no structure are undecided between many pairs; that of all counts borders
    which have nothing to do with the pair. Which mean was chosen on 59 labelled problems, see
    docs/credal-partitions.md.
    """
    c, n, u = len(judged), int(judged.sum()), int(undecided.sum()) // 2
    whole = auto_level(n, u)
    if u > NOTHING_KNOWN * n:
        return whole
    of_pair = (undecided + 5.0) / (judged[:, None] + judged + 50.0)
    of_all = (u + 5.0) / (n + 50.0)
    pairs = np.array([[_level_for(a) for a in row] for row in np.cbrt(of_pair * of_all**2)])
    np.fill_diagonal(pairs, 0.5)
    pairs[(pairs >= 1.0).any(axis=1)] = 1.0
    np.fill_diagonal(pairs, 0.5)
    apart = pairs[~np.eye(c, dtype=bool)]
    return float(apart[0]) if (apart == apart[0]).all() else Level(whole, pairs)


def check_level(level: float) -> float:
    """A level as a float, refused where it means nothing."""
    if not 0.5 <= level <= 1.0:
        raise ValueError(
            f"level must lie between 0.5 (any lead is enough) and 1 (no object is sure), got "
            f"{level}."
        )
    return level if isinstance(level, Level) else float(level)


# ---------------------------------------------------------------------- the answer
@dataclass(frozen=True, eq=False, repr=False)
class Decisions:
    """What :meth:`CredalPartition.decide` says of each object; lazy where the masses are.

    Attributes
    ----------
    level : float
        Cluster k stays open when p_k / (p_1 + p_k) >= 1 - level (pignistic probabilities). A
        :class:`Level` where each pair of clusters has one of its own.
    codes : (n,) array
        0 sure, 1 between, 2 outlier.
    open : (n, c) bool array
        The clusters that stay open: one for a sure object, two or more for one between, none
        for an outlier. Of lists of clusters an :class:`~evdist.partition.open_sets.OpenTable`:
        rows ``open[i]``, columns ``open[:, k]``, ``open.sum(axis=1)`` and ``np.asarray(open)``,
        which alone makes n times c of them.
    margin : (n,) array
        Plausibility margin, for ranking objects from unsure (0) to sure (1).
    """

    level: float
    codes: Any
    open: Any
    margin: Any

    @property
    def sure(self) -> Any:
        """Objects with one open cluster; (n,) bool."""
        return self.codes == 0

    @property
    def between(self) -> Any:
        """Objects with two or more open clusters; (n,) bool."""
        return self.codes == 1

    @property
    def outlier(self) -> Any:
        """Objects whose largest mass is on the empty set; (n,) bool."""
        return self.codes == 2

    @property
    def names(self) -> NDArray[np.str_]:
        """ "sure", "between" or "outlier"; (n,), computed."""
        return np.array(DECISIONS)[np.asarray(self.codes)]

    def members(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Objects that are surely in each cluster, and those for which it stays open; (c,) each.

        Computed; the second count takes in the first.
        """
        still = self.open if isinstance(self.open, OpenTable) else np.asarray(self.open)
        every = still.sum(axis=0)
        # Of outliers none is open, and objects between clusters are fewer than sure ones.
        return every - still[np.asarray(self.between)].sum(axis=0), every

    def open_names(self) -> list[str]:
        """Open clusters as names of sets: "{2}", "{0,2}", "∅" for an outlier."""
        return named_sets(self.open)

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def __repr__(self) -> str:
        if not isinstance(self.codes, np.ndarray):
            return f"Decisions(level={self.level:g}, {len(self)} objects, not computed)"
        some = np.bincount(self.codes, minlength=3)
        words = ", ".join(f"{k:,} {name}" for k, name in zip(some, DECISIONS, strict=True))
        return f"Decisions(level={self.level:g}: {words})"


def named_sets(members: Any) -> list[str]:
    """Names of sets of clusters, (n, c) bool, as the focal sets are named but without Omega."""
    codes, names = coded_sets(members)
    return [names[code] for code in codes.tolist()]


def coded_sets(members: Any) -> tuple[NDArray[np.int32], list[str]]:
    """The number of each set among the different ones, (n,), and the names of these."""
    if isinstance(members, OpenTable):
        return members.coded()
    members = np.asarray(members)
    packed = np.packbits(members, axis=1)
    if packed.shape[1] <= _WORD.itemsize:  # numbers are sorted ten times faster than rows of bytes
        words = np.zeros((len(packed), _WORD.itemsize), np.uint8)
        words[:, : packed.shape[1]] = packed
        numbers = words.view(_WORD).ravel().astype(np.uint64)
        _, at, codes = np.unique(numbers, return_index=True, return_inverse=True)
    else:
        _, at, codes = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    names = [set_name(np.flatnonzero(row).tolist()) for row in members[at]]
    return codes.ravel().astype(np.int32), names

"""Which partitions are compared with which, and the pairs of one of them.

Partition b is paired with b + o and b - o (mod P) for two *odd* offsets o. P is even, so partitions
of even number have partners of odd number only: the graph of partitions has two colours, a sweep is
two half-sweeps, and a partition needs the masses of four others.

The offsets are 1 and an odd number near the root of P: neighbours in number are mostly owned by the
same worker, and from any partition any other is reached in about root of P steps.

Inside, pairs are those of `evdist.kernels.graph`: (o, r) joins place t of b with place t + r of
b + o. Partitions are cut from a random order, so every pair of objects is about equally likely.
With many clusters a part of the partners is near (`evdist.evclus.partitions.near`).

Symbols
-------
n, k, P     objects, partners per object, partitions
view        the rows of a partition and, behind them, those of its partners: what its rows need
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evdist.engine.plan import PIECE_ROWS, Plan
from evdist.evclus.partitions.near import NearPairs, Sorted
from evdist.kernels.graph import PairGraph, fill_near, fill_partners
from evdist.kernels.shuffle import Shuffle


def odd_offsets(partitions: int) -> tuple[int, ...]:
    """The offsets o, each of which stands for -o as well."""
    if partitions < 2 or partitions % 2:
        raise ValueError(f"Partitions must be even in number and at least 2, got {partitions}.")
    far = 2 * (math.isqrt(partitions) // 2) + 1
    return (1, far) if 1 < far <= partitions // 2 else (1,)


def colour_of(partition: int) -> int:
    """The half-sweep that updates a partition."""
    return partition % 2


def draw_near_pairs(shuffle: Shuffle, k: int, share: float, groups: int, seed: int) -> NearPairs:
    """Near pairs for a share of the k partners; the others are drawn by `draw_partition_graph`."""
    rng = np.random.default_rng([seed, 37, shuffle.n, shuffle.count, k])
    return NearPairs.draw(round(share * -(-k // 2)), groups, odd_offsets(shuffle.count), rng)


def draw_partition_graph(shuffle: Shuffle, k: int, seed: int) -> PairGraph:
    """The graph of uniform pairs on positions; same (n, P, k, seed), same graph.

    An odd k is raised by one: pairs are drawn together with their reverse. Where partitions are
    tiny there are fewer possible partners than k, and all of them are taken.
    """
    n, P, s = shuffle.n, shuffle.count, shuffle.rows
    if n < 2 * P:
        raise ValueError(f"{n} objects are too few for {P} partitions; leave out `partitions`.")
    offsets = odd_offsets(P)
    rng = np.random.default_rng([seed, n, P, k])
    listed = [_classes(o, P, s) for o in offsets]
    want = min(-(-k // 2), sum(map(len, listed)))
    # As many of each offset, so that every partner partition counts alike.
    counts = _shared_out(want, [len(shifts) for shifts in listed])
    pairs: set[tuple[int, int]] = set()
    for o, shifts, count in zip(offsets, listed, counts, strict=True):
        for r in rng.choice(shifts, count, replace=False).tolist():
            pairs |= {(o, r), (P - o, -r % s)}
    drawn = sorted(pairs)
    return PairGraph(n, P, tuple(o for o, _ in drawn), tuple(r for _, r in drawn))


def _classes(o: int, P: int, s: int) -> NDArray[np.int64]:
    """Shifts of an offset, one of each pair and its reverse."""
    # b + P / 2 and b - P / 2 are one partition: there r and -r are the same pair, and a shift that
    # is its own reverse would count once instead of twice.
    return np.arange(s) if 2 * o != P else np.arange(1, (s + 1) // 2)


def _shared_out(want: int, there: list[int]) -> list[int]:
    """`want` of several kinds, as equal as what is there of each allows."""
    counts = [0] * len(there)
    for kind in sorted(range(len(there)), key=there.__getitem__):
        left = sum(1 for other in counts if other == 0)
        counts[kind] = min(there[kind], -(-want // max(left, 1)))
        want -= counts[kind]
    return counts


@dataclass(frozen=True)
class View:
    """One partition seen with its partners; also the graph that `SourcePairs` asks for pairs.

    Places of a view: the partition's own rows from 0 on, then the rows of each partner.
    """

    graph: PairGraph
    partition: int
    near: NearPairs | None = None
    #: The rows of any partition by group; asked where some partners are near.
    by_group: Callable[[int], Sorted] | None = None

    @cached_property
    def partners(self) -> tuple[int, ...]:
        """Numbers of the partner partitions, in the order of the view."""
        P, b = self.graph.colours, self.partition
        near = () if self.near is None else self.near.offsets
        offsets = {o % P for o in (*self.graph.offsets, *near)}
        return tuple(dict.fromkeys((b + o) % P for o in sorted(offsets)))

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """First place of the partition and of each partner, and n."""
        sizes = np.diff(self.graph.bounds)[[self.partition, *self.partners]]
        return np.concatenate([[0], np.cumsum(sizes)])

    @property
    def n(self) -> int:
        return int(self.bounds[-1])

    @property
    def own(self) -> int:
        """Rows of the partition itself."""
        return int(self.bounds[1])

    @property
    def k(self) -> int:
        return self.graph.k + (0 if self.near is None else self.near.k)

    @cached_property
    def plan(self) -> Plan:
        """All own rows in one step, cut into pieces."""
        cuts = np.linspace(0, self.own, -(-self.own // PIECE_ROWS) + 1).astype(int).tolist()
        pieces = tuple(pairwise(cuts))
        return Plan(pieces, (tuple((q, None) for q in range(len(pieces))),))

    def pairs(self, lo: int, hi: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Partner places of own rows lo..hi-1, (rows, k), and how many each row has, (rows,)."""
        blocks = self.blocks(self.graph.offsets)
        partner = np.empty((hi - lo, self.graph.k), np.uint32)
        degree = np.empty(hi - lo, np.int64)
        shifts = np.array(self.graph.shifts, np.int64)
        fill_partners(
            lo, self.graph.size, self.bounds, blocks, shifts, self.graph.near, *self.graph.mixed,
            partner, degree,
        )  # fmt: skip
        if self.near is None:
            return partner, degree
        far, partner = partner, np.empty((hi - lo, self.k), np.uint32)
        place, first, order = self._by_group
        fill_near(
            lo, place, first, order, self.bounds, self.blocks(self.near.offsets),
            np.array(self.near.steps), np.array(self.near.turns), np.array(self.near.back),
            far, partner, degree,
        )  # fmt: skip
        return partner, degree

    def blocks(self, offsets: Sequence[int]) -> NDArray[np.int64]:
        """Numbers, within the view, of the partner partitions at some offsets."""
        at = {p: i + 1 for i, p in enumerate(self.partners)}
        found = [at[(self.partition + o) % self.graph.colours] for o in offsets]
        return np.array(found, np.int64)

    @cached_property
    def _by_group(self) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]:
        """Places of the own rows by group; where groups begin, and the order, of all partitions."""
        assert self.by_group is not None
        found = [self.by_group(q) for q in (self.partition, *self.partners)]
        place = np.empty(self.own, np.uint32)
        place[found[0].order] = np.arange(self.own, dtype=np.uint32)
        first = np.stack([rows.first for rows in found])
        return place, first, np.concatenate([rows.order for rows in found])

"""From a source of dissimilarities to a problem that can be swept.

The pairs are drawn by `evdist.kernels.graph`; their dissimilarities are computed in row blocks on
threads and transformed at once, so that memory holds 8 bytes per kept pair and no more; 4 where
partners follow a formula (`evdist.evclus.listed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evdist.data.sources import AttributeSource, PairList, Source
from evdist.evclus.problem import MemoryPairs, Plan
from evdist.evclus.rows.sweep import Block
from evdist.kernels.distances import transform
from evdist.kernels.graph import MIN_COLOURS, PairGraph, draw_graph, greedy_colours
from evdist.kernels.partner_lists import PartnerLists
from evdist.kernels.vector import aligned_zeros

_BLOCK = 16_384
#: Columns of rows that are worth a copy in another order: a jump costs as much as a few lines.
_NARROW = 64


@dataclass(frozen=True)
class Layout:
    """Objects in a random order, and the graph on their positions."""

    order: NDArray[np.uint32]
    graph: PairGraph

    @property
    def bounds(self) -> NDArray[np.int64]:
        return self.graph.bounds


def draw_layout(n: int, k: int, seed: int) -> Layout:
    """Same (n, k, seed), same layout: nothing else enters."""
    rng = np.random.default_rng([seed, n, k])
    order = rng.permutation(n).astype(np.uint32)
    return Layout(order, draw_graph(n, min(k, n - 1), rng))


def sorted_by_label(labels: NDArray) -> NDArray[np.int64]:
    """The order of labels (n,) >= 0, equal ones as they come; NumPy sorts short numbers in O(n)."""
    short = labels.astype(np.uint16) if int(labels.max(initial=0)) < 1 << 16 else labels
    return np.argsort(short, kind="stable")


def shuffled(n: int, k: int, seed: int) -> tuple[np.random.Generator, NDArray[np.int64]]:
    """A random order of the objects for `near_layout`, and what it goes on drawing with."""
    rng = np.random.default_rng([seed, n, k + k % 2])
    return rng, rng.permutation(n)


def near_layout(
    labels: NDArray,
    k: int,
    near: float,
    seed: int,
    drawn: tuple[np.random.Generator, NDArray[np.int64]] | None = None,
) -> Layout:
    """Groups side by side in every colour, in the order of their numbers, and near pairs.

    A share `near` of the k partners lies within one group's length of an object's own place, so
    half of these are of its group and half of the next ones; in small groups the same pairs are
    kept several times. `drawn` is what `shuffled` has drawn.
    """
    n = len(labels)
    rng, anyhow = shuffled(n, k, seed) if drawn is None else drawn
    k += k % 2
    ranked = anyhow[sorted_by_label(labels[anyhow])]
    # Places are dealt to the colours in turn, so that all have the same groups at the same places.
    order = np.concatenate([ranked[b::MIN_COLOURS] for b in range(MIN_COLOURS)])
    close = 2 * round(0.5 * near * k)
    # As far as a group of mean size reaches in one colour. With more, so that all pairs differ,
    # 300 groups of 20 had an ARI of .60 where they have .80.
    width = max(1, n // (MIN_COLOURS * (int(labels.max()) + 1)))
    graph = PairGraph.draw_near(n, k, close, width, seed, rng)
    return Layout(order.astype(np.uint32), graph)


@dataclass(frozen=True)
class SourcePairs:
    """Pairs made from a source whenever they are asked for: nothing is stored.

    Attributes
    ----------
    source, graph : Source, PairGraph
        Where `order` is None both speak of the same positions.
    order : (n,) or None
        The source's number of each position; None where its rows were put in that order.
    d0 : float
    """

    source: Source
    graph: PairGraph
    order: NDArray[np.uint32] | None
    d0: float = 1.0

    @classmethod
    def in_order(cls, source: Source, layout: Layout, d0: float = 1.0) -> SourcePairs:
        """Narrow rows are copied into the order of the positions.

        The partners of consecutive positions are consecutive: k streams instead of k jumps.
        """
        if not is_narrow(source):
            return cls(source, layout.graph, layout.order, d0)
        assert isinstance(source, AttributeSource)
        table = aligned_zeros(*source.table.shape)
        np.take(source.table, layout.order, axis=0, out=table, mode="clip")
        return cls(replace(source, table=table), layout.graph, None, d0)

    @property
    def n(self) -> int:
        return self.graph.n

    @property
    def entries(self) -> int:
        return self.graph.entries

    @property
    def at_once(self) -> int:
        """Rows to compute at a time."""
        return _BLOCK

    def rows(
        self, lo: int, hi: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.float32]]:
        """Partner positions, degrees and raw dissimilarities of positions lo..hi-1."""
        partner, degree = self.graph.partners(lo, hi)
        return partner, degree, self._distances(lo, hi, partner)

    def dissimilarities(self, lo: int, hi: int, lists: PartnerLists) -> NDArray[np.float32]:
        """Raw dissimilarities of positions lo..hi-1, (rows, k), by lists of the graph."""
        return self._distances(lo, hi, lists.written(lo, hi, self.graph.k)[0])

    def _distances(self, lo: int, hi: int, partner: NDArray[np.uint32]) -> NDArray[np.float32]:
        if self.order is None:
            return self.source.distances(np.arange(lo, hi, dtype=np.uint32), partner)
        return self.source.distances(self.order[lo:hi], self.order[partner])

    def block(self, lo: int, hi: int) -> Block:
        return row_block(lo, *self.rows(lo, hi), self.d0)


def row_dissimilarities(
    source: Source, layout: Layout, lo: int, hi: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.float32]]:
    """Partner positions, degrees and raw dissimilarities of positions lo..hi-1."""
    return SourcePairs(source, layout.graph, layout.order).rows(lo, hi)


def is_narrow(source: Source) -> bool:
    """Whether a copy of the rows in another order is worth its memory."""
    return isinstance(source, AttributeSource) and source.table.shape[1] <= _NARROW


def row_block(
    lo: int, partner: NDArray[np.uint32], degree: NDArray[np.int64], D: NDArray, d0: float
) -> Block:
    """A block from partners and raw dissimilarities (rows, k), which are transformed in place."""
    rows, k = partner.shape
    delta = D.reshape(-1)
    transform(delta, d0, delta)
    return Block(lo, np.arange(rows, dtype=np.int64) * k, degree, partner.reshape(-1), delta)


def sample_pairs(source: Source, layout: Layout, d0: float, n_threads: int = 1) -> MemoryPairs:
    """All kept pairs in memory: 8 bytes a pair."""
    n, k = source.n, layout.graph.k
    partner = np.empty((n, k), np.uint32)
    delta = np.empty((n, k), np.float32)
    degree = np.empty(n, np.int64)
    made = SourcePairs.in_order(source, layout)

    def fill(lo: int) -> None:
        hi = min(lo + _BLOCK, n)
        partner[lo:hi], degree[lo:hi], D = made.rows(lo, hi)
        transform(D.ravel(), d0, delta[lo:hi].reshape(-1))

    run_blocks(fill, range(0, n, _BLOCK), n_threads)
    first = np.arange(n, dtype=np.int64) * k
    return MemoryPairs(first, degree, partner.reshape(-1), delta.reshape(-1))


def run_blocks(work: Callable[[int], object], starts: Sequence[int], n_threads: int) -> None:
    """Call `work(lo)` for every block, on threads; the first error is raised."""
    if n_threads == 1 or len(starts) == 1:
        for lo in starts:
            work(lo)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        for job in [pool.submit(work, lo) for lo in starts]:
            job.result()


def random_dissimilarities(
    source: Source, seed: int, n_pairs: int = 100_000
) -> NDArray[np.float32]:
    """Dissimilarities of random pairs; all pairs when there are fewer."""
    n = source.n
    if n * (n - 1) // 2 <= n_pairs:
        i, j = np.triu_indices(n, 1)
        mine, others = i.astype(np.uint32), j[:, None].astype(np.uint32)
    else:
        rng = np.random.default_rng([seed, n])
        mine = rng.integers(0, n, n_pairs // 20, dtype=np.uint32)
        shift = rng.integers(1, n, (len(mine), 20), dtype=np.uint32)
        others = ((mine[:, None].astype(np.int64) + shift) % n).astype(np.uint32)
    return source.distances(mine, others).ravel()


def colour_pair_list(pairs: PairList, d0: float, seed: int) -> tuple[MemoryPairs, Plan, NDArray]:
    """A given graph, laid out colour by colour so that its sweeps split; also the order.

    Visiting rows by falling degree keeps the number of colours near the largest clique.
    """
    degree = np.diff(pairs.first)
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(pairs.n)
    visit = shuffled[np.argsort(-degree[shuffled], kind="stable")]
    colour = greedy_colours(pairs.first, pairs.other, visit)
    order = shuffled[np.argsort(colour[shuffled], kind="stable")]
    position = np.empty(pairs.n, np.uint32)
    position[order] = np.arange(pairs.n)
    first = np.concatenate([[0], np.cumsum(degree[order])])
    # Entry t of position p stands at pairs.first[order[p]] + t.
    where = np.arange(first[-1]) + np.repeat(pairs.first[order] - first[:-1], degree[order])
    delta = np.empty(first[-1], np.float32)
    transform(pairs.D[where], d0, delta)
    memory = MemoryPairs(first[:-1], degree[order], position[pairs.other[where]], delta)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(colour))])
    return memory, Plan.of(bounds), order.astype(np.uint32)

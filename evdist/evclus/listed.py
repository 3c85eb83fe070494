"""Kept pairs in half the memory: partners that follow a formula in few lists, 4 bytes a pair.

The kernels read such lists as they read partners of every row (`Block.at`): same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from evdist.evclus.problem import Pairs
from evdist.evclus.rows.sweep import Block
from evdist.evclus.sampling import run_blocks
from evdist.kernels.distances import transform
from evdist.kernels.graph import PairGraph
from evdist.kernels.partner_lists import PartnerLists, has_few_lists


class Made(Pairs, Protocol):
    """Pairs that are computed or read: those of a source, or of a store."""

    @property
    def graph(self) -> PairGraph: ...

    @property
    def d0(self) -> float: ...

    @property
    def at_once(self) -> int:
        """Rows to ask for at a time: their partners are written out meanwhile."""
        ...

    def dissimilarities(self, lo: int, hi: int, lists: PartnerLists) -> NDArray[np.float32]:
        """Raw dissimilarities of positions lo..hi-1 to their partners, (rows, k)."""
        ...


@dataclass(frozen=True)
class ListedPairs:
    """All kept pairs of a graph in memory; row i owns k entries of `delta` from i k on."""

    graph: PairGraph
    lists: PartnerLists
    delta: NDArray[np.float32]

    @classmethod
    def of(cls, made: Made, n_threads: int) -> ListedPairs:
        n, k, step = made.n, made.graph.k, made.at_once
        lists, delta = PartnerLists.of(made.graph), np.empty((n, k), np.float32)

        def fill(lo: int) -> None:
            _fill(made, lists, lo, delta[lo : lo + step])

        run_blocks(fill, range(0, n, step), n_threads)
        return cls(made.graph, lists, delta.reshape(-1))

    @property
    def n(self) -> int:
        return self.graph.n

    @property
    def entries(self) -> int:
        return self.graph.entries

    def block(self, lo: int, hi: int) -> Block:
        """With the partners of every row, for who reads them without `Block.at`."""
        partner, degree = self.graph.partners(lo, hi)
        block = self.listed(lo, hi)
        return Block(lo, block.first, degree, partner.reshape(-1), block.delta)

    def listed(self, lo: int, hi: int) -> Block:
        k = self.graph.k
        return _block(self.lists, lo, hi, self.delta[lo * k : hi * k], k)


def is_listed(pairs: Any) -> TypeGuard[ListedPairs | Made]:
    """Whether :func:`listed_blocks` takes less memory than the blocks of some `Pairs`."""
    if isinstance(pairs, ListedPairs):
        return True
    graph = getattr(pairs, "graph", None)
    if not isinstance(graph, PairGraph) or not hasattr(pairs, "dissimilarities"):
        return False
    return has_few_lists(graph)


def listed_blocks(pairs: ListedPairs | Made, runs: list[tuple[int, int]]) -> list[Block]:
    """The pairs of runs of rows, for the kernels of dense rows."""
    if isinstance(pairs, ListedPairs):
        return [pairs.listed(lo, hi) for lo, hi in runs]
    lists, blocks = PartnerLists.of(pairs.graph), []
    for lo, hi in runs:
        delta = np.empty((hi - lo, pairs.graph.k), np.float32)
        for at in range(0, hi - lo, pairs.at_once):
            _fill(pairs, lists, lo + at, delta[at : at + pairs.at_once])
        blocks.append(_block(lists, lo, hi, delta.reshape(-1), pairs.graph.k))
    return blocks


def _fill(made: Made, lists: PartnerLists, lo: int, delta: NDArray[np.float32]) -> None:
    """Fill transformed dissimilarities (rows, k) of the rows from `lo` on."""
    D = made.dissimilarities(lo, lo + len(delta), lists)
    transform(D.reshape(-1), made.d0, delta.reshape(-1))


def _block(lists: PartnerLists, lo: int, hi: int, delta: NDArray[np.float32], k: int) -> Block:
    at, degree = lists.of_rows(lo, hi)
    first = np.arange(hi - lo, dtype=np.int64) * k
    return Block(lo, first, degree, lists.partner.reshape(-1), delta, at)

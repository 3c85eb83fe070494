"""Partners of all rows in few lists: what a formula says need not be written for every row.

In a uniform graph the partners of consecutive rows are consecutive, but where a shift begins at the
first place of a colour again, or leads to an empty place. Between two such rows, of which a colour
has 2 k at most, a row's partners less its own number are the same list. A million rows with a
hundred partners share some 800 lists: a third of a megabyte instead of 400.

Symbols
-------
n, k    rows, partners per row
B, s    colours, positions per colour
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.graph import MIN_COLOURS, PairGraph
from evdist.kernels.jit import njit

#: Rows that a list should have on average; with fewer, partners are written for every row.
_ROWS = 16


@dataclass(frozen=True)
class PartnerLists:
    """Partners by list; row i is in list q if first[q] <= i < first[q + 1].

    Attributes
    ----------
    first : (q,) int64, increasing from 0
    partner : (q, width) uint32
        Row i has partners partner[q] + i modulo 2^32: as many as `degree` says, then itself.
        Vectors take four at a time: the width is a multiple of that.
    degree : (q,) int64
    """

    first: NDArray[np.int64]
    partner: NDArray[np.uint32]
    degree: NDArray[np.int64]

    @classmethod
    def of(cls, graph: PairGraph) -> PartnerLists:
        """The lists of a uniform graph."""
        s, back = graph.size, -np.array(graph.shifts) % graph.size
        # From place s - r on a shift of r begins again; before that it leads to the last place.
        cuts = np.unique(np.concatenate([[0], back, (back - 1) % s]))
        sizes = np.diff(graph.bounds)
        first = np.concatenate(
            [lo + cuts[cuts < size] for lo, size in zip(graph.bounds, sizes, strict=False)]
        )
        partner, degree = graph.partners_of(first)
        lists = np.zeros((len(first), -(-graph.k // 4) * 4), np.uint32)
        lists[:, : graph.k] = partner - first[:, None].astype(np.uint32)
        return cls(first, lists, degree)

    def of_rows(self, lo: int, hi: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the list of each row lo..hi-1 begins in `partner`, and how many it has."""
        a, b = np.searchsorted(self.first, [lo, max(hi - 1, lo)], side="right")
        bounds = np.concatenate([[lo], self.first[a:b], [hi]])
        rows, lists = np.diff(bounds), np.arange(a - 1, b)
        at = np.repeat(lists * self.partner.shape[1], rows)
        return at, np.repeat(self.degree[lists], rows)

    def written(self, lo: int, hi: int, k: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The k partners of each row lo..hi-1, and how many count: `PairGraph.partners`, faster."""
        at, degree = self.of_rows(lo, hi)
        partner = np.empty((hi - lo, k), np.uint32)
        _write(self.partner.reshape(-1), at, lo, partner)
        return partner, degree


@njit
def _write(lists, at, lo, partner):
    rows, k = partner.shape
    for row in range(rows):
        mine = lists[at[row] : at[row] + k]
        i = np.uint32(lo + row)
        for t in range(k):
            partner[row, t] = mine[t] + i


def has_few_lists(graph: PairGraph) -> bool:
    """Whether the rows of a graph share lists that are worth it: uniform partners, many rows."""
    return graph.near == 0 and are_few(graph.n, graph.k, graph.colours)


def are_few(n: int, k: int, colours: int = MIN_COLOURS) -> bool:
    """Whether lists of k uniform partners are few for n rows."""
    return n >= _ROWS * colours * (2 * k + 1)

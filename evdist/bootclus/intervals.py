"""Confidence intervals of the kept pairs, made block by block from the bootstrap replicates.

Reference: Denoeux, Calibrated model-based evidential clustering using bootstrapping, algorithm 1.

The paper keeps n(n-1)/2 intervals. Here an object keeps k pairs, and what is held while they are
made is the posterior probabilities of a window of objects under all B replicates: partners lie in
a band around the object's own place in a random order, so one window slides once over all of them.

Symbols
-------
n, k, c, B   objects, partners per object, components, replicates
T            width of the band: places t and t' of two colours may be partners if |t - t'| < T
chunk        CHUNK consecutive positions; posteriors are always computed for whole chunks, so that
             their bits do not depend on which rows are asked for
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.bootclus.interval_kernel import interval_rows, mark_live, ranks
from evdist.evclus.problem import MemoryPairs, Pairs
from evdist.evclus.rows.sweep import Block
from evdist.evclus.sampling import Layout
from evdist.kernels.graph import MIN_COLOURS, PairGraph, draw_graph

CHUNK = 256
#: The band: wide enough that its k partners look random, narrow enough to stay in memory.
MIN_BAND = 256
#: A ring of this many bands is cut into windows; a shorter one is held whole.
RING = 8
#: Bytes of posteriors that a window keeps beyond what it needs.
WINDOW_BYTES = 64 << 20
#: Pairs kept for a look at a fit, at most: 16 bytes each.
MAX_INTERVALS = 1_000_000


class Replicates(Protocol):
    """Mixtures fitted to bootstrap samples: posterior probabilities are all one asks of them."""

    @property
    def n_clusters(self) -> int: ...

    @property
    def size(self) -> int:
        """B, the number of replicates."""
        ...

    def posteriors(self, X: NDArray, out: NDArray[np.float32]) -> None:
        """Probabilities of the components given each row of X, into `out` (rows, c, B)."""
        ...


# ---------------------------------------------------------------------- which pairs
def draw_band(n: int, k: int, seed: int) -> Layout:
    """A random order and a pair graph whose partners lie in a band, where n is large.

    Since the order is random, every pair of objects is still equally likely. Smaller n have the
    graph of EVCLUS, which with k = n - 1 is all pairs.
    """
    rng = np.random.default_rng([seed, n, k])
    order = rng.permutation(n).astype(np.uint32)
    width = max(MIN_BAND, 2 * k)
    if -(-n // MIN_COLOURS) < RING * width:
        return Layout(order, draw_graph(n, min(k, n - 1), rng))
    return Layout(order, PairGraph.band(n, k, width, rng))


# ---------------------------------------------------------------------- the window
class _Window:
    """Posteriors of some chunks of positions; chunks no longer needed make room for others."""

    def __init__(self, X: NDArray, replicates: Replicates):
        self._X, self._replicates = X, replicates
        self._slot = np.full(-(-len(X) // CHUNK), -1)
        self._allocate(0)

    def _allocate(self, least: int) -> None:
        c, B = self._replicates.n_clusters, self._replicates.size
        slots = max(least, min(len(self._slot), WINDOW_BYTES // (4 * CHUNK * c * B)))
        # Pages that are never written cost nothing.
        self.post = np.empty((slots * CHUNK, c, B), np.float32)
        self.live = np.empty((slots * CHUNK, c), bool)
        self._slot[:] = -1
        self._free = list(range(slots))

    def hold(self, need: NDArray[np.int64]) -> None:
        """Make sure of these chunks."""
        missing = need[self._slot[need] < 0]
        if len(missing) > len(self._free):
            if len(need) * CHUNK > len(self.post):
                self._allocate(len(need))
                missing = need
            else:
                others = np.setdiff1d(np.flatnonzero(self._slot >= 0), need)
                self._free += self._slot[others].tolist()
                self._slot[others] = -1
        for chunk in missing.tolist():
            rows = self._X[chunk * CHUNK : (chunk + 1) * CHUNK]
            slot = self._free.pop()
            part = slice(slot * CHUNK, slot * CHUNK + len(rows))
            self._replicates.posteriors(rows, self.post[part])
            mark_live(self.post[part], self.live[part])
            self._slot[chunk] = slot

    def at(self, position: NDArray) -> NDArray[np.int64]:
        """Rows of `post` that hold these positions."""
        chunk, rest = np.divmod(position.astype(np.int64), CHUNK)
        return self._slot[chunk] * CHUNK + rest


@dataclass(frozen=True)
class IntervalPairs:
    """Kept pairs with the bounds of their intervals, made whenever a block is asked for.

    Every pair has two entries, as the sweeps want them: partner j with target P^l, and partner
    j + n with target 1 - P^u (eq. (13)).

    Parameters
    ----------
    X : (n, d) array, rows in positions
    graph : PairGraph
    replicates : Replicates
    confidence : float
    """

    X: NDArray
    graph: PairGraph
    replicates: Replicates
    confidence: float

    @property
    def n(self) -> int:
        return self.graph.n

    @property
    def entries(self) -> int:
        return 2 * self.graph.entries

    @property
    def n_pairs(self) -> int:
        """Kept pairs, each counted once."""
        return self.graph.entries // 2

    @cached_property
    def banded(self) -> bool:
        """Whether partners lie so near that a window slides over them."""
        s = self.graph.size
        return RING * max(min(r, s - r) for r in self.graph.shifts) < s

    @cached_property
    def _window(self) -> _Window:
        return _Window(self.X, self.replicates)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_window"}

    def block(self, lo: int, hi: int) -> Block:
        """Pairs of positions lo..hi-1."""
        k = self.graph.k
        partner = np.empty((hi - lo, 2 * k), np.uint32)
        target = np.empty((hi - lo, 2 * k), np.float32)
        degree = self._fill(self._window, lo, hi, partner, target)
        first = np.arange(hi - lo, dtype=np.int64) * (2 * k)
        return Block(lo, first, degree, partner.reshape(-1), target.reshape(-1))

    def in_memory(self, n_threads: int = 1) -> MemoryPairs:
        """All pairs: 16 bytes a pair and side."""
        n, k = self.n, self.graph.k
        partner = np.empty((n, 2 * k), np.uint32)
        target = np.empty((n, 2 * k), np.float32)
        degree = np.empty(n, np.int64)

        def run(part: Sequence[tuple[int, int]]) -> None:
            window = shared or _Window(self.X, self.replicates)
            for lo, hi in part:
                at = slice(lo, hi)
                degree[at] = self._fill(window, lo, hi, partner[at], target[at])

        shared = None
        tiles = self._tiles()
        if not self.banded:
            # Partners are anywhere: all threads use one window that holds everything.
            shared = _Window(self.X, self.replicates)
            shared.hold(np.arange(-(-n // CHUNK)))
        cuts = np.linspace(0, len(tiles), n_threads + 1).astype(int).tolist()
        parts = [tiles[a:b] for a, b in pairwise(cuts) if a < b]
        with ThreadPoolExecutor(n_threads) as pool:
            for job in [pool.submit(run, part) for part in parts]:
                job.result()
        first = np.arange(n, dtype=np.int64) * (2 * k)
        return MemoryPairs(first, degree, partner.reshape(-1), target.reshape(-1))

    def _tiles(self) -> list[tuple[int, int]]:
        """Runs of positions, those at the same places of all colours one after the other."""
        if not self.banded:
            return [(lo, min(lo + 32, self.n)) for lo in range(0, self.n, 32)]
        bounds = self.graph.bounds.tolist()
        return [
            (lo + t, min(lo + t + CHUNK, hi))
            for t in range(0, self.graph.size, CHUNK)
            for lo, hi in pairwise(bounds)
            if lo + t < hi
        ]

    def _fill(
        self, window: _Window, lo: int, hi: int, entry: NDArray, target: NDArray
    ) -> NDArray[np.int64]:
        """Entries and targets of positions lo..hi-1, (rows, 2 k) each; returns their degrees."""
        partner, degree = self.graph.partners(lo, hi)
        rows, k = np.arange(lo, hi), self.graph.k
        needed = np.zeros(-(-self.n // CHUNK), bool)
        needed[partner // CHUNK] = True
        needed[rows // CHUNK] = True
        window.hold(np.flatnonzero(needed))
        interval_rows(
            window.post, window.live, window.at(rows), window.at(partner), degree,
            *ranks(self.replicates.size, self.confidence), target,
        )  # fmt: skip
        entry[:, :k], entry[:, k:] = partner, partner
        # The second entries of a row follow its first, of which a few rows have fewer than k.
        column = np.arange(2 * k)
        second = (column >= degree[:, None]) & (column < 2 * degree[:, None])
        short = np.flatnonzero(degree < k)
        for row in short.tolist():
            g = int(degree[row])
            entry[row, g : 2 * g] = partner[row, :g]
        entry += (second * self.n).astype(np.uint32)
        return 2 * degree


# ---------------------------------------------------------------------- for people
@dataclass(frozen=True)
class Intervals:
    """Confidence intervals [lower, upper] of the probability that i and j belong together.

    Attributes
    ----------
    i, j : (p,) arrays of object numbers, each pair once
    lower, upper : (p,) float32
    """

    i: NDArray[np.uint32]
    j: NDArray[np.uint32]
    lower: NDArray[np.float32]
    upper: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.i)


def some_intervals(pairs: Pairs, order: NDArray[np.uint32]) -> Intervals:
    """All kept pairs by object when there are MAX_INTERVALS or fewer, else those of some rows.

    Rows are taken in the order of a random layout, so the first of them are a random sample.
    """
    n = pairs.n
    per_row = -(-pairs.entries // (2 * n))
    rows = n if n * per_row // 2 <= MAX_INTERVALS else MAX_INTERVALS // per_row
    columns = []
    for lo in range(0, rows, CHUNK):
        hi = min(lo + CHUNK, rows)
        block = pairs.block(lo, hi)
        half = block.degree // 2
        mine = np.repeat(np.arange(lo, hi), half)
        before = np.cumsum(half) - half
        at = np.arange(len(mine)) + np.repeat(block.first - before, half)
        partner = block.partner[at].astype(np.int64)
        # A pair whose rows are both read is taken from the lower one.
        once = (partner > mine) | (partner >= rows)
        at, mine, partner = at[once], mine[once], partner[once]
        above = block.delta[at + half[mine - lo]]
        columns.append((order[mine], order[partner], block.delta[at], np.float32(1.0) - above))
    return Intervals(*(np.concatenate(part) for part in zip(*columns, strict=True)))

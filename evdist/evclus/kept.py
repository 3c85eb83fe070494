"""Some of the kept pairs, by object: a fit can be looked at after its n x k pairs are gone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evdist.belief import conflict
from evdist.evclus.problem import Pairs, in_memory
from evdist.partition import CredalPartition
from evdist.partition.rows import select_rows

#: Pairs in a sample at most: 12 bytes each.
MAX_PAIRS = 200_000
#: Rows read at a time; masses of pairs that are looked at at a time, 4 bytes each.
_SPAN, _AT_ONCE = 128, 1 << 23


@dataclass(frozen=True)
class SomePairs:
    """Different pairs of objects (i, j), and their transformed dissimilarities; (p,) each.

    `kappa` are degrees of conflict, where they were taken before mass came back from the empty set.
    """

    i: NDArray[np.uint32]
    j: NDArray[np.uint32]
    delta: NDArray[np.float32]
    kappa: NDArray[np.floating] | None = None

    def with_conflicts(self, partition: CredalPartition) -> SomePairs:
        """The same, with the conflicts that the masses have now."""
        return replace(self, kappa=self.conflicts(partition))

    def conflicts(self, partition: CredalPartition) -> NDArray[np.floating]:
        """Degrees of conflict of the pairs' mass functions."""
        if self.kappa is not None:
            return self.kappa
        mass, kappa = partition.mass, np.empty(len(self.i))
        # Partners lie anywhere: each step reads nearly all chunks of a stored partition.
        step = max(_AT_ONCE // mass.shape[1], 1)
        for lo in range(0, len(kappa), step):
            some = slice(lo, lo + step)
            mine, other = (np.asarray(select_rows(mass, w[some])) for w in (self.i, self.j))
            kappa[some] = conflict(mine, other, partition.focal_sets)
        return kappa


def some_pairs(
    pairs: Pairs, order: NDArray[np.uint32], at_most: int = MAX_PAIRS, seed: int = 0
) -> SomePairs:
    """All kept pairs, each once, when there are `at_most` or fewer, else a random `at_most`.

    Reads spans of rows in random order until there are enough; `order` (n,) maps positions, which
    `pairs` speaks of, to objects.
    """
    if pairs.entries <= 2 * at_most:  # every row will be read: a store is asked once
        pairs = in_memory(pairs)
    rng = np.random.default_rng(seed)
    spans = rng.permutation(-(-pairs.n // _SPAN))
    drawn = np.zeros(len(spans), bool)
    parts = []
    read = 0
    for span in spans.tolist():
        if read >= 2 * at_most:  # each pair stands at most twice among them
            break
        parts.append(_entries(pairs, span * _SPAN, min(span * _SPAN + _SPAN, pairs.n)))
        drawn[span] = True
        read += len(parts[-1][0])
    i, j, delta = (np.concatenate(column) for column in zip(*parts, strict=True))
    # A pair stands in both its rows; where both were read, the lower one counts.
    once = np.flatnonzero((i < j) | ~drawn[j // _SPAN])
    if len(once) > at_most:
        once = np.sort(rng.choice(once, at_most, replace=False))
    return SomePairs(order[i[once]], order[j[once]], delta[once])


def _entries(
    pairs: Pairs, lo: int, hi: int
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]:
    """Positions and transformed dissimilarities of all pairs of rows lo..hi-1."""
    block = pairs.block(lo, hi)
    before = np.cumsum(block.degree) - block.degree
    # Entry t of row r stands at first[r] + t; a row may own more room than it has entries.
    where = np.arange(block.degree.sum()) + np.repeat(block.first - before, block.degree)
    mine = np.repeat(np.arange(lo, hi), block.degree)
    return mine, block.partner[where], block.delta[where]

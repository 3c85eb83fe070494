"""What a sweep works on: the kept pairs, the order of the work, weights and constraints.

Symbols
-------
n, k     objects, kept pairs per object
order    (n,) position -> object; every array of a problem is in positions
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.engine.plan import Plan
from evdist.evclus.rows.sweep import Block, Links, no_links
from evdist.kernels.vector import padded_width

__all__ = ["MemoryPairs", "Pairs", "Plan", "Problem", "conflict_projection"]


class Pairs(Protocol):
    """Kept pairs: in memory, made from a source on demand, in a store, or on a device."""

    @property
    def n(self) -> int: ...

    @property
    def entries(self) -> int:
        """Kept pairs, each counted by both of its rows."""
        ...

    def block(self, lo: int, hi: int) -> Block:
        """Pairs of positions lo..hi-1, with transformed dissimilarities."""
        ...


@dataclass(frozen=True)
class MemoryPairs:
    """Kept pairs in compressed rows: row i owns `degree[i]` entries from `first[i]` on."""

    first: NDArray[np.int64]
    degree: NDArray[np.int64]
    partner: NDArray[np.uint32]
    delta: NDArray[np.float32]

    @property
    def n(self) -> int:
        return len(self.first)

    @property
    def entries(self) -> int:
        return int(self.degree.sum())

    def block(self, lo: int, hi: int) -> Block:
        start, stop = (self.first[i] if i < self.n else len(self.partner) for i in (lo, hi))
        return Block(
            lo,
            self.first[lo:hi] - start,
            self.degree[lo:hi],
            self.partner[start:stop],
            self.delta[start:stop],
        )


def in_memory(pairs: Pairs) -> MemoryPairs:
    """The pairs of all rows, read in one call."""
    whole = pairs.block(0, pairs.n)
    return MemoryPairs(whole.first, whole.degree, whole.partner, whole.delta)


@dataclass(frozen=True)
class Problem:
    """Minimise the stress of `pairs`, plus the penalty of `links`, over masses on `focal_sets`.

    `projections` (v, f, F) take the place of the conflict matrix where a pair has v residuals:
    partner j + q n in `pairs` is object j seen through projection q.
    """

    focal_sets: FocalSets
    pairs: Pairs
    plan: Plan
    weight: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    links: Links | None = None
    projections: NDArray[np.float32] | None = None
    #: Whether masses are encoded rows (`evdist.kernels.sparse_rows`); then there are no links.
    sparse: bool = False
    #: How far below, per pair, the gradient of a cluster must be to enter such a row: see
    #: `rows.sparse_sweep`.
    promise: float = 0.0

    @property
    def n(self) -> int:
        return self.pairs.n

    @cached_property
    def projection(self) -> NDArray[np.float32]:
        if self.projections is not None:
            # What came over the network is read-only, which numba compiles for anew.
            return np.require(self.projections, requirements="W")
        return conflict_projection(self.focal_sets)

    @property
    def f(self) -> int:
        """Focal sets that may get mass."""
        return self.projection.shape[1]

    @property
    def linked(self) -> bool:
        return self.links is not None and self.links.first.size > 0

    @property
    def all_links(self) -> Links:
        return no_links(len(self.focal_sets)) if self.links is None else self.links


def conflict_projection(focal_sets: FocalSets) -> NDArray[np.float32]:
    """C as the one projection of EVCLUS, padded: (1, f, F)."""
    f = len(focal_sets)
    P = np.zeros((1, f, padded_width(f)), np.float32)
    P[0, :, :f] = focal_sets.C
    return P

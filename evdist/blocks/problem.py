"""What a sweep works on: the kept pairs, the order of the work, weights and constraints.

Symbols
-------
n, k     objects, kept pairs per object
order    (n,) position -> object; every array of a problem is in positions
piece    a run of consecutive positions of one colour: the unit that is handed to a worker
step     pieces (or rows of them) that share no pair and no link: they may run at the same time
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.kernels.sweep import Block, Links, no_links
from evdist.kernels.vector import padded_width

__all__ = [
    "CYCLE",
    "PIECE_ROWS",
    "MemoryPairs",
    "Pairs",
    "Plan",
    "Problem",
    "conflict_projection",
    "whole_cycles",
]

#: Rows of a piece at most. Pieces come from n alone, never from the number of workers, so sums
#: over pieces have the same bits everywhere.
PIECE_ROWS = 2048
#: Every so many sweeps all rows are visited; in between, rows that bring nothing may rest. A fit
#: that is taken up again at a multiple of it goes on with the same bits.
CYCLE = 4


class Pairs(Protocol):
    """Kept pairs, in memory or in a store."""

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


@dataclass(frozen=True)
class Plan:
    """The order of the work: `steps` of (piece, rows), rows None for the whole piece."""

    pieces: tuple[tuple[int, int], ...]
    steps: tuple[tuple[tuple[int, NDArray[np.int64] | None], ...], ...]

    @classmethod
    def of(cls, bounds: ArrayLike, late: Sequence[NDArray[np.int64]] = ()) -> Plan:
        """One step per colour, `bounds` its limits; then one step for each array of `late` rows.

        Late rows are linked to rows of their own colour and so cannot be updated with them.
        """
        pieces: list[tuple[int, int]] = []
        colours: list[list[int]] = []
        for lo, hi in pairwise(np.asarray(bounds).tolist()):
            cuts = np.linspace(lo, hi, -(-(hi - lo) // PIECE_ROWS) + 1).astype(int)
            colours.append(list(range(len(pieces), len(pieces) + len(cuts) - 1)))
            pieces += [(int(a), int(b)) for a, b in pairwise(cuts)]
        put_off = np.sort(np.concatenate([np.zeros(0, np.int64), *late]))
        starts = np.array([lo for lo, _ in pieces])

        def rows_left(q: int) -> NDArray[np.int64] | None:
            a, b = np.searchsorted(put_off, pieces[q])
            return None if a == b else np.setdiff1d(np.arange(*pieces[q]), put_off[a:b])

        steps = [tuple((q, rows_left(q)) for q in colour) for colour in colours]
        for rows in late:
            owner = np.searchsorted(starts, rows, side="right") - 1
            steps.append(tuple((int(q), np.sort(rows[owner == q])) for q in np.unique(owner)))
        return cls(tuple(pieces), tuple(steps))

    def rows(self, step: int, mine: frozenset[int] | None = None) -> list[tuple[int, NDArray]]:
        """(piece, rows) of a step, of all pieces or only of `mine`."""
        return [
            (q, np.arange(*self.pieces[q]) if rows is None else rows)
            for q, rows in self.steps[step]
            if mine is None or q in mine
        ]


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
    def all_links(self) -> Links:
        return no_links(len(self.focal_sets)) if self.links is None else self.links


def whole_cycles(sweeps: int) -> int:
    """The next multiple of CYCLE: when a fit may be put down to be taken up with the same bits."""
    return -(-sweeps // CYCLE) * CYCLE


def conflict_projection(focal_sets: FocalSets) -> NDArray[np.float32]:
    """C as the one projection of EVCLUS, padded: (1, f, F)."""
    f = len(focal_sets)
    P = np.zeros((1, f, padded_width(f)), np.float32)
    P[0, :, :f] = focal_sets.C
    return P

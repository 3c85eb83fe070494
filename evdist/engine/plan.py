"""The order of the work in a sweep: pieces and steps. NumPy only.

Symbols
-------
piece    a run of consecutive positions of one colour: the unit that is handed to a worker
step     pieces (or rows of them) that share no pair and no link: they may run at the same time
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Rows of a piece at most. Pieces come from n alone, never from the number of workers, so sums
#: over pieces have the same bits everywhere.
PIECE_ROWS = 2048
#: Every so many sweeps all rows are visited; in between, rows that bring nothing may rest. A fit
#: that is taken up again at a multiple of it goes on with the same bits.
CYCLE = 4


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

    def rows(self, step: int, mine: frozenset[int] | None = None) -> list[tuple[int, NDArray[Any]]]:
        """(piece, rows) of a step, of all pieces or only of `mine`."""
        return [
            (q, np.arange(*self.pieces[q]) if rows is None else rows)
            for q, rows in self.steps[step]
            if mine is None or q in mine
        ]


def whole_cycles(sweeps: int) -> int:
    """The next multiple of CYCLE: when a fit may be put down to be taken up with the same bits."""
    return -(-sweeps // CYCLE) * CYCLE

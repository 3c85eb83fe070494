"""The state of one process during a fit: all masses, their table, and the pairs it works on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evdist.evclus.sweep import (
    Block,
    block_objective,
    project_rows,
    project_some,
    update_rows,
)
from evdist.kernels.vector import aligned_zeros

if TYPE_CHECKING:
    from evdist.evclus.problem import Problem

__all__ = ["Replica", "ReplicaShare"]

_LINK_ARRAYS = ("first", "other", "sign", "Q")
#: Rows of a worker that are made and updated by one call: calls have their price, and so has the
#: room to make many pairs at once.
RUN_ROWS = 1 << 16


class Replica:
    """All n mass functions and their projections; rows are changed by `update` or `patch`.

    Parameters
    ----------
    problem : Problem
    mass : (n, f) float32, in positions; copied, and put on the grid of the kernels
    """

    def __init__(self, problem: Problem, mass: NDArray):
        # Arrays that came over the network are read-only, which numba compiles for anew.
        weight = np.require(problem.weight, requirements="W")
        links = problem.all_links
        links = links._replace(
            **{k: np.require(getattr(links, k), requirements="W") for k in _LINK_ARRAYS}
        )
        self.problem = replace(problem, weight=weight, links=links)
        self.mass = np.array(mass, dtype=np.float32, order="C")
        P = problem.projection
        self.table = aligned_zeros(P.shape[0] * problem.n, P.shape[2])
        project_rows(self.mass, P, self.table, 0, problem.n)

    def update(
        self, block: Block, rows: NDArray[np.int64], change: NDArray[np.float64], rest: float
    ) -> None:
        """Minimise over `rows` of `block`; `change` (rows of the block,) receives the gains."""
        p = self.problem
        update_rows(
            self.mass, self.table, p.projection, block, p.weight, p.all_links, rows, change, rest
        )

    def patch(self, rows: NDArray[np.uint32], mass: NDArray[np.float32]) -> None:
        """Take over the masses of `rows` (p,) that another process has updated: (p, f)."""
        self.mass[rows] = mass
        rows = np.require(rows, requirements="W")
        project_some(self.mass, self.problem.projection, self.table, rows)

    def objective(self, block: Block, lo: int, hi: int) -> tuple[float, float]:
        """(stress, penalty) summed over the pairs and links of rows lo..hi-1."""
        p = self.problem
        return block_objective(self.mass, self.table, block, p.weight, p.all_links, lo, hi)


class ReplicaShare:
    """A replica, and the pairs of those pieces that one worker updates: a `Share` of a cluster.

    Pieces that lie one behind the other are updated together, as one run.

    Parameters
    ----------
    problem : Problem
    mass : (n, f) float32, in positions
    pieces : numbers of the worker's own pieces
    threads : int
    """

    def __init__(self, problem: Problem, mass: NDArray, pieces: Sequence[int], threads: int):
        self._replica = Replica(problem, mass)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        bounds = problem.plan.pieces
        self._pieces = {q: bounds[q] for q in sorted(pieces)}
        runs = _runs(list(self._pieces.values()))
        self._starts = np.array([lo for lo, _ in runs])
        self._blocks = [problem.pairs.block(lo, hi) for lo, hi in runs]
        self._change = [np.zeros(hi - lo) for lo, hi in runs]
        mine = frozenset(pieces)
        self._work = [
            self._by_run([rows for _, rows in problem.plan.rows(step, mine)])
            for step in range(len(problem.plan.steps))
        ]

    def _by_run(self, rows: list[NDArray[np.int64]]) -> list[tuple[int, NDArray[np.int64]]]:
        """(run, rows) of a step."""
        every = np.concatenate([np.zeros(0, np.int64), *rows])
        run = np.searchsorted(self._starts, every, side="right") - 1
        return [(int(r), every[run == r]) for r in np.unique(run)]

    def update(self, step: int, rest: float) -> tuple[NDArray[np.uint32], NDArray[np.float32], int]:
        moved = [np.zeros(0, np.int64)]
        for r, rows in self._work[step]:
            block, change = self._blocks[r], self._change[r]
            self._update(block, rows, change, rest)
            moved.append(rows[change[rows - block.row0] < 0.0])
        those = np.concatenate(moved)
        count = sum(len(rows) for _, rows in self._work[step])
        return those.astype(np.uint32), self._replica.mass[those], count

    def _update(self, block: Block, rows: NDArray, change: NDArray, rest: float) -> None:
        if self._pool is None:
            self._replica.update(block, rows, change, rest)
            return
        parts = np.array_split(rows, self._threads)
        for job in [self._pool.submit(self._replica.update, block, p, change, rest) for p in parts]:
            job.result()

    def patch(self, rows: NDArray[np.uint32], mass: NDArray[np.float32]) -> None:
        self._replica.patch(rows, mass)

    def changes(self) -> dict[int, float]:
        return {
            q: float(self._change[r][lo - first : hi - first].sum())
            for q, r, first, lo, hi in self._own()
        }

    def objective(self) -> dict[int, tuple[float, float]]:
        return {
            q: self._replica.objective(self._blocks[r], lo, hi) for q, r, _, lo, hi in self._own()
        }

    def _own(self) -> Iterator[tuple[int, int, int, int, int]]:
        """(piece, its run, where the run begins, the piece's bounds) of every own piece."""
        for q, (lo, hi) in self._pieces.items():
            r = int(np.searchsorted(self._starts, lo, side="right")) - 1
            yield q, r, int(self._starts[r]), lo, hi

    def masses(self, lo: int, hi: int) -> NDArray[np.float32]:
        return self._replica.mass[lo:hi]


def _runs(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Bounds of consecutive pieces together, of RUN_ROWS at most where a piece is not larger."""
    found: list[tuple[int, int]] = []
    for lo, hi in pieces:
        if found and found[-1][1] == lo and hi - found[-1][0] <= RUN_ROWS:
            found[-1] = (found[-1][0], hi)
        else:
            found.append((lo, hi))
    return found

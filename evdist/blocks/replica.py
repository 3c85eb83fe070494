"""The state of one process during a fit: all masses, their table, and the pairs it works on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.sweep import (
    Block,
    block_objective,
    project_rows,
    project_some,
    update_rows,
)
from evdist.kernels.vector import aligned_zeros

if TYPE_CHECKING:
    from evdist.blocks.problem import Problem

__all__ = ["Replica", "ReplicaShare"]

_LINK_ARRAYS = ("first", "other", "sign", "Q")


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

    Parameters
    ----------
    problem : Problem
    mass : (n, f) float32, in positions
    pieces : numbers of the worker's own pieces
    threads : int
    """

    def __init__(self, problem: Problem, mass: NDArray, pieces: Sequence[int], threads: int):
        self._replica = Replica(problem, mass)
        self._plan = problem.plan
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._blocks = {q: problem.pairs.block(*problem.plan.pieces[q]) for q in pieces}
        self._change = {q: np.zeros(len(b.first)) for q, b in self._blocks.items()}

    def update(self, step: int, rest: float) -> tuple[NDArray[np.uint32], NDArray[np.float32], int]:
        work = self._plan.rows(step, frozenset(self._blocks))

        def update(item: tuple[int, NDArray[np.int64]]) -> NDArray[np.int64]:
            q, rows = item
            change = self._change[q]
            self._replica.update(self._blocks[q], rows, change, rest)
            return rows[change[rows - self._plan.pieces[q][0]] < 0.0]

        moved = list(self._pool.map(update, work) if self._pool else map(update, work))
        rows = np.concatenate([np.zeros(0, np.int64), *moved])
        return rows.astype(np.uint32), self._replica.mass[rows], sum(len(r) for _, r in work)

    def patch(self, rows: NDArray[np.uint32], mass: NDArray[np.float32]) -> None:
        self._replica.patch(rows, mass)

    def changes(self) -> dict[int, float]:
        return {q: float(change.sum()) for q, change in self._change.items()}

    def objective(self) -> dict[int, tuple[float, float]]:
        pieces = self._plan.pieces
        return {q: self._replica.objective(b, *pieces[q]) for q, b in self._blocks.items()}

    def masses(self, lo: int, hi: int) -> NDArray[np.float32]:
        return self._replica.mass[lo:hi]

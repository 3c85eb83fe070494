"""The state of one process during a fit: all masses, their table, and the pairs it works on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evdist.blocks.problem import Problem
from evdist.kernels.sweep import (
    Block,
    block_objective,
    project_rows,
    project_some,
    update_rows,
)
from evdist.kernels.vector import aligned_zeros

__all__ = ["Replica"]

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

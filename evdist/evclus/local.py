"""Sweeps in one process, on threads: the kernels release the interpreter lock."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from evdist.evclus.problem import Problem
from evdist.evclus.replica import Replica

__all__ = ["LocalExecutor"]

#: Below this many rows a step is over before a second thread has woken up.
_MIN_ROWS_PER_THREAD = 512


class LocalExecutor:
    """Runs the sweeps of one problem; `sweep` returns the exact change of the objective's sum."""

    def __init__(self, problem: Problem, mass: NDArray, n_threads: int = 1):
        self.problem = problem
        self._replica = Replica(problem, mass)
        self._block = problem.pairs.block(0, problem.n)
        self._change = np.zeros(problem.n)
        self._n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        self._steps = self._merged_steps()

    def _merged_steps(self) -> list[NDArray[np.int64]]:
        """Rows of each step; small steps run one after the other in a single call."""
        plan = self.problem.plan
        steps = [np.concatenate([rows for _, rows in plan.rows(s)]) for s in range(len(plan.steps))]
        if self._pool is None or max(map(len, steps)) < 2 * _MIN_ROWS_PER_THREAD:
            return [np.concatenate(steps)]
        return steps

    def sweep(self, rest: float = 0.0, then: Callable[[float], float] | None = None) -> float:
        """One pass over all rows but those that last brought less than `rest`.

        Returns the change of the sum over pairs, zero or negative.
        """
        for rows in self._steps:
            if self._pool is None or len(rows) < 2 * _MIN_ROWS_PER_THREAD or len(self._steps) == 1:
                self._replica.update(self._block, rows, self._change, rest)
                continue
            parts = np.array_split(rows, self._n_threads)
            jobs = [self._pool.submit(self._replica.update, self._block, p, self._change, rest)
                    for p in parts]  # fmt: skip
            for job in jobs:
                job.result()
        # One sum per piece, then exactly rounded over pieces: the same bits for any split.
        return math.fsum(self._change[lo:hi].sum() for lo, hi in self.problem.plan.pieces)

    def objective(self) -> tuple[float, float]:
        """(stress, penalty) summed over all pairs and links, each counted once."""

        def piece(bounds: tuple[int, int]) -> tuple[float, float]:
            return self._replica.objective(self._block, *bounds)

        pieces = self.problem.plan.pieces
        sums = list(self._pool.map(piece, pieces) if self._pool else map(piece, pieces))
        return math.fsum(s for s, _ in sums) / 2, math.fsum(p for _, p in sums) / 2

    def masses(self) -> NDArray[np.float32]:
        """The present masses, (n, f), in positions; a view."""
        return self._replica.mass

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

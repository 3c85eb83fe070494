"""Sweeps in one process, over the rows of any backend."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.engine.worker_state import RowState
from evdist.evclus.problem import Problem

__all__ = ["LocalExecutor"]


class LocalExecutor:
    """Runs the sweeps of one problem on a `RowState` that has all its rows."""

    def __init__(self, problem: Problem, state: RowState):
        self.problem = problem
        self._state = state

    def sweep(
        self, skip_below: float = 0.0, next_skip_below: Callable[[float], float] | None = None
    ) -> float:
        """One pass over all rows but those that last brought less than `skip_below`.

        Returns the change of the sum over pairs, zero or negative.
        """
        self._state.update(range(len(self.problem.plan.steps)), skip_below)
        # One sum per piece, then exactly rounded over pieces: the same bits for any split.
        return math.fsum(self._state.changes().values())

    def objective(self) -> tuple[float, float]:
        """(stress, penalty) summed over all pairs and links, each counted once."""
        found = self._state.losses().values()
        return math.fsum(s for s, _ in found) / 2, math.fsum(p for _, p in found) / 2

    def masses(self) -> NDArray[np.float32]:
        """The present masses, (n, f), in positions."""
        return self._state.masses(0, self.problem.n)

    def result(self) -> Any:
        """The same where the backend has them."""
        return self._state.result()

    def close(self) -> None:
        self._state.close()

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

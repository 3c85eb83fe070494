"""Iterative row-wise quadratic programming: sweeps until the objective stands still.

Reference: Li, Li, Denoeux (2018), k-CEVCLUS, algorithm 1 and eq. (21).

Differs from the paper and from R's evclust:

* the pairs are symmetric, so every update lowers the objective, and the value reported is that of
  the masses returned (R adds up each row's residual at the moment of its update);
* the objective is the mean over kept pairs of (kappa - delta)^2, not the sum divided by that of
  delta^2: comparable across n and k. The penalty is multiplied by the mean of delta^2 instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.engine import loop
from evdist.engine.loop import Descent, Solution
from evdist.engine.plan import CYCLE
from evdist.engine.progress import Report

__all__ = ["Executor", "Stop", "Sweeps", "minimise"]


#: A row is skipped when it last gained less than this share of `tol` times the mean objective of a
#: row. At one, a million objects ended 2.4e-6 of the objective higher than at a tenth (tol = 1e-5).
REST = 1.0


class Executor(Protocol):
    """Where the sweeps run: in this process, or on the workers of a cluster."""

    problem: Any

    def sweep(
        self, skip_below: float = 0.0, next_skip_below: Callable[[float], float] | None = None
    ) -> float:
        """One pass over all rows but those that last brought less than `skip_below`.

        Returns the change of the sum over pairs, zero or negative. Where another sweep is sure to
        follow, `next_skip_below` gives its `skip_below` from what this one returns.
        """
        ...

    def objective(self) -> tuple[float, float]: ...

    def masses(self) -> NDArray[np.float32]: ...

    def result(self) -> Any:
        """The masses where the backend has them, in positions."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Stop:
    """Running mean of the relative change of the objective, eq. (21): stop below `tol`."""

    tol: float
    max_iter: int

    def update(self, error: float, before: float, now: float) -> float:
        """e_t = e_{t-1} / 2 + |J_t - J_{t-1}| / (2 J_{t-1}), eq. (21b); e_0 = 1."""
        return 0.5 * error + 0.5 * self.change(before, now)

    @staticmethod
    def change(before: float, now: float) -> float:
        """|J_t - J_{t-1}| / J_{t-1}."""
        return abs(now - before) / before if before > 0 else 0.0

    def sweeps_left(self, error: float) -> int:
        """A guess from below: the running mean at best halves with every sweep."""
        known = self.tol > 0 and error > self.tol
        return max(0, math.ceil(math.log2(error / self.tol))) if known else 0


@dataclass
class Sweeps:
    """The descent of an executor, as `engine.loop.minimise` runs it; the masses stay there.

    `scale` turns sums over pairs into the objective: one over the total weight of the pairs.

    Near the end most rows bring nothing. Between two full sweeps, CYCLE apart, a row is skipped
    whose last gain was so small that, were all rows like it, the stopping rule would end the fit.
    But skipping must not end one whose last full sweep brought more.
    """

    executor: Executor
    scale: float
    stop: Stop
    #: The sweep that this run began with, and what its last full sweep brought.
    _first: int | None = field(default=None, init=False)
    _full: float = field(default=0.0, init=False)

    @property
    def rows(self) -> int:
        return self.executor.problem.n

    def init(self) -> Descent[None]:
        return Descent(None, (self.objective(),))

    def objective(self) -> float:
        return sum(self.executor.objective()) * self.scale

    def step(self, now: Descent[None]) -> Descent[None]:
        stop, sweep, before = self.stop, now.steps, now.objective
        self._first = sweep if self._first is None else self._first
        every_row = sweep % CYCLE == 0 or sweep == self._first
        threshold = partial(_threshold, before, self.scale, REST * stop.tol, self.rows)
        # The error at best halves. Between cycles the masses are asked for.
        sure = 0.5 * now.error >= stop.tol or (self._full >= stop.tol and not every_row)
        sure &= sweep + 1 < stop.max_iter and (sweep + 1) % CYCLE != 0
        change = self.executor.sweep(
            0.0 if every_row else threshold(0.0), threshold if sure else None
        )
        after = max(before + change * self.scale, 0.0)
        error = stop.update(now.error, before, after)
        if every_row:
            self._full = stop.change(before, after)
        elif self._full >= stop.tol:
            error = max(error, stop.tol)
        return now.follow(None, after, error)

    def done(self, now: Descent[None]) -> bool:
        return now.error < self.stop.tol

    def steps_left(self, now: Descent[None]) -> int:
        return self.stop.sweeps_left(now.error)


def _threshold(before: float, scale: float, share: float, n: int, change: float) -> float:
    """`share` of the mean objective of a row, where a sweep has changed the sum by `change`."""
    return share * max(before + change * scale, 0.0) / (scale * n)


def minimise(
    executor: Executor,
    scale: float,
    stop: Stop,
    *,
    stage: str = "fit",
    report: Report = None,
    begin: Descent[None] | None = None,
    checkpoint: Callable[[Descent[None], bool], None] | None = None,
) -> Solution[Any]:
    """Sweep to the end; the masses are in positions, and the final objective is theirs."""
    sweeps = Sweeps(executor, scale, stop)
    found = loop.minimise(
        sweeps, stop.max_iter, stage=stage, report=report, begin=begin, checkpoint=checkpoint
    )
    history = [*found.history[:-1], min(sweeps.objective(), found.history[-1])]
    return replace(found, value=executor.result(), history=history)

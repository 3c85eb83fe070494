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
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.engine.progress import Progress
from evdist.evclus.problem import CYCLE, Problem

__all__ = ["Executor", "Solution", "Stop", "iterate", "minimise"]


#: A row rests when it last gained less than this share of `tol` times the mean objective of a row.
#: At one, a million objects ended 2.4e-6 of the objective higher than at a tenth; tol was 1e-5.
REST = 1.0


class Executor(Protocol):
    """Where the sweeps run: threads of this process, or the workers of a cluster."""

    problem: Problem

    def sweep(self, rest: float = 0.0, then: Callable[[float], float] | None = None) -> float:
        """`then` gives the rest of a sweep that is sure to follow, from what this one returns."""
        ...

    def objective(self) -> tuple[float, float]: ...

    def masses(self) -> NDArray[np.float32]: ...

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


@dataclass
class Solution:
    """Masses in positions, with how they came about."""

    mass: NDArray[np.float32]
    objective: float
    history: list[float]
    converged: bool
    seconds: float = 0.0
    stats: dict[str, float] = field(default_factory=dict)

    @property
    def n_iter(self) -> int:
        return len(self.history) - 1


@dataclass
class State:
    """What a checkpoint must hold, beside the masses, to go on with the same bits."""

    sweep: int
    error: float
    history: list[float]


def iterate(
    executor: Executor, scale: float, stop: Stop, state: State | None = None
) -> Iterator[State]:
    """Sweep until `stop`; yields the state after each sweep (and the first, before any).

    `scale` turns sums over pairs into the objective: one over the total weight of the pairs.

    Near the end most rows bring nothing. Between two full sweeps, CYCLE apart, a row rests whose
    last gain was so small that, were all rows like it, the stopping rule would end the fit. But
    rest must not end one whose last full sweep brought more.
    """
    if state is None:
        state = State(0, 1.0, [sum(executor.objective()) * scale])
        yield state
    first, full = state.sweep, 0.0
    while state.sweep < stop.max_iter and state.error >= stop.tol:
        before = state.history[-1]
        every_row = state.sweep % CYCLE == 0 or state.sweep == first
        threshold = partial(_threshold, before, scale, REST * stop.tol, executor.problem.n)
        # The error at best halves. Between cycles the masses are asked for.
        sure = 0.5 * state.error >= stop.tol or (full >= stop.tol and not every_row)
        sure &= state.sweep + 1 < stop.max_iter and (state.sweep + 1) % CYCLE != 0
        fall = executor.sweep(0.0 if every_row else threshold(0.0), threshold if sure else None)
        now = max(before + fall * scale, 0.0)
        error = stop.update(state.error, before, now)
        if every_row:
            full = stop.change(before, now)
        elif full >= stop.tol:
            error = max(error, stop.tol)
        state = State(state.sweep + 1, error, [*state.history, now])
        yield state


def _threshold(before: float, scale: float, share: float, n: int, fall: float) -> float:
    """`share` of the mean objective of a row, where a sweep has changed the sum by `fall`."""
    return share * max(before + fall * scale, 0.0) / (scale * n)


def minimise(
    executor: Executor,
    scale: float,
    stop: Stop,
    *,
    stage: str = "fit",
    report: Callable[[Progress], None] | None = None,
    state: State | None = None,
    checkpoint: Callable[[State, bool], None] | None = None,
) -> Solution:
    """Run `iterate` to its end; the final objective is computed afresh from the masses.

    `checkpoint(state, last)` is called before the first and after every sweep, and once more,
    with `last` true, at the end.
    """
    began = time.perf_counter()
    done = 0 if state is None else state.sweep
    rows = executor.problem.n
    for now in iterate(executor, scale, stop, state):
        state = now
        if checkpoint is not None:
            checkpoint(state, False)
        if report is not None and state.sweep > done:
            seconds = (time.perf_counter() - began) / (state.sweep - done)
            left = min(stop.max_iter - state.sweep, _sweeps_left(state.error, stop.tol))
            change = state.history[-1] - state.history[-2]
            report(
                Progress(stage, state.sweep, stop.max_iter, state.history[-1], change,
                         rows / seconds, left * seconds)
            )  # fmt: skip
    assert state is not None
    if checkpoint is not None:
        checkpoint(state, True)
    history = [*state.history[:-1], min(sum(executor.objective()) * scale, state.history[-1])]
    return Solution(
        executor.masses(),
        history[-1],
        history,
        state.error < stop.tol,
        time.perf_counter() - began,
    )


def _sweeps_left(error: float, tol: float) -> int:
    """A guess from below: the running mean at best halves with every sweep."""
    return max(0, math.ceil(math.log2(error / tol))) if tol > 0 and error > tol else 0

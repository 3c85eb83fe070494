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
from evdist.engine.worker_state import RowState
from evdist.evclus.problem import Problem

#: A row is skipped when it last gained less than this share of `tol` times the mean objective of a
#: row. At one, a million objects ended 2.4e-6 of the objective higher than at a tenth (tol = 1e-5).
SKIP_SHARE = 1.0
#: tol = "auto". From MANY_OBJECTS on, a fit that is not from random masses ends with the sweep,
#: MANY_LEAST or later, that lowers the objective by less than MANY_TOL: what follows fits the drawn
#: pairs better, and others not (docs/decisions/stopping.md).
USUAL_TOL = 1e-5
MANY_OBJECTS, MANY_TOL, MANY_LEAST = 50_000, 5e-4, 3
#: SKIP_SHARE of such a fit. What all skipped rows together might bring counts against the rule.
MANY_SKIP = 0.125
#: `Problem.promise` of such a fit. Clusters that promise less lower the objective, but hardly the
#: stress on pairs that were not drawn (docs/decisions/stopping.md, "Lists").
MANY_PROMISE = 3e-4


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

    def objective(self) -> tuple[float, float]:
        """(stress, penalty) summed over all pairs and links, each counted once."""
        ...

    def result(self) -> Any:
        """The present masses where the backend has them."""
        ...

    def close(self) -> None: ...


class WholeExecutor(Executor, Protocol):
    """An executor that can bring all masses to one place; in partitions they never are."""

    def masses(self) -> NDArray[np.float32]:
        """The present masses, (n, f), in positions."""
        ...


@dataclass(frozen=True)
class Stop:
    """Running mean of the relative change of the objective, eq. (21): stop below `tol`.

    `memory` is the weight of the mean so far, 1/2 in the paper. With 0 the last change decides,
    after `least` sweeps that visit every row.
    """

    tol: float
    max_iter: int
    memory: float = 0.5
    least: int = 1

    @classmethod
    def auto(cls, n: int, placed: bool, max_iter: int) -> Stop:
        """The paper's rule, or for many objects that of sampled pairs.

        The latter where the first masses have `placed` the objects: those of landmarks, of groups
        or of the user. From random masses the objective may at first stand nearly still.
        """
        if placed and n >= MANY_OBJECTS:
            return cls(MANY_TOL, max_iter, memory=0.0, least=MANY_LEAST)
        return cls(USUAL_TOL, max_iter)

    @property
    def promise(self) -> float:
        """`Problem.promise` of a fit that ends by this rule."""
        return MANY_PROMISE if self.memory == 0 else 0.0

    def update(self, error: float, before: float, now: float) -> float:
        """e_t = e_{t-1} / 2 + |J_t - J_{t-1}| / (2 J_{t-1}), eq. (21b); e_0 = 1."""
        return self.memory * error + (1.0 - self.memory) * self.change(before, now)

    @staticmethod
    def change(before: float, now: float) -> float:
        """|J_t - J_{t-1}| / J_{t-1}."""
        return abs(now - before) / before if before > 0 else 0.0

    def sweeps_left(self, error: float) -> int:
        """A guess from below: the running mean at best halves with every sweep."""
        known = error > self.tol > 0 and self.memory > 0
        return math.ceil(math.log2(error / self.tol) / -math.log2(self.memory)) if known else 0


@dataclass
class Sweeps:
    """The descent of an executor, as `engine.loop.minimise` runs it; the masses stay there.

    `scale` turns sums over pairs into the objective: one over the total weight of the pairs.

    Near the end most rows bring nothing. Between two full sweeps, CYCLE apart, a row is skipped
    whose last gain was so small that, were all rows like it, the stopping rule would end the fit.
    But skipping must not end one whose last full sweep brought more; or, where the last change
    decides, one whose skipped rows might bring more.

    Rows that are lists look at clusters that they do not name in full sweeps alone. So where the
    last change decides, a fit of lists ends with its second full sweep or later.
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
        least = CYCLE + 1 if self._looks_later else stop.least
        self._first = sweep if self._first is None else self._first
        full = self._visits_every_row(sweep)
        held = stop.memory > 0 and self._full >= stop.tol and not full
        # The error at best halves. Between cycles the masses are asked for.
        sure = stop.memory * now.error >= stop.tol or sweep + 1 < least or held
        sure &= sweep + 1 < stop.max_iter and (sweep + 1) % CYCLE != 0
        change = self.executor.sweep(
            self._threshold(sweep, before)(0.0),
            self._threshold(sweep + 1, before) if sure else None,
        )
        after = max(before + change * self.scale, 0.0)
        error = stop.update(now.error, before, after)
        if full:
            self._full = stop.change(before, after)
        elif stop.memory == 0:
            # The rows that were skipped might have brought so much.
            error += MANY_SKIP * stop.tol
        if sweep + 1 < least or held:
            error = max(error, stop.tol)
        return now.follow(None, after, error)

    @property
    def _looks_later(self) -> bool:
        """Whether only full sweeps look at all clusters, and the rule is that of many objects."""
        return self.stop.memory == 0 and self.executor.problem.sparse

    def _visits_every_row(self, sweep: int) -> bool:
        among_the_first = sweep < self.stop.least and not self._looks_later
        return sweep % CYCLE == 0 or sweep == self._first or among_the_first

    def _threshold(self, sweep: int, before: float) -> Callable[[float], float]:
        """Gains below which a sweep skips rows, where the one before it changes the sum by so much.

        A share of the mean objective of a row; `before` is the objective.
        """
        stop, scale = self.stop, self.scale
        share = stop.tol * (SKIP_SHARE if stop.memory > 0 else MANY_SKIP)
        if self._visits_every_row(sweep):
            share = 0.0
        return partial(_threshold, before, scale, share, self.rows)

    def done(self, now: Descent[None]) -> bool:
        return now.error < self.stop.tol

    def steps_left(self, now: Descent[None]) -> int:
        return self.stop.sweeps_left(now.error)

    def with_masses(self, found: Solution[None]) -> Solution[Any]:
        """The masses that were found, in positions; the final objective is computed from them.

        But not where the last change decides: over the few sweeps of such a fit the sum of exact
        changes strays by 1e-12 of the objective, and one more pass over all pairs costs a sweep.
        """
        history = found.history
        if self.stop.memory > 0:
            history = [*history[:-1], min(self.objective(), history[-1])]
        return replace(found, value=self.executor.result(), history=history)


def _threshold(before: float, scale: float, share: float, n: int, change: float) -> float:
    """`share` of the mean objective of a row, where a sweep has changed the sum by `change`."""
    return share * max(before + change * scale, 0.0) / (scale * n)


def minimise(executor: Executor, scale: float, stop: Stop, **how: Any) -> Solution[Any]:
    """Sweep to the end; `how` is as for `engine.loop.minimise`."""
    sweeps = Sweeps(executor, scale, stop)
    return sweeps.with_masses(loop.minimise(sweeps, stop.max_iter, **how))


class LocalExecutor:
    """Runs the sweeps of one problem in this process, on a `RowState` that has all its rows."""

    def __init__(self, problem: Problem, state: RowState):
        self.problem = problem
        self._state = state

    def sweep(
        self, skip_below: float = 0.0, next_skip_below: Callable[[float], float] | None = None
    ) -> float:
        self._state.update(range(len(self.problem.plan.steps)), skip_below)
        # One sum per piece, then exactly rounded over pieces: the same bits for any split.
        return math.fsum(self._state.changes().values())

    def objective(self) -> tuple[float, float]:
        found = self._state.losses().values()
        return math.fsum(s for s, _ in found) / 2, math.fsum(p for _, p in found) / 2

    def masses(self) -> NDArray[np.float32]:
        return self._state.masses(0, self.problem.n)

    def result(self) -> Any:
        return self._state.result()

    def close(self) -> None:
        self._state.close()

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

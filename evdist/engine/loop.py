"""The one loop of all descents: a solver says how to begin, how to step and when to stop.

An algorithm is a `Solver` over its own state; `minimise` runs it, reports each step, calls the
checkpoint and returns a `Solution`. The objective never rises: a solver that cannot lower it
returns the state it was given, with the objective repeated in the history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from evdist.engine.progress import Clock, Report

V = TypeVar("V")


@dataclass(frozen=True)
class Descent(Generic[V]):
    """Where a descent is: what it has found, and the objective before the first and after each
    step.

    `error` is what the solver's stopping rule remembers from step to step; solvers without such a
    memory leave it at one.
    """

    value: V
    history: tuple[float, ...]
    error: float = 1.0

    @property
    def steps(self) -> int:
        return len(self.history) - 1

    @property
    def objective(self) -> float:
        return self.history[-1]

    def follow(self, value: V, objective: float, error: float = 1.0) -> Descent[V]:
        """The descent one step later."""
        return Descent(value, (*self.history, objective), error)

    def follow_if_lower(self, value: V, objective: float) -> Descent[V]:
        """The descent one step later, where a step that would raise the objective is not taken."""
        if objective <= self.objective:
            return self.follow(value, objective)
        return self.follow(self.value, self.objective)


@dataclass(frozen=True)
class Solution(Generic[V]):
    """What a descent has found, and how it came about."""

    value: V
    history: list[float]
    converged: bool
    seconds: float = 0.0

    @property
    def objective(self) -> float:
        return self.history[-1]

    @property
    def n_iter(self) -> int:
        return len(self.history) - 1


class Solver(Protocol[V]):
    """One algorithm: arrays and parameters inside, one step at a time outside."""

    @property
    def rows(self) -> int:
        """Objects that a step visits, for the speed that is reported."""
        ...

    def init(self) -> Descent[V]:
        """Where the descent begins."""
        ...

    def step(self, now: Descent[V]) -> Descent[V]:
        """One step further; the objective is not higher."""
        ...

    def done(self, now: Descent[V]) -> bool:
        """Whether the stopping rule holds after a step."""
        ...

    def steps_left(self, now: Descent[V]) -> int | None:
        """At least so many steps will follow, as far as is known; None where nothing is known."""
        return None


def relative_fall(now: Descent[V], tol: float) -> bool:
    """Whether the last step lowered J by at most `tol` of itself: the rule of the ECM family."""
    if now.steps == 0:
        return False
    before, after = now.history[-2:]
    return before - after <= tol * before


def minimise(
    solver: Solver[V],
    max_iter: int,
    *,
    stage: str = "fit",
    report: Report = None,
    begin: Descent[V] | None = None,
    checkpoint: Callable[[Descent[V], bool], None] | None = None,
) -> Solution[V]:
    """Step until the solver is done, at most `max_iter` times.

    Parameters
    ----------
    begin : Descent
        Where an earlier run stopped; by default `solver.init()`.
    checkpoint : callable
        `checkpoint(now, last)` is called before the first and after every step, and once more,
        with `last` true, at the end.
    """
    now = solver.init() if begin is None else begin
    clock = Clock(report, stage, max_iter, rows=solver.rows, already=now.steps)
    converged = now.steps > 0 and solver.done(now)
    if checkpoint is not None and begin is None:
        checkpoint(now, False)
    while now.steps < max_iter and not converged:
        now = solver.step(now)
        converged = solver.done(now)
        if checkpoint is not None:
            checkpoint(now, False)
        before, after = now.history[-2:]
        left = 0 if converged else solver.steps_left(now)
        clock.tell(now.steps, after, after - before, left=left)
    if checkpoint is not None:
        checkpoint(now, True)
    return Solution(now.value, list(now.history), converged, clock.seconds)


def best_of(
    solvers: Sequence[Solver[V]], max_iter: int, *, stage: str = "fit", report: Report = None
) -> Solution[V]:
    """The lowest of several descents, the first of equal ones.

    The stages of several are "start 1 of 5", "start 2 of 5", ...; that of a single one is `stage`.
    """
    n = len(solvers)
    stages = [stage] if n == 1 else [f"start {r + 1} of {n}" for r in range(n)]
    found = (
        minimise(solver, max_iter, stage=name, report=report)
        for solver, name in zip(solvers, stages, strict=True)
    )
    return min(found, key=lambda solution: solution.objective)

"""The loop around the sweeps: when it stops, what it reports, how it resumes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from evdist.engine.loop import Descent
from evdist.engine.progress import Progress
from evdist.evclus.irqp import Stop, Sweeps, minimise


class Scripted:
    """An executor whose objective follows a given list; masses hold the number of sweeps."""

    def __init__(self, values: list[float], done: int = 0):
        self.values, self.at = values, done
        self.problem = SimpleNamespace(n=7, sparse=False)

    def sweep(
        self, skip_below: float = 0.0, next_skip_below: Callable[[float], float] | None = None
    ) -> float:
        self.at += 1
        return self.values[self.at] - self.values[self.at - 1]

    def objective(self) -> tuple[float, float]:
        return 0.75 * self.values[self.at], 0.25 * self.values[self.at]

    def masses(self) -> np.ndarray:
        return np.full((7, 1), self.at, np.float32)

    def result(self) -> np.ndarray:
        return self.masses()

    def close(self) -> None: ...


def test_the_stop_is_the_running_mean_of_equation_21():
    stop, error = Stop(tol=1e-3, max_iter=9), 1.0
    for before, now in [(8.0, 4.0), (4.0, 3.0), (3.0, 3.0)]:
        error = stop.update(error, before, now)
    # e = ((1/2 + 1/4)/2 + 1/8)/2 + 0
    assert error == pytest.approx(((1 / 2 + 1 / 4) / 2 + 1 / 8) / 2)


def test_an_objective_of_zero_is_no_division():
    assert Stop(1e-3, 9).update(0.5, 0.0, 0.0) == 0.25


def test_a_constant_objective_stops_after_as_many_sweeps_as_the_mean_needs():
    solution = minimise(Scripted([2.0] * 99), 1.0, Stop(1e-3, 98))
    assert solution.converged
    assert solution.n_iter == 10  # 2**-10 < 1e-3
    assert solution.history == [2.0] * 11


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=20), st.floats(0.1, 10))
def test_history_is_the_scaled_objective(falls, scale):
    values = (10 * np.cumprod([1.0, *falls])).tolist()
    solution = minimise(Scripted(values), scale, Stop(0.0, len(falls)))
    np.testing.assert_allclose(solution.history, scale * np.array(values), **ROUNDING)
    assert solution.objective == solution.history[-1]
    assert not solution.converged
    assert (solution.value == len(falls)).all()


def test_progress_is_told_after_every_sweep_and_checkpoints_before_the_first_too():
    told: list[Progress] = []
    kept: list[tuple[int, bool]] = []
    values = [8.0, 4.0, 2.0, 1.0]
    minimise(
        Scripted(values), 0.5, Stop(1e-9, 3),
        stage="test", report=told.append, checkpoint=lambda s, last: kept.append((s.steps, last)),
    )  # fmt: skip
    assert [(p.stage, p.sweep, p.max_sweeps) for p in told] == [("test", s, 3) for s in (1, 2, 3)]
    assert [p.objective for p in told] == [2.0, 1.0, 0.5]
    assert [p.change for p in told] == [-2.0, -1.0, -0.5]
    assert kept == [(0, False), (1, False), (2, False), (3, False), (3, True)]


def test_a_state_goes_on_with_the_same_numbers():
    values = [8.0, 4.0, 3.5, 3.4, 3.39]
    sweeps = Sweeps(Scripted(values), 1.0, Stop(1e-9, 4))
    states = [sweeps.init()]
    for _ in range(4):
        states.append(sweeps.step(states[-1]))
    for begin in states[:-1]:
        resumed: list[Descent] = []
        minimise(
            Scripted(values, done=begin.steps), 1.0, Stop(1e-9, 4), begin=begin,
            checkpoint=lambda now, last, seen=resumed: last or seen.append(now),
        )  # fmt: skip
        assert resumed == states[begin.steps + 1 :]


def test_a_finished_state_sweeps_no_more():
    state = Descent(None, (4.0, 2.0, 1.0, 1.0), 1e-6)
    executor = Scripted([4.0, 2.0, 1.0, 1.0], done=3)
    solution = minimise(executor, 1.0, Stop(1e-5, 99), begin=state)
    assert solution.n_iter == 3
    assert executor.at == 3


def test_rounding_never_makes_a_rise_or_a_negative_objective():
    """The sum of many falls may pass what is computed afresh; neither may show."""
    values = [1.0, 1e-20, 0.0, 0.0]
    executor = Scripted(values)
    executor.sweep = lambda skip=0.0, following=None: -0.6  # type: ignore[method-assign]
    solution = minimise(executor, 1.0, Stop(1e-9, 3))
    assert min(solution.history) >= 0
    assert (np.diff(solution.history) <= 0).all()

"""Rows that bring nothing may rest between two full sweeps, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.engine.plan import CYCLE, whole_cycles
from evdist.evclus import irqp
from evdist.evclus.irqp import LocalExecutor
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sampling import draw_layout, random_dissimilarities, sample_pairs


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(1500, centers=4, cluster_std=1.5, random_state=3)[0]


def executor(X: np.ndarray) -> LocalExecutor:
    source, layout = AttributeSource.of(X, "euclidean"), draw_layout(len(X), 40, 0)
    pairs = sample_pairs(source, layout, float(np.quantile(random_dissimilarities(source, 0), 0.6)))
    sets = FocalSets.simple(4)
    mass = np.random.default_rng(0).dirichlet(np.ones(len(sets)), len(X))
    return NumbaRows().executor(Problem(sets, pairs, Plan.of(layout.bounds)), mass)


def test_rows_that_gained_less_are_left_alone_and_the_others_are_not(X):
    run = executor(X)
    for _ in range(4):
        run.sweep()
    gains = -run._state._change[0].copy()
    before = run.masses().copy()
    threshold = float(np.median(gains))
    fall = run.sweep(threshold)
    moved = (run.masses() != before).any(axis=1)
    assert not moved[gains < threshold].any()
    assert moved[gains >= threshold].mean() > 0.9
    assert fall < 0


def test_without_a_threshold_every_row_is_visited(X):
    run = executor(X)
    run.sweep(np.inf)  # nothing has gained anything yet: all are skipped
    assert run.sweep(np.inf) == 0.0
    assert run.sweep() < 0


def test_the_answer_is_that_of_full_sweeps_up_to_the_tolerance(X, monkeypatch):
    lazy = EVCLUS(4, metric="euclidean", d0="q0.6", random_state=0).fit(X)
    monkeypatch.setattr(irqp, "SKIP_SHARE", 0.0)
    full = EVCLUS(4, metric="euclidean", d0="q0.6", random_state=0).fit(X)
    np.testing.assert_allclose(lazy.objective_, full.objective_, rtol=1e-5)
    assert adjusted_rand_score(lazy.labels_, full.labels_) > 0.99
    assert (np.diff(lazy.history_) <= 0).all()


class _Script:
    """An executor that brings given relative changes: `full` in full sweeps, none in others."""

    def __init__(self, problem: Problem, full: list[float]):
        self.problem, self.full, self.J = problem, full, 1.0

    def objective(self) -> tuple[float, float]:
        return self.J, 0.0

    def sweep(
        self, skip_below: float = 0.0, next_skip_below: Callable[[float], float] | None = None
    ) -> float:
        fall = self.J * self.full.pop(0) if skip_below == 0.0 else 0.0
        self.J -= fall
        return -fall

    def masses(self) -> np.ndarray:
        return np.zeros((1, 1), np.float32)

    def result(self) -> np.ndarray:
        return self.masses()

    def close(self) -> None:
        pass


def test_rest_does_not_end_a_fit_whose_full_sweeps_still_gain(X):
    tol = 1e-3
    script = _Script(executor(X).problem, [0.5, 0.1, *[1.5 * tol] * 5, *[0.5 * tol] * 5])
    solution = irqp.minimise(script, 1.0, irqp.Stop(tol, 100))
    assert solution.converged
    # The running mean of eq. (21) alone would have fallen below tol between two full sweeps.
    assert 7 * CYCLE < solution.n_iter <= 8 * CYCLE


class _Announced(_Script):
    """Brings relative changes in turn, and holds `Sweeps` to what it says of the next sweep."""

    def __init__(self, problem: Problem, changes: list[float]):
        super().__init__(problem, changes)
        self.expected: float | None = None
        self.announced: list[bool] = []

    def sweep(
        self, skip_below: float = 0.0, next_skip_below: Callable[[float], float] | None = None
    ) -> float:
        assert self.expected is None or skip_below == self.expected
        fall = -super().sweep(0.0)
        self.expected = None if next_skip_below is None else next_skip_below(-fall)
        self.announced.append(next_skip_below is not None)
        return -fall


@given(
    st.lists(st.floats(0, 0.5), min_size=60, max_size=60),
    st.sampled_from([0.0, 1e-9, 1e-3, 0.1]),
    st.integers(1, 50),
    st.floats(0.1, 10),
)
def test_a_sweep_that_was_announced_follows_with_the_rest_that_was_said(changes, tol, most, scale):
    script = _Announced(cast(Problem, SimpleNamespace(n=100)), changes)
    solution = irqp.minimise(script, scale, irqp.Stop(tol, most))
    assert script.expected is None  # the last one announced nothing
    assert solution.n_iter == len(script.announced)
    # At the end of a cycle masses are kept, so nothing may be under way.
    assert not any(script.announced[CYCLE - 1 :: CYCLE])


def test_nearly_every_sweep_is_announced():
    script = _Announced(cast(Problem, SimpleNamespace(n=100)), [0.1] * 60)
    irqp.minimise(script, 1.0, irqp.Stop(1e-5, 20))
    assert script.announced == [(t + 1) % CYCLE != 0 for t in range(20)]


def test_checkpoints_fall_on_whole_cycles():
    assert [whole_cycles(n) for n in (1, CYCLE, CYCLE + 1)] == [CYCLE, CYCLE, 2 * CYCLE]

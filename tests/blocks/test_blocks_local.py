"""Sweeps on threads: exact changes, and the same bits for any number of them."""

from __future__ import annotations

import os

import numpy as np
import pytest
from blocks.blocks_cases import make_problem

from evdist.evclus.rows.numba import MIN_ROWS_PER_THREAD, NumbaRows
from evdist.kernels.graph import MIN_COLOURS
from evdist.kernels.threads import thread_count

#: Enough rows for the steps to be split.
MANY = 2 * MIN_ROWS_PER_THREAD * MIN_COLOURS + 300


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_links", [0, 40])
def test_a_sweep_returns_the_exact_change(weighted, n_links):
    problem, mass = make_problem(300, weighted=weighted, n_links=n_links)
    with NumbaRows().executor(problem, mass) as executor:
        before = sum(executor.objective())
        for _ in range(5):
            change = executor.sweep()
            now = sum(executor.objective())
            assert change <= 0
            np.testing.assert_allclose(now - before, change, rtol=1e-9, atol=1e-10)
            before = now


@pytest.mark.parametrize(("weighted", "n_links"), [(False, 0), (True, 300)])
def test_threads_change_no_bit(weighted, n_links):
    problem, mass = make_problem(MANY, 6, weighted=weighted, n_links=n_links)
    results = []
    for threads in (1, 2, 3):
        with NumbaRows(threads).executor(problem, mass) as executor:
            changes = [executor.sweep() for _ in range(3)]
            results.append((changes, executor.objective(), executor.masses().tobytes()))
    assert results[0] == results[1] == results[2]


def test_rows_are_updated_as_if_one_after_the_other():
    """Colour by colour is what a plain loop over the rows would do."""
    problem, mass = make_problem(60, 6, n_links=20)
    with NumbaRows().executor(problem, mass) as executor:
        executor.sweep()
        together = executor.masses().copy()
    with NumbaRows().executor(problem, mass) as executor:
        for step in range(len(problem.plan.steps)):
            for _, rows in problem.plan.rows(step):
                for row in rows[::-1]:  # in any order within a step
                    executor._state._update_rows(0, np.array([row]), 0.0)
        np.testing.assert_array_equal(executor.masses(), together)


def test_the_given_masses_are_copied():
    problem, mass = make_problem(50)
    before = mass.copy()
    with NumbaRows().executor(problem, mass) as executor:
        executor.sweep()
    np.testing.assert_array_equal(mass, before)


def test_threads_are_counted_as_scikit_learn_counts_jobs():
    cores = len(os.sched_getaffinity(0))
    assert thread_count(None) == thread_count(-1) == cores
    assert thread_count(3) == 3
    assert thread_count(-2) == max(1, cores - 1)
    assert thread_count(-1000) == 1

"""The rows of a worker, in this process: pieces in runs, rows that moved, sums by piece."""

from __future__ import annotations

import math

import numpy as np
import pytest
from blocks.blocks_cases import make_problem

from evdist.engine import plan as plan_module
from evdist.evclus.rows import numba as numba_module
from evdist.evclus.rows.numba import NumbaRows, _runs


def test_consecutive_pieces_make_a_run_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(numba_module, "RUN_ROWS", 25)
    assert _runs([(0, 10), (10, 20), (20, 30), (40, 50), (50, 90)]) == [
        (0, 20), (20, 30), (40, 50), (50, 90),
    ]  # fmt: skip
    assert _runs([]) == []


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("run_rows", [30, 130, 10**6])
def test_states_that_tell_each_other_what_moved_are_one_process(monkeypatch, threads, run_rows):
    monkeypatch.setattr(plan_module, "PIECE_ROWS", 40)
    monkeypatch.setattr(numba_module, "RUN_ROWS", run_rows)
    problem, mass = make_problem(500, weighted=True, n_links=30)
    pieces = range(len(problem.plan.pieces))
    parts = (pieces[::3], [q for q in pieces if q % 3])
    states = [NumbaRows(threads).state(problem, mass, part) for part in parts]
    with NumbaRows().executor(problem, mass) as here:
        for skip in (0.0, 1e-4, 0.0):
            fall = here.sweep(skip)
            for step in range(len(problem.plan.steps)):
                for state in states:
                    state.update([step], skip)
                news = [state.moved(step) for state in states]
                rows = sum(len(r) for _, r in problem.plan.rows(step))
                assert sum(count for *_, count in news) == rows
                for state in states:
                    for moved, new, _ in news:
                        state.patch(moved, new)
            changes = {q: v for state in states for q, v in state.changes().items()}
            assert math.fsum(changes[q] for q in pieces) == fall
            for state in states:
                np.testing.assert_array_equal(state.masses(0, problem.n), here.masses())
        sums = {q: v for state in states for q, v in state.losses().items()}
        assert tuple(math.fsum(sums[q][i] for q in pieces) / 2 for i in (0, 1)) == here.objective()

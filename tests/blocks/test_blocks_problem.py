"""The order of the work: pieces, steps, and rows that must wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evdist.belief import FocalSets
from evdist.engine.cluster import _pieces_of_workers, _runs_of_steps
from evdist.engine.plan import PIECE_ROWS
from evdist.evclus.problem import MemoryPairs, Plan, conflict_projection


@st.composite
def plans(draw: st.DrawFn) -> tuple[np.ndarray, list[np.ndarray], Plan]:
    sizes = draw(st.lists(st.integers(1, 3 * PIECE_ROWS), min_size=1, max_size=6))
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    rows = draw(st.sets(st.integers(0, int(bounds[-1]) - 1), max_size=12))
    chosen = np.array(sorted(rows), np.int64)
    late = [part for part in np.array_split(chosen, 3) if len(part)]
    return bounds, late, Plan.of(bounds, late)


@given(plans())
def test_pieces_cut_every_colour_into_runs_of_bounded_length(drawn):
    bounds, _, plan = drawn
    cuts = [0, *(hi for _, hi in plan.pieces)]
    assert [lo for lo, _ in plan.pieces] == cuts[:-1]
    assert set(bounds) <= set(cuts)
    assert all(0 < hi - lo <= PIECE_ROWS for lo, hi in plan.pieces)


@given(plans())
def test_every_row_is_updated_once_in_a_sweep(drawn):
    bounds, late, plan = drawn
    rows = np.concatenate([r for s in range(len(plan.steps)) for _, r in plan.rows(s)])
    np.testing.assert_array_equal(np.sort(rows), np.arange(bounds[-1]))
    for group, step in zip(late, range(len(bounds) - 1, len(plan.steps)), strict=True):
        np.testing.assert_array_equal(np.concatenate([r for _, r in plan.rows(step)]), group)


@given(plans(), st.integers(1, 4))
def test_workers_split_a_step_without_overlap(drawn, workers):
    _, _, plan = drawn
    mine = [frozenset(range(w, len(plan.pieces), workers)) for w in range(workers)]
    for step in range(len(plan.steps)):
        whole = dict(plan.rows(step))
        parts = [dict(plan.rows(step, some)) for some in mine]
        assert sorted(q for part in parts for q in part) == sorted(whole)
        for part in parts:
            for q, rows in part.items():
                np.testing.assert_array_equal(rows, whole[q])
                lo, hi = plan.pieces[q]
                assert ((rows >= lo) & (rows < hi)).all()


class Shared(NamedTuple):
    """As much of a problem as sharing it out needs."""

    plan: Plan


@given(plans(), st.integers(1, 4))
def test_only_steps_of_one_worker_are_one_task(drawn, workers):
    """Else it would not see what the others move in between."""
    _, _, plan = drawn
    owned = _pieces_of_workers(Shared(plan), [1] * workers)
    runs = _runs_of_steps(plan, owned)
    assert [step for run in runs for step in run] == list(range(len(plan.steps)))
    for run in (run for run in runs if len(run) > 1):
        touched = {q for step in run for q, _ in plan.steps[step]}
        assert any(touched <= set(pieces) for pieces in owned)


@pytest.mark.parametrize(("n", "tasks"), [(300, 1), (900, 2)])
def test_pairs_of_all_objects_are_few_tasks(n, tasks):
    plan = Plan.of(np.arange(n + 1))
    owned = _pieces_of_workers(Shared(plan), [1, 1])
    assert len(_runs_of_steps(plan, owned)) == tasks


def test_pieces_come_from_n_alone():
    """Not from threads or workers: sums over pieces then have the same bits everywhere."""
    assert Plan.of([0, 5_000]).pieces == ((0, 1666), (1666, 3333), (3333, 5000))


def test_a_block_of_pairs_is_a_view():
    pairs = MemoryPairs(
        first=np.array([0, 2, 5]),
        degree=np.array([2, 3, 1]),
        partner=np.array([1, 2, 0, 2, 1, 0], np.uint32),
        delta=np.arange(6, dtype=np.float32),
    )
    block = pairs.block(1, 3)
    assert block.row0 == 1
    assert block.first.tolist() == [0, 3]
    assert block.partner.tolist() == [0, 2, 1, 0]
    assert np.shares_memory(block.delta, pairs.delta)
    assert pairs.block(0, 3).delta.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("sets", [FocalSets.simple(2), FocalSets.full(3), FocalSets.pairs(7)])
def test_the_projection_is_the_conflict_matrix(sets):
    P, f = conflict_projection(sets), len(sets)
    np.testing.assert_array_equal(P[0, :, :f], sets.C)
    assert not P[0, :, f:].any()

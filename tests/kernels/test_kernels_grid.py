"""Masses on a grid: whole units that sum to one, and conflicts that are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.kernel_reference import FAMILIES, GRID, conflict_table, make_case, units
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.kernels.grid import project_rows, project_some, quantise
from evdist.kernels.vector import aligned_zeros

every_family = pytest.mark.parametrize("focal", FAMILIES.values(), ids=FAMILIES.keys())


@st.composite
def near_masses(draw: st.DrawFn) -> NDArray[np.float64]:
    """Masses of any spread, off the grid, from vertices to numbers far below one unit."""
    f = draw(st.integers(1, 40))
    powers = draw(st.lists(st.floats(-40, 0), min_size=f, max_size=f))
    m = np.exp2(np.array(powers))
    m[np.array(draw(st.lists(st.booleans(), min_size=f, max_size=f)))] = 0
    m[draw(st.integers(0, f - 1))] += 1e-3
    return m / m.sum()


@given(near_masses())
def test_quantised_masses_are_whole_units_that_sum_to_one(m):
    before, f = m.copy(), len(m)
    quantise(m, f)
    assert units(m).sum() == GRID
    assert m.sum() == 1.0
    assert (m >= 0).all()
    assert np.abs(m - before).max() <= f / GRID
    # All but one, which takes what is left, are the nearest.
    assert (np.sort(np.abs(m - before))[:-1] <= 0.5 / GRID + 1e-16).all()
    assert (m.astype(np.float32) == m).all()


@given(near_masses())
def test_quantising_again_changes_nothing(m):
    quantise(m, len(m))
    again = m.copy()
    quantise(again, len(m))
    np.testing.assert_array_equal(again, m)


@every_family
def test_tables_hold_the_exact_products_with_C(focal):
    case = make_case(focal)
    expected = units(case.M) @ focal.C.astype(np.int64)
    found = case.table.astype(np.float64) * GRID
    np.testing.assert_array_equal(found[:, : len(focal)], expected)
    assert not case.table[:, len(focal) :].any()


@every_family
def test_conflicts_are_the_same_bits_from_both_sides(focal):
    case = make_case(focal)
    kappa = np.array(
        [[m.astype(float) @ row[: len(focal)].astype(float) for row in case.table] for m in case.M]
    )
    np.testing.assert_array_equal(kappa, kappa.T)
    exact = units(case.M) @ focal.C.astype(np.int64) @ units(case.M).T
    np.testing.assert_array_equal(np.ldexp(kappa, 48), exact.astype(float))


def test_projecting_some_rows_leaves_the_others_alone():
    case = make_case(FocalSets.simple(3))
    rng = np.random.default_rng(0)
    M, table = case.M.copy(), case.table.copy()
    case.M[:] = rng.dirichlet(np.ones(5), case.n)
    M[10:15] = case.M[10:15]
    before = table.copy()
    project_rows(M, case.P, table, 10, 15)
    np.testing.assert_array_equal(
        np.delete(table, range(10, 15), 0), np.delete(before, range(10, 15), 0)
    )
    np.testing.assert_array_equal(
        units(table[10:15, :5]), units(M[10:15]) @ case.focal.C.astype(int)
    )


@every_family
def test_scattered_rows_are_projected_as_runs_are(focal):
    case = make_case(focal)
    rows = np.array([7, 2, case.n - 1], np.uint32)
    table = np.full_like(case.table, -1)
    project_some(case.M, case.P, table, rows)
    np.testing.assert_array_equal(table[rows], case.table[rows])
    assert (np.delete(table, rows, 0) == -1).all()


def test_several_projections_stand_one_below_the_other():
    focal = FocalSets.pairs(3)
    f, n = len(focal), 20
    P = np.concatenate([conflict_table(focal), np.zeros((1, f, 16), np.float32)])
    P[1, :, :f] = focal.E
    M = np.random.default_rng(0).dirichlet(np.ones(f), n).astype(np.float32)
    table = aligned_zeros(2 * n, 16)
    project_rows(M, P, table, 0, n)
    np.testing.assert_array_equal(units(table[:n, :f]), units(M) @ focal.C.astype(int))
    np.testing.assert_array_equal(units(table[n:, :f]), units(M) @ focal.E.astype(int))
    again = aligned_zeros(2 * n, 16)
    project_some(M, P, again, np.arange(n, dtype=np.uint32))
    np.testing.assert_array_equal(again, table)

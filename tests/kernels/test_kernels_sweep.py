"""Sweeps: rows at their minimum, an objective that falls, the same bits for any split."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.kernel_reference import FAMILIES, GRID, Case, make_case, units

from evdist.belief import FocalSets
from evdist.evclus.rows.sweep import Block, block_objective, no_links
from evdist.kernels.grid import project_rows
from evdist.kernels.vector import LANES, aligned_zeros

every_family = pytest.mark.parametrize("focal", FAMILIES.values(), ids=FAMILIES.keys())


# ---------------------------------------------------------------------- one row
def variants() -> list:
    plain = [pytest.param(name, False, 0, id=name) for name in FAMILIES]
    return [
        *plain,
        pytest.param("simple, c=8", True, 0, id="weights"),
        pytest.param("pairs, c=8", True, 0, id="weights, three vectors"),
        pytest.param("full, c=4", False, 30, id="links"),
        pytest.param("full, c=5", True, 30, id="weights and links"),
    ]


every_variant = pytest.mark.parametrize(("name", "weighted", "n_links"), variants())


@every_variant
@pytest.mark.parametrize("state", ["random", "after two sweeps"])
def test_a_row_goes_to_the_minimum_of_its_program(name, weighted, n_links, state):
    case = make_case(FAMILIES[name], weighted=weighted, n_links=n_links)
    if state == "after two sweeps":
        case.sweep(), case.sweep()
    for i in range(case.n):
        best = case.row_minimiser(i)
        before = case.row_cost(i, case.M[i].astype(float))
        change = case.update([i])[i]
        now = case.row_cost(i, case.M[i].astype(float))
        least = case.row_cost(i, best)
        assert now <= before
        assert now - before == pytest.approx(change, rel=1e-9, abs=1e-14)
        # Relative to the data of the row: gradients are sums in float32.
        j = case.partners(i)
        assert now <= least + 1e-9 * (case.pair_weight(i, j) @ case.delta[i, j] ** 2)
        # Masses without effect on any pair may differ; conflicts may not.
        A = case.M[j].astype(float) @ case.focal.C
        np.testing.assert_allclose(A @ case.M[i], A @ best, rtol=0, atol=1e-4)


@every_family
def test_masses_agree_with_the_slow_minimiser_where_it_is_unique(focal):
    # Many more pairs than focal sets, and partners with mass everywhere.
    case = make_case(focal, n=150, k=120, seed=3)
    case.M[:] = np.random.default_rng(0).dirichlet(np.full(len(focal), 0.2), case.n)
    project_rows(case.M, case.P, case.table, 0, case.n)
    checked = 0
    for i in range(30):
        S, _ = case.row_program(i)
        if np.linalg.eigvalsh(S)[0] < 1e-3 * np.trace(S) / len(focal):
            continue
        best = case.row_minimiser(i)
        case.update([i])
        np.testing.assert_allclose(case.M[i], best, rtol=0, atol=1e-5)
        checked += 1
    assert checked == 30 or len(focal) > 16


def test_a_row_at_its_minimum_stays_there():
    case = make_case(FAMILIES["full, c=4"])
    for i in range(case.n):
        case.update([i])
        settled = case.M[i].copy()
        again = case.update([i])[i]
        assert -1e-10 <= again <= 0
        np.testing.assert_allclose(case.M[i], settled, rtol=0, atol=1e-4)


def test_a_candidate_that_brings_nothing_is_not_taken():
    # At a row's minimum rounding decides; a row that does not gain keeps its bits.
    case = make_case(FAMILIES["full, c=5"], n=60, k=30)
    refused = 0
    for i in range(case.n):
        for _ in range(10):
            before, value = case.M[i].copy(), case.row_cost(i, case.M[i].astype(float))
            if case.update([i])[i] == 0:
                refused += 1
                np.testing.assert_array_equal(case.M[i], before)
            assert case.row_cost(i, case.M[i].astype(float)) <= value + 1e-15
    assert refused > 100


def test_a_row_without_pairs_stays_as_it_was():
    case = make_case(FocalSets.simple(3))
    degree = case.block.degree.copy()
    degree[[0, 7, case.n - 1]] = 0
    alone = replace(case, block=case.block._replace(degree=degree))
    before = case.M.copy()
    change = alone.update([0, 7, case.n - 1])
    np.testing.assert_array_equal(alone.M, before)
    assert not change.any()


def test_a_block_in_which_no_row_has_pairs():
    case = make_case(FocalSets.simple(3))
    none = np.zeros(case.n, np.int64)
    block = Block(0, none, none, np.zeros(0, np.uint32), np.zeros(0, np.float32))
    before = case.M.copy()
    assert not case.update(np.arange(case.n), block).any()
    np.testing.assert_array_equal(case.M, before)
    empty = replace(case, block=block)
    assert empty.objective() == 0


def test_unused_places_of_a_row_are_never_read():
    case = make_case(FocalSets.simple(4), n=43, k=10)
    k = case.block.first[1]
    unused = (np.arange(k) >= case.block.degree[:, None]).reshape(-1)
    assert unused.any(), "the case must have rows with fewer partners"
    delta = case.block.delta.copy()
    delta[unused] = np.nan
    spoilt = replace(case.copy(), block=case.block._replace(delta=delta))
    for _ in range(3):
        assert case.sweep() == spoilt.sweep()
    np.testing.assert_array_equal(case.M, spoilt.M)
    assert case.objective() == spoilt.objective()


# ---------------------------------------------------------------------- sweeps
@every_variant
def test_the_objective_never_rises_and_is_the_sum_of_the_changes(name, weighted, n_links):
    case = make_case(FAMILIES[name], weighted=weighted, n_links=n_links)
    values = [case.objective()]
    for _ in range(6):
        for i in range(case.n):
            change = case.update([i])[i]
            assert change <= 0
            values.append(case.objective())
            assert values[-1] <= values[-2] + 1e-14 * values[0]
            assert values[-1] - values[-2] == pytest.approx(change, abs=1e-12)
    assert values[-1] < 0.8 * values[0]
    assert (units(case.M).sum(axis=1) == GRID).all()
    assert (case.M >= 0).all()


@every_variant
def test_the_running_sum_over_sweeps_is_the_recomputed_objective(name, weighted, n_links):
    case = make_case(FAMILIES[name], weighted=weighted, n_links=n_links)
    running = case.objective()
    for _ in range(30):
        running += case.sweep()
    assert running == pytest.approx(case.objective(), rel=1e-10, abs=1e-10)


@every_variant
def test_the_objective_is_the_sum_over_pairs_by_definition(name, weighted, n_links):
    case = make_case(FAMILIES[name], weighted=weighted, n_links=n_links)
    direct = sum(case.row_cost(i, case.M[i].astype(float)) for i in range(case.n)) / 2
    assert case.objective() == pytest.approx(direct, rel=1e-12)


def test_the_table_follows_the_masses():
    case = make_case(FAMILIES["pairs, c=8"])
    case.sweep()
    f = len(case.focal)
    np.testing.assert_array_equal(
        units(case.table[:, :f]), units(case.M) @ case.focal.C.astype(int)
    )


def test_a_perfect_partition_is_found_and_stays():
    # Two groups, conflict one between and zero within: two singletons fit without error.
    group = np.arange(24) % 2
    case = make_case(FocalSets.simple(2), n=24, k=23)
    delta = (group[:, None] != group[None]).astype(np.float32)
    partner = case.block.partner.reshape(24, 23)
    pairs = case.block._replace(delta=delta[np.arange(24)[:, None], partner].reshape(-1))
    case = replace(case, block=pairs, delta=delta)
    for _ in range(40):
        case.sweep()
    assert case.objective() < 1e-12
    masses = case.M[:, 1:3]
    np.testing.assert_array_equal(masses.max(axis=1), 1.0)
    assert len(set(zip(group, masses.argmax(axis=1), strict=True))) == 2


# ---------------------------------------------------------------------- any split, the same bits
def assert_same(a: Case, b: Case) -> None:
    np.testing.assert_array_equal(a.M, b.M)
    np.testing.assert_array_equal(a.table, b.table)


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.sampled_from(["simple, c=8", "pairs, c=8"]))
def test_rows_of_a_colour_in_any_order_and_any_parts(random, name):
    case = make_case(FAMILIES[name], n=83, k=10, weighted=True)
    other = case.copy()
    for lo, hi in zip(case.bounds[:-1], case.bounds[1:], strict=True):
        change = case.update(np.arange(lo, hi))
        rows = list(range(lo, hi))
        random.shuffle(rows)
        cuts = sorted(random.randrange(len(rows) + 1) for _ in range(2))
        shuffled = np.zeros(case.n)
        for part in (rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] :]):
            shuffled += other.update(np.array(part, np.int64))
        np.testing.assert_array_equal(shuffled, change)
    assert_same(case, other)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 82), max_size=5, unique=True))
def test_blocks_cut_anywhere(cuts):
    case = make_case(FocalSets.simple(4), n=83, k=10)
    other = case.copy()
    edges = [0, *sorted(cuts), case.n]
    case.sweep()
    for lo, hi in pairwise(edges):
        other.update(np.arange(lo, hi), other.slice(lo, hi))
    assert_same(case, other)
    total = [0.0, 0.0]
    for lo, hi in pairwise(edges):
        part = block_objective(
            other.M, other.table, other.slice(lo, hi), other.weight, other.links,
            np.array([lo, hi]),
        )[0]  # fmt: skip
        total = [a + b for a, b in zip(total, part, strict=True)]
    assert sum(total) / 2 == pytest.approx(case.objective(), rel=1e-13)


@pytest.mark.parametrize("name", ["simple, c=8", "full, c=5", "pairs, c=8"])
def test_a_table_off_the_cache_lines(name):
    case = make_case(FAMILIES[name])
    raw = np.zeros(case.table.size + LANES + 1, np.float32)
    skip = (-raw.ctypes.data // 4) % LANES + 1
    off = raw[skip : skip + case.table.size].reshape(case.table.shape)
    off[:] = case.table
    other = replace(case.copy(), table=off)
    assert off.ctypes.data % (4 * LANES) == 4
    for _ in range(3):
        assert case.sweep() == other.sweep()
    assert_same(case, other)


# ---------------------------------------------------------------------- several projections
def test_pairs_may_refer_to_several_projections():
    # Each partner gives two terms: one of its row m_j C, one of m_j E.
    base = make_case(FocalSets.pairs(3), n=24, k=8)
    n, f = base.n, len(base.focal)
    P = np.concatenate([base.P, np.zeros_like(base.P)])
    P[1, :, :f] = base.focal.E
    table = aligned_zeros(2 * n, P.shape[2])
    M = base.M.copy()
    project_rows(M, P, table, 0, n)
    k = base.block.first[1]
    index = base.block.partner.reshape(n, k)
    index = np.concatenate([index, index + n], axis=1).astype(np.uint32)
    rng = np.random.default_rng(0)
    target = rng.random((2, n, n)).astype(np.float32)
    target = (target + target.transpose(0, 2, 1)) / 2
    delta = target[index // n, np.arange(n)[:, None], index % n]
    block = Block(
        0, np.arange(n) * 2 * k, base.block.degree * 2, index.reshape(-1), delta.reshape(-1)
    )
    assert (base.block.degree == k).all()
    case = replace(base, M=M, table=table, P=P, block=block, weight=np.full(n, 1.5, np.float32))

    def direct() -> float:
        m = case.M.astype(float)
        kappa = np.stack([m @ base.focal.C @ m.T, m @ base.focal.E @ m.T])
        r = kappa[index // n, np.arange(n)[:, None], index % n] - delta
        return float((r**2).sum()) * 1.5**2 / 2

    value = direct()
    assert case.objective() == pytest.approx(value, rel=1e-12)
    for _ in range(4):
        value += case.sweep()
        assert case.objective() == pytest.approx(value, rel=1e-10)
        assert direct() == pytest.approx(value, rel=1e-10)
    np.testing.assert_array_equal(
        units(case.table[n:, :f]), units(case.M) @ base.focal.E.astype(int)
    )


def test_no_links_costs_nothing():
    case = make_case(FocalSets.simple(3))
    cuts = np.array([0, case.n])
    sums = block_objective(case.M, case.table, case.block, case.weight, no_links(5), cuts)
    assert sums[0, 1] == 0

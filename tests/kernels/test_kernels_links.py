"""Must-links and cannot-links: the penalty of k-CEVCLUS, eqs. (8), (10), (16) and (17)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernels.kernel_reference import FAMILIES, Case, compressed, link_cost, make_case

from evdist.belief import FocalSets

every_family = pytest.mark.parametrize("focal", FAMILIES.values(), ids=FAMILIES.keys())
PENALTY = 2.5


def penalty(case: Case) -> float:
    """Sum over links, each counted once."""
    return case.sums()[1] / 2


def with_links(case: Case, i: list[int], j: list[int], sign: list[float]) -> Case:
    links = compressed(case.focal, case.n, np.array(i), np.array(j), np.array(sign), PENALTY)
    return replace(case, links=links)


def vertices(case: Case, rows: list[int], sets: list[int]) -> None:
    case.M[rows] = np.eye(len(case.focal), dtype=np.float32)[sets]


@every_family
def test_the_penalty_is_the_sum_of_the_plausibilities(focal):
    case = make_case(focal)
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 20, 25), rng.integers(20, 40, 25)
    sign = rng.choice([-1.0, 1.0], 25)
    case = with_links(case, i, j, sign)
    m = case.M.astype(float)
    terms = [link_cost(focal, m[a], m[b], s) for a, b, s in zip(i, j, sign, strict=True)]
    assert penalty(case) == pytest.approx(PENALTY * sum(terms), rel=1e-12)


def test_links_that_hold_for_sure_cost_nothing():
    case = with_links(make_case(FocalSets.simple(3)), [0, 0], [1, 2], [1.0, -1.0])
    vertices(case, [0, 1, 2], [1, 1, 2])
    assert penalty(case) == 0


def test_links_that_are_broken_for_sure_cost_two_each():
    case = with_links(make_case(FocalSets.simple(3)), [0, 0], [1, 2], [-1.0, 1.0])
    vertices(case, [0, 1, 2], [1, 1, 2])
    assert penalty(case) == pytest.approx(2 * 2 * PENALTY)


def test_ignorance_costs_one():
    # Omega and Omega: both events are fully plausible.
    case = with_links(make_case(FocalSets.simple(3)), [0, 0], [1, 2], [-1.0, 1.0])
    vertices(case, [0, 1, 2], [4, 4, 4])
    assert penalty(case) == pytest.approx(2 * PENALTY)


@every_family
def test_the_penalised_objective_never_rises(focal):
    case = make_case(focal, n_links=30, penalty=4.0)
    value = case.objective()
    for _ in range(8):
        for i in range(case.n):
            case.update([i])
            assert case.objective() <= value + 1e-13
            value = case.objective()


def test_a_heavy_penalty_makes_the_links_hold():
    case = make_case(FocalSets.simple(3), n=60, k=20)
    for _ in range(20):
        case.sweep()
    rng = np.random.default_rng(1)
    i, j = np.arange(0, 20), np.arange(20, 40)
    linked = with_links(case, i, j, rng.choice([-1.0, 1.0], 20))
    linked = replace(linked, links=linked.links._replace(penalty=100.0))
    before = penalty(linked)
    for _ in range(20):
        linked.sweep()
    assert penalty(linked) < 0.05 * before


def test_a_row_with_links_but_no_pairs_follows_its_links():
    case = with_links(make_case(FocalSets.simple(3)), [0], [1], [1.0])
    vertices(case, [1], [2])
    degree = case.block.degree.copy()
    degree[0] = 0
    case = replace(case, block=case.block._replace(degree=degree))
    case.update([0])
    assert case.M[0].tolist() == [0, 0, 1, 0, 0]


def test_links_without_penalty_leave_every_bit():
    case = make_case(FocalSets.pairs(3), n_links=0)
    linked = with_links(case.copy(), [0, 3], [1, 9], [1.0, -1.0])
    linked = replace(linked, links=linked.links._replace(penalty=0.0))
    for _ in range(3):
        assert case.sweep() == linked.sweep()
    np.testing.assert_array_equal(case.M, linked.M)

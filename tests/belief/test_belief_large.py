"""Thousands of focal sets: values on a sample against sums over Python sets."""

from __future__ import annotations

import numpy as np
import pytest
from belief.belief_strategies import as_sets
from tolerances import ROUNDING

from evdist import belief as ev
from evdist.belief import FocalSets

CLUSTERS, SETS, ROWS = 60, 3000, 4


@pytest.fixture(scope="module")
def focal():
    rng = np.random.default_rng(7)
    masks = {
        sum(1 << int(k) for k in rng.choice(CLUSTERS, rng.integers(1, 7), replace=False))
        for _ in range(2 * SETS)
    }
    return FocalSets(CLUSTERS, (0, *sorted(masks)[: SETS - 1]))


@pytest.fixture(scope="module")
def m(focal):
    return np.random.default_rng(8).dirichlet(np.full(len(focal), 0.1), ROWS)


def test_shapes(focal, m):
    assert focal.matrix.shape == (SETS, CLUSTERS)
    assert ev.contour(m, focal).shape == ev.pignistic(m, focal).shape == (ROWS, CLUSTERS)
    assert ev.belief(m, focal).shape == ev.plausibility(m, focal).shape == (ROWS, SETS)


def test_values_of_one_row(focal, m):
    row = as_sets(m[0], focal)
    expected = [sum(v for s, v in row.items() if k in s) for k in range(CLUSTERS)]
    np.testing.assert_allclose(ev.contour(m, focal)[0], expected, **ROUNDING)
    expected = [sum(v / len(s) for s, v in row.items() if k in s) for k in range(CLUSTERS)]
    np.testing.assert_allclose(ev.pignistic(m, focal)[0], expected, **ROUNDING)
    all_bel, all_pl = ev.belief(m, focal), ev.plausibility(m, focal)
    for q in (0, 17, 1500, SETS - 1):
        A = frozenset(focal.sets[q])
        bel = sum(v for s, v in row.items() if s and s <= A)
        pl = sum(v for s, v in row.items() if s & A)
        np.testing.assert_allclose(all_bel[0, q], bel, **ROUNDING)
        np.testing.assert_allclose(all_pl[0, q], pl, **ROUNDING)


def test_conflict_and_distance_of_one_row(focal, m):
    few = {s: v for s, v in as_sets(m[0], focal).items() if v > 1e-3}
    sparse = np.array([few.get(frozenset(s), 0.0) for s in focal.sets])
    other = as_sets(m[1], focal)
    kappa = sum(x * y for A, x in few.items() for B, y in other.items() if not A & B)
    np.testing.assert_allclose(ev.conflict(sparse, m[1], focal), kappa, **ROUNDING)
    apart = {A: sparse[q] - m[1, q] for q, A in enumerate(other)}
    apart = {A: v for A, v in apart.items() if abs(v) > 0.004}
    difference = np.array([apart.get(frozenset(s), 0.0) for s in focal.sets])
    square = sum(
        x * y * (len(A & B) / len(A | B) if A | B else 1.0)
        for A, x in apart.items()
        for B, y in apart.items()
    )
    got = ev.jousselme(np.maximum(difference, 0), np.maximum(-difference, 0), focal)
    np.testing.assert_allclose(got, np.sqrt(square / 2), **ROUNDING)


def test_moebius_round_trip(focal, m):
    np.testing.assert_allclose(ev.mass_from_belief(ev.belief(m, focal), focal), m, **ROUNDING)


def test_combination_on_all_pairs_of_sixty_clusters():
    """The family is closed under intersection; commonalities multiply."""
    focal = FocalSets.pairs(CLUSTERS)
    m1, m2 = np.random.default_rng(9).dirichlet(np.full(len(focal), 0.1), (2, ROWS))
    mass, family = ev.conjunctive([m1, m2], focal)
    assert family == focal
    np.testing.assert_allclose(mass[:, 0], ev.conflict(m1, m2, focal), **ROUNDING)
    np.testing.assert_allclose(
        ev.commonality(mass, focal),
        ev.commonality(m1, focal) * ev.commonality(m2, focal),
        **ROUNDING,
    )


def test_a_power_set_of_sixteen_clusters_needs_no_square_table():
    focal = FocalSets.full(16)
    m = np.random.default_rng(10).dirichlet(np.full(len(focal), 0.01), 2)
    asked = [[0, 3], range(1, 16), range(16)]
    columns = [focal.index(A) for A in asked]
    for transform in (ev.belief, ev.plausibility):
        np.testing.assert_allclose(
            transform(m, focal)[:, columns], transform(m, focal, asked), **ROUNDING
        )
    np.testing.assert_allclose(ev.mass_from_belief(ev.belief(m, focal), focal), m, **ROUNDING)
    assert 0 < ev.conflict(m[0], m[1], focal) < 1

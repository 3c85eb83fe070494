"""Masses from intervals: the criterion, its descent, R's results, new objects."""

from __future__ import annotations

import numpy as np
import pytest
from bootclus.bootclus_cases import all_pairs, belief_plausibility, criterion, reference
from hypothesis import given
from hypothesis import strategies as st

from evdist import FocalSets
from evdist.bootclus.solver import (
    bayesian_masses,
    belief_projections,
    check_fit_memory,
    interval_focal_sets,
)
from evdist.evclus.irqp import Stop, minimise
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.rows.numba import NumbaRows
from evdist.metrics import pairwise_belief, pairwise_plausibility
from evdist.partition import CredalPartition

EXACT = Stop(1e-8, 500)


def solve(lower, upper, focal_sets, start, stop=EXACT):
    """Masses by object, with the empty set's column, and the solution."""
    n = len(lower)
    problem = Problem(
        focal_sets, all_pairs(lower, upper), Plan.of(np.arange(n + 1)),
        projections=belief_projections(focal_sets),
    )  # fmt: skip
    with NumbaRows().executor(problem, np.asarray(start, np.float32)) as executor:
        solution = minimise(executor, 2.0 / (n * (n - 1)), stop)
    return np.concatenate([np.zeros((n, 1)), solution.value], axis=1), solution


@st.composite
def interval_problems(draw):
    n, c = draw(st.integers(2, 9)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    family = draw(st.sampled_from(["simple", "pairs", "full"]))
    lower = np.triu(rng.uniform(0, 1, (n, n)), 1)
    lower += lower.T
    upper = np.triu(lower + (1 - lower) * rng.uniform(0, 1, (n, n)), 1)
    upper += upper.T
    sets = interval_focal_sets(family, np.ones((1, c)) / c, 1)
    return lower, upper, sets, rng.dirichlet(np.ones(len(sets) - 1), n)


@given(interval_problems())
def test_the_objective_is_the_papers_criterion_and_never_rises(problem):
    lower, upper, sets, start = problem
    n = len(lower)
    mass, solution = solve(lower, upper, sets, start)
    assert (np.diff(solution.history) <= 0).all()
    J = criterion(mass, sets, lower, upper)
    np.testing.assert_allclose(solution.objective * n * (n - 1) / 2, J, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mass.sum(axis=1), 1.0, atol=1e-6)
    assert mass.min() >= 0


@given(interval_problems())
def test_no_row_alone_can_do_better(problem):
    lower, upper, sets, start = problem
    mass, _ = solve(lower, upper, sets, start, Stop(1e-12, 2000))
    J = criterion(mass, sets, lower, upper)
    for i in range(len(mass)):
        for q in range(1, len(sets)):
            for step in (0.01, 0.3):
                other = mass.copy()
                other[i] *= 1 - step
                other[i, q] += step
                assert criterion(other, sets, lower, upper) >= J - 1e-5


def test_projections_give_the_beliefs_of_the_metrics():
    rng = np.random.default_rng(0)
    sets = FocalSets.pairs(3, omega=False)
    mass = np.concatenate([np.zeros((8, 1)), rng.dirichlet(np.ones(6), 8)], axis=1)
    P = belief_projections(sets)[:, :, :6].astype(float)
    bel = mass[:, 1:] @ P[0] @ mass[:, 1:].T
    pl = 1.0 - mass[:, 1:] @ P[1] @ mass[:, 1:].T
    partition = CredalPartition(mass, sets)
    pairs = np.triu_indices(8, 1)
    np.testing.assert_allclose(pairwise_belief(partition), bel[pairs])
    np.testing.assert_allclose(pairwise_plausibility(partition), pl[pairs])


class TestAgainstR:
    @pytest.fixture
    def bounds(self, shared):
        r = reference(shared, "bootclus_iris_replicates.json.gz")
        return np.array(r["CI_lower"]), np.array(r["CI_upper"])

    @pytest.mark.parametrize(("case", "family"), [(0, "pairs"), (2, "simple")])
    def test_from_rs_start_the_criterion_is_not_higher(self, shared, bounds, case, family):
        r = reference(shared, "mass_from_P_iris.json")["cases"][case]
        sets = interval_focal_sets(family, np.ones((1, 3)), 1)
        np.testing.assert_array_equal(sets.matrix, np.array(r["F"], dtype=bool))
        theirs = criterion(np.array(r["mass"]), sets, *bounds)
        mass, solution = solve(*bounds, sets, r["m0"])
        # Masses are multiples of 2**-24, bounds are float32.
        assert criterion(mass, sets, *bounds) <= theirs * (1 + 1e-9)
        assert solution.converged

    def test_the_masses_are_those_of_r(self, shared, bounds):
        r = reference(shared, "mass_from_P_iris.json")["cases"][0]
        sets = FocalSets.pairs(3, omega=False)
        mass, _ = solve(*bounds, sets, r["m0"])
        apart = np.abs(mass - np.array(r["mass"]))
        assert apart.max() < 1e-5

    def test_the_power_set_is_solved_where_r_refuses(self, shared, bounds):
        r = reference(shared, "mass_from_P_iris.json")["cases"]
        sets = FocalSets.full(3)
        mass, _ = solve(*bounds, sets, r[1]["m0"])
        pairs = criterion(np.array(r[0]["mass"]), FocalSets.pairs(3, omega=False), *bounds)
        assert criterion(mass, sets, *bounds) < pairs


def test_the_fit_starts_where_belief_and_plausibility_are_the_mixtures_probability():
    posterior = np.random.default_rng(0).dirichlet(np.ones(3), 5)
    sets = FocalSets.pairs(3, omega=False)
    mass = np.concatenate([np.zeros((5, 1)), bayesian_masses(posterior, sets)], axis=1)
    bel, pl = belief_plausibility(mass, sets)
    np.testing.assert_allclose(bel, posterior @ posterior.T, atol=1e-6)
    np.testing.assert_allclose(pl, posterior @ posterior.T, atol=1e-6)


def test_selected_pairs_are_mutual_neighbours_by_common_probability():
    # Clusters 0-1 and 2-3 overlap, 4 lies alone and has no neighbour that would have it.
    posterior = np.array([[0.5, 0.5, 0, 0, 0], [0, 0, 0.6, 0.4, 0], [0, 0, 0, 0.01, 0.99],
                          [0.9, 0, 0.1, 0, 0]])  # fmt: skip
    sets = interval_focal_sets("select", posterior, 1)
    assert sets.names == ("∅", "{0}", "{1}", "{2}", "{3}", "{4}", "{0,1}", "{2,3}")


def test_families_leave_out_omega_as_the_paper_does():
    P = np.ones((1, 3))
    assert len(interval_focal_sets("pairs", P, 1)) == 7
    assert interval_focal_sets("pairs", P, 1).omega is None
    assert interval_focal_sets("simple", P, 1) == FocalSets.simple(3)
    assert interval_focal_sets("full", P, 1) == FocalSets.full(3)


def test_a_fit_that_cannot_fit_is_refused_before_it_starts():
    with pytest.raises(MemoryError, match=r"needs about .* GB .*Lower n_dissimilarities"):
        check_fit_memory((10**9, 4), 1000, 500, 5)
    check_fit_memory((1000, 4), 100, 100, 3)

"""CECM: each row at its exact minimum, an objective that never rises, links that are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from evdist import CECM, ECM, FocalSets, propose_links
from evdist.constraints import expand_constraints, random_links
from evdist.ecm.link_kernel import update_linked
from evdist.ecm.linked import LinkedProblem, fit_cecm
from evdist.ecm.solver import Model


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, c = draw(st.integers(12, 40)), draw(st.integers(1, 3)), draw(st.integers(2, 4))
    X = rng.standard_normal((n, d)) * 2
    must, cannot = random_links(rng.integers(0, c, n), draw(st.integers(1, 30)), random_state=rng)
    w = rng.uniform(0.2, 2.0, n) if draw(st.booleans()) else None
    problem = LinkedProblem(X, must, cannot, draw(st.sampled_from([0.1, 0.5, 0.9])), w)
    sets = getattr(FocalSets, draw(st.sampled_from(["simple", "pairs", "full"])))(c)
    model = Model(sets, rng.standard_normal((c, d)), draw(st.sampled_from([0.5, 1.0, 2.0])), 2.0)
    return problem, model.adaptive() if draw(st.booleans()) else model


@given(problems(), st.integers(0, 2**32 - 1))
def test_the_objective_never_rises_from_any_masses(case, seed):
    problem, model = case
    rng = np.random.default_rng(seed)
    M = rng.dirichlet(np.ones(len(model.focal_sets)), len(problem.X))
    for mass in (None, M):
        fit = fit_cecm(problem, model, tol=0.0, max_iter=12, mass=mass)
        assert all(b <= a for a, b in zip(fit.history, fit.history[1:], strict=False))
        assert fit.history[-1] < fit.history[0] or len(fit.history) == 2
        assert fit.value.mass.min() >= 0
        np.testing.assert_allclose(fit.value.mass.sum(axis=1), 1.0)
        exact = problem.objective(fit.value.model, fit.value.mass, problem.costs(fit.value.model))
        np.testing.assert_allclose(fit.history[-1], exact, rtol=1e-10)


@given(problems(), st.integers(0, 2**32 - 1))
def test_no_half_step_raises_the_objective(case, seed):
    """Prototypes, then metric, then masses, each against the exact objective."""
    problem, model = case
    rng = np.random.default_rng(seed)
    M = rng.dirichlet(np.ones(len(model.focal_sets)), len(problem.X))
    before = problem.objective(model, M, problem.costs(model))
    moved = model.step(problem.sums(model, M))
    middle = problem.objective(moved, M, problem.costs(moved))
    assert middle <= before * (1 + 1e-9)
    after = fit_cecm(problem, model, tol=0.0, max_iter=1, mass=M)
    assert after.history[-1] <= middle * (1 + 1e-9)


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_a_linked_row_is_at_the_minimum_of_its_program(f, seed):
    rng = np.random.default_rng(seed)
    q, M = rng.uniform(0.01, 2.0, (2, f)), rng.dirichlet(np.ones(f), 2)
    R = rng.uniform(0, 1, (2, f, f))
    g = R[1] @ M[1]
    whole = np.array([0]), np.array([0, 1]), np.array([1]), np.array([1])
    update_linked(M, q, *whole, R)
    m = M[0]
    gradient = 2 * q[0] * m + g
    level = gradient[m > 0].min()
    np.testing.assert_allclose(gradient[m > 0], level, atol=1e-9)
    assert (gradient >= level - 1e-9).all()
    assert m.sum() == pytest.approx(1.0)
    found = minimize(
        lambda v: (q[0] * v * v + g * v).sum(), np.full(f, 1 / f), bounds=[(0, 1)] * f,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1}, method="SLSQP",
    )  # fmt: skip
    assert (q[0] * m * m + g * m).sum() <= found.fun + 1e-7


def two_strips(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Two long strips side by side, which round clusters cut across."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return np.c_[rng.uniform(-6, 6, n), 1.6 * y + 0.3 * rng.standard_normal(n)], y


def test_without_links_it_is_ecm():
    X, _ = two_strips()
    options = {"n_clusters": 2, "focal_sets": "full", "random_state": 0, "tol": 1e-10}
    plain, linked = ECM(**options).fit(X), CECM(**options).fit(X)
    np.testing.assert_allclose(
        linked.credal_partition_.mass, plain.credal_partition_.mass, atol=1e-4
    )
    assert linked.objective_ == pytest.approx(plain.objective_ * 0.5 / (4 * len(X)), rel=1e-6)


def test_links_and_an_adaptive_metric_find_long_clusters():
    X, y = two_strips()
    must, cannot = random_links(y, 40, random_state=0)
    links = {"must_link": must, "cannot_link": cannot}
    plain = ECM(2, random_state=0).fit(X)
    linked = CECM(2, metric="adaptive", random_state=0).fit(X, **links)
    assert adjusted_rand_score(y, plain.labels_) < 0.3
    assert adjusted_rand_score(y, linked.labels_) > 0.95
    labels = linked.labels_
    assert (labels[must[:, 0]] == labels[must[:, 1]]).mean() > 0.95
    assert (labels[cannot[:, 0]] != labels[cannot[:, 1]]).mean() > 0.95


def test_the_order_and_the_direction_of_links_do_not_matter():
    X, y = two_strips(60)
    must, cannot = random_links(y, 20, random_state=0)
    options = {"n_clusters": 2, "init": X[:2], "tol": 1e-10}
    one = CECM(**options).fit(X, must_link=must, cannot_link=cannot)
    other = CECM(**options).fit(X, must_link=must[::-1, ::-1], cannot_link=cannot[::-1])
    np.testing.assert_allclose(one.credal_partition_.mass, other.credal_partition_.mass, atol=1e-6)


def test_answers_to_proposed_pairs_teach_it():
    """Active learning: ask, answer, fit again from there."""
    X, y = two_strips()
    must, cannot = np.empty((0, 2), int), np.empty((0, 2), int)
    model = CECM(2, metric="adaptive", focal_sets="full", random_state=0).fit(X)
    scores = [adjusted_rand_score(y, model.labels_)]
    for _ in range(4):
        known = np.concatenate([must, cannot])
        asked = propose_links(model.credal_partition_, 8, X=X, known=known, random_state=0)
        same = y[asked[:, 0]] == y[asked[:, 1]]
        must, cannot = np.r_[must, asked[same]], np.r_[cannot, asked[~same]]
        model.fit(X, must_link=must, cannot_link=cannot)
        scores.append(adjusted_rand_score(y, model.labels_))
    assert scores[-1] > 0.95 > 0.5 > scores[0]


def test_expanded_links_are_those_of_algorithm_2():
    X, y = load_iris(return_X_y=True)
    must, cannot = random_links(y, 20, 0)
    wide = expand_constraints(X, must, cannot, 3, consistent=False)
    by_hand = CECM(3, random_state=0).fit(X, must_link=wide[0], cannot_link=wide[1])
    model = CECM(3, expand_constraints=3, random_state=0)
    model.fit(X, must_link=must, cannot_link=cannot)
    assert model.history_ == by_hand.history_
    with pytest.raises(ValueError, match="expand_constraints must be an integer of at least 0"):
        CECM(3, expand_constraints=-1).fit(X)


def test_expanded_links_find_iris_better_than_the_links_alone():
    """Fifty links, six draws: .76 to .82 alone, .76 to .90 with five neighbours of each."""
    X, y = load_iris(return_X_y=True)
    indices = []
    for seed in range(6):
        must, cannot = random_links(y, 50, seed)
        fits = [
            CECM(3, expand_constraints=K, random_state=0).fit(X, must_link=must, cannot_link=cannot)
            for K in (0, 5)
        ]
        indices.append([adjusted_rand_score(y, fit.labels_) for fit in fits])
    alone, expanded = np.array(indices).T
    assert (expanded > alone).sum() >= 5  # the guesses around one draw's links mislead
    assert expanded.mean() > alone.mean() + 0.05

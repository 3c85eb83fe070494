"""LSI and DML-eig: no metric is better, must-links add up to 1, units and turns change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist.constraints import random_links
from evdist.features import LSI, DMLEig
from evdist.features.spectrahedron import farthest_at_least, farthest_in_sum, squares

BOTH = pytest.mark.parametrize("kind", [LSI, DMLEig])


def objective(kind: type, delta: np.ndarray, A: np.ndarray) -> float:
    """What Xing et al. and Ying and Li maximise, from the differences of cannot-linked objects."""
    square = ((delta @ A) * delta).sum(axis=1)
    return float(np.sqrt(square).sum() if kind is LSI else square.min())


@pytest.fixture(scope="module")
def linked() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return X, *random_links(y, 60, 3)


@BOTH
def test_must_links_add_up_to_one_and_the_objective_is_that_of_the_paper(kind, linked):
    X, must, cannot = linked
    model = kind(ridge=1e-9).fit(X, must_link=must, cannot_link=cannot)
    A = model.metric_
    within, between = (X[pairs[:, 0]] - X[pairs[:, 1]] for pairs in (must, cannot))
    assert ((within @ A) * within).sum() == pytest.approx(1.0, rel=1e-6)
    assert model.objective_ == pytest.approx(objective(kind, between, A), rel=1e-6)
    np.testing.assert_allclose(model.components_.T @ model.components_, A, atol=1e-12)
    Z = model.transform(X)
    features = Z[cannot[:, 0]] - Z[cannot[:, 1]]
    assert objective(kind, features, np.eye(4)) == pytest.approx(model.objective_, rel=1e-6)


@BOTH
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), d=st.integers(1, 5))
def test_no_other_metric_is_better(kind, seed, d):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(rng.integers(1, 30), d)) * rng.uniform(0.2, 3, d)
    found = (farthest_in_sum if kind is LSI else farthest_at_least)(z, 1e-2, 5000)
    value = objective(kind, z, found.B)
    assert found.converged
    assert found.gap <= 1e-2 * found.value
    assert np.trace(found.B) == pytest.approx(1.0)
    assert np.linalg.eigvalsh(found.B)[0] > -1e-12
    for _ in range(200):
        L = rng.normal(size=(d, rng.integers(1, d + 1)))
        assert objective(kind, z, L @ L.T / (L * L).sum()) <= value + found.gap + 1e-9


@BOTH
def test_a_plane_is_searched_through(kind):
    """All B >= 0 of trace 1 in two dimensions: a fine grid finds nothing better."""
    z = np.random.default_rng(5).normal(size=(12, 2)) * [1.0, 0.6]
    found = (farthest_in_sum if kind is LSI else farthest_at_least)(z, 1e-3, 5000)
    best = max(
        objective(kind, z, np.array([[a, b], [b, 1 - a]]))
        for a in np.linspace(0, 1, 101)
        for b in np.linspace(-1, 1, 201) * np.sqrt(a * (1 - a))
    )
    assert 0.999 * best <= objective(kind, z, found.B) <= 1.01 * best


def test_the_bound_of_dml_eig_is_the_largest_eigenvalue_of_a_mean():
    """Where it can be worked out: two cannot-links at right angles."""
    z = np.array([[2.0, 0.0], [0.0, 1.0]])
    found = farthest_at_least(z, 1e-3, 5000)
    # u = (1/5, 4/5) makes both eigenvalues 4/5, and B = diag(1/5, 4/5) both distances.
    assert found.value == pytest.approx(0.8, rel=1e-2)
    np.testing.assert_allclose(squares(z, found.B), 0.8, rtol=2e-2)


def test_lsi_where_it_can_be_worked_out():
    """Cannot-links along two axes, lengths a and b: B = diag(a^2, b^2) / (a^2 + b^2)."""
    found = farthest_in_sum(np.diag([3.0, 1.0]), 1e-4, 5000)
    np.testing.assert_allclose(found.B, np.diag([0.9, 0.1]), atol=1e-3)
    assert found.value == pytest.approx(np.sqrt(10))


@BOTH
def test_the_unit_and_a_turn_of_x_change_no_distance(kind, linked):
    X, must, cannot = linked
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    one = kind(tol=1e-3).fit(X, must_link=must, cannot_link=cannot)
    two = kind(tol=1e-3).fit(100 * X @ turn + 7, must_link=must, cannot_link=cannot)
    assert two.objective_ == pytest.approx(one.objective_, rel=2e-3)
    A = 100**2 * turn @ two.metric_ @ turn.T
    np.testing.assert_allclose(A, one.metric_, atol=0.05 * np.abs(one.metric_).max())


@BOTH
def test_fewer_features_are_the_longest_of_all(kind, linked):
    X, must, cannot = linked
    whole = kind().fit(X, must_link=must, cannot_link=cannot)
    some = kind(2).fit(X, must_link=must, cannot_link=cannot)
    np.testing.assert_array_equal(some.components_, whole.components_[:2])
    lengths = np.linalg.norm(whole.components_, axis=1)
    assert (np.diff(lengths) <= 0).all()
    np.testing.assert_allclose(some.transform(X), whole.transform(X)[:, :2])


@BOTH
def test_fifty_links_of_iris_help_k_means(kind):
    """Ten draws; adjusted Rand index .73 without the metric (`benchmarks/features.py metrics`)."""
    X, y = load_iris(return_X_y=True)
    indices = []
    for seed in range(10):
        must, cannot = random_links(y, 50, seed)
        Z = kind().fit(X, must_link=must, cannot_link=cannot).transform(X)
        labels = KMeans(3, n_init=5, random_state=0).fit_predict(Z)
        indices.append(adjusted_rand_score(y, labels))
    assert np.mean(indices) > 0.85


@BOTH
@pytest.mark.parametrize(
    ("links", "sentence"),
    [
        ({"cannot_link": [(0, 1)]}, "needs a must_link between objects that differ, got 0"),
        ({"must_link": [(0, 1)]}, "needs a cannot_link between objects that differ, got 0"),
        ({"must_link": [(0, 4)], "cannot_link": [(0, 1)]}, "needs a must_link .* got 1"),
        ({"must_link": [(0, 1)], "cannot_link": [(0, 4)]}, "needs a cannot_link .* got 1"),
        ({"must_link": [(0, 1)], "cannot_link": [(1, 0)]}, "contradicts must_link"),
    ],
)
def test_links_that_teach_nothing_are_refused(kind, links, sentence):
    X = np.array([[0.0, 0], [9, 0], [0, 1], [9, 1], [0, 0]])
    with pytest.raises(ValueError, match=sentence):
        kind().fit(X, **links)


@BOTH
@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"ridge": 0}, "ridge must be a number above 0"),
        ({"tol": 0}, "tol must be a number above 0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"n_components": 3}, "n_components must be at most 2"),
    ],
)
def test_what_cannot_be_is_refused(kind, parameters, sentence):
    X = np.array([[0.0, 0], [9, 0], [0, 1], [9, 1]])
    with pytest.raises(ValueError, match=sentence):
        kind(**parameters).fit(X, must_link=[(0, 1)], cannot_link=[(0, 2)])


def test_a_descent_that_is_stopped_says_how_far_it_may_be(linked):
    X, must, cannot = linked
    with pytest.warns(ConvergenceWarning, match="may be up to .* from its maximum"):
        DMLEig(tol=1e-6, max_iter=3).fit(X, must_link=must, cannot_link=cannot)

"""EGMM: both steps against their definitions, laws of EM, the number of clusters, refusals."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerances import ROUNDING

from evdist import EGMM, FocalSets
from evdist.egmm.solver import EvidentialMixture, Expected, evidential_bic, rows_of
from evdist.mixture import select_mixture

THREE = [[0, 0], [9, 0], [0, 9]]


@parametrize_with_checks([EGMM(2, n_init=1, n_jobs=1, random_state=0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_example_of_the_docstring_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(EGMM, "EGMM")
    assert len(example.examples) >= 4
    assert doctest.DocTestRunner().run(example).failed == 0


def some_mixture(sets: FocalSets, d: int, seed: int) -> EvidentialMixture:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    return EvidentialMixture(
        sets, rng.dirichlet(np.ones(len(sets) - 1)), 3 * rng.normal(size=(sets.n_clusters, d)),
        root @ root.T + 0.1 * np.eye(d),
    )  # fmt: skip


def slow_densities(mixture: EvidentialMixture, X: np.ndarray) -> np.ndarray:
    """pi_j N(x_i; mubar_j, Sigma), set by set: (n, f - 1)."""
    return np.column_stack(
        [
            p * multivariate_normal(mixture.means[list(A)].mean(axis=0), mixture.covariance).pdf(X)
            for p, A in zip(mixture.proportions, mixture.focal_sets.sets[1:], strict=True)
        ]
    )


@pytest.mark.parametrize("sets", [FocalSets.full(3), FocalSets.pairs(4), FocalSets.simple(2)])
@pytest.mark.parametrize("d", [2, 3])
def test_masses_are_the_posterior_probabilities_of_the_sets(sets, d):
    mixture = some_mixture(sets, d, 0)
    X = 3 * np.random.default_rng(1).normal(size=(40, d))
    joint = slow_densities(mixture, X)
    mass = mixture.masses(X)
    assert (mass[:, 0] == 0).all()
    np.testing.assert_allclose(mass[:, 1:], joint / joint.sum(axis=1, keepdims=True), **ROUNDING)
    with rows_of(X, 1) as rows:
        assert rows.sums(mixture).loglik == pytest.approx(np.log(joint.sum(axis=1)).sum())


@pytest.mark.parametrize("sets", [FocalSets.full(3), FocalSets.pairs(4)])
def test_the_m_step_is_that_of_the_equations(sets):
    """pi_j = mean m_ij; H M = B; Sigma the mean of the weighted squares."""
    mixture = some_mixture(sets, 2, 2)
    X = 4 * np.random.default_rng(3).normal(size=(200, 2))
    m = mixture.masses(X)[:, 1:]
    F, size = sets.matrix[1:].astype(float), sets.cardinality[1:].astype(float)
    H = np.einsum("ij,jk,jl,j->kl", m, F, F, size**-2)
    B = np.einsum("ij,jk,j,ia->ka", m, F, 1 / size, X)
    M = np.linalg.solve(H, B)
    away = X[:, None] - (F / size[:, None]) @ M
    Sigma = np.einsum("ij,ija,ijb->ab", m, away, away) / len(X)
    with rows_of(X, 1) as rows:
        found = mixture.step(rows.sums(mixture), rows.floor)
    np.testing.assert_allclose(found.proportions, m.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found.means, M, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, Sigma, rtol=1e-9, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["simple", "pairs", "full"]), st.integers(1, 4))
def test_the_likelihood_never_falls(seed, focal_sets, c):
    X = np.random.default_rng(seed).normal(size=(60, 2))
    model = EGMM(c, focal_sets=focal_sets, n_init=2, random_state=seed).fit(X)
    assert (np.diff(model.history_) <= 0).all()
    assert model.objective_ == pytest.approx(-model.loglik_ / 60, rel=1e-12)
    mass = np.asarray(model.credal_partition_.mass)
    np.testing.assert_allclose(mass.sum(axis=1), 1, rtol=1e-12)


def test_no_random_mixture_near_the_result_is_likelier():
    X, _ = make_blobs(200, centers=[[0, 0], [4, 0], [0, 4]], random_state=0)
    model = EGMM(3, tol=1e-8, random_state=0).fit(X)
    found, rng = model._mixture, np.random.default_rng(0)
    with rows_of(X, 1) as rows:
        for _ in range(30):
            moved = found.means + 0.05 * rng.normal(size=(3, 2))
            other = EvidentialMixture(found.focal_sets, found.proportions, moved, found.covariance)
            assert rows.sums(other).loglik < model.loglik_


def test_with_single_clusters_alone_it_is_the_mixture_with_one_covariance():
    X = load_iris().data
    sets = FocalSets.simple(3, omega=False)
    model = EGMM(3, focal_sets=sets, tol=1e-9, random_state=0).fit(X)
    plain = select_mixture(X, 3, "EEE", tol=1e-9)
    assert model.loglik_ == pytest.approx(plain.best.loglik, rel=1e-6)
    assert model.bic_ == pytest.approx(plain.bic, rel=1e-6)


def test_an_object_between_two_clusters_belongs_to_both():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.5, (100, 2)), rng.normal([6, 0], 0.5, (100, 2)),
                        rng.normal([3, 0], 0.5, (30, 2))])  # fmt: skip
    model = EGMM(2, focal_sets="full", random_state=0).fit(X)
    pair = model.credal_partition_.focal_sets.omega
    chosen = np.asarray(model.credal_partition_.mass).argmax(axis=1)
    assert (chosen[200:] == pair).mean() > 0.9
    assert (chosen[:200] != pair).mean() > 0.95
    assert model.proportions_[pair] == pytest.approx(30 / 230, abs=0.02)


def test_the_bic_counts_the_parameters():
    """(f - 1) - 1 proportions, c d means, d (d + 1) / 2 entries of Sigma."""
    X = load_iris().data
    model = EGMM(3, focal_sets="full", random_state=0).fit(X)
    nu = (2**3 - 2) + 3 * 4 + 10
    assert model.bic_ == pytest.approx(2 * model.loglik_ - nu * np.log(150), rel=1e-12)
    with rows_of(X, 1) as rows:
        again = Expected(model._mixture, rows.sums(model._mixture))
    assert evidential_bic(again, 150) == pytest.approx(model.bic_, rel=1e-12)


@pytest.mark.parametrize("c", [2, 3, 4])
def test_the_bic_finds_the_number_of_clusters(c):
    centres = np.array([[0, 0], [8, 0], [0, 8], [9, 9]])[:c]
    X, y = make_blobs(100 * c, centers=centres, random_state=1)
    model = EGMM(range(1, 7), random_state=0).fit(X)
    assert model.n_clusters_ == c
    assert list(model.bics_) == [1, 2, 3, 4, 5, 6]
    assert adjusted_rand_score(y, model.labels_) > 0.98


def test_the_order_of_the_objects_changes_nothing():
    X, _ = make_blobs(150, centers=THREE, random_state=0)
    order = np.random.default_rng(0).permutation(150)
    here, there = (EGMM(3, n_init=2, random_state=0).fit(rows) for rows in (X, X[order]))
    np.testing.assert_allclose(
        here.credal_partition_.mass[order], there.credal_partition_.mass, atol=1e-6
    )


@pytest.mark.parametrize(("factor", "shift"), [([2.0, 100.0], 0.0), ([1.0, 1.0], 1e4)])
def test_units_and_origin_change_no_mass(factor, shift):
    X, _ = make_blobs(150, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)
    plain = EGMM(3, n_init=2, random_state=0).fit(X)
    moved = EGMM(3, n_init=2, random_state=0).fit(X * factor + shift)
    np.testing.assert_allclose(
        plain.credal_partition_.mass, moved.credal_partition_.mass, atol=1e-5
    )
    np.testing.assert_allclose(moved.prototypes_, plain.prototypes_ * factor + shift, rtol=1e-4)


def test_threads_change_no_bit():
    X, _ = make_blobs(20_000, centers=THREE, random_state=0)
    one, two = (EGMM(3, n_init=1, n_jobs=k, random_state=0).fit(X) for k in (1, 2))
    np.testing.assert_array_equal(one.credal_partition_.mass, two.credal_partition_.mass)
    np.testing.assert_allclose(sorted(one.prototypes_.sum(axis=1)), [0, 9, 9], atol=0.1)


def test_objects_in_a_few_places_leave_everything_finite():
    X = np.repeat([[0.0, 0], [5, 0], [0, 5]], 20, axis=0)
    model = EGMM(3, random_state=0).fit(X)
    assert np.isfinite(np.asarray(model.credal_partition_.mass)).all()
    assert len(np.unique(model.labels_)) == 3


def test_it_is_saved_whole(tmp_path):
    X, _ = make_blobs(90, centers=THREE, random_state=0)
    model = EGMM([2, 3], random_state=0).fit(X)
    model.save(tmp_path / "model")
    twin = EGMM.load(tmp_path / "model")
    np.testing.assert_array_equal(twin.predict_mass(X), model.predict_mass(X))
    np.testing.assert_array_equal(model.predict_mass(X), model.credal_partition_.mass)
    assert (twin.n_clusters_, twin.bics_, twin.loglik_) == (3, model.bics_, model.loglik_)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"n_clusters": []}, "n_clusters must name at least one number"),
        ({"n_clusters": 31}, "at most the number of objects"),
        ({"focal_sets": "some"}, "focal_sets must be a FocalSets or one of"),
        ({"focal_sets": FocalSets.of([[0], [1, 2]], 3)}, r"every single cluster, but \{1\} is not"),
        ({"init": "random"}, "init must be one of hierarchical, k-means"),
        ({"tol": -1}, "tol must be a number of at least 0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
    ],
)
def test_what_cannot_be_is_refused(parameters, sentence):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=sentence):
        EGMM(**{"n_clusters": 3, **parameters}).fit(X)


def test_more_clusters_than_different_objects_are_refused():
    with pytest.raises(ValueError, match="2 different rows"):
        EGMM(3).fit(np.repeat([[0.0], [1.0]], 10, axis=0))

"""Laws of EVCLUS: the objective is what it says, falls, and does not depend on what it must not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from evclus.evclus_reference import all_pairs, distances, kept_pairs, mean_square, phi, seed_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, CredalPartition, FocalSets
from evdist.evclus.rows.numba import MIN_ROWS_PER_THREAD, piece_sums
from evdist.kernels.graph import MIN_COLOURS

#: Float32 dissimilarities against float64 ones, squared and averaged.
OBJECTIVE = {"rtol": 1e-6}
CORNERS = [[0, 0], [12, 0], [0, 12]]


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(150, centers=CORNERS, random_state=0)[0]


def fit(X: np.ndarray, **options) -> EVCLUS:
    given = {"metric": "euclidean", "d0": "q0.5", "n_dissimilarities": 1000, "random_state": 0}
    given |= options
    return EVCLUS(given.pop("n_clusters", 3), **given).fit(X)


# ---------------------------------------------------------------------- the objective
@pytest.mark.filterwarnings("ignore:EVCLUS did not converge")  # with very few pairs
@settings(max_examples=25)
@given(
    n=st.integers(12, 90),
    k=st.integers(1, 40),
    family=st.sampled_from(["simple", "pairs", "full"]),
    seed=st.integers(0, 99),
)
def test_the_objective_is_that_of_the_masses_and_never_rose(n, k, family, seed):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    model = EVCLUS(
        3,
        metric="euclidean",
        n_dissimilarities=k,
        focal_sets=family,
        d0="q0.7",
        random_state=seed,
        n_jobs=1,
    ).fit(X)
    pairs = kept_pairs(n, k, seed_of(model))
    delta = phi(distances(X, pairs), model.d0_)
    mass = model.credal_partition_.mass
    expected = mean_square(mass, model.credal_partition_.focal_sets, pairs, delta)
    np.testing.assert_allclose(model.objective_, expected, **OBJECTIVE, atol=1e-10)  # float32
    assert model.objective_ == model.history_[-1]
    assert len(model.history_) == model.n_iter_ + 1
    assert (np.diff(model.history_) <= 0).all()
    assert (mass >= 0).all()
    np.testing.assert_allclose(mass.sum(axis=1, dtype=float), 1, rtol=0, atol=1e-7)


def test_the_history_falls_from_a_random_start_too(X):
    model = fit(X, init="random", tol=1e-9, n_dissimilarities=20)
    assert model.n_iter_ > 10
    assert (np.diff(model.history_) <= 0).all()
    assert model.history_[0] > 2 * model.objective_


def test_every_object_keeps_k_others():
    n, k = 50, 8
    pairs = kept_pairs(n, k, seed=3)
    np.testing.assert_array_equal(np.bincount(pairs.ravel(), minlength=n), k)


def test_k_of_n_minus_one_or_more_is_the_full_matrix(X):
    n = len(X)
    for k in (n - 1, 10 * n):
        model = fit(X, n_dissimilarities=k)
        delta = phi(distances(X, all_pairs(n)), model.d0_)
        mass, sets = model.credal_partition_.mass, model.credal_partition_.focal_sets
        expected = mean_square(mass, sets, all_pairs(n), delta)
        np.testing.assert_allclose(model.objective_, expected, **OBJECTIVE)


def test_weights_count_pairs_as_often_as_repeated_objects_would(X):
    X, times = X[::5], np.tile([1, 2, 3], 10)
    model = fit(X)
    weighted = EVCLUS(
        3, metric="euclidean", d0=model.d0_, n_dissimilarities=99, random_state=0
    ).fit(X, sample_weight=times)
    mass, sets = weighted.credal_partition_.mass, weighted.credal_partition_.focal_sets
    origin = np.repeat(np.arange(len(X)), times)
    pairs = all_pairs(len(origin))
    pairs = pairs[origin[pairs[:, 0]] != origin[pairs[:, 1]]]
    delta = phi(distances(X[origin], pairs), model.d0_)
    expected = mean_square(mass[origin], sets, pairs, delta)
    np.testing.assert_allclose(weighted.objective_, expected, **OBJECTIVE)
    # It minimises that sum: better than the fit that does not know the weights.
    assert expected <= mean_square(model.credal_partition_.mass[origin], sets, pairs, delta)


def test_equal_weights_change_nothing(X):
    plain, weighted = (
        fit(X),
        EVCLUS(3, metric="euclidean", d0="q0.5", n_dissimilarities=1000, random_state=0),
    )
    weighted.fit(X, sample_weight=np.full(len(X), 7.0))
    np.testing.assert_allclose(
        weighted.credal_partition_.mass, plain.credal_partition_.mass, atol=1e-6
    )


# ---------------------------------------------------------------------- same bits
def test_the_number_of_threads_changes_no_bit():
    n = 9000
    assert n >= 2 * MIN_ROWS_PER_THREAD * MIN_COLOURS  # otherwise nothing would be split
    X = make_blobs(n, centers=4, random_state=1)[0]
    first, *others = (
        EVCLUS(
            4, metric="euclidean", d0="q0.4", n_dissimilarities=16, random_state=5, n_jobs=jobs
        ).fit(X)
        for jobs in (1, 2, 3)
    )
    assert first.n_iter_ > 2
    for other in others:
        np.testing.assert_array_equal(other.credal_partition_.mass, first.credal_partition_.mass)
        assert other.history_ == first.history_
        np.testing.assert_array_equal(other.predict_mass(X[:50]), first.predict_mass(X[:50]))


def test_the_number_of_threads_does_not_choose_another_d0():
    X = make_blobs(80, centers=2, random_state=1)[0]
    one, two = (
        EVCLUS(2, metric="euclidean", random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 2)
    )
    assert one.d0_curve_ == two.d0_curve_
    assert one.d0_ == two.d0_


# ---------------------------------------------------------------------- invariance
def test_the_order_of_the_objects_does_not_matter(X):
    shuffle = np.random.default_rng(0).permutation(len(X))
    a, b = fit(X), fit(X[shuffle])
    assert adjusted_rand_score(a.labels_[shuffle], b.labels_) == 1
    np.testing.assert_allclose(b.objective_, a.objective_, rtol=1e-2)
    mass = a.credal_partition_.mass
    np.testing.assert_allclose(
        np.sort(b.credal_partition_.mass[:, 1:4], axis=1),
        np.sort(mass[shuffle][:, 1:4], axis=1),
        atol=0.05,
    )


@pytest.mark.parametrize("d0", ["q0.5", "auto"])
@pytest.mark.parametrize(("factor", "shift"), [(1e-3, 0.0), (1e3, 0.0), (1.0, 500.0), (2.5, -7.0)])
def test_units_and_origin_do_not_matter(X, d0, factor, shift):
    X = X[::2]
    a, b = fit(X, d0=d0), fit(factor * X + shift, d0=d0)
    assert adjusted_rand_score(a.labels_, b.labels_) == 1
    np.testing.assert_allclose(b.d0_, factor * a.d0_, rtol=1e-4)
    np.testing.assert_allclose(b.objective_, a.objective_, rtol=1e-3)


def test_names_of_clusters_do_not_matter(X):
    start = CredalPartition(
        np.random.default_rng(1).dirichlet(np.ones(5), len(X)), FocalSets.simple(3)
    )
    order = [2, 0, 1]
    a = fit(X, init=start, tol=1e-10, max_iter=2000)
    b = fit(X, init=start.relabel(order), tol=1e-10, max_iter=2000)
    np.testing.assert_allclose(b.objective_, a.objective_, rtol=1e-4)
    same = a.credal_partition_.relabel(order)
    np.testing.assert_array_equal(same.labels(), b.labels_)


def test_a_data_set_given_twice_has_the_same_clusters_twice(X):
    twice = fit(np.concatenate([X, X]))
    np.testing.assert_array_equal(twice.labels_[:150], twice.labels_[150:])
    assert adjusted_rand_score(twice.labels_[:150], fit(X).labels_) == 1


def test_equal_objects_are_no_difficulty():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 5.0]], 20, axis=0)
    model = fit(X, d0="q0.9")
    assert np.isfinite(model.objective_)
    for group in range(3):
        assert len(set(model.labels_[20 * group : 20 * group + 20])) == 1


def test_far_apart_clusters_are_fitted_exactly():
    X = np.repeat([[0.0], [100.0], [200.0]], 8, axis=0)
    model = fit(X, d0=1.0)
    assert model.objective_ < 1e-10
    assert adjusted_rand_score(np.repeat([0, 1, 2], 8), model.labels_) == 1


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(0, 1000))
def test_sums_of_many_pieces_at_once_have_the_bits_of_one_by_one(sizes, first):
    cuts = first + np.concatenate([[0], np.cumsum(sizes)])
    change = -np.exp(np.random.default_rng(sizes).normal(scale=5, size=sum(sizes)))
    expected = [change[a - first : b - first].sum() for a, b in pairwise(cuts)]
    assert piece_sums(change, cuts).tolist() == expected

"""Attributes from dissimilarities: the paper's PCA, landmarks, new objects, bounds on memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from evdist.features import DissimilarityPCA

X, Y = make_blobs(150, centers=[[0, 0, 0], [8, 0, 0], [0, 8, 0]], random_state=3)


def same_up_to_signs(got, expected, tolerance):
    signs = np.sign((got * expected).sum(axis=0))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(got * signs, expected, atol=tolerance * scale)


def test_a_square_matrix_is_the_principal_components_of_its_rows(shared):
    """NN-EVCLUS, section 4.2, on protein with its p = 3."""
    D = pd.read_csv(shared / "data" / "protein_D.csv.gz").to_numpy(float)
    model = DissimilarityPCA(3, metric="precomputed").fit(D)
    plain = PCA(3, svd_solver="full").fit(D)
    same_up_to_signs(model.transform(D), plain.transform(D), 1e-9)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9
    )
    assert model.explained_variance_ratio_.sum() > 0.9


def test_protein_attributes_tell_the_classes(shared):
    D = pd.read_csv(shared / "data" / "protein_D.csv.gz").to_numpy(float)
    y = pd.read_csv(shared / "data" / "protein_labels.csv")["y"]
    features = DissimilarityPCA(3, metric="precomputed").fit_transform(D)
    found = KMeans(4, n_init=10, random_state=0).fit_predict(features)
    assert adjusted_rand_score(y, found) > 0.8


def test_new_objects_are_projected_from_their_dissimilarities_to_the_old_ones():
    """The centred vector of dissimilarities times the projection matrix."""
    old, new = X[:100], X[100:]
    model = DissimilarityPCA(2, metric="precomputed").fit(cdist(old, old))
    D = cdist(new, old)
    expected = (D - cdist(old, old).mean(axis=0)) @ model.components_.T
    np.testing.assert_allclose(model.transform(D), expected, rtol=1e-9, atol=1e-9)


def test_a_metric_gives_what_its_precomputed_matrix_gives():
    model = DissimilarityPCA(2, metric="cityblock").fit(X)
    D = cdist(X, X, "cityblock")
    plain = DissimilarityPCA(2, metric="precomputed").fit(D)
    np.testing.assert_array_equal(model.landmarks_, np.arange(150))
    same_up_to_signs(model.transform(X), plain.transform(D), 1e-5)


def test_a_function_of_two_rows_is_a_metric():
    own = DissimilarityPCA(2, metric=lambda a, b: np.abs(a - b).sum(), n_landmarks=20)
    named = DissimilarityPCA(2, metric="cityblock", n_landmarks=20)
    got = own.set_params(random_state=4).fit(X[:50]).transform(X)
    same_up_to_signs(got, named.set_params(random_state=4).fit(X[:50]).transform(X), 1e-5)


def test_words_may_be_compared_by_a_function():
    words = np.array([["cat"], ["cart"], ["dog"], ["dig"]], dtype=object)
    model = DissimilarityPCA(1, metric=lambda a, b: len(set(a[0]) ^ set(b[0]))).fit(words)
    feature = model.transform(words)[:, 0]
    assert (feature[:2] > 0).all() != (feature[2:] > 0).all()


def test_landmarks_are_drawn_by_the_random_state_and_tell_the_clusters():
    model = DissimilarityPCA(2, n_landmarks=12, random_state=1).fit(X)
    assert model.components_.shape == (2, 12)
    assert (np.diff(model.landmarks_) > 0).all()
    found = KMeans(3, n_init=3, random_state=0).fit_predict(model.transform(X))
    assert adjusted_rand_score(Y, found) == 1
    again = DissimilarityPCA(2, n_landmarks=12, random_state=1).fit(X)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    other = DissimilarityPCA(2, n_landmarks=12, random_state=2).fit(X)
    assert (other.landmarks_ != model.landmarks_).any()


def test_drawn_landmarks_are_the_columns_of_the_matrix():
    model = DissimilarityPCA(2, n_landmarks=12, random_state=1).fit(X)
    D = cdist(X, X[model.landmarks_])
    plain = DissimilarityPCA(2, metric="precomputed").fit(D)
    same_up_to_signs(model.transform(X), plain.transform(D), 1e-5)


@given(seed=st.integers(0, 99))
def test_turning_and_moving_the_objects_changes_no_attribute(seed):
    turn = ortho_group.rvs(3, random_state=seed)
    moved = X @ turn + [30, -4, 0]
    model = DissimilarityPCA(2, n_landmarks=20, random_state=0)
    before = model.fit(X).transform(X)
    same_up_to_signs(model.fit(moved).transform(moved), before, 1e-4)


def test_the_variance_of_the_attributes_is_the_one_explained():
    model = DissimilarityPCA(4, n_landmarks=20, random_state=0).fit(X)
    features = model.transform(X)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(features.var(axis=0), model.explained_variance_, rtol=1e-9)
    assert (np.diff(model.explained_variance_) < 0).all()


def test_digits_are_kept_where_the_spread_is_small_beside_the_mean():
    D = 1e6 + cdist(X, X)
    plain = PCA(2, svd_solver="full").fit(cdist(X, X))
    model = DissimilarityPCA(2, metric="precomputed").fit(D)
    np.testing.assert_allclose(
        model.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-6
    )


def test_nothing_grows_with_the_square_of_the_number_of_objects():
    n = 20_000
    many = np.random.default_rng(0).normal(size=(n, 3))
    model = DissimilarityPCA(2, n_landmarks=100, random_state=0).fit(many[:500])  # compiles
    tracemalloc.start()
    model.fit(many).transform(many)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * n * 100  # not even the (n, L) dissimilarities; (n, n) would be 3.2 GB


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"non-negative, but row 2, column 1 is -3\.0"):
        bad = cdist(X, X)
        bad[2, 1] = -3
        DissimilarityPCA(metric="precomputed").fit(bad)
    with pytest.raises(ValueError, match="metric must be one of"):
        DissimilarityPCA(metric="euclid").fit(X)
    with pytest.raises(ValueError, match=r"at most 5 \(there are 5 landmarks"):
        DissimilarityPCA(6, n_landmarks=5).fit(X)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* expecting 150 features"):
        DissimilarityPCA(metric="precomputed").fit(cdist(X, X)).transform(X)


def test_more_landmarks_than_memory_holds_are_refused_before_work():
    with pytest.raises(MemoryError, match=r"1,000,000 landmarks needs about .* D\[:, landmarks\]"):
        DissimilarityPCA(metric="precomputed").fit(np.ones((2, 1_000_000)))
    with pytest.raises(MemoryError, match="Lower n_landmarks to a few thousand"):
        DissimilarityPCA(n_landmarks=10**6).fit(np.zeros((10**6, 1)))

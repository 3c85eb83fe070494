"""NeighbourLayout: neighbours together, strangers apart, same bits for any number of threads."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from evdist.features import NeighbourLayout
from evdist.features.layout import Edges


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def laid_out(digits):
    return NeighbourLayout(random_state=0).fit(digits[0])


def test_digits_are_told_apart_better_than_by_their_pixels(digits, laid_out):
    X, y = digits
    apart = [
        adjusted_rand_score(y, KMeans(10, n_init=5, random_state=0).fit_predict(Z))
        for Z in (X, laid_out.embedding_)
    ]
    assert apart[0] < 0.7 < 0.75 < apart[1]


def test_neighbours_stay_neighbours(digits, laid_out):
    near = [
        NearestNeighbors(n_neighbors=15).fit(Z).kneighbors()[1]
        for Z in (digits[0], laid_out.embedding_)
    ]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(*near, strict=True)]) > 0.3


def test_same_bits_for_any_number_of_threads(digits, laid_out):
    for threads in (1, 3):
        other = NeighbourLayout(random_state=0, n_jobs=threads).fit(digits[0])
        np.testing.assert_array_equal(other.embedding_, laid_out.embedding_)


def test_new_objects_lie_where_their_like_lie(digits):
    X, y = digits
    made = NeighbourLayout(random_state=0).fit(X[:1500])
    placed = made.transform(X[1500:])
    near = NearestNeighbors(n_neighbors=5).fit(made.embedding_).kneighbors(placed)[1]
    assert (np.median(y[:1500][near], axis=1) == y[1500:]).mean() > 0.9


def test_a_layout_from_its_arrays_places_alike(digits, laid_out):
    again = NeighbourLayout.of_arrays(laid_out.to_arrays())
    np.testing.assert_array_equal(
        again.transform(digits[0][:50]), laid_out.transform(digits[0][:50])
    )


def test_objects_beyond_the_sample_are_placed(digits):
    X, y = digits
    made = NeighbourLayout(n_sample=1000, random_state=0).fit(X)
    labels = KMeans(10, n_init=5, random_state=0).fit_predict(made.embedding_)
    assert made.embedding_.shape == (len(X), 5)
    assert adjusted_rand_score(y, labels) > 0.7


def test_edges_have_the_weights_of_the_fuzzy_union():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    squared, places = NearestNeighbors(n_neighbors=7).fit(X).kneighbors()
    squared = (squared**2).astype(np.float32)
    edges = Edges.among(places.astype(np.int32), squared, 0.0, 1)
    P = np.zeros((60, 60))
    for i in range(60):
        d = np.sqrt(squared[i])
        low, high = 1e-6, 1e3
        for _ in range(200):
            s = np.sqrt(low * high)
            low, high = (low, s) if np.exp(-(d - d[0]) / s).sum() > np.log2(7) else (s, high)
        P[i, places[i]] = np.exp(-(d - d[0]) / s)
    W = np.zeros((60, 60))
    for i in range(60):
        here = slice(edges.first[i], edges.first[i + 1])
        W[i, edges.other[here]] = edges.weight[here]
    np.testing.assert_allclose(W, P + P.T - P * P.T, atol=1e-4)
    assert W.sum() > 0


def test_parts_that_no_edge_joins_stay_apart():
    rng = np.random.default_rng(0)
    parts = [rng.normal(9 * q, 1, (200, 4)) for q in range(6)]
    Y = NeighbourLayout(2, random_state=0).fit(np.vstack(parts)).embedding_
    labels = KMeans(6, n_init=5, random_state=0).fit_predict(Y)
    assert adjusted_rand_score(np.repeat(np.arange(6), 200), labels) > 0.95


def test_copies_are_laid_out_too():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 4)), 20, axis=0)
    assert np.isfinite(NeighbourLayout(2, random_state=0).fit(X).embedding_).all()


def test_two_columns_and_two_objects_are_enough():
    assert NeighbourLayout(random_state=0).fit([[0.0, 1.0], [2.0, 3.0]]).embedding_.shape == (2, 5)


def test_another_metric_is_refused_by_name():
    with pytest.raises(ValueError, match="'euclidean' or 'cosine', got 'cityblock'"):
        NeighbourLayout(metric="cityblock").fit(np.eye(5))


def test_by_angle_the_length_of_a_row_does_not_matter():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(3, 8)), 100, axis=0) + rng.normal(0, 0.1, (300, 8))
    X *= rng.uniform(1, 50, (300, 1))
    Y = NeighbourLayout(2, metric="cosine", random_state=0).fit(X).embedding_
    labels = KMeans(3, n_init=5, random_state=0).fit_predict(Y)
    assert adjusted_rand_score(np.repeat(np.arange(3), 100), labels) > 0.95

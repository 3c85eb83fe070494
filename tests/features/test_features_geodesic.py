"""GeodesicMap: distances along the data, from landmarks, for old and new objects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import cdist
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.features import GeodesicMap
from evdist.features.geodesic import _Anchors, joined_graph


def rows(n, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def exact(X, K, p):
    """All distances along the joined graph, (n, n): slow, and never made by the map."""
    graph = joined_graph(_Anchors.of(X), K)
    graph.data = graph.data**p
    return shortest_path(graph, directed=False) ** (1 / p)


@given(st.integers(0, 10_000), st.sampled_from([1.0, 2.0, 4.0]), st.integers(3, 60))
def test_coordinates_are_distances_to_the_landmarks(seed, p, n):
    X = rows(n, seed=seed)
    K = min(5, n - 1)
    mapped = GeodesicMap(8, n_neighbors=K, power=p, random_state=0).fit(X)
    Z, D = mapped.transform(X), exact(X, K, p)
    np.testing.assert_allclose(Z, D[:, mapped.landmarks_], rtol=1e-6, atol=1e-9)


@given(st.integers(0, 10_000), st.sampled_from([1.0, 2.0, 4.0]))
def test_chebyshev_distances_never_exceed_those_along_the_graph(seed, p):
    X = rows(50, seed=seed)
    mapped = GeodesicMap(10, n_neighbors=5, power=p, random_state=0).fit(X)
    Z, D = mapped.transform(X), exact(X, 5, p)
    found = cdist(Z, Z, "chebyshev")
    assert (found <= D * (1 + 1e-6) + 1e-9).all()
    # To a landmark they are equal.
    L = mapped.landmarks_
    np.testing.assert_allclose(found[:, L], D[:, L], rtol=1e-6, atol=1e-9)


@given(st.integers(0, 10_000))
def test_a_new_object_at_the_place_of_an_old_one_has_its_coordinates(seed):
    X = rows(80, seed=seed)
    mapped = GeodesicMap(10, n_anchors=40, random_state=0).fit(X)
    np.testing.assert_array_equal(mapped.transform(X)[7:8], mapped.transform(X[7:8]))


def test_parts_are_joined_by_their_shortest_gap():
    left, right = rows(30) * 0.1, rows(30, seed=1) * 0.1 + [100.0, 0.0]
    X = np.concatenate([left, right])
    whole = joined_graph(_Anchors.of(X), 3)
    assert connected_components(whole[:30, :30], directed=False)[0] == 1
    assert connected_components(whole, directed=False)[0] == 1
    gap = cdist(left, right).min()
    between = whole[:30, 30:]
    assert between.nnz == 1
    assert between.data[0] == pytest.approx(gap)


def test_larger_powers_make_gaps_count_more():
    X, y = make_moons(300, noise=0.05, random_state=0)

    def contrast(p):
        Z = GeodesicMap(50, power=p, random_state=0).fit_transform(X)
        D = cdist(Z, Z, "chebyshev")
        same = y[:, None] == y
        return D[~same].min() / D[same].max()  # the gap against the longest way within

    assert contrast(1.0) < contrast(2.0) < contrast(4.0)


@pytest.mark.parametrize(("make", "shape"), [(make_moons, {}), (make_circles, {"factor": 0.5})])
def test_evclus_finds_clusters_of_any_shape(make, shape):
    X, y = make(400, noise=0.05, random_state=1, **shape)
    Z = GeodesicMap(random_state=0).fit_transform(X)
    found = EVCLUS(2, metric="chebyshev", random_state=0).fit(Z).labels_
    assert adjusted_rand_score(y, found) > 0.99


def test_copies_and_fewer_objects_than_neighbours():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]], 4, axis=0)
    Z = GeodesicMap(12, n_neighbors=3, random_state=0).fit_transform(X)
    assert Z.shape == (12, 12)
    assert np.isfinite(Z).all()
    assert np.ptp(Z[:4], axis=0).max() < 1e-6
    two = GeodesicMap(random_state=0).fit_transform(X[[0, 11]])
    assert cdist(two, two, "chebyshev")[0, 1] == pytest.approx(5.0)


@pytest.mark.parametrize("name", ["n_landmarks", "n_neighbors", "n_anchors"])
def test_counts_are_checked(name):
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got 0"):
        GeodesicMap(**{name: 0}).fit(rows(10))


def test_the_power_is_checked():
    with pytest.raises(ValueError, match="power must be a number above 0, got -1"):
        GeodesicMap(power=-1).fit(rows(10))

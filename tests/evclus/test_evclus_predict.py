"""New objects: placed against the fitted ones, one by one; and appended."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS

CORNERS = [[0, 0], [10, 0], [0, 10]]


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(700, centers=CORNERS, random_state=5)


@pytest.fixture(scope="module")
def X(blobs) -> np.ndarray:
    return blobs[0][:500]


@pytest.fixture(scope="module")
def new(blobs) -> np.ndarray:
    return blobs[0][500:]


@pytest.fixture(scope="module")
def model(X) -> EVCLUS:
    return EVCLUS(3, metric="euclidean", d0="q0.5", n_dissimilarities=50, random_state=0).fit(X)


def test_fitted_objects_are_found_again(X, model):
    assert adjusted_rand_score(model.predict(X), model.labels_) > 0.98
    away = np.abs(model.predict_mass(X) - model.credal_partition_.mass).mean()
    assert away < 0.02


def test_more_objects_than_landmarks_are_found_again():
    X = make_blobs(4000, centers=CORNERS, random_state=5)[0]
    model = EVCLUS(3, metric="euclidean", d0="q0.5", n_dissimilarities=50, random_state=0).fit(X)
    assert adjusted_rand_score(model.predict(X), model.labels_) > 0.98


def test_new_objects_of_known_clusters_get_their_labels(blobs, new, model):
    of = {t: np.bincount(model.labels_[blobs[1][:500] == t]).argmax() for t in range(3)}
    np.testing.assert_array_equal(model.predict(new), [of[t] for t in blobs[1][500:]])


def test_masses_are_masses(new, model):
    mass = model.predict_mass(new)
    assert mass.shape == (200, 5)
    assert mass.dtype == np.float32
    assert (mass >= 0).all()
    np.testing.assert_allclose(mass.sum(axis=1, dtype=float), 1, atol=1e-6)


def test_an_object_far_from_all_is_an_outlier(model):
    mass = model.predict_mass([[500.0, 500.0]])
    assert mass[0].argmax() == 0
    assert mass[0, 0] > 0.99


def test_an_object_between_two_clusters_is_in_doubt(model):
    (mass,) = model.predict_mass([[5.0, 0.0]])
    (sure,) = model.predict_mass([[0.0, 0.0]])
    assert mass.max() < sure.max()
    assert sure[1:4].max() > 0.9


def test_what_an_object_gets_does_not_depend_on_its_company(new, model):
    together = model.predict_mass(new)
    np.testing.assert_array_equal(model.predict_mass(new[::-1])[::-1], together)
    np.testing.assert_array_equal(model.predict_mass(new[33:34])[0], together[33])


@pytest.mark.parametrize("init", ["random", "given"])
def test_every_start_leaves_a_model_that_predicts(X, model, init):
    start = model.credal_partition_ if init == "given" else "random"
    other = EVCLUS(
        3, metric="euclidean", d0="q0.5", n_dissimilarities=50, init=start, n_init=3, random_state=0
    ).fit(X)
    assert adjusted_rand_score(other.predict(X), other.labels_) > 0.98


def test_a_fit_with_more_focal_sets_predicts_on_them(X):
    model = EVCLUS(3, metric="euclidean", focal_sets="select", d0="q0.5", random_state=0).fit(X)
    assert model.predict_mass(X[:4]).shape == (4, len(model.credal_partition_.focal_sets))


@pytest.mark.parametrize("n", [500, 1500])
def test_precomputed_rows_are_dissimilarities_to_all_fitted_objects(new, n):
    X = make_blobs(n, centers=CORNERS, random_state=5)[0]
    model = EVCLUS(3, metric="precomputed", d0="q0.5", n_dissimilarities=50, random_state=0)
    model.fit(cdist(X, X))
    places = model.predict(cdist(X, X))
    assert adjusted_rand_score(places, model.labels_) > 0.98
    assert model.predict_mass(np.full((1, n), 1e3))[0, 0] > 0.99
    with pytest.raises(ValueError, match=f"X has 7 features, but EVCLUS is expecting {n}"):
        model.predict(np.zeros((2, 7)))
    with pytest.raises(ValueError, match=r"non-negative, but D\[0, 0\] = -1.0"):
        model.predict(np.full((1, n), -1.0))


@pytest.mark.parametrize("metric", ["mahalanobis", "cosine", "cityblock"])
def test_metrics_measure_new_objects_as_they_did_the_fitted(X, metric):
    Z = np.column_stack([X + 20, X[:, 0] * X[:, 1]])
    model = EVCLUS(3, metric=metric, d0="q0.5", n_dissimilarities=200, random_state=0).fit(Z)
    np.testing.assert_array_less(
        np.abs(model.predict_mass(Z) - model.credal_partition_.mass).mean(axis=0), 0.03
    )


def test_a_callable_metric_places_new_objects(X, new, model):
    other = EVCLUS(
        3, metric=lambda a, b: float(np.hypot(*(a - b))), d0="q0.5", n_dissimilarities=50,
        random_state=0,
    ).fit(X[:200])  # fmt: skip
    assert adjusted_rand_score(other.predict(new), model.predict(new)) == 1
    with pytest.raises(ValueError, match="X has 3 features, but EVCLUS is expecting 2"):
        other.predict(np.zeros((4, 3)))


def test_bad_new_objects_are_refused(model):
    with pytest.raises(ValueError, match="row 1, column 0 is nan"):
        model.predict([[0.0, 1.0], [np.nan, 2.0]])
    with pytest.raises(ValueError, match="X has 3 features, but EVCLUS is expecting 2 features"):
        model.predict(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="Column 'b' of X is not numeric: row 0 holds 'x'"):
        model.predict(pd.DataFrame({"a": [1.0], "b": ["x"]}))


def test_a_pair_list_cannot_place_new_objects():
    rows = np.array([[0, 1, 1.0], [1, 2, 2.0], [0, 2, 3.0]])
    model = EVCLUS(2, metric="pairs", random_state=0).fit(rows)
    with pytest.raises(ValueError, match="fitted to a list of pairs cannot place new objects"):
        model.predict(rows)


def test_append_adds_objects_and_moves_none(X, new):
    model = EVCLUS(3, metric="euclidean", d0="q0.5", random_state=0).fit(X)
    before, placed = model.credal_partition_.mass.copy(), model.predict_mass(new)
    assert model.append(new) is model
    assert model.credal_partition_.n_objects == 700
    np.testing.assert_array_equal(model.credal_partition_.mass[:500], before)
    np.testing.assert_array_equal(model.credal_partition_.mass[500:], placed)
    assert len(model.labels_) == 700
    np.testing.assert_array_equal(model.predict_mass(new), placed)


def test_dask_in_dask_out():
    """Rows of a Dask array are placed lazily, chunk by chunk, with the same bits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + 5 * rng.integers(0, 2, (300, 1))
    model = EVCLUS(2, metric="euclidean", n_dissimilarities=40, d0="q0.5", random_state=0).fit(X)
    lazy = da.from_array(X, chunks=(70, 2))
    mass = model.predict_mass(lazy)
    assert isinstance(mass, da.Array)
    assert isinstance(model.predict(lazy), da.Array)
    np.testing.assert_array_equal(mass.compute(), model.predict_mass(X))
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(X))

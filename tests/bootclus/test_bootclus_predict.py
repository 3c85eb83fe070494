"""Bootclus places new objects, and keeps doing so after it was saved."""

from __future__ import annotations

import pickle

import dask.array as da
import numpy as np
import pytest
from bootclus.bootclus_cases import three_gaussians

from evdist import Bootclus


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return three_gaussians(120)[0]


@pytest.fixture(scope="module")
def model(X) -> Bootclus:
    return Bootclus(3, n_bootstrap=30, covariance_models="EII", random_state=0).fit(X)


def test_fitted_objects_are_placed_where_they_are(X, model):
    mass = model.predict_mass(X)
    np.testing.assert_allclose(mass.sum(axis=1), 1.0, atol=1e-6)
    assert (mass[:, 0] == 0).all()
    assert np.abs(mass - model.credal_partition_.mass).mean() < 0.005
    assert (model.predict(X) == model.labels_).mean() > 0.98


def test_each_row_is_placed_by_itself(X, model):
    whole = model.predict_mass(X)
    np.testing.assert_array_equal(model.predict_mass(X[7:8]), whole[7:8])
    np.testing.assert_array_equal(model.predict_mass(X[::-1]), whole[::-1])


def test_dask_gives_dask(X, model):
    lazy = model.predict_mass(da.from_array(X, chunks=(50, 2)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), model.predict_mass(X))


def test_between_two_clusters_doubt_is_shared(model):
    middle = model.mixture_.means_[:2].mean(axis=0, keepdims=True)
    mass = model.predict_mass(middle)[0]
    sets = model.credal_partition_.focal_sets
    assert mass[sets.index((0, 1))] > 0.3


def test_a_saved_model_predicts_the_same_bits(X, model, tmp_path):
    model.save(tmp_path / "model")
    loaded = Bootclus.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_mass(X), model.predict_mass(X))
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(loaded.intervals_.upper, model.intervals_.upper)
    np.testing.assert_array_equal(loaded.mixture_.predict_proba(X),
                                  model.mixture_.predict_proba(X))  # fmt: skip
    assert loaded.mixture_.bics_.equals(model.mixture_.bics_)
    for name in ("covariance_model_", "n_clusters_", "n_failed_", "objective_", "history_"):
        assert getattr(loaded, name) == getattr(model, name)
    loaded.append(X[:3])
    assert loaded.credal_partition_.n_objects == 123


def test_a_pickled_model_predicts_the_same_bits(X, model):
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict_mass(X), model.predict_mass(X))

"""NNEVCLUS as scikit-learn knows an estimator, and what it refuses."""

from __future__ import annotations

import doctest
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from evdist import NNEVCLUS, FocalSets

QUICK = {"hidden": (8,), "d0": "q0.5", "n_init": 1, "device": "cpu", "random_state": 0}


@parametrize_with_checks([NNEVCLUS(2, **{**QUICK, "max_iter": 500, "tol": 0.05})])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_example_of_the_docstring_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(NNEVCLUS, "NNEVCLUS")
    assert len(example.examples) == 4
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=3)[0]


@pytest.fixture(scope="module")
def model(X) -> NNEVCLUS:
    return NNEVCLUS(3, **QUICK).fit(X)


def test_it_finds_plain_clusters(X, model):
    truth = make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=3)[1]
    assert adjusted_rand_score(truth, model.labels_) == 1
    assert model.converged_
    assert model.credal_partition_.mass.shape == (120, 5)
    assert model.credal_partition_.mass.dtype == np.float32


def test_the_partition_is_what_the_network_gives(X, model):
    np.testing.assert_array_equal(model.predict_mass(X), model.credal_partition_.mass)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_what_an_object_gets_does_not_depend_on_the_others(X, model):
    together = model.predict_mass(X)
    alone = np.concatenate([model.predict_mass(X[i : i + 1]) for i in range(0, 120, 17)])
    np.testing.assert_array_equal(alone, together[::17])


def test_a_clone_has_the_same_fit(X, model):
    twin = clone(model).fit(X)
    np.testing.assert_array_equal(twin.credal_partition_.mass, model.credal_partition_.mass)
    assert twin.history_ == model.history_


def test_a_fitted_model_survives_pickling(X, model):
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict_mass(X[:9]), model.predict_mass(X[:9]))


def test_lazy_objects_get_lazy_masses(X, model):
    da = pytest.importorskip("dask.array")
    lazy = model.predict_mass(da.from_array(X, chunks=(50, 2)))
    assert hasattr(lazy, "compute")
    np.testing.assert_array_equal(lazy.compute(), model.predict_mass(X))


def test_frames_give_names_and_are_asked_for_them_again(X):
    frame = pd.DataFrame(X, columns=["length", "width"])
    model = NNEVCLUS(3, **QUICK).fit(frame)
    with pytest.raises(ValueError, match="feature names should match those that were passed"):
        model.predict(frame[["width", "length"]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"hidden": ()}, "hidden must name at least one layer"),
        ({"hidden": (3, 0)}, "hidden must be an integer of at least 1, got 0"),
        ({"batch_size": 1}, "batch_size must be an integer of at least 2, got 1"),
        ({"optimizer": "sgd"}, "optimizer must be one of auto, lbfgs, adaptive, rmsprop, adam"),
        (
            {"optimizer": "adam"},
            "all objects at once takes optimizer lbfgs or adaptive, got 'adam'",
        ),
        ({"optimizer": "lbfgs", "batch_size": 40}, "mini-batches of 40 takes optimizer rmsprop or"),
        ({"label_weight": 1.0}, "label_weight must be below 1, got 1.0"),
        ({"gate_outliers": 1.5}, "gate_outliers must be a number above 0 and below 1"),
        ({"d0": "far"}, "d0 must be a positive number, a quantile"),
        (
            {"focal_sets": FocalSets.simple(2)},
            "focal_sets are over 2 clusters, but n_clusters is 3",
        ),
        ({"device": "tpu"}, 'device must be "cpu", "cuda", .* got .tpu'),
        ({"checkpoint": "x", "random_state": None}, "checkpoint needs a random_state"),
        ({"centres": [0, 1]}, "centres must be 3 different objects of 0..119"),
        ({"centres": "means"}, "centres must be one of peaks, evclus, got 'means'"),
        ({"metric": "pairs"}, "NNEVCLUS needs the dissimilarity of any two objects"),
    ],
)
def test_bad_parameters_are_refused_before_work(X, given, message):
    with pytest.raises(ValueError, match=message):
        NNEVCLUS(**{"n_clusters": 3, **QUICK, **given}).fit(X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": [0, 1]}, r"labels must have shape \(120,\), got \(2,\)"),
        ({"labels": [3, *[-1] * 119]}, "clusters 0..2, or -1 where unknown, but object 0 has"),
        ({"must_link": [(0, 500)]}, "must_link must name objects 0..119"),
        ({"metric_features": np.zeros((5, 2))}, "metric_features has 5 rows, X has 120"),
    ],
)
def test_bad_knowledge_is_refused(X, given, message):
    with pytest.raises(ValueError, match=message):
        NNEVCLUS(3, **QUICK).fit(X, **given)


def test_cuda_is_refused_where_there_is_none(X):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    for device in ("cuda", "cuda:1"):
        with pytest.raises(ValueError, match=f"device='{device}' needs a GPU that torch can use"):
            NNEVCLUS(3, **{**QUICK, "device": device}).fit(X)

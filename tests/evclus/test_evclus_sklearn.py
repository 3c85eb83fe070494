"""EVCLUS as scikit-learn knows an estimator: its own checks, clones, frames and labels."""

from __future__ import annotations

import doctest
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from evdist import EVCLUS


def expected_failures(estimator: EVCLUS) -> dict[str, str]:
    weighted = (
        "pairs of objects are drawn at random, so a repeated object draws other pairs than one of "
        "double weight; and a weight of zero is refused, since such an object would get masses "
        "that nothing determines"
    )
    # Sparse rows are tested in test_evclus_objects.py.
    classifier = "the check takes an estimator with predict_proba for a classifier"
    return {
        "check_sample_weight_equivalence_on_dense_data": weighted,
        "check_sample_weight_equivalence_on_sparse_data": weighted,
        "check_estimator_sparse_array": classifier,
        "check_estimator_sparse_matrix": classifier,
    }


@parametrize_with_checks(
    [EVCLUS(n_clusters=2, d0="q0.5", n_jobs=1, random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_example_of_the_docstring_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(EVCLUS, "EVCLUS")
    assert len(example.examples) == 4
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=3)[0]


@pytest.fixture(scope="module")
def model(X) -> EVCLUS:
    return EVCLUS(n_clusters=3, random_state=0).fit(X)


def test_the_defaults_alone_find_plain_clusters(X, model):
    truth = make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=3)[1]
    assert adjusted_rand_score(truth, model.labels_) == 1
    assert model.converged_
    assert model.credal_partition_.mass.shape == (120, 5)
    assert model.credal_partition_.mass.dtype == np.float32
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")


def test_fit_predict_gives_the_labels_of_fit(X, model):
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.labels_)


def test_a_clone_has_the_same_parameters_and_the_same_fit(X, model):
    twin = clone(model)
    assert not hasattr(twin, "labels_")
    twin.fit(X)
    np.testing.assert_array_equal(twin.credal_partition_.mass, model.credal_partition_.mass)
    assert twin.history_ == model.history_


def test_parameters_are_stored_untouched():
    init = np.full((3, 4), 0.25)
    model = EVCLUS(2, init=init, d0="q0.3", callbacks=[print], n_jobs=2)
    parameters = model.get_params()
    assert parameters["init"] is init
    assert (parameters["d0"], parameters["n_jobs"]) == ("q0.3", 2)
    assert EVCLUS().set_params(**parameters).init is init


def test_a_fitted_model_survives_pickling(X, model):
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict_mass(X[:9]), model.predict_mass(X[:9]))


def test_frames_give_names_and_are_asked_for_them_again(X):
    frame = pd.DataFrame(X, columns=["length", "width"])
    model = EVCLUS(3, d0="q0.5", random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["length", "width"]
    assert len(model.predict(frame[:5])) == 5
    with pytest.raises(ValueError, match="feature names should match those that were passed"):
        model.predict(frame[["width", "length"]])


def test_it_stands_at_the_end_of_a_pipeline(X):
    line = make_pipeline(StandardScaler(), EVCLUS(3, d0="q0.5", random_state=0)).fit(X)
    assert adjusted_rand_score(line.predict(X), line[-1].labels_) > 0.95


def test_an_unfitted_model_says_so(X):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        EVCLUS().predict(X)


def test_two_random_states_draw_different_pairs(X):
    a, b = (EVCLUS(3, n_dissimilarities=20, d0=5.0, random_state=s).fit(X) for s in (0, 1))
    assert a.objective_ != b.objective_


def test_a_random_state_object_is_used_up_as_scikit_learn_does(X):
    state = np.random.RandomState(0)
    options = {"n_dissimilarities": 20, "d0": 5.0}
    a = EVCLUS(3, random_state=state, **options).fit(X)
    b = EVCLUS(3, random_state=state, **options).fit(X)
    c = EVCLUS(3, random_state=0, **options).fit(X)
    assert a.objective_ == c.objective_ != b.objective_

"""ECM, CECM and RECM as scikit-learn knows estimators: its own checks, clones, frames, examples."""

from __future__ import annotations

import doctest
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from evdist import CECM, ECM, RECM

WEIGHTS = (
    "a weight of zero is refused, since such an object would get masses that nothing determines; "
    "and k-means++ draws other seeds from repeated objects than from weighted ones"
)


def expected_failures(estimator) -> dict[str, str]:
    return {"check_sample_weight_equivalence_on_dense_data": WEIGHTS}


@parametrize_with_checks(
    [
        ECM(n_clusters=2, n_init=1, n_jobs=1, random_state=0),
        CECM(n_clusters=2, n_init=1, n_jobs=1, random_state=0),
        RECM(n_clusters=2, metric="euclidean", n_init=1, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [ECM, CECM, RECM])
def test_the_example_of_the_docstring_is_true(kind):
    (example,) = doctest.DocTestFinder(recurse=False).find(kind, kind.__name__)
    assert len(example.examples) >= 4
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=3)[0]


@pytest.fixture(scope="module", params=["ECM", "adaptive ECM", "CECM", "RECM"])
def model(request, X):
    return {
        "ECM": ECM(3, random_state=0),
        "adaptive ECM": ECM(3, metric="adaptive", focal_sets="select", random_state=0),
        "CECM": CECM(3, random_state=0),
        "RECM": RECM(3, metric="euclidean", random_state=0),
    }[request.param].fit(X)


def test_the_masses_of_the_fitted_objects_are_those_of_the_same_objects_as_new_ones(X, model):
    np.testing.assert_allclose(model.predict_mass(X), model.credal_partition_.mass, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_clone_has_the_same_fit(X, model):
    twin = clone(model)
    assert not hasattr(twin, "labels_")
    np.testing.assert_array_equal(twin.fit_predict(X), model.labels_)
    assert twin.history_ == model.history_


def test_a_fitted_model_survives_pickling(X, model):
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict_mass(X[:9]), model.predict_mass(X[:9]))


def test_a_saved_model_predicts_the_same_bits_and_grows_where_it_lies(X, model, tmp_path):
    model.save(tmp_path / "model")
    twin = type(model).load(tmp_path / "model")
    np.testing.assert_array_equal(twin.predict_mass(X), model.predict_mass(X))
    np.testing.assert_array_equal(twin.labels_, model.labels_)
    assert twin.history_ == model.history_
    twin.append(X[:7])
    again = type(model).load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.credal_partition_.mass[120:], model.predict_mass(X[:7]), strict=True
    )


def test_prototypes_and_metric_come_back_with_a_saved_model(X, model, tmp_path):
    if isinstance(model, RECM):
        names = ("weights_", "shift_")
    else:
        names = ("prototypes_", "metric_")
    model.save(tmp_path / "model")
    twin = type(model).load(tmp_path / "model")
    for name in names:
        np.testing.assert_array_equal(getattr(twin, name), getattr(model, name))


def test_an_unfitted_model_says_so(X, model):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clone(model).predict(X)


def test_frames_give_names_and_are_asked_for_them_again(X):
    frame = pd.DataFrame(X, columns=["length", "width"])
    model = ECM(3, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["length", "width"]
    with pytest.raises(ValueError, match="feature names should match those that were passed"):
        model.predict(frame[["width", "length"]])


def test_it_stands_at_the_end_of_a_pipeline(X):
    line = make_pipeline(StandardScaler(), ECM(3, random_state=0)).fit(X)
    np.testing.assert_array_equal(line.predict(X), line[-1].labels_)


def test_a_dask_array_of_new_objects_gives_a_dask_array(X):
    da = pytest.importorskip("dask.array")
    model = ECM(3, random_state=0).fit(da.from_array(X, chunks=(50, 1)))
    lazy = model.predict_mass(da.from_array(X, chunks=(37, 2)))
    assert hasattr(lazy, "dask")
    np.testing.assert_array_equal(np.asarray(lazy), model.credal_partition_.mass)
    relational = RECM(3, metric="euclidean", random_state=0).fit(X)
    lazy = relational.predict_mass(da.from_array(X, chunks=(37, 2)))
    assert hasattr(lazy, "dask")
    np.testing.assert_allclose(np.asarray(lazy), relational.predict_mass(X), atol=1e-6)


def test_a_square_matrix_gives_the_masses_of_its_attributes(X):
    by_metric = RECM(3, metric="euclidean", random_state=0).fit(X)
    D = squareform(pdist(X, "sqeuclidean"))
    by_matrix = RECM(3, random_state=0).fit(D)
    assert by_matrix.__sklearn_tags__().input_tags.pairwise
    np.testing.assert_allclose(
        by_matrix.credal_partition_.mass, by_metric.credal_partition_.mass, atol=1e-6
    )

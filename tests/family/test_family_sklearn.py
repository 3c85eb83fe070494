"""The whole family as scikit-learn knows estimators; saving, Dask, progress, examples."""

from __future__ import annotations

import doctest
from contextlib import nullcontext

import dask.array as da
import numpy as np
import pytest
from sklearn.base import is_classifier, is_clusterer
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

import evdist
from evdist import (
    BCM,
    BPEC,
    CCM,
    MECM,
    CredalPartition,
    ECMdd,
    EKNNClassifier,
    EKNNclus,
    EvidentialNN,
)

ZERO_WEIGHT = "a weight of zero is refused: leave the object out"
MODELS = {
    "BPEC": BPEC(2),
    "BCM": BCM(2, random_state=0),
    "CCM": CCM(2, random_state=0),
    "sECMdd": ECMdd(2, random_state=0),
    "wECMdd": ECMdd(2, weighted=True, random_state=0),
    "MECM": MECM(2, random_state=0),
    "EKNNclus": EKNNclus(15, random_state=0),
    "EKNNClassifier": EKNNClassifier(5),
    "EvidentialNN": EvidentialNN(4, max_iter=30, random_state=0),
}


def expected_failures(estimator) -> dict[str, str]:
    weighted = isinstance(estimator, BCM | CCM | EvidentialNN)
    failures = ["check_sample_weight_equivalence_on_dense_data"] if weighted else []
    if isinstance(estimator, EvidentialNN):
        failures.append("check_classifiers_one_label_sample_weights")
    return dict.fromkeys(failures, ZERO_WEIGHT)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@parametrize_with_checks(list(MODELS.values()), expected_failed_checks=expected_failures)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "name", ["BCM", "BPEC", "CCM", "ECMdd", "EKNNClassifier", "EKNNclus", "EvidentialNN", "MECM"]
)
def test_the_examples_of_the_docstrings_are_true(name):
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(evdist, name), name)
    assert len(example.examples) >= 3
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(80, centers=[[0, 0], [6, 0]], random_state=3)


@pytest.fixture(params=MODELS)
def fitted(request, blobs):
    with (
        pytest.warns(match="did not converge") if request.param == "EvidentialNN" else nullcontext()
    ):
        return MODELS[request.param].fit(*blobs)


def test_what_is_saved_predicts_the_same_bits(fitted, blobs, tmp_path):
    fitted.save(tmp_path / "model")
    twin = type(fitted).load(tmp_path / "model")
    new = blobs[0][:9] + 0.2
    np.testing.assert_array_equal(twin.predict_mass(new), fitted.predict_mass(new))
    np.testing.assert_array_equal(twin.predict(new), fitted.predict(new))
    assert twin.history_ == fitted.history_
    assert twin.objective_ == fitted.objective_


def test_dask_in_dask_out(fitted, blobs):
    rows = da.from_array(blobs[0], chunks=(17, 2))
    lazy = fitted.predict_mass(rows)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), fitted.predict_mass(blobs[0]))


def test_masses_are_masses(fitted, blobs):
    partition = fitted.credal_partition_
    assert partition.n_objects == 80
    new = CredalPartition(fitted.predict_mass(10 * blobs[0]), partition.focal_sets)
    np.testing.assert_allclose(np.asarray(new.mass).sum(axis=1), 1.0, atol=1e-6)
    assert is_classifier(fitted) != is_clusterer(fitted)


def test_new_objects_join_a_partition(fitted, blobs):
    before = np.asarray(fitted.credal_partition_.mass).copy()
    fitted.append(blobs[0][:5])
    np.testing.assert_array_equal(fitted.credal_partition_.mass[:80], before)
    assert len(fitted.labels_) == 85


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_every_iteration_is_reported_once(name, blobs):
    news: list = []
    parameters = MODELS[name].get_params()
    one_start = {"n_init": 1} if "n_init" in parameters else {}
    model = type(MODELS[name])(**{**parameters, **one_start, "callbacks": [news.append]})
    model.fit(*blobs)
    assert [item.sweep for item in news] == list(range(1, model.n_iter_ + 1))
    assert [item.objective for item in news] == model.history_[1:]
    assert news[-1].objective == model.objective_

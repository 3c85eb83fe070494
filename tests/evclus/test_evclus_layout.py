"""metric="layout": on a layout of neighbours, for new objects, on disk, on workers and in jobs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, run
from evdist.features import NeighbourLayout


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def model(digits):
    return EVCLUS(10, metric="layout", random_state=0).fit(digits[0])


def test_digits_are_told_apart_better_than_by_their_pixels(digits, model):
    X, y = digits
    straight = EVCLUS(10, metric="euclidean", random_state=0).fit(X)
    assert adjusted_rand_score(y, straight.labels_) < 0.7
    assert adjusted_rand_score(y, model.labels_) > 0.75
    assert model.metric_ == "layout"


def test_it_is_the_layout_and_the_euclidean_distance(digits, model):
    X, _ = digits
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    Z = NeighbourLayout(random_state=seed).fit_transform(X)
    alone = EVCLUS(10, metric="euclidean", random_state=0).fit(Z)
    np.testing.assert_array_equal(model.credal_partition_.mass, alone.credal_partition_.mass)


def test_new_objects_are_placed_by_their_neighbours(digits, model, tmp_path):
    X, _ = digits
    assert (model.predict(X) == model.labels_).mean() > 0.9
    model.save(tmp_path / "model")
    again = EVCLUS.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_mass(X[:99]), model.predict_mass(X[:99]))
    assert again.metric_ == "layout"


@pytest.mark.process
def test_workers_give_the_same_bits(digits, model, two_workers):
    far = EVCLUS(10, metric="layout", random_state=0, n_jobs=1).fit(digits[0], client=two_workers)
    np.testing.assert_array_equal(far.credal_partition_.mass, model.credal_partition_.mass)


def test_jobs_take_it(digits, model, tmp_path):
    np.save(tmp_path / "x.npy", digits[0])
    data = {"url": str(tmp_path / "x.npy")}
    given = {"n_clusters": 10, "metric": "layout"}
    done = run({"data": data, "folder": str(tmp_path / "job"), "parameters": given})
    mass = np.asarray(done.model().credal_partition_.mass)
    np.testing.assert_array_equal(mass, model.credal_partition_.mass)

"""metric="geodesic": along the data, for new objects, on disk, on workers and in jobs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, run
from evdist.features import GeodesicMap


@pytest.fixture(scope="module")
def rings():
    return make_circles(300, factor=0.4, noise=0.05, random_state=0)


@pytest.fixture(scope="module")
def model(rings):
    return EVCLUS("auto", metric="geodesic", d0="q0.9", random_state=0).fit(rings[0])


def test_a_ring_around_a_ball_is_found(rings, model):
    X, y = rings
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert (
        adjusted_rand_score(
            y, EVCLUS(2, metric="euclidean", d0="q0.9", random_state=0).fit(X).labels_
        )
        < 0.1
    )
    assert model.n_features_in_ == 2


def test_it_is_the_map_and_the_chebyshev_distance(rings, model):
    X, _ = rings
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    Z = GeodesicMap(random_state=seed).fit_transform(X)
    alone = EVCLUS(2, metric="chebyshev", d0="q0.9", random_state=0).fit(Z)
    np.testing.assert_array_equal(model.credal_partition_.mass, alone.credal_partition_.mass)


def test_new_objects_are_mapped_alike(rings, model, tmp_path):
    X, _ = rings
    new = np.array([[0.4, 0.0], [0.0, -0.4], [1.0, 0.0], [0.0, 1.0]])
    found = model.predict(new)
    assert found[0] == found[1] != found[2] == found[3]
    model.save(tmp_path / "model")
    again = EVCLUS.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_mass(X), model.predict_mass(X))
    assert again.metric == "geodesic"


@pytest.mark.process
def test_workers_give_the_same_bits(rings, model, two_workers):
    X, _ = rings
    far = EVCLUS("auto", metric="geodesic", d0="q0.9", random_state=0).fit(X, client=two_workers)
    np.testing.assert_array_equal(far.credal_partition_.mass, model.credal_partition_.mass)


def test_jobs_take_it_and_place_new_objects(rings, model, tmp_path):
    X, _ = rings
    np.save(tmp_path / "x.npy", X)
    data = {"url": str(tmp_path / "x.npy")}
    given = {"n_clusters": "auto", "metric": "geodesic", "d0": "q0.9"}
    done = run({"data": data, "folder": str(tmp_path / "job"), "parameters": given})
    mass = np.asarray(done.model().credal_partition_.mass)
    np.testing.assert_array_equal(mass, model.credal_partition_.mass)
    task = {"task": "predict", "model": str(tmp_path / "job"), "folder": str(tmp_path / "new")}
    placed = run({**task, "data": data})
    np.testing.assert_array_equal(np.asarray(placed.partition.mass), model.predict_mass(X))

"""metric="auto": the one of two metrics whose clusters cut fewer neighbours apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, run
from evdist.evclus.shapes import conductance


@pytest.fixture(scope="module")
def rings():
    return make_circles(300, factor=0.4, noise=0.05, random_state=0)


@pytest.fixture(scope="module")
def model(rings):
    return EVCLUS(2, metric="auto", d0="q0.9", random_state=0).fit(rings[0])


def test_rings_are_measured_along_the_data(rings, model):
    X, y = rings
    assert model.metric_ == "geodesic"
    assert adjusted_rand_score(y, model.labels_) == 1.0
    same = EVCLUS(2, metric="geodesic", d0="q0.9", random_state=0).fit(X)
    np.testing.assert_array_equal(model.credal_partition_.mass, same.credal_partition_.mass)


def test_clusters_that_touch_are_measured_straight():
    X, _ = make_blobs(400, centers=[[0, 0], [3, 0]], random_state=0)
    auto = EVCLUS(2, metric="auto", d0="q0.9", random_state=0).fit(X)
    assert auto.metric_ == "euclidean"
    same = EVCLUS(2, metric="euclidean", d0="q0.9", random_state=0).fit(X)
    np.testing.assert_array_equal(auto.credal_partition_.mass, same.credal_partition_.mass)


def test_one_cluster_needs_no_trial():
    X, _ = make_blobs(60, centers=1, random_state=0)
    assert EVCLUS(1, metric="auto", d0="q0.9", random_state=0).fit(X).metric_ == "euclidean"


def test_the_metric_taken_is_kept_on_disk(rings, model, tmp_path):
    X, _ = rings
    model.save(tmp_path / "model")
    again = EVCLUS.load(tmp_path / "model")
    assert (again.metric, again.metric_) == ("auto", "geodesic")
    np.testing.assert_array_equal(again.predict_mass(X), model.predict_mass(X))


def test_jobs_take_it(rings, model, tmp_path):
    np.save(tmp_path / "x.npy", rings[0])
    done = run({
        "data": {"url": str(tmp_path / "x.npy")}, "folder": str(tmp_path / "job"),
        "parameters": {"n_clusters": 2, "metric": "auto", "d0": "q0.9"},
    })  # fmt: skip
    mass = np.asarray(done.model().credal_partition_.mass)
    np.testing.assert_array_equal(mass, model.credal_partition_.mass)


def test_links_work_with_either_metric(rings):
    X, y = rings
    inner, outer = np.flatnonzero(y)[:2], np.flatnonzero(y == 0)[:2]
    linked = EVCLUS(2, metric="auto", d0="q0.9", expand_constraints=3, random_state=0).fit(
        X, must_link=[inner, outer], cannot_link=np.column_stack([inner, outer])
    )
    assert adjusted_rand_score(y, linked.labels_) == 1.0


def test_conductance_is_the_mean_share_of_edges_that_leave_a_cluster():
    # A path of four objects: the edge in the middle is cut. Each half has three ends, one leaves.
    path = sparse.csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    assert conductance(np.array([0, 0, 1, 1]), path, 2) == pytest.approx(1 / 3)
    assert conductance(np.zeros(4, int), path, 1) == 0.0
    assert conductance(np.zeros(4, int), path, 2) == 0.5  # the unused cluster counts as one

"""EKNNclus: R's partitions from the same orders, laws of the objective, starts, refusals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import evdist.eknn.clus as module
from evdist import EKNNclus, FocalSets
from evdist.belief import dempster
from evdist.eknn.graph import VisitSolver, in_order, neighbourhood, rule
from evdist.eknn.search import nearest_others, search
from evdist.engine.loop import minimise

#: R lets no evidence of togetherness fall below this.
R_FLOOR = 1e-6


@pytest.fixture(scope="module")
def reference(shared) -> dict:
    return json.loads((shared / "reference" / "EkNNclus_fourclass.json").read_text())


@pytest.fixture(scope="module")
def near(shared) -> tuple[np.ndarray, np.ndarray]:
    X = pd.read_csv(shared / "data" / "fourclass.csv")[["x1", "x2"]].to_numpy()
    return nearest_others(search(X), X, 60)


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)


def visited(graph, orders, max_iter: int):
    """The descent from single objects, and its labels by first objects."""
    solver = VisitSolver(graph, np.arange(graph.n, dtype=np.int32), iter(orders))
    found = minimise(solver, max_iter)
    return found, in_order(found.value.label)


# ---------------------------------------------------------------------- R's evclust
def test_weights_are_those_of_r(near, reference):
    r = reference["fixed_order"]
    graph = neighbourhood(*near, q=0.9, b=2, symmetric=False)
    assert graph.gamma == pytest.approx(1 / r["gamma_quantile"], rel=1e-12)
    first = graph.weight[: graph.start[1]]
    np.testing.assert_allclose(np.sort(first), np.sort(r["W_row1"]), rtol=1e-12)
    assert np.maximum(graph.weight, R_FLOOR).sum() == pytest.approx(r["W_sum"], rel=1e-12)


@pytest.mark.parametrize("name", ["fixed_order", "recorded_order"])
def test_the_same_visits_give_the_partition_and_the_masses_of_r(near, reference, name):
    r = reference[name]
    n = len(r["mass"])
    graph = neighbourhood(*near, q=0.9, b=2, symmetric=False)
    graph = replace(graph, weight=np.maximum(graph.weight, R_FLOOR))
    orders = [np.array(p) - 1 for p in r.get("perms", [range(1, n + 1)] * len(r["log"]))]
    found, label = visited(graph, orders, len(orders))
    assert found.converged
    assert len(found.history) - 1 == len(r["log"])
    assert adjusted_rand_score(label, r["y.pl"]) == 1
    mass, theirs = rule(graph, label, len(r["F"]) - 2), np.array(r["mass"])
    # Clusters are numbered by their first objects here.
    first = [np.flatnonzero(np.array(r["y.pl"]) == k)[0] for k in range(1, theirs.shape[1] - 1)]
    columns = [0, *(1 + np.argsort(first)), theirs.shape[1] - 1]
    np.testing.assert_allclose(mass, theirs[:, columns], atol=1e-6)


# ---------------------------------------------------------------------- laws
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([1.0, 2.0]))
def test_no_visit_lowers_the_plausibility_on_a_symmetric_graph(seed, K, b):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(K + 1, 60))
    X = rng.normal(size=(n, 2)).round(1)  # with copies now and then
    graph = neighbourhood(*nearest_others(search(X), X, K), q=0.5, b=b, symmetric=True)
    orders = (rng.permutation(n) for _ in range(50))
    found, label = visited(graph, orders, 50)
    assert found.converged
    assert (np.diff(found.history) <= 1e-12).all()
    assert found.history[-1] == pytest.approx(graph.against(label), abs=1e-12)


def test_the_objective_is_the_share_of_evidence_between_clusters():
    X = np.random.default_rng(0).normal(size=(30, 2))
    D = cdist(X, X)
    graph = neighbourhood(*nearest_others(search(X), X, 29), q=0.9, b=2, symmetric=True)
    W = -np.log(1 - np.exp(-graph.gamma * D[~np.eye(30, dtype=bool)].reshape(30, 29) ** 2))
    y = np.random.default_rng(1).integers(0, 3, 30).astype(np.int32)
    apart = (y[:, None] != y)[~np.eye(30, dtype=bool)].reshape(30, 29)
    assert graph.against(y) == pytest.approx(W[apart].sum() / W.sum(), rel=1e-9)


def test_masses_are_those_of_dempsters_rule():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 2))
    y = np.array([0, 1, 2] * 4, dtype=np.int32)
    graph = neighbourhood(*nearest_others(search(X), X, 4), q=0.9, b=2, symmetric=False)
    sets = FocalSets.simple(3)
    for i, got in enumerate(rule(graph, y, 3)):
        m = np.array([0, 0, 0, 0, 1.0])
        for e in range(graph.start[i], graph.start[i + 1]):
            one = np.zeros(5)
            one[1 + y[graph.neighbour[e]]] = 1 - np.exp(-graph.weight[e])
            one[-1] = np.exp(-graph.weight[e])
            m, _ = dempster([m, one], sets)
        np.testing.assert_allclose(got, m, atol=1e-6)


def test_labels_are_the_most_plausible_clusters(blobs):
    model = EKNNclus(60, random_state=0).fit(blobs[0])
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(blobs[1], model.labels_) == 1
    assert model.credal_partition_.mass.shape == (300, 5)


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(blobs):
    a = EKNNclus(15, random_state=3, n_jobs=1).fit(blobs[0])
    b = EKNNclus(15, random_state=3, n_jobs=2).fit(blobs[0])
    np.testing.assert_array_equal(a.credal_partition_.mass, b.credal_partition_.mass)
    assert a.history_ == b.history_


def test_a_matrix_of_distances_is_as_good_as_attributes(blobs):
    X = blobs[0][:120]
    a = EKNNclus(20, random_state=3).fit(X)
    b = EKNNclus(20, random_state=3, metric="precomputed").fit(cdist(X, X))
    np.testing.assert_allclose(a.credal_partition_.mass, b.credal_partition_.mass, atol=1e-6)
    np.testing.assert_allclose(
        a.predict_mass(X[:5] + 0.1), b.predict_mass(cdist(X[:5] + 0.1, X)), atol=1e-6
    )


# ---------------------------------------------------------------------- starts
def test_more_starts_do_no_worse(blobs):
    X = np.random.default_rng(0).normal(size=(200, 2))
    one, five = (EKNNclus(10, n_init=t, random_state=0).fit(X) for t in (1, 5))
    assert five.objective_ <= one.objective_


def test_labels_given_are_where_it_starts(blobs):
    X, y = blobs
    model = EKNNclus(30, init=5 * y + 2, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.n_iter_ == 1


def test_a_number_draws_so_many_clusters_at_random(blobs):
    assert EKNNclus(30, init=2, random_state=0).fit(blobs[0]).n_clusters_ <= 2


def test_of_many_objects_a_sample_is_partitioned_first(blobs, monkeypatch):
    monkeypatch.setattr(module, "_SAMPLE", 100)
    stages: list[str] = []
    listen = [lambda news: stages.append(news.stage)]
    model = EKNNclus(5, random_state=0, callbacks=listen).fit(blobs[0])
    assert stages[0] == "sample"
    assert stages[-1] == "fit"
    assert adjusted_rand_score(blobs[1], model.labels_) == 1
    # Five neighbours among all objects alone give patches of clusters.
    assert EKNNclus(5, init="singletons", random_state=0).fit(blobs[0]).n_clusters_ > 3


def test_one_cluster_is_the_whole_frame():
    X = np.zeros((10, 2))
    model = EKNNclus(9, random_state=0).fit(X)
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.credal_partition_.mass, [[0, 1]] * 10)
    np.testing.assert_array_equal(model.predict_mass(X[:2] + 1), [[0, 1]] * 2)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer of at least 1, got 0"),
        ({"q": 1.0}, "q must be a number above 0 and below 1, got 1.0"),
        ({"power": 0}, "power must be a number above 0, got 0"),
        ({"metric": "l7"}, "metric must be one of euclidean"),
        ({"metric": "precomputed"}, "A dissimilarity matrix must be square"),
        ({"init": "k-means"}, "init must be one of auto, singletons, got 'k-means'"),
        ({"init": [0, 1]}, "init must be .* 300 labels .* got int64 of shape"),
        ({"init": [-1] * 300}, "Labels in init count from 0, but object 0 has -1"),
        ({"n_init": 0}, "n_init must be an integer of at least 1"),
        ({"callbacks": 3}, "callbacks must be a list of functions"),
    ],
)
def test_what_cannot_be_is_refused(blobs, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        EKNNclus(**parameters).fit(blobs[0])


def test_too_many_neighbours_for_the_memory_are_refused(blobs, monkeypatch):
    monkeypatch.setattr(module, "_BYTES", 10**12)
    with pytest.raises(MemoryError, match="Lower n_neighbors"):
        EKNNclus(10).fit(blobs[0])

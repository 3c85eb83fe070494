"""Input that cannot work: refused with the row, the value and the cure, or mended."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from evdist import ECM, EVCLUS
from evdist.data.pair_checks import closure
from evdist.data.sources import pair_list
from evdist.evclus.checks import checked_settings


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(300, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_a_neighbour_graph_is_refused_and_mended_with_attributes(blobs, metric):
    X, y = blobs
    graph = kneighbors_graph(X, 10, mode="distance")
    with pytest.raises(ValueError, match=r"neighbour graph: .* fit\(graph, attributes=X\)"):
        EVCLUS(3, metric=metric).fit(graph)
    model = EVCLUS(3, metric=metric, n_init=5, random_state=0).fit(graph, attributes=X)
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_random_pairs_are_not_taken_for_a_neighbour_graph(blobs):
    X, y = blobs
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 300, (2, 9000))
    keep = i != j
    i, j = i[keep], j[keep]
    d = np.linalg.norm(X[i] - X[j], axis=1)
    assert closure(pair_list(i, j, d, 300)) < 0.4
    rows = np.column_stack([i, j, d])
    model = EVCLUS(3, metric="pairs", n_init=5, random_state=0).fit(rows)
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_pairs_in_two_parts_are_told(blobs):
    X, _ = blobs
    D = np.linalg.norm(X[:40, None] - X[:40], axis=2)
    D[:20, 20:] = D[20:, :20] = 0
    with pytest.warns(UserWarning, match=r"2 parts without a pair .*objects 0 and 20.*20 of 40"):
        EVCLUS(2, metric="precomputed", random_state=0).fit(sp.csr_array(D))


def test_attributes_must_fit_and_belong_to_pairs(blobs):
    X, _ = blobs
    graph = kneighbors_graph(X, 10, mode="distance")
    with pytest.raises(ValueError, match=r"each of the 300 objects, got shape \(9, 2\)"):
        EVCLUS(3, metric="euclidean").fit(graph, attributes=X[:9])
    with pytest.raises(ValueError, match="attributes belong to a list of pairs"):
        EVCLUS(3, metric="euclidean").fit(X, attributes=X)


def test_square_sparse_attributes_are_not_taken_for_dissimilarities():
    X = sp.random_array((60, 60), density=0.2, rng=np.random.default_rng(0), format="csr")
    with pytest.raises(ValueError, match=r"this one has X\[.*For attributes pass X.toarray\(\)"):
        EVCLUS(3, metric="euclidean").fit(X)
    X.setdiag(0)
    X.eliminate_zeros()
    with pytest.raises(ValueError, match=r"this one has X\[(\d+), (\d+)\] = .*, X\[\2, \1\] = "):
        EVCLUS(3, metric="euclidean").fit(X)


@pytest.mark.parametrize("estimator", [EVCLUS(2, metric="euclidean"), ECM(2)])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            [[1.0, 2.0], [3.0, "red"]],
            r"row 1, column 1 is 'red', which is not a number. Leave that",
        ),
        ([[1.0, 2.0], [3.0, None]], r"row 1, column 1 is missing \(None\). Fill in the value"),
        ([[1.0, 2.0], [3.0]], r"row 1 has 1 and row 0 has 2"),
        (np.array([["1", "2"], ["x", "4"]]), r"row 1, column 0 is 'x', which is not a number"),
        (np.array([[1, "a"], [2, 3]], dtype=object), r"row 0, column 1 is 'a'"),
    ],
)
def test_text_in_plain_lists_is_told_by_row_and_column(estimator, X, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X)


def test_all_sets_of_twelve_clusters_are_refused_with_the_hours_they_would_take(blobs):
    with pytest.raises(
        ValueError, match=r"4,096 focal sets: about \d+ hours.*FocalSets.full\(12\)"
    ):
        EVCLUS(12, metric="euclidean", focal_sets="full", n_jobs=2).fit(blobs[0])


def test_all_sets_are_told_where_they_take_minutes_and_not_where_seconds(recwarn):
    few, many = (
        EVCLUS(
            c, metric="euclidean", focal_sets="full", n_jobs=1, max_iter=1, init="random", d0=1.0
        )
        for c in (4, 9)
    )
    checked_settings(few, SimpleNamespace(n=200), 0, 4)
    assert not recwarn
    with pytest.warns(UserWarning, match="512 focal sets: about [0-9]+ minutes on 1 threads"):
        checked_settings(many, SimpleNamespace(n=200), 0, 9)

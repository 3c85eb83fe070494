"""The pairs that a fitted model shows in a Shepard diagram are those of its objective."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from evdist import EVCLUS
from evdist.data.sources import AttributeSource, pair_list
from evdist.evclus.kept import some_pairs
from evdist.evclus.problem import MemoryPairs
from evdist.evclus.sampling import colour_pair_list, draw_layout, sample_pairs
from evdist.kernels.distances import transform


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(301, centers=3, random_state=0)[0]


def key(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    i, j = i.astype(np.int64), j.astype(np.int64)
    return np.minimum(i, j) * 1_000_000 + np.maximum(i, j)


@pytest.mark.parametrize("k", [7, 300])
def test_their_mean_square_error_is_the_objective(X, k):
    model = EVCLUS(3, metric="euclidean", n_dissimilarities=k, random_state=0).fit(X)
    delta, kappa = model.shepard_pairs()
    assert delta.shape == kappa.shape
    assert np.mean((kappa.astype(float) - delta) ** 2) == pytest.approx(model.objective_, rel=1e-5)


def test_the_full_matrix_has_each_pair_once(X):
    model = EVCLUS(3, metric="euclidean", n_dissimilarities=300, d0=4.0, random_state=0).fit(X)
    delta, _ = model.shepard_pairs()
    D = cdist(X, X)[np.triu_indices(301, 1)].astype(np.float32)
    expected = np.empty_like(D)
    transform(D, 4.0, expected)
    np.testing.assert_allclose(np.sort(delta), np.sort(expected), rtol=1e-5, atol=1e-6)


def test_objects_added_later_do_not_matter(X):
    model = EVCLUS(3, metric="euclidean", random_state=0).fit(X)
    before = model.shepard_pairs()
    after = model.append(X[:5] + 1.0).shepard_pairs()
    np.testing.assert_array_equal(before, after)


def test_a_model_must_be_fitted_first():
    with pytest.raises(NotFittedError, match="not fitted"):
        EVCLUS(3, metric="euclidean").shepard_pairs()


# ---------------------------------------------------------------------- the sample
@pytest.mark.parametrize("at_most", [1, 700, 5000])
def test_a_sample_holds_different_kept_pairs_of_objects(X, at_most):
    source, layout = AttributeSource.of(X, "euclidean"), draw_layout(301, 40, 0)
    pairs = sample_pairs(source, layout, 4.0)
    found = some_pairs(pairs, layout.order, at_most)
    partner, degree = layout.graph.partners(0, 301)
    mine = layout.order[np.repeat(np.arange(301), degree)]
    kept = key(mine, layout.order[partner[np.arange(partner.shape[1]) < degree[:, None]]])
    assert len(found.delta) == at_most < len(np.unique(kept))
    assert len(np.unique(key(found.i, found.j))) == at_most
    assert np.isin(key(found.i, found.j), kept).all()
    D = source.distances(found.i, found.j[:, None]).ravel()
    delta = np.empty_like(D)
    transform(D, 4.0, delta)
    np.testing.assert_array_equal(found.delta, delta)


def test_a_sample_that_may_be_larger_holds_all_pairs():
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(40, 1)
    some = rng.random(len(i)) < 0.3
    i, j = i[some], j[some]
    pairs, _, order = colour_pair_list(pair_list(i, j, rng.random(len(i)), 40), 1.0, 0)
    for at_most in (len(i), 10 * len(i)):
        found = some_pairs(pairs, order, at_most)
        np.testing.assert_array_equal(np.sort(key(found.i, found.j)), np.sort(key(i, j)))


def test_a_sample_reads_only_as_many_rows_as_it_needs():
    n, k = 100_000, 4
    ring = (np.arange(n)[:, None] + [1, 2, -1, -2]) % n
    memory = MemoryPairs(
        np.arange(n, dtype=np.int64) * k, np.full(n, k), ring.astype(np.uint32).ravel(),
        np.zeros(n * k, np.float32),
    )  # fmt: skip
    read = []

    class Counting:
        n, entries = memory.n, memory.entries

        def block(self, lo, hi):
            read.append(hi - lo)
            return memory.block(lo, hi)

    found = some_pairs(Counting(), np.arange(n, dtype=np.uint32), 1000)
    assert len(found.delta) == 1000
    assert sum(read) * k < 2 * 1000 + 128 * k
    read.clear()
    all_pairs = some_pairs(Counting(), np.arange(n, dtype=np.uint32), n * k // 2)
    assert len(all_pairs.delta) == n * k // 2
    assert read == [n]  # those of a store come at one stroke

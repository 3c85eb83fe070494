"""k-means++ on dissimilarities: the draws that each algorithm is known to make."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.cluster import kmeans_plusplus

from evdist.kernels import seeding
from evdist.kernels.seeding import draw_seeds, seed_rows


def dissimilarities(n: int, seed: int) -> np.ndarray:
    """With copies now and then."""
    X = np.random.default_rng(seed).normal(size=(n, 2)).round(1)
    return cdist(X, X)


@given(st.integers(2, 40), st.integers(1, 8), st.integers(0, 10_000))
def test_the_greedy_seeds_are_those_of_evclus(n, c, seed):
    """Written out as in EVCLUS: float32 dissimilarities, the chance in double precision."""
    D = dissimilarities(n, seed).astype(np.float32)
    rng = np.random.default_rng(seed)
    near = D[:, [int(rng.integers(n))]]
    for _ in range(c - 1):
        square = near.min(axis=1).astype(float) ** 2
        chance = square / square.sum() if square.any() else np.full(n, 1 / n)
        tries = D[:, rng.choice(n, 2 + int(np.log(c + 1)), p=chance)]
        left = np.minimum(tries**2, square[:, None]).sum(axis=0)
        near = np.column_stack([near, tries[:, np.argmin(left)]])
    seeds, table = draw_seeds(
        lambda some: D[:, some], n, c, np.random.default_rng(seed),
        candidates=2 + int(np.log(c + 1)),
    )  # fmt: skip
    np.testing.assert_array_equal(table, near)
    np.testing.assert_array_equal(D[:, seeds], near)


@given(st.integers(8, 40), st.integers(1, 8), st.integers(0, 10_000))
def test_distinct_seeds_are_different_objects_also_among_copies(n, c, seed):
    for D in (dissimilarities(n, seed), np.zeros((n, n))):
        rng = np.random.default_rng(seed)
        seeds, _ = draw_seeds(lambda some, D=D: D[:, some], n, c, rng, distinct=True)
        assert len(set(seeds.tolist())) == c


@given(st.integers(4, 30), st.integers(0, 10_000))
def test_an_object_of_no_weight_is_no_seed(n, seed):
    D = dissimilarities(n, seed)
    w = np.ones(n)
    w[: n // 2] = 0.0
    rng = np.random.default_rng(seed)
    seeds, _ = draw_seeds(lambda some: D[some].T, n, 3, rng, weights=w, power=1)
    assert (seeds >= n // 2).all()


@given(
    n=st.integers(1, 3000), d=st.integers(1, 40), far=st.sampled_from([0.0, 1e3]),
    decimals=st.sampled_from([0, 7]), seed=st.integers(0, 10_000),
)  # fmt: skip
@settings(max_examples=60)
def test_seeds_among_rows_are_those_of_scikit_learn(n, d, far, decimals, seed):
    rng = np.random.default_rng(seed)
    S = (far + 3 * rng.normal(size=(n, d))).round(decimals).astype(np.float32)
    count = int(rng.integers(1, min(len(np.unique(S, axis=0)), 60) + 1))
    known, _ = kmeans_plusplus(S, count, random_state=seed, n_local_trials=1)
    np.testing.assert_array_equal(seed_rows(S, count, seed), known)


@pytest.mark.parametrize("d", [2, 300])
def test_seeds_of_many_bytes_are_found_block_by_block(monkeypatch, d):
    S = np.random.default_rng(d).normal(size=(20_000, d)).astype(np.float32)
    monkeypatch.setattr(seeding, "_HELD", 1 << 30)
    whole = seed_rows(S, 25, 1)
    monkeypatch.setattr(seeding, "_HELD", 1 << 10)
    np.testing.assert_array_equal(seed_rows(S, 25, 1), whole)

"""Partitions that EM starts from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixture.mixture_cases import clouds
from sklearn.metrics import adjusted_rand_score

from evdist.mixture.starts import Starts

INITS = ("hierarchical", "k-means++")


def parts(X, c, init="hierarchical", *, weight=None, n_init=3, most=None):
    weight = np.ones(len(X)) if weight is None else weight
    return list(Starts(X, weight, most or c, init, n_init, seed=0).labels(c))


@pytest.mark.parametrize("init", INITS)
@given(st.integers(0, 100), st.integers(1, 7))
def test_every_start_has_exactly_as_many_groups_as_asked_for(init, seed, c):
    """Also on a grid, where many joins cost the same."""
    X = np.random.default_rng(seed).integers(0, 4, size=(30, 2)).astype(float)
    for labels in parts(X, c, init):
        assert labels.shape == (30,)
        assert set(labels.tolist()) == set(range(c))


@pytest.mark.parametrize("init", INITS)
def test_plain_clusters_are_found_in_any_units(init):
    X, y = clouds(300, 2, 3, seed=5)
    X = X + 40 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    for Z in (X, X * [1e-6, 1e6] + 3):
        for labels in parts(Z, 3, init):
            assert adjusted_rand_score(y, labels) == 1


@pytest.mark.parametrize("init", INITS)
def test_neither_order_nor_repetition_matters(init):
    X, _ = clouds(60, 2)
    rng = np.random.default_rng(1)
    w, order = rng.integers(1, 4, len(X)), rng.permutation(len(X))
    rows = np.repeat(np.arange(len(X)), w)
    for a, b, c in zip(
        parts(X, 3, init, weight=w.astype(float)),
        parts(X[rows], 3, init),
        parts(X[order], 3, init, weight=w[order].astype(float)),
        strict=True,
    ):
        np.testing.assert_array_equal(a[rows], b)
        np.testing.assert_array_equal(a[order], c)


def test_the_gaussian_tree_joins_what_is_long_and_thin():
    """Two parallel ridges: squares split them across, determinants along."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    X = np.c_[rng.uniform(-10, 10, 300), y + 0.05 * rng.normal(size=300)]
    X = X @ np.array([[1, 0.3], [-0.3, 1]])
    gaussian, ward = parts(X, 2, n_init=2)
    assert adjusted_rand_score(y, gaussian) > 0.9
    assert adjusted_rand_score(y, ward) < 0.5

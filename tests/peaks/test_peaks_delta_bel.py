"""The delta-Bel graph: R's values, the definition, copies, and the ways to choose centres."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from tolerances import REFERENCE, ROUNDING

from evdist import delta_bel


@pytest.fixture(scope="module")
def reference(shared) -> dict:
    return json.loads((shared / "reference" / "bpec_fourclass.json").read_text())


@pytest.fixture(scope="module")
def X(shared) -> np.ndarray:
    return pd.read_csv(shared / "data" / "fourclass.csv")[["x1", "x2"]].to_numpy()


def by_definition(X: np.ndarray, K: int, q: float) -> tuple[np.ndarray, np.ndarray]:
    """delta and bel, written out."""
    n = len(X)
    D = cdist(X, X)
    near = np.argsort(np.where(np.eye(n, dtype=bool), -1.0, D), axis=1, kind="stable")[:, 1 : K + 1]
    reach = np.array([np.quantile(D[i, near[i]], q) for i in range(n)])
    bel = np.empty(n)
    for i in range(n):
        masses = [np.exp(-((D[i, j] / reach[j]) ** 2)) / K for j in near[i]]
        bel[i] = 1 - np.prod([1 - m for m in masses])
    delta = np.zeros(n)
    for i in range(n):
        better = bel > bel[i]
        delta[i] = D[i, better].min() if better.any() else 0
    delta[bel.argmax()] = delta.max()
    return delta, bel


@pytest.mark.parametrize("K", [50, 100])
def test_beliefs_and_distances_are_those_of_r(X, reference, K):
    r = reference["delta_Bel"][f"K{K}"]
    peaks = delta_bel(X, K, q=r["q"])
    np.testing.assert_allclose(peaks.bel, r["BelC"], **REFERENCE)
    np.testing.assert_allclose(peaks.delta, r["delta"], **REFERENCE)
    np.testing.assert_array_equal(peaks.largest(4) + 1, r["top4_by_product"])


def test_the_rectangle_of_r_holds_the_same_objects(X, reference):
    box = reference["rectangle"]
    peaks = delta_bel(X, 50)
    chosen = peaks.above(box["delta_min"], box["bel_min"][0])
    assert sorted(chosen + 1) == box["selected"]
    np.testing.assert_array_equal(X[chosen], reference["g0"])


@pytest.mark.parametrize(("n", "d", "K", "q"), [(30, 2, 5, 0.9), (60, 3, 59, 0.5), (40, 1, 3, 1.0)])
def test_it_is_what_the_definition_says(n, d, K, q):
    X = np.random.default_rng(n).normal(size=(n, d))
    peaks = delta_bel(X, K, q=q)
    delta, bel = by_definition(X, K, q)
    np.testing.assert_allclose(peaks.bel, bel, **ROUNDING)
    np.testing.assert_allclose(peaks.delta, delta, **ROUNDING)


def test_threads_change_no_bit():
    X = np.random.default_rng(3).normal(size=(500, 4))
    one, two = delta_bel(X, 20, n_jobs=1), delta_bel(X, 20, n_jobs=2)
    np.testing.assert_array_equal(one.bel, two.bel)
    np.testing.assert_array_equal(one.delta, two.delta)


@given(
    arrays(float, st.tuples(st.integers(4, 25), st.integers(1, 3)),
           elements=st.integers(-3, 3).map(float)),
    st.integers(1, 24),
)  # fmt: skip
def test_copies_and_ties_do_no_harm(X, K):
    """Beliefs are in [0, 1], distances finite, and only one of many copies is far from the rest."""
    peaks = delta_bel(X, min(K, len(X) - 1))
    assert ((peaks.bel >= 0) & (peaks.bel <= 1)).all()
    assert np.isfinite(peaks.delta).all()
    assert (peaks.delta >= 0).all()
    top = int(np.argsort(-peaks.bel, kind="stable")[0])
    copies = np.flatnonzero((X == X[top]).all(axis=1) & (peaks.bel == peaks.bel[top]))
    assert (peaks.delta[copies[copies != top]] == 0).all()


def test_translation_and_rotation_move_nothing():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 2))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    a, b = delta_bel(X, 10), delta_bel(3 * (X @ turn) + 7, 10)
    np.testing.assert_allclose(a.bel, b.bel, rtol=1e-9)
    np.testing.assert_allclose(3 * a.delta, b.delta, rtol=1e-9)


def test_centres_come_by_decreasing_product_whichever_way_they_are_chosen():
    X = np.random.default_rng(1).normal(size=(50, 2))
    peaks = delta_bel(X, 10)
    score = peaks.delta * peaks.bel
    for chosen in (peaks.largest(5), peaks.above(0.2, 0.1), peaks.inside((0, 1), (0, 1))):
        assert (np.diff(score[chosen]) <= 0).all()
    assert set(peaks.above(0.2, 0.1)) == {
        i for i in range(50) if peaks.delta[i] >= 0.2 and peaks.bel[i] >= 0.1
    }


def test_what_cannot_be_is_refused():
    X = np.random.default_rng(1).normal(size=(20, 2))
    with pytest.raises(ValueError, match="K must be from 1 to n - 1 = 19 neighbours, got 20"):
        delta_bel(X, 20)
    with pytest.raises(ValueError, match="q must be above 0 and at most 1, got 0"):
        delta_bel(X, 5, q=0)
    peaks = delta_bel(X, 5)
    with pytest.raises(ValueError, match="n_clusters must be from 1 to the 20 objects, got 21"):
        peaks.largest(21)
    with pytest.raises(ValueError, match=r"No object has delta in \(99.0, inf\)"):
        peaks.above(99)
    with pytest.raises(ValueError, match=r"The box needs bel\[0\] <= bel\[1\], got \(1, 0\)"):
        peaks.inside((0, 1), (1, 0))

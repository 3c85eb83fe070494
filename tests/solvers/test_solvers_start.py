"""Where a fit starts: seeds, landmarks, the choice of d0, and placing objects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.evclus.d0 import choose_d0, positive_quantile
from evdist.evclus.irqp import Stop
from evdist.evclus.landmarks import Landmarks
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.start import fit_landmarks, place
from evdist.evclus.trial import draw_starts, seeded_masses
from evdist.kernels.grid import GRID

SETS = FocalSets.simple(3)


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(90, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)[0]


@pytest.fixture(scope="module")
def source(X) -> AttributeSource:
    return AttributeSource.of(X, "euclidean")


@pytest.fixture(scope="module")
def landmarks(source) -> Landmarks:
    objects = np.arange(0, 90, 2, dtype=np.uint32)
    return fit_landmarks(
        source, objects, SETS, [10.0], k=20, n_starts=4, init="auto", stop=Stop(1e-6, 200), seed=0,
        rows=NumbaRows(),
    )  # fmt: skip


@given(st.lists(st.floats(0, 100, width=32), min_size=1, max_size=30), st.floats(0, 1))
def test_a_quantile_is_never_zero(values, q):
    D = np.array(values, np.float32)
    if not D.any():
        with pytest.raises(ValueError, match="All dissimilarities are zero"):
            positive_quantile(D, q)
        return
    got = positive_quantile(D, q)
    expected = float(np.quantile(D, q))
    assert got == (expected if expected > 0 else float(D[D > 0].min()))


def test_seeds_spread_over_far_clusters(source, X):
    """k-means++ takes a seed in each of three clusters that are far apart."""
    for seed in range(5):
        mass = seeded_masses(source, SETS, np.random.default_rng(seed))
        np.testing.assert_allclose(mass.sum(axis=1), 1, rtol=1e-6)
        corner = (X > 10) @ [1, 2]
        labels = mass[:, 1:4].argmax(axis=1)
        assert len({(a, b) for a, b in zip(corner, labels, strict=True)}) == 3


@pytest.mark.parametrize(("init", "seeded"), [("auto", 2), ("k-means++", 4), ("random", 0)])
def test_starts_are_seeded_and_random_by_turns(source, init, seeded):
    starts = draw_starts(source, SETS, 4, 0, init)
    # Seeded masses have two values, 0.06 and 0.76.
    assert sum(len(np.unique(m)) == 2 for m in starts) == seeded
    again = draw_starts(source, SETS, 4, 0, init)
    assert all(np.array_equal(a, b) for a, b in zip(starts, again, strict=True))


def test_without_all_singletons_starts_are_random(source):
    sets = FocalSets.of([[0], [1, 2]], 3)
    assert all(len(np.unique(m)) > 2 for m in draw_starts(source, sets, 2, 0, "k-means++"))


def test_d0_tells_far_clusters_apart(source, X):
    d0s, curve = choose_d0(source, 3, k=30, seed=0, rows=NumbaRows())
    corner = (X > 10) @ [1, 2]
    delta = 1 - np.exp(np.log(0.05) * (cdist(X, X) / d0s[0]) ** 2)
    apart = corner[:, None] != corner
    assert delta[apart].min() > 0.5
    assert np.median(delta[~apart]) < 0.2
    assert len(curve) == 12
    assert d0s == sorted(d0s, reverse=True)  # of those that agree alike the largest first
    assert max(agreement for _, agreement in curve) == 1
    assert choose_d0(source, 3, k=30, seed=0, rows=NumbaRows(2)) == (d0s, curve)


class TestSeveralD0:
    """Of several d0 landmarks take the first at which every cluster is used."""

    def d0(self, *values: float) -> float:
        """Two clusters are 8 apart, the third is far: from 20 on, d0 joins the two."""
        X = make_blobs(90, centers=[[0, 0], [8, 0], [100, 0]], random_state=0)[0]
        everyone = np.arange(90, dtype=np.uint32)
        return fit_landmarks(
            AttributeSource.of(X, "euclidean"), everyone, SETS, values, k=40, n_starts=2,
            init="auto", stop=Stop(1e-6, 200), seed=0, rows=NumbaRows(),
        ).d0  # fmt: skip

    def test_the_first_is_kept_where_it_uses_every_cluster(self):
        assert self.d0(10.0, 8.0) == 10.0

    def test_one_that_joins_clusters_gives_way_to_the_next(self):
        assert self.d0(60.0, 40.0, 10.0, 8.0) == 10.0

    def test_where_none_uses_every_cluster_the_first_is_kept(self):
        assert self.d0(60.0, 40.0) == 60.0


class TestPlace:
    @settings(max_examples=20)
    @given(seed=st.integers(0, 99), k=st.integers(1, 60))
    def test_each_row_is_the_minimiser_of_its_own_program(self, landmarks, seed, k):
        """Against all landmarks, so that they need not be known: KKT on the simplex."""
        new = np.random.default_rng(seed).uniform(-5, 25, (6, 2))
        L = len(landmarks.mass)
        mass = place(landmarks, new, k=max(k, L), seed=seed, rows=NumbaRows())
        A = landmarks.mass.astype(float) @ SETS.C
        d = cdist(new, np.asarray(landmarks.source.table[:, :2]) + landmarks.source.metric.centre)
        delta = 1 - np.exp(np.log(0.05) * (d / 10.0) ** 2)
        m = mass.astype(float)
        gradient = (m @ A.T - delta) @ A
        best = gradient.min(axis=1, keepdims=True)
        # No focal set with mass may have a gradient above the smallest, but for rounding.
        assert ((gradient - best) * m).max() < 1e-4 * L
        np.testing.assert_allclose(m.sum(axis=1), 1, atol=1 / GRID)

    def test_without_spread_rows_do_not_depend_on_their_place(self, landmarks):
        new = np.random.default_rng(1).uniform(-5, 25, (30, 2))
        how = {"k": 10, "seed": 0, "rows": NumbaRows()}
        together = place(landmarks, new, spread=False, **how)
        turned = place(landmarks, new[::-1], spread=False, **how)
        np.testing.assert_array_equal(turned[::-1], together)
        assert not np.array_equal(place(landmarks, new, **how), together)

    def test_threads_change_no_bit(self, landmarks, monkeypatch):
        monkeypatch.setattr("evdist.evclus.rows.numba._BLOCK", 16)
        new = np.random.default_rng(1).uniform(-5, 25, (100, 2))
        one, three = (place(landmarks, new, k=10, seed=0, rows=NumbaRows(t)) for t in (1, 3))
        np.testing.assert_array_equal(one, three)

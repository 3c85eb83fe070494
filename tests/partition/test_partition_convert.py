"""Hard, fuzzy, possibilistic and rough partitions are credal partitions of a special form."""

from __future__ import annotations

from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tolerances import ROUNDING

from evdist import CredalPartition, FocalSets
from evdist.partition import convert


class TestHard:
    @given(st.lists(st.integers(-1, 5), min_size=1, max_size=20))
    def test_labels_come_back(self, labels):
        p = CredalPartition.from_labels(labels, 6)
        np.testing.assert_array_equal(np.where(p.outliers(), -1, p.labels()), labels)
        assert p.summary().n_between == 0
        np.testing.assert_array_equal(p.lower(), p.upper())

    def test_any_labels_are_numbered_in_their_order(self):
        p = CredalPartition.from_labels([30, -1, 7, 30])
        assert p.n_clusters == 2
        assert p.labels()[[0, 2, 3]].tolist() == [1, 0, 1]
        assert p.outliers().tolist() == [False, True, False, False]

    @pytest.mark.parametrize(
        ("labels", "c", "sentence"),
        [
            ([0, 1, -2], None, r"Label -2 of object 2: only -1 \(outlier\) may be negative"),
            ([0, 4], 3, r"Label 4 of object 1 is not one of 0\.\.2"),
            ([0.0, 1.0], None, "one integer per object, got dtype float64"),
            ([[0, 1]], None, r"one integer per object.*shape \(1, 2\)"),
            ([-1, -1], None, "No object has a cluster"),
        ],
    )
    def test_other_labels_are_refused(self, labels, c, sentence):
        with pytest.raises(ValueError, match=sentence):
            CredalPartition.from_labels(labels, c)


class TestFuzzy:
    @given(arrays(float, (5, 3), elements=st.floats(0, 1)))
    def test_memberships_come_back(self, u):
        u = u / np.maximum(u.sum(axis=1, keepdims=True), 1e-300)
        u[u.sum(axis=1) < 0.5] = 1 / 3
        np.testing.assert_allclose(CredalPartition.from_fuzzy(u).fuzzy(), u, **ROUNDING)

    def test_what_is_missing_goes_to_the_empty_set(self):
        p = CredalPartition.from_fuzzy(np.array([[0.5, 0.3], [0.0, 0.0]], dtype=np.float32))
        np.testing.assert_allclose(p.mass, [[0.2, 0.5, 0.3], [1, 0, 0]], atol=1e-7)
        assert p.mass.dtype == np.float32

    def test_dask_in_dask_out(self):
        u = da.from_array(np.array([[0.5, 0.5], [1.0, 0.0], [0.3, 0.3]]), chunks=(2, 1))
        p = CredalPartition.from_fuzzy(u)
        assert isinstance(p.mass, da.Array)
        assert p.labels().compute().tolist() == [0, 0, 0]

    @pytest.mark.parametrize(
        ("row", "sentence"),
        [
            ([0.7, 0.7], r"Row 1 of membership sums to 1\.4"),
            ([-0.1, 0.7], r"Row 1 of membership has -0\.1 in column 0"),
            ([0.1, np.nan], "Row 1 of membership has nan in column 1"),
        ],
    )
    def test_other_numbers_are_refused(self, row, sentence):
        with pytest.raises(ValueError, match=sentence):
            CredalPartition.from_fuzzy([[0.5, 0.5], row])
        with pytest.raises(ValueError, match=r"membership must be a table of numbers.*\(2,\)"):
            CredalPartition.from_fuzzy(row)


class TestPossibilistic:
    @given(arrays(float, (6, 4), elements=st.integers(0, 4).map(lambda i: i / 4)))
    def test_degrees_come_back_as_plausibilities(self, pi):
        p = CredalPartition.from_possibilistic(pi)
        np.testing.assert_allclose(p.possibilistic(), pi, **ROUNDING)
        # Consonant: the focal sets of a row are nested, and the largest degree is Pl(Omega).
        for row in p.mass:
            sets = [set(p.focal_sets.sets[q]) for q in np.flatnonzero(row > 0)]
            sets.sort(key=len)
            assert all(a <= b for a, b in pairwise(sets))
        np.testing.assert_allclose(1 - p.mass[:, 0], pi.max(axis=1), **ROUNDING)

    def test_by_hand(self):
        p = CredalPartition.from_possibilistic([[0.2, 0.9, 0.5]])
        assert p.focal_sets.sets == ((), (0,), (1,), (2,), (1, 2), (0, 1, 2))
        np.testing.assert_allclose(p.mass, [[0.1, 0, 0.4, 0, 0.3, 0.2]], **ROUNDING)

    @given(arrays(float, (6, 4), elements=st.integers(0, 4).map(lambda i: i / 4)))
    def test_given_focal_sets_are_those_of_a_projection(self, pi):
        kept = FocalSets.simple(4)
        direct = CredalPartition.from_possibilistic(pi, kept)
        after = CredalPartition.from_possibilistic(pi).project(kept)
        np.testing.assert_allclose(direct.mass, after.mass, **ROUNDING)

    def test_lazy_degrees_stay_lazy(self):
        pi = np.random.default_rng(0).random((50, 3))
        p = CredalPartition.from_possibilistic(da.from_array(pi, chunks=(13, 2)))
        assert isinstance(p.mass, da.Array)
        assert p == CredalPartition.from_possibilistic(pi)

    def test_too_many_sets_want_a_choice(self, monkeypatch):
        monkeypatch.setattr(convert, "MAX_FOUND_SETS", 20)
        pi = np.random.default_rng(0).random((50, 8))
        with pytest.raises(ValueError, match=r"need \d+ different focal sets, at most 20.*Pass"):
            CredalPartition.from_possibilistic(pi)
        kept = CredalPartition.from_possibilistic(pi, FocalSets.simple(8))
        assert kept.mass.shape == (50, 10)

    @pytest.mark.parametrize(
        ("pi", "focal", "sentence"),
        [
            ([[0, 1], [1.5, 0]], None, r"Row 1 of possibility reaches 1\.5"),
            ([[0, 1], [-1, 0]], None, r"Row 1 of possibility has -1 in column 0"),
            ([[0, 1]], FocalSets.simple(3), "2 columns, focal_sets have 3 clusters"),
            (np.ones((1, 63)), None, "at most 62 clusters, got 63"),
        ],
    )
    def test_other_numbers_are_refused(self, pi, focal, sentence):
        with pytest.raises(ValueError, match=sentence):
            CredalPartition.from_possibilistic(pi, focal)


class TestRough:
    @given(arrays(bool, (7, 4)))
    def test_approximations_come_back(self, upper):
        lower = upper & (upper.sum(axis=1) == 1)[:, None]
        p = CredalPartition.from_rough(lower, upper)
        np.testing.assert_array_equal(p.lower(), lower)
        np.testing.assert_array_equal(p.upper(), upper)
        np.testing.assert_array_equal(p.outliers(), ~upper.any(axis=1))
        np.testing.assert_array_equal(p.belief, lower)
        np.testing.assert_array_equal(p.plausibility, upper)

    def test_dask_in_dask_out(self):
        upper = np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0], [0, 1, 1]], dtype=bool)
        lower = upper & (upper.sum(axis=1) == 1)[:, None]
        p = CredalPartition.from_rough(da.from_array(lower, chunks=2), da.from_array(upper, 3))
        assert isinstance(p.mass, da.Array)
        assert p == CredalPartition.from_rough(lower, upper)

    def test_an_object_may_not_be_surely_here_and_possibly_there(self):
        with pytest.raises(ValueError, match=r"Row 1: lower holds clusters \[0\] and upper \[0, 1"):
            CredalPartition.from_rough([[0, 1], [1, 0]], [[0, 1], [1, 1]])
        with pytest.raises(ValueError, match=r"same shape \(n, c\), got \(1, 2\) and \(1, 3\)"):
            CredalPartition.from_rough([[0, 1]], [[0, 1, 0]])

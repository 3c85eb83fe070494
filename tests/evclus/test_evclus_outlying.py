"""Many clusters among outliers and heavy tails: what lies apart does not take a cluster's place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.data.sources import AttributeSource
from evdist.evclus import means as thousands
from evdist.evclus.groups import find_groups
from evdist.evclus.outlying import MOST, ROUNDS, Attempt, group_again


def gaussians(c: int, n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    return 3 * rng.normal(size=(c, d))[y] + rng.normal(size=(n, d)), y


def strewn(X: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """Puts some objects anywhere; which ones, (n,) bool."""
    rng = np.random.default_rng(seed)
    some = rng.random(len(X)) < share
    X[some] = rng.uniform(X.min(), X.max(), (some.sum(), X.shape[1]))
    return some


def as_given(small: np.ndarray, group: np.ndarray) -> tuple[list, np.ndarray, int]:
    """`group_again` of rows whose small groups never change; what was tried, what is kept."""
    tried: list[np.ndarray] = []

    def attempt(rows: np.ndarray) -> Attempt[int]:
        tried.append(rows)
        used, theirs = np.unique(small[rows], return_inverse=True)
        return Attempt(len(tried), np.bincount(theirs), group[used], lambda: theirs)

    found, kept = group_again(len(small), int(group.max()) + 1, attempt)
    return tried, kept, found


class TestGroupAgain:
    def test_groups_of_a_proper_size_are_found_once_and_for_all(self):
        tried, kept, _ = as_given(np.arange(2000) % 100, np.arange(100) % 20)
        assert len(tried) == 1
        np.testing.assert_array_equal(kept, np.arange(2000))

    def test_tiny_groups_and_small_groups_of_one_object_are_left_out(self):
        """1,990 objects in 99 small groups of 10 groups; an eleventh of four; six that are alone.

        The groups are 11: a tiny one has at most a twentieth of 2,000 / 11 objects.
        """
        small = np.concatenate([np.arange(1990) % 99, np.full(4, 99), np.arange(100, 106)])
        group = np.concatenate([np.arange(99) % 10, [10], np.arange(6)])
        tried, kept, found = as_given(small, group)
        np.testing.assert_array_equal(kept, np.arange(1990))
        assert len(tried) == found == 2

    def test_a_group_of_objects_that_are_all_alone_is_left_out_though_it_is_large(self):
        """A third group of 60: no two of them make a small group."""
        small = np.concatenate([np.arange(1000) % 20, 20 + np.arange(60)])
        group = np.concatenate([np.arange(20) % 2, np.full(60, 2)])
        assert len(as_given(small, group)[1]) == 1000

    def test_a_few_tiny_groups_among_hundreds_are_let_be(self):
        small = np.append(np.arange(8000) % 200, 200)
        assert len(as_given(small, np.arange(201))[0]) == 1

    @given(st.integers(0, 2**32 - 1))
    def test_it_ends_and_most_objects_are_kept(self, seed):
        rng = np.random.default_rng(seed)
        n, q = int(rng.integers(1, 300)), int(rng.integers(1, 60))
        group = rng.integers(0, int(rng.integers(1, q + 1)), q)
        tried, kept, _ = as_given(rng.integers(0, q, n), group)
        assert len(tried) <= ROUNDS + 1
        assert len(kept) >= (1 - MOST) * n
        assert (np.diff(kept) > 0).all()


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_outliers_do_not_take_the_place_of_clusters(metric):
    """Ward's method gave them groups of their own and joined clusters: ARI .47 and .75."""
    X, y = gaussians(20, 4000, 8, seed=1)
    away = strewn(X, 0.03)
    model = EVCLUS(20, metric=metric, random_state=0).fit(X)
    assert adjusted_rand_score(y[~away], model.labels_[~away]) > 0.9
    outliers = model.credal_partition_.outliers()
    assert outliers[away].mean() > 0.9
    assert outliers[~away].mean() < 0.01


def test_neither_do_heavy_tails():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 26, 5000)
    X = (3 * rng.normal(size=(26, 16)))[y] + 0.7 * rng.standard_t(3, size=(5000, 16))
    found = EVCLUS(26, metric="euclidean", random_state=0).fit(X).labels_
    peer = KMeans(26, n_init=5, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, found) > adjusted_rand_score(y, peer) - 0.05


def test_thousands_of_clusters_are_found_among_outliers_too(monkeypatch):
    """With the rule for thousands, in cells, on fewer."""
    monkeypatch.setattr(thousands, "CELLS_FROM", 40)
    monkeypatch.setattr("evdist.evclus.groups.CELLS_FROM", 40)
    X, y = gaussians(60, 6000, 8, seed=3)
    away = strewn(X, 0.03)
    groups = find_groups(AttributeSource.of(X, "euclidean"), 60, seed=0)
    assert adjusted_rand_score(y[~away], groups.labels[~away]) > 0.8
    assert 0.02 < groups.apart < 0.2


def test_groups_on_a_device_leave_out_outliers_too():
    torch = pytest.importorskip("torch")
    from evdist.evclus.rows.device_groups import groups_on  # needs torch

    X, y = gaussians(20, 4000, 8, seed=1)
    away = strewn(X, 0.03)
    source = AttributeSource.of(X, "euclidean")
    one, two = (groups_on(torch.device("cpu"), source, 20, seed=0) for _ in range(2))
    assert adjusted_rand_score(y[~away], one.labels[~away]) > 0.9
    assert 0.02 < one.apart < 0.2
    np.testing.assert_array_equal(one.labels, two.labels)


def test_where_nothing_lies_apart_nothing_is_left_out():
    X, _ = gaussians(30, 6000, 10)
    assert find_groups(AttributeSource.of(X, "euclidean"), 30, seed=0).apart == 0.0


def test_threads_do_not_change_what_is_left_out():
    X, _ = gaussians(20, 3000, 8, seed=1)
    strewn(X, 0.03)
    one, two = (
        EVCLUS(20, metric="euclidean", random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(
        np.asarray(one.credal_partition_.mass), np.asarray(two.credal_partition_.mass)
    )

"""Bootclus as an estimator: what it finds, what it refuses, and what may not make a difference."""

from __future__ import annotations

import numpy as np
import pytest
from bootclus.bootclus_cases import belief_plausibility, three_gaussians
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import Bootclus, FocalSets
from evdist.bootclus import replicates as replicates_module
from evdist.bootclus.replicates import draw_counts

FAST = {"n_bootstrap": 30, "covariance_models": "EII", "random_state": 0}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return three_gaussians(120)


@pytest.fixture(scope="module")
def X(data) -> np.ndarray:
    return data[0]


@pytest.fixture(scope="module")
def model(X) -> Bootclus:
    return Bootclus(3, **FAST).fit(X)


# ---------------------------------------------------------------------- what it finds
def test_masses_follow_the_intervals(data, model):
    _, y = data
    partition = model.credal_partition_
    assert partition.mass.shape == (120, 7)
    assert partition.mass.dtype == np.float32
    assert (partition.mass[:, 0] == 0).all()
    assert adjusted_rand_score(y, model.labels_) > 0.8
    lower, upper, belief, plausibility = model.calibration_pairs()
    error = ((belief - lower) ** 2 + (plausibility - upper) ** 2).mean()
    np.testing.assert_allclose(error, model.objective_, rtol=1e-4)
    assert model.history_[0] > model.objective_ > 0
    assert len(model.intervals_) == 120 * 119 // 2
    assert model.converged_


def test_calibration_pairs_are_the_beliefs_of_the_partition(model):
    kept = model.intervals_
    bel, pl = belief_plausibility(model.credal_partition_.mass, model.credal_partition_.focal_sets)
    found = model.calibration_pairs()
    np.testing.assert_allclose(found.belief, bel[kept.i, kept.j], atol=1e-12)
    np.testing.assert_allclose(found.plausibility, pl[kept.i, kept.j], atol=1e-12)


def test_the_mixture_stays_available_and_numbers_the_clusters(X, model):
    assert model.covariance_model_ == model.mixture_.covariance_model_ == "EII"
    assert model.n_clusters_ == 3
    agree = model.labels_ == model.mixture_.predict(X)
    assert agree.mean() > 0.95


def test_a_wider_level_gives_wider_intervals_and_more_ignorance(X, model):
    wide = Bootclus(3, **{**FAST, "confidence": 0.99}).fit(X)
    assert (wide.intervals_.lower <= model.intervals_.lower + 1e-7).all()
    assert (wide.intervals_.upper >= model.intervals_.upper - 1e-7).all()
    narrow, ignorant = model.calibration_pairs(), wide.calibration_pairs()
    assert (ignorant.plausibility - ignorant.belief).mean() > (
        narrow.plausibility - narrow.belief
    ).mean()


def test_bic_chooses_the_number_of_clusters(X):
    model = Bootclus(range(2, 5), **FAST).fit(X)
    assert model.n_clusters_ == 3
    assert list(model.mixture_.bics_.index) == [2, 3, 4]


def test_one_cluster_leaves_nothing_to_doubt(X):
    model = Bootclus(1, **FAST).fit(X)
    np.testing.assert_array_equal(model.credal_partition_.mass, np.tile([0.0, 1.0], (120, 1)))
    assert model.objective_ == 0


@pytest.mark.parametrize(
    ("family", "f"), [("simple", 5), ("pairs", 7), ("full", 8), (FocalSets.full(3), 8)]
)
def test_families_of_focal_sets(X, family, f):
    model = Bootclus(3, **FAST, focal_sets=family).fit(X)
    assert model.credal_partition_.mass.shape == (120, f)
    assert (model.credal_partition_.mass[:, 0] == 0).all()


def test_select_keeps_the_pairs_of_overlapping_clusters():
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [3, 0], [30, 0], [33, 0]])
    X = np.repeat(centres, 60, axis=0) + rng.standard_normal((240, 2))
    model = Bootclus(4, **FAST, focal_sets="select", pair_neighbours=1).fit(X)
    pairs = [s for s in model.credal_partition_.focal_sets.sets if len(s) == 2]
    left = {frozenset(np.flatnonzero(model.mixture_.means_[:, 0] < 15).tolist())}
    right = {frozenset(np.flatnonzero(model.mixture_.means_[:, 0] > 15).tolist())}
    assert set(map(frozenset, pairs)) == left | right


def test_sampled_pairs_come_near_all_pairs(X, model):
    some = Bootclus(3, **FAST, n_dissimilarities=40).fit(X)
    assert 120 * 40 // 2 * 0.9 < len(some.intervals_) <= 120 * 40 // 2
    apart = np.abs(some.credal_partition_.mass - model.credal_partition_.mass)
    assert apart.mean() < 0.02


def test_the_order_of_the_objects_makes_hardly_a_difference(X, model):
    # Another order draws other samples: the same up to the noise of the bootstrap.
    order = np.random.default_rng(0).permutation(120)
    other = Bootclus(3, **{**FAST, "n_bootstrap": 200}).fit(X[order])
    mine = Bootclus(3, **{**FAST, "n_bootstrap": 200}).fit(X)
    assert adjusted_rand_score(mine.labels_[order], other.labels_) > 0.97


def test_moving_and_scaling_the_data_changes_nothing_but_rounding(X, model):
    moved = Bootclus(3, **FAST).fit(4.0 * X + 64.0)
    np.testing.assert_allclose(moved.intervals_.lower, model.intervals_.lower, atol=1e-4)
    np.testing.assert_allclose(
        moved.credal_partition_.mass, model.credal_partition_.mass, atol=1e-2
    )


# ---------------------------------------------------------------------- what makes no difference
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(X, model):
    for n_jobs in (1, 3):
        twin = clone(model).set_params(n_jobs=n_jobs).fit(X)
        np.testing.assert_array_equal(twin.credal_partition_.mass, model.credal_partition_.mass)
        assert twin.history_ == model.history_


def test_batches_of_replicates_make_no_difference(X, model, monkeypatch):
    monkeypatch.setattr(replicates_module, "BATCH", 7 * 120)
    twin = clone(model).fit(X)
    np.testing.assert_array_equal(twin.credal_partition_.mass, model.credal_partition_.mass)


def test_a_replicate_has_the_counts_of_its_own_seed():
    counts = draw_counts(50, seed=3, b=2, attempt=0)
    assert counts.sum() == 50
    np.testing.assert_array_equal(counts, draw_counts(50, 3, 2, 0))
    assert (counts != draw_counts(50, 3, 2, 1)).any()
    assert (counts != draw_counts(50, 3, 1, 0)).any()


# ---------------------------------------------------------------------- failed replicates
@pytest.fixture(scope="module")
def frail() -> np.ndarray:
    """A cluster of seven objects: some bootstrap samples draw too few of them for a covariance."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(60, 2)), rng.normal(20, 1, size=(7, 2))])


def test_failed_replicates_are_counted_and_drawn_again(frail):
    model = Bootclus(2, n_bootstrap=150, covariance_models="VVV", random_state=0).fit(frail)
    assert 0 < model.n_failed_ < 15
    assert np.isfinite(model.credal_partition_.mass).all()


def test_many_failures_give_a_warning(frail):
    few = frail[:-3]
    with pytest.warns(RuntimeWarning, match=r"of \d+ bootstrap samples gave no mixture"):
        model = Bootclus(2, n_bootstrap=60, covariance_models="VVV", random_state=0).fit(few)
    assert model.n_failed_ > 6


def test_a_mixture_that_fails_again_and_again_is_given_up(frail, monkeypatch):
    monkeypatch.setattr(replicates_module, "DRAWS", 1)
    with pytest.raises(RuntimeError, match=r"has failed 1 times, the last time because \w+"):
        Bootclus(2, n_bootstrap=60, covariance_models="VVV", random_state=0).fit(frail[:-3])


# ---------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1"),
        ({"n_clusters": []}, "n_clusters must name at least one number"),
        ({"n_clusters": [2, 0.5]}, "n_clusters must be an integer of at least 1, got 0.5"),
        ({"n_clusters": 121}, "at most the number of objects, got 121"),
        ({"n_bootstrap": 1}, "n_bootstrap must be an integer of at least 2"),
        ({"confidence": 1.0}, "confidence must be a number above 0 and below 1"),
        ({"confidence": 0}, "confidence must be a number above 0"),
        ({"covariance_models": "XYZ"}, "covariance_models must be"),
        ({"focal_sets": "all"}, "focal_sets must be a FocalSets or one of"),
        ({"focal_sets": FocalSets.simple(4)}, "over 4 clusters"),
        ({"focal_sets": FocalSets.of([[0], [1, 2]], 3)}, r"every single cluster, but \{1\}"),
        ({"n_dissimilarities": "all"}, 'an integer of at least 1 or "auto"'),
        ({"n_dissimilarities": 0}, "n_dissimilarities must be an integer"),
        ({"pair_neighbours": 0}, "pair_neighbours"),
        ({"tol": -1}, "tol must be"),
        ({"max_iter": 0}, "max_iter"),
        ({"callbacks": [3]}, "callbacks must be"),
        ({"checkpoint": "folder", "random_state": None}, "checkpoint needs a random_state"),
    ],
)
def test_wrong_parameters(X, change, message):
    with pytest.raises(ValueError, match=message):
        Bootclus(**{"n_clusters": 3, **FAST, **change}).fit(X)


def test_data_that_no_mixture_fits_are_refused():
    X = np.zeros((30, 2))
    X[:, 0] = np.repeat([0.0, 1.0, 2.0], 10)
    with (
        pytest.warns(ConvergenceWarning),
        pytest.raises(ValueError, match="No mixture fits these data"),
    ):
        Bootclus(3, n_bootstrap=5, covariance_models="VVV", random_state=0).fit(X)


def test_too_few_sweeps_give_a_warning(X):
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1 sweeps"):
        model = Bootclus(3, **FAST, max_iter=1).fit(X)
    assert not model.converged_


def test_news_come_from_the_bootstrap_and_from_the_sweeps(X):
    news = []
    Bootclus(3, **FAST, callbacks=[news.append]).fit(X)
    stages = list(dict.fromkeys(n.stage for n in news))
    assert stages == ["mixture", "bootstrap", "intervals", "fit"]
    replicates = [n for n in news if n.stage == "bootstrap"]
    assert [(n.sweep, n.max_sweeps) for n in replicates] == [(0, 30), (30, 30)]
    assert replicates[0].unit == "replicate"
    falls = [n.objective for n in news if n.stage == "fit"]
    assert falls == sorted(falls, reverse=True)

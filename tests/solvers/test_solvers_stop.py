"""tol = "auto": the rule of the paper, and that for many objects whose pairs are a sample."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.data.sources import pair_list
from evdist.evclus.checks import checked_settings
from evdist.evclus.irqp import (
    MANY_LEAST,
    MANY_OBJECTS,
    MANY_PROMISE,
    MANY_SKIP,
    MANY_TOL,
    USUAL_TOL,
    Stop,
    minimise,
)


def test_the_rule_of_the_paper_halves_an_error_that_starts_at_one():
    stop = Stop.auto(MANY_OBJECTS - 1, True, 200)
    assert stop == Stop(USUAL_TOL, 200)
    assert stop.promise == 0.0  # every cluster that lowers the objective enters a list
    assert stop.update(1.0, 2.0, 1.0) == 0.75  # eq. (21b)
    assert stop.sweeps_left(1.0) == 17


def test_many_objects_stop_by_the_last_change_alone():
    stop = Stop.auto(MANY_OBJECTS, True, 200)
    assert stop.promise == MANY_PROMISE
    assert stop.update(1.0, 2.0, 1.5) == 0.25
    assert stop.sweeps_left(1.0) == 0


def test_many_objects_that_start_anywhere_stop_by_the_rule_of_the_paper():
    assert Stop.auto(10 * MANY_OBJECTS, False, 200) == Stop(USUAL_TOL, 200)


def test_random_masses_and_lists_of_pairs_have_the_rule_of_the_paper():
    n = MANY_OBJECTS
    given = np.full((n, 5), 0.2)
    ring = pair_list(np.arange(n), np.roll(np.arange(n), 1), np.ones(n), n)
    for data, init, rule in [
        (SimpleNamespace(n=n), "auto", Stop.auto(n, True, 9)),
        (SimpleNamespace(n=n), given, Stop.auto(n, True, 9)),
        (SimpleNamespace(n=n), "random", Stop(USUAL_TOL, 9)),
        (ring, "auto", Stop(USUAL_TOL, 9)),
        (ring, given, Stop(USUAL_TOL, 9)),
    ]:
        assert (
            checked_settings(EVCLUS(3, metric="euclidean", init=init, max_iter=9), data, 0, 3).stop
            == rule
        )


class _Falling:
    """An executor whose sweeps lower a sum of 1 by given parts, and that notes what is skipped."""

    def __init__(self, falls, sparse=False):
        self.problem = SimpleNamespace(n=10, sparse=sparse)
        self._falls, self.now, self.skipped, self.passes = list(falls), 1.0, [], 0

    def sweep(self, skip_below=0.0, next_skip_below=None):
        self.skipped.append(skip_below)
        change = -self._falls.pop(0) * self.now
        if next_skip_below is not None:
            self.expected = next_skip_below(change)
        self.now += change
        return change

    def objective(self):
        self.passes += 1
        return self.now, 0.0

    def result(self):
        return None


def test_many_objects_are_not_passed_over_once_more_for_the_last_objective():
    """It is the first one less the falls; by the paper's rule it is computed from the masses."""
    falls = [0.5, 0.1, 0.01, 1e-5]
    many, few = _Falling(falls), _Falling([*falls, *[0.0] * 20])
    found = minimise(many, 1.0, Stop.auto(MANY_OBJECTS, True, 200))
    minimise(few, 1.0, Stop.auto(10, True, 200))
    assert (many.passes, few.passes) == (1, 2)
    assert found.history[-1] == pytest.approx(many.now, rel=1e-14)


def test_of_many_objects_rows_rest_from_the_fourth_sweep_on():
    """Two whole sweeps of four sweeps each, and no row rests in the first three."""
    executor = _Falling([0.5, 0.1, 0.01, 0.005, 0.004, 0.002, 0.001, 0.0006, 0.0001])
    found = minimise(executor, 1.0, Stop.auto(MANY_OBJECTS, True, 200))
    rests = [skip > 0 for skip in executor.skipped]
    assert rests == [False, False, False, True, False, True, True, True, False]
    assert found.converged
    # Each row that rests last brought less than a share of what ends the fit.
    assert executor.skipped[3] == pytest.approx(MANY_SKIP * MANY_TOL * found.history[3] / 10)


def test_lists_look_at_all_clusters_in_every_fourth_sweep_and_end_after_the_second():
    """A look may bring what the sweeps between could not: the fit must not end before it."""
    executor = _Falling([0.5, 0.1, 1e-5, 1e-6, 0.02, 1e-5], sparse=True)
    found = minimise(executor, 1.0, Stop.auto(MANY_OBJECTS, True, 200))
    assert [skip > 0 for skip in executor.skipped] == [False, True, True, True, False, True]
    assert found.n_iter == 6
    assert found.converged


def test_rows_that_rest_count_as_if_they_brought_what_they_may():
    near_the_end = [0.5, 0.1, 0.01, (1 - MANY_SKIP) * MANY_TOL * 1.01, 1e-5]
    assert minimise(_Falling(near_the_end), 1.0, Stop.auto(MANY_OBJECTS, True, 200)).n_iter == 5
    near_the_end[3] *= 0.98
    assert minimise(_Falling(near_the_end), 1.0, Stop.auto(MANY_OBJECTS, True, 200)).n_iter == 4


@pytest.mark.parametrize("tol", ["soon", -1.0, float("nan"), None])
def test_another_tol_is_refused(tol):
    with pytest.raises(ValueError, match="tol must be"):
        EVCLUS(2, metric="euclidean", tol=tol).fit(np.random.default_rng(0).normal(size=(20, 2)))


def stress_of_other_pairs(model: EVCLUS, X: np.ndarray, d0: float) -> float:
    """Mean of (kappa - delta)^2 over random pairs, hardly one of which the fit has drawn."""
    i, j = np.random.default_rng(7).integers(0, len(X), (2, 100_000))
    delta = 1 - 0.05 ** (((X[i] - X[j]) ** 2).sum(axis=1) / d0**2)
    partition = model.credal_partition_
    mass = np.asarray(partition.mass, float)
    kappa = ((mass[i] @ partition.focal_sets.C) * mass[j]).sum(axis=1)
    return float(((kappa - delta) ** 2).mean())


def test_a_fit_of_many_objects_ends_as_soon_as_its_pairs_say_no_more_about_others():
    """What is not drawn counts: the stress of other pairs is no higher than after 18 sweeps."""
    X, y = make_blobs(MANY_OBJECTS, centers=4, cluster_std=2.0, random_state=1)
    d0 = EVCLUS(4, metric="euclidean", n_dissimilarities=30, random_state=0).fit(X[::20]).d0_
    soon = EVCLUS(4, metric="euclidean", n_dissimilarities=30, random_state=0, d0=d0).fit(X)
    late = EVCLUS(4, metric="euclidean", n_dissimilarities=30, random_state=0, tol=1e-5, d0=d0).fit(
        X
    )
    assert MANY_LEAST <= soon.n_iter_ < 8 < late.n_iter_
    falls = -np.diff(soon.history_) / soon.history_[:-1]
    assert (falls >= 0).all()
    assert falls[-1] < MANY_TOL
    assert soon.converged_
    other = [stress_of_other_pairs(m, X, soon.d0_) for m in (soon, late)]
    assert other[0] <= 1.01 * other[1]
    ari = [adjusted_rand_score(y, m.labels_) for m in (soon, late)]
    assert ari[0] == pytest.approx(ari[1], abs=0.005)


def test_a_fit_of_many_objects_is_taken_up_with_the_same_bits(tmp_path):
    X = make_blobs(MANY_OBJECTS, centers=26, cluster_std=1.0, random_state=2)[0]
    model = {"n_clusters": 26, "n_dissimilarities": 20, "random_state": 0}
    whole = EVCLUS(metric="euclidean", **model).fit(X)
    assert whole.n_iter_ > 5
    with pytest.warns(ConvergenceWarning):
        EVCLUS(
            metric="euclidean",
            **model,
            checkpoint=f"{tmp_path}/job",
            checkpoint_every=4,
            max_iter=5,
        ).fit(X)
    again = EVCLUS(metric="euclidean", **model, checkpoint=f"{tmp_path}/job").fit(X)
    assert again.history_ == whole.history_
    np.testing.assert_array_equal(again.credal_partition_.mass, whole.credal_partition_.mass)

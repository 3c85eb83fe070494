"""tol = "auto": the rule of the paper, and that for many objects whose pairs are a sample."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.evclus.irqp import MANY_LEAST, MANY_OBJECTS, MANY_TOL, USUAL_TOL, Stop


def test_the_rule_of_the_paper_halves_an_error_that_starts_at_one():
    stop = Stop.auto(MANY_OBJECTS - 1, True, 200)
    assert stop == Stop(USUAL_TOL, 200)
    assert stop.update(1.0, 2.0, 1.0) == 0.75  # eq. (21b)
    assert stop.sweeps_left(1.0) == 17


def test_many_objects_stop_by_the_last_change_alone():
    stop = Stop.auto(MANY_OBJECTS, True, 200)
    assert stop.update(1.0, 2.0, 1.5) == 0.25
    assert stop.sweeps_left(1.0) == 0


def test_many_objects_that_start_anywhere_stop_by_the_rule_of_the_paper():
    assert Stop.auto(10 * MANY_OBJECTS, False, 200) == Stop(USUAL_TOL, 200)


@pytest.mark.parametrize("tol", ["soon", -1.0, float("nan"), None])
def test_another_tol_is_refused(tol):
    with pytest.raises(ValueError, match="tol must be"):
        EVCLUS(2, tol=tol).fit(np.random.default_rng(0).normal(size=(20, 2)))


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
    soon = EVCLUS(4, n_dissimilarities=30, random_state=0).fit(X)
    late = EVCLUS(4, n_dissimilarities=30, random_state=0, tol=1e-5, d0=soon.d0_).fit(X)
    assert MANY_LEAST <= soon.n_iter_ < 8 < late.n_iter_
    falls = -np.diff(soon.history_) / soon.history_[:-1]
    assert (falls >= 0).all()
    assert falls[-1] < MANY_TOL
    assert soon.converged_
    other = [stress_of_other_pairs(m, X, soon.d0_) for m in (soon, late)]
    assert other[0] <= 1.01 * other[1]
    ari = [adjusted_rand_score(y, m.labels_) for m in (soon, late)]
    assert ari[0] == pytest.approx(ari[1], abs=0.005)

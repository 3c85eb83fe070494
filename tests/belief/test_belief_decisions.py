"""Decisions from losses against sums over sets and probabilities, and Appriou's rule."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from belief.belief_strategies import evidence
from belief.slow_belief import betp, dicts, drawn, frames, interior, pl
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from evdist import belief as ev
from evdist.belief import FocalSets


def losses(c, acts=4, seed=0):
    return np.random.default_rng(seed).integers(0, 10, (acts, c)).astype(float)


def normal(m):
    left = 1 - m.get(frozenset(), 0.0)
    return {A: v / left for A, v in m.items() if A}


@frames
def test_expected_losses(focal):
    (m,) = interior(focal)
    L = losses(focal.n_clusters)
    omega = range(focal.n_clusters)
    for i, row in enumerate(dicts(m, focal)):
        one = normal(row)
        low = [sum(v * min(act[k] for k in A) for A, v in one.items()) for act in L]
        high = [sum(v * max(act[k] for k in A) for A, v in one.items()) for act in L]
        bets = [sum(betp(row, k) * act[k] for k in omega) for act in L]
        mixed = [0.3 * h + 0.7 * x for x, h in zip(low, high, strict=True)]
        for expectation, expected in (
            ("lower", low),
            ("upper", high),
            ("pignistic", bets),
            ("hurwicz", mixed),
        ):
            got = ev.expected_loss(m, focal, L, expectation=expectation, pessimism=0.3)
            np.testing.assert_allclose(got[i], expected, rtol=1e-9)
            best = ev.best_act(m, focal, L, expectation=expectation, pessimism=0.3)
            assert best[i] == np.argmin(np.round(expected, 9))


@frames
def test_sets_of_acts(focal):
    (m,) = interior(focal, seed=3)
    L = losses(focal.n_clusters, acts=5, seed=1)
    undominated, maximal = ev.interval_dominance(m, focal, L), ev.maximality(m, focal, L)
    for i, row in enumerate(dicts(m, focal)):
        one = normal(row)

        def lower(loss, one=one):
            return sum(v * min(loss[k] for k in A) for A, v in one.items())

        least = [lower(act) for act in L]
        most = [-lower(-act) for act in L]
        assert undominated[i].tolist() == [x <= min(most) + 1e-9 for x in least]
        better = [[lower(a - b) > 1e-9 for b in L] for a in L]
        assert maximal[i].tolist() == [not any(row) for row in better]


@given(evidence(), st.integers(0, 20))
def test_laws_of_decisions(drawn, seed):
    focal, m = drawn
    L = losses(focal.n_clusters, seed=seed)
    low, bets, high = (
        ev.expected_loss(m, focal, L, expectation=e) for e in ("lower", "pignistic", "upper")
    )
    if focal.omega is not None:
        assert (low <= bets + 1e-9).all()
        assert (bets <= high + 1e-9).all()
    undominated, maximal = ev.interval_dominance(m, focal, L), ev.maximality(m, focal, L)
    assert maximal.any(axis=1).all()
    assert (undominated | ~maximal).all()
    rows = np.arange(len(m))
    for expectation in ("upper", "lower"):
        assert undominated[rows, ev.best_act(m, focal, L, expectation=expectation)].all()
    # An act that is dearer in every case is never kept.
    worse = np.vstack([L, L.min(axis=0) + 11])
    assert not ev.maximality(m, focal, worse)[:, -1].any()
    assert not ev.interval_dominance(m, focal, np.vstack([L, L.max() + 1 + 0 * L[0]]))[:, -1].any()


@pytest.mark.parametrize("c", [2, 3, 4])
def test_what_is_best_for_some_probabilities_is_kept(c):
    """The corners of the probabilities that masses allow give each set's mass to one cluster."""
    focal = FocalSets.full(c)
    m = drawn(focal, empty=False)[0]
    m = m[(m > 0).sum(axis=1) <= 8]
    L = losses(c, acts=4, seed=5)
    kept = ev.maximality(m, focal, L)
    for i, row in enumerate(dicts(m, focal)):
        for corner in product(*(sorted(A) for A in row)):
            p = np.zeros(c)
            for k, v in zip(corner, row.values(), strict=True):
                p[k] += v
            assert kept[i, np.argmin(L @ p)]


def test_losses_of_zero_and_one_choose_as_the_usual_rules():
    """Lower expectation: largest plausibility; upper: largest belief; pignistic: largest bet."""
    focal = FocalSets.full(4)
    (m,) = interior(focal)
    L = 1 - np.eye(4)
    for expectation, function in (
        ("lower", ev.contour),
        ("upper", ev.singleton_belief),
        ("pignistic", ev.pignistic),
    ):
        best = ev.best_act(m, focal, L, expectation=expectation)
        worth = function(m, focal)
        np.testing.assert_allclose(worth[np.arange(5), best], worth.max(axis=1), **ROUNDING)


class TestAppriou:
    @frames
    @pytest.mark.parametrize("exponent", [0.0, 0.4, 1.0])
    def test_the_set_of_largest_weighted_plausibility(self, focal, exponent):
        (m,) = interior(focal)
        got = ev.appriou(m, focal, exponent=exponent)
        for column, row in zip(got, dicts(m, focal), strict=True):
            worth = [pl(row, frozenset(s)) / max(len(s), 1) ** exponent for s in focal.sets]
            assert column > 0
            assert worth[column] >= max(worth[1:]) - 1e-9
            same = [
                focal.cardinality[q]
                for q in range(1, len(focal))
                if worth[q] >= max(worth[1:]) - 1e-12
            ]
            assert focal.cardinality[column] == min(same)

    def test_chosen_sets_and_weights(self):
        focal = FocalSets.simple(3)
        m = np.array([[0, 0.5, 0.4, 0, 0.1], [0, 0.9, 0, 0, 0.1]])
        sets = [[0], [1], [0, 1]]
        assert ev.appriou(m, focal, exponent=0.5, sets=sets).tolist() == [2, 0]
        heavy = ev.appriou(m, focal, exponent=0.5, sets=sets, weights=[1, 9, 1])
        assert heavy.tolist() == [1, 0]
        assert ev.appriou(m[0], focal, exponent=0.5, sets=sets) == 2

    def test_exponent_zero_keeps_all_open_and_one_decides(self):
        focal = FocalSets.full(3)
        rng = np.random.default_rng(0)
        m = ev.random_masses(50, focal, rng)
        assert (ev.appriou(m, focal, exponent=0.0) == focal.omega).all()
        single = ev.appriou(m, focal, exponent=1.0)
        assert (focal.cardinality[single] == 1).all()
        np.testing.assert_array_equal(single, focal.singletons[ev.contour(m, focal).argmax(axis=1)])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"exponent": 1.5}, "exponent must lie between 0 and 1, got 1.5"),
            ({"sets": [[]]}, "non-empty sets of clusters, got none"),
            ({"weights": [1.0]}, "weights must be 4 numbers of at least 0"),
            ({"sets": [[0], [1]], "weights": [1.0, -1.0]}, "weights must be 2 numbers"),
        ],
    )
    def test_what_is_refused(self, options, message):
        with pytest.raises(ValueError, match=message):
            ev.appriou([0, 0.5, 0.5, 0], FocalSets.full(2), **options)


def test_one_row_and_single_precision():
    focal = FocalSets.full(3)
    (m,) = interior(focal)
    L = losses(3)
    for function in (ev.expected_loss, ev.best_act, ev.interval_dominance, ev.maximality):
        np.testing.assert_allclose(function(m[1], focal, L), function(m, focal, L)[1], **ROUNDING)
    assert ev.expected_loss(m.astype(np.float32), focal, L).dtype == np.float32
    assert ev.maximality(m[:0], focal, L).shape == (0, 4)


@pytest.mark.parametrize(
    ("loss", "options", "message"),
    [
        (np.ones((2, 3)), {}, r"shape \(a, 2\), a row per act.*got shape \(2, 3\)"),
        (np.ones(2), {}, r"got shape \(2,\)"),
        ([[1, np.inf]], {}, "Losses must be finite"),
        (np.ones((2, 2)), {"expectation": "mean"}, "expectation must be one of lower, upper"),
        (np.ones((2, 2)), {"pessimism": 2.0}, "pessimism must lie between 0 and 1, got 2"),
    ],
)
def test_losses_that_are_refused(loss, options, message):
    with pytest.raises(ValueError, match=message):
        ev.expected_loss([0, 0.5, 0.5, 0], FocalSets.full(2), loss, **options)

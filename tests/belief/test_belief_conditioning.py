"""Conditioning, its inverse, and the generalised Bayesian theorem."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from belief.belief_strategies import evidence
from belief.slow_belief import (
    assert_masses,
    bel,
    dicts,
    drawn,
    frames,
    interior,
    moved,
    subsets,
)
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from evdist import belief as ev
from evdist.belief import FocalSets


@frames
def test_conditioning_cuts_every_set_down(focal):
    (m,) = drawn(focal)
    for given_set in ([0], [0, 1], range(1, focal.n_clusters), range(focal.n_clusters)):
        mass, family = ev.condition(m, focal, given_set)
        B = frozenset(given_set)
        for got, row in zip(dicts(mass, family), dicts(m, focal), strict=True):
            assert_masses(got, moved(row, lambda A, B=B: A & B))


@frames
def test_normalised_conditioning_divides_by_the_plausibility(focal):
    (m,) = drawn(focal, empty=False)
    B = frozenset([0, 1])
    mass, family = ev.condition(m, focal, B, normalised=True)
    for got, row in zip(dicts(mass, family), dicts(m, focal), strict=True):
        cut = moved(row, lambda A: A & B)
        left = 1 - cut.pop(frozenset(), 0.0)
        expected = {A: v / left for A, v in cut.items()} if left > 1e-12 else {B: 1.0}
        assert_masses(got, expected, atol=1e-9)


@frames
def test_geometric_conditioning_divides_beliefs(focal):
    (m,) = interior(focal)
    B = frozenset([0, 1])
    mass, family = ev.geometric_condition(m, focal, B)
    assert not mass[:, 0].any()
    for got, row in zip(dicts(mass, family), dicts(m, focal), strict=True):
        whole = bel(row, B)
        for A in subsets(range(focal.n_clusters)):
            expected = bel(row, A & B) / whole if whole else float(A >= B)
            np.testing.assert_allclose(bel(got, A), expected, **ROUNDING)


@given(evidence(), st.randoms())
def test_conditioning_is_the_conjunctive_sum_with_certainty(drawn, random):
    focal, m = drawn
    B = [k for k in range(focal.n_clusters) if random.random() < 0.6]
    mass, family = ev.condition(m, focal, B)
    certain = np.zeros(len(family))
    certain[family.index(B)] = 1.0
    joint, last = ev.conjunctive([ev.on_family(m, focal, family), certain], family)
    np.testing.assert_allclose(ev.on_family(mass, family, last), joint, **ROUNDING)
    again, _ = ev.condition(mass, family, B)
    np.testing.assert_allclose(again, mass, **ROUNDING)


@given(evidence(), st.randoms())
def test_deconditioning_is_undone_by_conditioning_and_is_least_committed(drawn, random):
    focal, m = drawn
    B = [k for k in range(focal.n_clusters) if random.random() < 0.6]
    inside, family = ev.condition(m, focal, B)
    wide, larger = ev.decondition(inside, family, B)
    back, last = ev.condition(wide, larger, B)
    np.testing.assert_allclose(back, ev.on_family(inside, family, last), **ROUNDING)
    # Of all masses with this conditioning, such as m itself, it says least.
    assert ev.is_more_committed(ev.on_family(inside, family, larger), wide, larger, order="q").all()
    assert ev.is_more_committed(
        ev.on_family(m, focal, ev.FocalSets.full(focal.n_clusters)),
        ev.on_power_set(wide, larger)[0],
        ev.FocalSets.full(focal.n_clusters),
        order="s",
    ).all()


@frames
def test_deconditioning_joins_the_complement(focal):
    (m,) = drawn(focal)
    B, omega = frozenset([0, 1]), frozenset(range(focal.n_clusters))
    inside, family = ev.condition(m, focal, B)
    wide, larger = ev.decondition(inside, family, B)
    for got, row in zip(dicts(wide, larger), dicts(inside, family), strict=True):
        assert_masses(got, moved(row, lambda A: A | (omega - B)))


def test_what_contradicts_the_set_leaves_it_open():
    focal = FocalSets.simple(3)
    for function in (
        lambda m, focal, B: ev.condition(m, focal, B, normalised=True),
        ev.geometric_condition,
    ):
        mass, family = function([0.0, 0, 0, 1, 0], focal, [0, 1])
        assert mass[family.index([0, 1])] == 1.0


def test_what_is_refused():
    focal = FocalSets.full(2)
    with pytest.raises(ValueError, match=r"names cluster 2; clusters are numbered 0\.\.1"):
        ev.condition([0.0, 1, 0, 0], focal, [2])
    with pytest.raises(ValueError, match=r"got mass on \{1\} in row 1. Condition on the set"):
        ev.decondition([[0.0, 1, 0, 0], [0, 0.5, 0.5, 0]], focal, [0])
    with pytest.raises(ValueError, match=r"got mass on \{1\} in row 0"):
        ev.decondition([0, 0.5, 0.5, 0], focal, [0])


class TestGeneralisedBayes:
    @pytest.mark.parametrize("c", range(2, 7))
    def test_against_its_formula(self, c):
        p = np.random.default_rng(c).random((3, c))
        p[0, 0], p[1, :2] = 1.0, 0.0
        mass, focal = ev.generalised_bayes(p)
        assert focal == FocalSets.full(c)
        for row, found in zip(p, dicts(mass, focal), strict=True):
            expected = {
                A: prod(row[k] if k in A else 1 - row[k] for k in range(c))
                for A in subsets(range(c))
            }
            assert_masses(found, expected)

    def test_plausibilities_of_clusters_are_the_likelihoods(self):
        p = np.random.default_rng(0).random((4, 5))
        mass, focal = ev.generalised_bayes(p)
        np.testing.assert_allclose(ev.contour(mass, focal), p, **ROUNDING)

    def test_two_independent_observations_may_be_combined_before_or_after(self):
        """Smets (1993): likelihoods multiply, and so do commonalities."""
        x, y = np.random.default_rng(1).random((2, 3, 4))
        at_once, focal = ev.generalised_bayes(x * y)
        sources = [ev.generalised_bayes(p)[0] for p in (x, y)]
        np.testing.assert_allclose(ev.conjunctive(sources, focal)[0], at_once, **ROUNDING)

    def test_with_a_prior_and_probabilities_it_is_the_theorem_of_bayes(self):
        likelihood, prior = np.array([0.2, 0.5, 0.9]), np.array([0.5, 0.3, 0.2])
        mass, focal = ev.generalised_bayes(likelihood)
        probabilities = np.zeros(8)
        probabilities[focal.singletons] = prior
        posterior, _ = ev.dempster([mass, probabilities], focal)
        expected = likelihood * prior / (likelihood * prior).sum()
        np.testing.assert_allclose(posterior[focal.singletons], expected, **ROUNDING)

    def test_single_precision_rows_and_one_row(self):
        p = np.array([[0.25, 0.5]], dtype=np.float32)
        mass, _ = ev.generalised_bayes(p)
        assert mass.dtype == np.float32
        assert mass.tolist() == [[0.375, 0.125, 0.375, 0.125]]
        assert ev.generalised_bayes(p[0])[0].shape == (4,)

    @pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
    def test_what_is_no_plausibility_is_refused(self, bad):
        with pytest.raises(ValueError, match=r"between 0 and 1, got .* for cluster 1 in row 1"):
            ev.generalised_bayes([[0.5, 0.5], [0.5, bad]])
        with pytest.raises(ValueError, match=r"got shape \(2, 17\)"):
            ev.generalised_bayes(np.zeros((2, 17)))

"""Canonical decompositions, and the cautious and bold rules."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from belief.belief_strategies import families, masses_on
from belief.slow_belief import (
    as_dict,
    assert_masses,
    conjunctive_weight,
    dicts,
    disjunctive_weight,
    frames,
    interior,
    pairwise,
    subsets,
)
from hypothesis import given
from hypothesis import strategies as st
from tolerances import LOGARITHMS, SINGLE

from evdist import belief as ev
from evdist.belief import FocalSets


@st.composite
def evidence_inside(draw, sources=1):
    """Any family with Omega, and masses with m(empty) and m(Omega) above 0."""
    focal = draw(families().filter(lambda focal: focal.omega is not None))
    spread = np.zeros(len(focal))
    spread[[0, focal.omega]] = 0.5
    return (focal, *(0.75 * draw(masses_on(focal)) + 0.25 * spread for _ in range(sources)))


@frames
def test_weights_are_products_of_commonalities_over_all_supersets(focal):
    omega = frozenset(range(focal.n_clusters))
    (m,) = interior(focal)
    w, family = ev.conjunctive_weights(m, focal)
    for row, one in zip(w, dicts(m, focal), strict=True):
        found = {frozenset(s): v for s, v in zip(family.sets, row, strict=True)}
        for A in subsets(omega):
            expected = conjunctive_weight(one, A, omega) if A != omega else 1.0
            # A set that is not in the family has weight one.
            np.testing.assert_allclose(found.get(A, 1.0), expected, **LOGARITHMS)


@frames
def test_weights_are_products_of_implicabilities_over_all_subsets(focal):
    omega = frozenset(range(focal.n_clusters))
    (m,) = interior(focal)
    v, family = ev.disjunctive_weights(m, focal)
    for row, one in zip(v, dicts(m, focal), strict=True):
        found = {frozenset(s): x for s, x in zip(family.sets, row, strict=True)}
        for A in subsets(omega):
            expected = disjunctive_weight(one, A) if A else 1.0
            np.testing.assert_allclose(found.get(A, 1.0), expected, **LOGARITHMS)


@given(evidence_inside())
def test_masses_come_back_from_their_weights(drawn):
    focal, m = drawn
    for there, back in (
        (ev.conjunctive_weights, ev.mass_from_conjunctive_weights),
        (ev.disjunctive_weights, ev.mass_from_disjunctive_weights),
    ):
        weights, family = there(m, focal)
        mass, same = back(weights, family)
        assert same == family
        np.testing.assert_allclose(mass, ev.on_family(m, focal, family), **LOGARITHMS)


@given(evidence_inside(2))
def test_weights_of_a_sum_multiply(drawn):
    focal, m1, m2 = drawn
    for rule, weights in (
        (ev.conjunctive, ev.conjunctive_weights),
        (ev.disjunctive, ev.disjunctive_weights),
    ):
        (w1, family), (w2, _) = weights(m1, focal), weights(m2, focal)
        both, larger = rule([m1, m2], focal)
        w12, last = weights(both, larger)
        place = [last.index(s) for s in family.sets]
        np.testing.assert_allclose(w12[:, place], w1 * w2, rtol=1e-6)


@pytest.mark.parametrize("kind", ["w", "v"])
def test_a_sum_of_simple_mass_functions_has_their_weights(kind):
    """Two sources of evidence for {0,1}, one for {1,2}: weights .5 * .4 and .7."""
    focal = FocalSets.full(3)
    rest = focal.omega if kind == "w" else 0
    simple = []
    for members, weight in (([0, 1], 0.5), ([0, 1], 0.4), ([1, 2], 0.7)):
        m = np.zeros(8)
        m[focal.index(members)], m[rest] = 1 - weight, weight
        simple.append(m)
    rule, weights = {
        "w": (ev.conjunctive, ev.conjunctive_weights),
        "v": (ev.disjunctive, ev.disjunctive_weights),
    }[kind]
    got, _ = weights(rule(simple, focal)[0], focal)
    expected = np.ones(8)
    expected[focal.index([0, 1])], expected[focal.index([1, 2])] = 0.2, 0.7
    np.testing.assert_allclose(got, expected, **LOGARITHMS)


@frames
@pytest.mark.parametrize("rule", [ev.cautious, ev.bold], ids=["cautious", "bold"])
def test_the_rules_are_sums_of_simple_mass_functions_of_least_weight(rule, focal):
    """Weights below one are evidence; what is above one in both is left out of the reference."""
    sources = interior(focal, 2, seed=1)
    omega = frozenset(range(focal.n_clusters))
    mass, family = rule(sources, focal)
    for row, *pair in zip(mass, *(dicts(m, focal) for m in sources), strict=True):
        if rule is ev.cautious:
            weight = {A: min(conjunctive_weight(m, A, omega) for m in pair) for A in subsets(omega)}
            weight.pop(omega)
            rest, operation = omega, frozenset.__and__
        else:
            weight = {A: min(disjunctive_weight(m, A) for m in pair) for A in subsets(omega)}
            weight.pop(frozenset())
            rest, operation = frozenset(), frozenset.__or__
        # A removal, weight above one, is a sum with negative mass: the formula is the same.
        simple = [{A: 1 - w, rest: w} for A, w in weight.items() if abs(w - 1) > 1e-9]
        expected = reduce(lambda x, y: pairwise(x, y, operation), simple, {rest: 1.0})
        assert_masses(as_dict(row, family), expected, atol=1e-7)


@pytest.mark.parametrize("rule", [ev.cautious, ev.bold], ids=["cautious", "bold"])
@given(evidence_inside(3))
def test_idempotent_commutative_associative(rule, drawn):
    focal, x, y, z = drawn
    same, family = rule([x, x], focal)
    np.testing.assert_allclose(same, ev.on_family(x, focal, family), **LOGARITHMS)
    both, _ = rule([x, y], focal)
    np.testing.assert_allclose(rule([y, x], focal)[0], both, **LOGARITHMS)
    at_once, _ = rule([x, y, z], focal)
    wide = ev.on_family(z, focal, family)
    np.testing.assert_allclose(rule([both, wide], family)[0], at_once, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("rule", [ev.cautious, ev.bold], ids=["cautious", "bold"])
@given(evidence_inside(3))
def test_the_sum_distributes_over_the_rule(rule, drawn):
    """What two sources share is counted once; Denoeux (2008), propositions 4 and 9."""
    focal, x, y, shared = drawn
    add = ev.conjunctive if rule is ev.cautious else ev.disjunctive
    _, family = rule([x, y], focal)
    x, y, shared = (ev.on_family(m, focal, family) for m in (x, y, shared))
    once, _ = add([rule([x, y], family)[0], shared], family)
    both, _ = rule([add([x, shared], family)[0], add([y, shared], family)[0]], family)
    np.testing.assert_allclose(once, both, rtol=1e-6, atol=1e-8)


@given(evidence_inside(2))
def test_the_results_are_mass_functions(drawn):
    focal, x, y = drawn
    for rule in (ev.cautious, ev.bold):
        mass, _ = rule([x, y], focal)
        assert (mass >= 0).all()
        np.testing.assert_allclose(mass.sum(axis=1), 1.0, rtol=1e-9)


def test_the_cautious_result_is_at_least_as_committed_as_each_source():
    focal = FocalSets.full(4)
    x, y = interior(focal, 2)
    mass, family = ev.cautious([x, y], focal)
    for source in (x, y):
        assert ev.is_more_committed(mass, source, family, order="w").all()
        assert ev.is_more_committed(mass, source, family, order="q").all()


def test_single_precision_and_single_rows():
    focal = FocalSets.full(3)
    (m,) = interior(focal)
    w, _ = ev.conjunctive_weights(m, focal)
    low, _ = ev.conjunctive_weights(m.astype(np.float32), focal)
    assert low.dtype == np.float32
    np.testing.assert_allclose(low, w, rtol=1e-3)
    one, _ = ev.cautious([m[0], m[1]], focal)
    np.testing.assert_allclose(one, ev.cautious([m, m[1]], focal)[0][0], **LOGARITHMS)
    single, _ = ev.cautious([m.astype(np.float32), m[1].astype(np.float32)], focal)
    assert single.dtype == np.float32
    np.testing.assert_allclose(
        single, ev.cautious([m, m[1]], focal)[0], rtol=1e-3, **{"atol": SINGLE["atol"] * 10}
    )
    assert ev.conjunctive_weights(m[:0], focal)[0].shape == (0, 8)


def test_a_family_that_lacks_intersections_gets_them():
    focal = FocalSets.of([[0, 1], [1, 2], [0, 1, 2]], 3)
    m = np.array([0.0, 0.3, 0.3, 0.4])
    w, family = ev.conjunctive_weights(m, focal)
    assert family.sets == ((), (0, 1), (1, 2), (0, 1, 2), (1,))
    full = ev.conjunctive_weights(*ev.on_power_set(m, focal))[0]
    np.testing.assert_allclose(w, full[list(family.masks)], **LOGARITHMS)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (ev.conjunctive_weights, r"mass on Ω in every row, got 0.0 in row 1. Discount"),
        (ev.disjunctive_weights, r"mass on ∅ in every row, got 0.0 in row 0. Mix in"),
        (lambda m, focal: ev.cautious([m, m], focal), "mass on Ω in every row"),
        (lambda m, focal: ev.bold([m, m], focal), "mass on ∅ in every row"),
    ],
)
def test_dogmatic_masses_are_refused(function, message):
    m = np.array([[0.0, 0.5, 0.0, 0.5], [0.5, 0.5, 0.0, 0.0]])
    with pytest.raises(ValueError, match=message):
        function(m, FocalSets.full(2))


def test_weights_that_are_none_are_refused():
    focal = FocalSets.full(2)
    with pytest.raises(ValueError, match=r"above 0, got 0.0 for \{1\} in row 0"):
        ev.mass_from_conjunctive_weights([1.0, 1.0, 0.0, 1.0], focal)
    with pytest.raises(ValueError, match="must be those of a mass function, got -1"):
        ev.mass_from_conjunctive_weights([1.0, 2.0, 1.0, 1.0], focal)

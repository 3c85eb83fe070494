"""Laws of the combination rules."""

from __future__ import annotations

import numpy as np
import pytest
from belief.belief_strategies import (
    as_sets,
    assert_same_masses,
    evidence,
    families,
    pairwise,
    renamed,
    with_omega,
)
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING, SINGLE

from evdist import belief as ev
from evdist.belief import FocalSets, products

RULES = {
    ev.conjunctive: lambda A, B: A & B,
    ev.disjunctive: lambda A, B: A | B,
    ev.exclusive: lambda A, B: A ^ B,
    ev.dubois_prade: lambda A, B: A & B or A | B,
}
rules = pytest.mark.parametrize("rule", list(RULES), ids=lambda rule: rule.__name__)


def rows_as_sets(combined):
    mass, focal = combined
    return [as_sets(row, focal) for row in mass]


def assert_same_rows(got, expected):
    for one, other in zip(rows_as_sets(got), rows_as_sets(expected), strict=True):
        assert_same_masses(one, other)


@rules
@given(evidence(2))
def test_a_rule_is_the_sum_over_pairs_that_defines_it(rule, drawn):
    focal, m1, m2 = drawn
    mass, family = rule([m1, m2], focal)
    assert (mass >= 0).all()
    np.testing.assert_allclose(mass.sum(axis=1), 1.0, **ROUNDING)
    for row, x, y in zip(mass, m1, m2, strict=True):
        assert_same_masses(as_sets(row, family), pairwise(x, y, focal, RULES[rule]))


@rules
@given(focal=families())
def test_the_family_grows_by_the_missing_sets_only(rule, focal):
    _, family = rule([np.eye(len(focal))[0]] * 2, focal)
    sets = {frozenset(s) for s in focal}
    reached = {RULES[rule](A, B) for A in sets for B in sets}
    assert {frozenset(s) for s in family} == sets | reached
    assert family.masks[: len(focal)] == focal.masks
    if reached <= sets:
        assert family == focal


@rules
@given(evidence(2))
def test_commutativity(rule, drawn):
    focal, m1, m2 = drawn
    assert_same_rows(rule([m1, m2], focal), rule([m2, m1], focal))


@pytest.mark.parametrize(
    "rule", [ev.conjunctive, ev.disjunctive, ev.exclusive], ids=["and", "or", "xor"]
)
@given(evidence(3))
def test_associativity(rule, drawn):
    """The first two, then the third, in whichever order; and all at once."""
    focal, *m = drawn
    at_once = rule(m, focal)
    assert_same_rows(at_once, rule(m[::-1], focal))
    assert_same_rows(at_once, rule([m[1], m[2], m[0]], focal))


@given(evidence(2))
def test_de_morgan(drawn):
    """The complement of the disjunctive sum is the conjunctive sum of the complements."""
    focal, m1, m2 = drawn
    whole = frozenset(range(focal.n_clusters))
    lattice = FocalSets.full(focal.n_clusters)

    def complement(m):
        out = np.zeros((len(m), len(lattice)))
        for q, s in enumerate(focal.sets):
            out[:, lattice.index(whole - set(s))] = m[:, q]
        return out

    united = rows_as_sets(ev.disjunctive([m1, m2], focal))
    met = rows_as_sets(ev.conjunctive([complement(m1), complement(m2)], lattice))
    for one, other in zip(united, met, strict=True):
        assert_same_masses({whole - A: v for A, v in one.items()}, other)


@given(evidence(2))
def test_commonalities_and_implicabilities_multiply(drawn):
    focal, m1, m2 = drawn
    for rule, transform in (
        (ev.conjunctive, ev.commonality),
        (ev.disjunctive, ev.implicability),
    ):
        mass, family = rule([m1, m2], focal)
        f = len(focal)
        expected = transform(m1, focal) * transform(m2, focal)
        np.testing.assert_allclose(transform(mass, family)[:, :f], expected, **ROUNDING)


@given(evidence(within=with_omega()))
def test_the_vacuous_mass_function_is_neutral(drawn):
    focal, m = drawn
    vacuous = np.eye(len(focal))[focal.omega]
    mass, family = ev.conjunctive([m, vacuous], focal)
    f = len(focal)
    np.testing.assert_allclose(mass[:, :f], m, **ROUNDING)
    assert not mass[:, f:].any()
    mass, family = ev.dempster([m, vacuous], focal)
    padded = np.pad(m, ((0, 0), (0, len(family) - f)))
    np.testing.assert_allclose(mass, ev.normalise(padded, family), **ROUNDING)


@given(evidence())
def test_the_empty_set_is_neutral_for_unions(drawn):
    focal, m = drawn
    mass, _ = ev.disjunctive([m, np.eye(len(focal))[0]], focal)
    np.testing.assert_allclose(mass[:, : len(focal)], m, **ROUNDING)


@given(evidence(2))
def test_dempster_is_the_normalised_conjunctive_sum(drawn):
    focal, m1, m2 = drawn
    mass, family = ev.dempster([m1, m2], focal)
    joint, same = ev.conjunctive([m1, m2], focal)
    assert family == same
    np.testing.assert_allclose(mass, ev.normalise(joint, family), **ROUNDING)
    kappa = ev.conflict(m1, m2, focal)
    possible = kappa < 1 - 1e-9
    np.testing.assert_allclose(
        ev.contour(mass, family)[possible] * (1 - kappa[possible, None]),
        (ev.contour(m1, focal) * ev.contour(m2, focal))[possible],
        **ROUNDING,
    )


def test_dempster_in_total_conflict_is_vacuous_and_stays_so():
    focal = FocalSets.simple(2)
    one, two = np.eye(4)[1], np.eye(4)[2]
    for sources in ([one, two], [one, two, one], [one, two, np.eye(4)[3]]):
        mass, _ = ev.dempster(sources, focal)
        assert mass.tolist() == [0, 0, 0, 1]


def test_dempster_of_very_many_sources_does_not_underflow():
    focal = FocalSets.simple(2)
    sources = np.tile([0.0, 0.4, 0.4, 0.2], (3000, 1))
    mass, _ = ev.dempster(sources, focal)
    np.testing.assert_allclose(mass, [0, 0.5, 0.5, 0], **ROUNDING)


@given(evidence(3))
def test_yager_gives_the_conflict_of_all_sources_to_omega(drawn):
    focal, *m = drawn
    mass, family = ev.yager(m, focal)
    joint, smaller = ev.conjunctive(m, focal)
    whole = frozenset(range(focal.n_clusters))
    for row, expected in zip(
        rows_as_sets((mass, family)), rows_as_sets((joint, smaller)), strict=True
    ):
        conflict = expected.pop(frozenset())
        expected[whole] = expected.get(whole, 0.0) + conflict
        assert_same_masses(row, expected)
    assert_same_rows((mass, family), ev.yager(m[::-1], focal))


@given(evidence(2), st.tuples(*[st.floats(0.1, 5)] * 2))
def test_a_mixture_weighs_its_sources(drawn, weights):
    focal, x, y = drawn
    a, b = weights
    mass, family = ev.average([x, y], focal, weights=weights)
    assert family is focal
    np.testing.assert_allclose(mass, (a * x + b * y) / (a + b), **ROUNDING)
    np.testing.assert_allclose(
        ev.average([x, y], focal, weights=[3, 3])[0], ev.average([x, y], focal)[0], **ROUNDING
    )


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, np.nan], [1, np.inf]])
def test_weights_of_a_mixture_that_are_refused(weights):
    with pytest.raises(ValueError, match="weights must be 2 numbers of at least 0"):
        ev.average(np.zeros((2, 4)), FocalSets.full(2), weights=weights)


@given(evidence(3))
def test_the_average_is_the_mean(drawn):
    focal, *m = drawn
    mass, family = ev.average(m, focal)
    assert family is focal
    np.testing.assert_allclose(mass, np.mean(m, axis=0), **ROUNDING)


@rules
@given(evidence(2), st.randoms())
def test_renaming_clusters_renames_the_result(rule, drawn, random):
    focal, m1, m2 = drawn
    names = list(range(focal.n_clusters))
    random.shuffle(names)
    got = rows_as_sets(rule([m1, m2], renamed(focal, names)))
    for one, other in zip(rows_as_sets(rule([m1, m2], focal)), got, strict=True):
        assert_same_masses({frozenset(names[k] for k in A): v for A, v in one.items()}, other)


@rules
@given(evidence(2))
def test_one_mass_function_goes_with_every_row(rule, drawn):
    focal, m1, m2 = drawn
    mass, family = rule([m1, m2[0]], focal)
    for i, row in enumerate(mass):
        alone, same = rule([m1[i], m2[0]], focal)
        assert same == family
        np.testing.assert_allclose(alone, row, **ROUNDING)
    single, _ = rule([m1.astype(np.float32), m2[0].astype(np.float32)], focal)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, mass, **SINGLE)
    assert rule([m1[:0], m2[:0]], focal)[0].shape == (0, len(family))


@rules
@pytest.mark.parametrize("focal", [FocalSets.pairs(5), FocalSets.full(5)], ids=["pairs", "full"])
def test_the_size_of_the_pieces_does_not_matter(rule, focal, monkeypatch):
    rng = np.random.default_rng(0)
    m1, m2 = rng.dirichlet(np.ones(len(focal)), (2, 23))
    whole, _ = rule([m1, m2], focal)
    for piece, rows in ((1, 1), (7, 4), (100, 23)):
        monkeypatch.setattr(products, "PIECE", piece)
        monkeypatch.setattr(products, "ROWS", rows)
        np.testing.assert_allclose(rule([m1, m2], focal)[0], whole, **ROUNDING)


def test_more_than_64_clusters():
    focal = FocalSets.of([[0, 69], [69], [1, 69], range(70)], 70)
    m = np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    for rule, operation in RULES.items():
        mass, family = rule([m, m], focal)
        assert_same_masses(as_sets(mass, family), pairwise(m, m, focal, operation))


@pytest.mark.parametrize(
    ("masses", "error", "message"),
    [
        ([], ValueError, "at least one mass array, got none"),
        ([np.zeros((2, 6)), np.zeros((3, 6))], ValueError, r"same number of rows, got \[2, 3\]"),
        ([np.zeros((2, 6)), np.zeros((2, 5))], ValueError, r"got shape \(2, 5\)"),
    ],
)
@pytest.mark.parametrize("rule", [*RULES, ev.dempster, ev.average], ids=lambda r: r.__name__)
def test_what_is_refused(rule, masses, error, message):
    with pytest.raises(error, match=message):
        rule(masses, FocalSets.simple(4))


def test_a_result_too_large_for_memory_is_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(products, "MAX_RESULT_BYTES", 1000)
    focal = FocalSets.simple(4)
    with pytest.raises(MemoryError, match=r"got 20 rows on 12 sets.*Combine fewer rows"):
        ev.disjunctive([np.zeros((20, 6))] * 2, focal)

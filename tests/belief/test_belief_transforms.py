"""Laws of belief, plausibility, commonality, pignistic, Moebius inversion and normalisation."""

from __future__ import annotations

import numpy as np
import pytest
from belief.belief_strategies import as_sets, evidence, renamed, with_omega
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING, SINGLE

from evdist import belief as ev
from evdist.belief import FocalSets


def all_sets(focal):
    return [frozenset(s) for s in FocalSets.full(focal.n_clusters).sets]


@given(evidence())
def test_every_transform_is_the_sum_that_defines_it(drawn):
    focal, m = drawn
    asked = all_sets(focal)
    bel, pl = ev.belief(m, focal, asked), ev.plausibility(m, focal, asked)
    q, b = ev.commonality(m, focal), ev.implicability(m, focal)
    for i, row in enumerate(m):
        mass = as_sets(row, focal)
        for j, A in enumerate(asked):
            assert bel[i, j] == pytest.approx(sum(v for B, v in mass.items() if B and B <= A))
            assert pl[i, j] == pytest.approx(sum(v for B, v in mass.items() if B & A))
        for j, A in enumerate(mass):
            assert q[i, j] == pytest.approx(sum(v for B, v in mass.items() if A <= B))
            assert b[i, j] == pytest.approx(sum(v for B, v in mass.items() if B <= A))


@given(evidence())
def test_the_focal_sets_are_asked_for_by_default(drawn):
    focal, m = drawn
    for transform in (ev.belief, ev.plausibility):
        np.testing.assert_allclose(transform(m, focal), transform(m, focal, focal), **ROUNDING)
        np.testing.assert_allclose(transform(m, focal), transform(m, focal, focal.sets), **ROUNDING)


@given(evidence())
def test_duality(drawn):
    """Pl(A) = Bel(Omega) - Bel(not A)."""
    focal, m = drawn
    asked = all_sets(focal)
    omega = frozenset(range(focal.n_clusters))
    complements = [omega - A for A in asked]
    expected = ev.belief(m, focal, [omega]) - ev.belief(m, focal, complements)
    np.testing.assert_allclose(ev.plausibility(m, focal, asked), expected, **ROUNDING)


@given(evidence())
def test_belief_bounds_pignistic_bounds_plausibility(drawn):
    focal, m = drawn
    bel, betp, pl = (f(m, focal) for f in (ev.singleton_belief, ev.pignistic, ev.contour))
    assert (bel <= betp + 1e-12).all()
    assert (betp <= pl + 1e-12).all()
    np.testing.assert_allclose(betp.sum(axis=1), 1 - m[:, 0], **ROUNDING)


@given(evidence())
def test_singleton_functions_are_belief_and_plausibility_of_singletons(drawn):
    focal, m = drawn
    singletons = [[k] for k in range(focal.n_clusters)]
    np.testing.assert_allclose(
        ev.contour(m, focal), ev.plausibility(m, focal, singletons), **ROUNDING
    )
    np.testing.assert_allclose(
        ev.singleton_belief(m, focal), ev.belief(m, focal, singletons), **ROUNDING
    )


# ---------------------------------------------------------------------- Moebius
@given(evidence())
def test_moebius_returns_the_masses_on_any_family(drawn):
    focal, m = drawn
    for there, back in (
        (ev.belief, ev.mass_from_belief),
        (ev.implicability, ev.mass_from_implicability),
        (ev.commonality, ev.mass_from_commonality),
    ):
        np.testing.assert_allclose(back(there(m, focal), focal), m, **ROUNDING)
        np.testing.assert_allclose(back(there(m[0], focal), focal), m[0], **ROUNDING)


@given(evidence(within=st.integers(1, 5).map(FocalSets.full)))
def test_moebius_returns_the_masses_from_plausibility(drawn):
    focal, m = drawn
    got = ev.mass_from_plausibility(ev.plausibility(m, focal), focal)
    np.testing.assert_allclose(got, m, **ROUNDING)


def test_plausibility_gives_no_masses_without_complements():
    focal = FocalSets.simple(3)
    with pytest.raises(ValueError, match=r"\{0\} without its complement"):
        ev.mass_from_plausibility(np.zeros(5), focal)


@given(evidence(within=st.integers(1, 4).map(FocalSets.full)))
def test_the_fast_transforms_of_a_power_set_agree_with_the_general_ones(drawn):
    """Omega is left out of the second family, which so has no fast transform."""
    full, m = drawn
    m[:, 0] += m[:, -1]
    m[:, -1] = 0.0
    part, rest = FocalSets(full.n_clusters, full.masks[:-1]), m[:, :-1]
    for transform in (ev.belief, ev.plausibility, ev.commonality, ev.implicability):
        np.testing.assert_allclose(transform(m, full)[:, :-1], transform(rest, part), **ROUNDING)
    np.testing.assert_allclose(
        ev.conflict(m, m[::-1], full), ev.conflict(rest, rest[::-1], part), **ROUNDING
    )


# ---------------------------------------------------------------------- normalisation, discounting
@given(evidence())
def test_dempster_normalisation_sums_to_one_and_empties_the_empty_set(drawn):
    focal, m = drawn
    got = ev.normalise(m, focal)
    assert (got[:, 0] == 0).all()
    assert (got >= 0).all()
    np.testing.assert_allclose(got.sum(axis=1), 1.0, **ROUNDING)
    kept = m[:, 0] < 1
    np.testing.assert_allclose(got[kept, 1:] * (1 - m[kept, :1]), m[kept, 1:], **ROUNDING)
    np.testing.assert_allclose(ev.normalise(got, focal), got, **ROUNDING)


@given(evidence(within=with_omega()))
def test_yager_moves_the_mass_of_the_empty_set_to_omega(drawn):
    focal, m = drawn
    got = ev.normalise(m, focal, rule="yager")
    assert (got[:, 0] == 0).all()
    np.testing.assert_allclose(got.sum(axis=1), 1.0, **ROUNDING)
    np.testing.assert_allclose(got[:, focal.omega], m[:, focal.omega] + m[:, 0], **ROUNDING)


@pytest.mark.parametrize(
    ("focal", "expected"),
    [
        (FocalSets.simple(3), [0, 0, 0, 0, 1]),
        (FocalSets.simple(4, omega=False), [0, 0.25, 0.25, 0.25, 0.25]),
        (FocalSets.of([[0], [1, 2], [2]], 3), [0, 0.5, 0, 0.5]),
        (FocalSets.of([[0, 1], [1, 2]], 3), [0, 0.5, 0.5]),
    ],
)
def test_total_conflict_becomes_ignorance(focal, expected):
    outlier = np.eye(len(focal))[[0, 1]]
    got = ev.normalise(outlier, focal)
    assert got[0].tolist() == expected
    assert got[1].tolist() == outlier[1].tolist()
    assert ev.normalise(outlier[0], focal).tolist() == expected


def test_an_outlier_is_implausible_everywhere_and_undecided_once_normalised():
    focal = FocalSets.pairs(3)
    outlier = np.eye(len(focal))[0]
    assert ev.contour(outlier, focal).tolist() == [0, 0, 0]
    assert ev.pignistic(outlier, focal).tolist() == [0, 0, 0]
    np.testing.assert_allclose(ev.pignistic(outlier, focal, normalised=True), 1 / 3, **ROUNDING)


def test_near_total_conflict_keeps_its_digits():
    m = np.array([1.0, 3e-20, 1e-20, 0.0])  # 1 - m(empty) is 0 in floating point
    np.testing.assert_allclose(ev.normalise(m, FocalSets.full(2)), [0, 0.75, 0.25, 0], **ROUNDING)


@given(evidence(within=with_omega()), st.floats(0, 1))
def test_discounting_goes_from_the_source_to_ignorance(drawn, rate):
    focal, m = drawn
    vacuous = np.zeros_like(m)
    vacuous[:, focal.omega] = 1.0
    np.testing.assert_array_equal(ev.discount(m, focal, 0.0), m)
    np.testing.assert_array_equal(ev.discount(m, focal, 1.0), vacuous)
    got = ev.discount(m, focal, rate)
    np.testing.assert_allclose(got, (1 - rate) * m + rate * vacuous, **ROUNDING)
    per_row = ev.discount(m, focal, [0.0, rate, 1.0])
    np.testing.assert_allclose(per_row, [m[0], got[1], vacuous[2]], **ROUNDING)


# ---------------------------------------------------------------------- arrays
@given(evidence(), st.randoms())
def test_renaming_clusters_renames_columns(drawn, random):
    focal, m = drawn
    names = list(range(focal.n_clusters))
    random.shuffle(names)
    other = renamed(focal, names)
    for per_cluster in (ev.contour, ev.singleton_belief, ev.pignistic):
        np.testing.assert_allclose(
            per_cluster(m, other)[:, names], per_cluster(m, focal), **ROUNDING
        )
    for per_set in (
        ev.belief,
        ev.plausibility,
        ev.commonality,
        ev.implicability,
        ev.mass_from_belief,
        ev.mass_from_commonality,
        ev.mass_from_implicability,
        ev.normalise,
        ev.nonspecificity,
    ):
        np.testing.assert_allclose(per_set(m, other), per_set(m, focal), **ROUNDING)


@given(evidence())
def test_one_mass_function_is_a_row_of_many_and_arguments_stay_untouched(drawn):
    focal, m = drawn
    before = m.copy()
    for transform in (
        ev.belief,
        ev.plausibility,
        ev.commonality,
        ev.implicability,
        ev.contour,
        ev.singleton_belief,
        ev.pignistic,
        ev.normalise,
        ev.nonspecificity,
    ):
        many = transform(m, focal)
        np.testing.assert_allclose(transform(m[1], focal), many[1], **ROUNDING)
        single = transform(m.astype(np.float32), focal)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, many, **SINGLE)
        assert transform(m[:0], focal).shape == (0, *many.shape[1:])
    np.testing.assert_array_equal(m, before)


FULL = FocalSets.full(2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ev.contour(np.zeros((3, 5)), FULL), r"shape \(n, 4\) or \(4,\).*got.*\(3, 5\)"),
        (lambda: ev.contour(np.zeros((2, 3, 4)), FULL), r"got shape \(2, 3, 4\)"),
        (lambda: ev.belief(np.zeros(4), FULL, [[0], [2]]), r"Query set 1 names cluster 2.*0\.\.1"),
        (
            lambda: ev.plausibility(np.zeros(4), FULL, FocalSets.full(3)),
            "got 3 clusters asked of masses on 2",
        ),
        (lambda: ev.normalise(np.zeros(4), FULL, "smets"), '"dempster" or "yager", got \'smets\''),
        (
            lambda: ev.normalise(np.zeros(3), FocalSets.simple(2, omega=False), "yager"),
            "Omega, which is not a focal set",
        ),
        (
            lambda: ev.discount(np.zeros(3), FocalSets.simple(2, omega=False), 0.1),
            "Omega, which is not a focal set",
        ),
        (lambda: ev.normalise(np.ones(1), FocalSets(2, (0,))), "only the empty set"),
        (lambda: ev.discount(np.zeros((2, 4)), FULL, [0.1, 1.5]), r"got 1\.5 at row 1"),
        (lambda: ev.discount(np.zeros((2, 4)), FULL, np.nan), "got nan at row 0"),
        (lambda: ev.discount(np.zeros((2, 4)), FULL, [0.1] * 3), r"got shape \(3,\)"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

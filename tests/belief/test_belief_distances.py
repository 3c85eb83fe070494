"""Distances between mass functions against sums over sets, and their laws."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from belief.belief_strategies import evidence, renamed
from belief.slow_belief import bel, betp, dicts, drawn, frames, interior, pl, q, subsets
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROOTS, ROUNDING

from evdist import belief as ev
from evdist.belief import FocalSets

METRICS = [
    ev.jousselme,
    ev.pignistic_distance,
    ev.minkowski,
    ev.belief_interval_distance,
    ev.bhattacharyya,
    ev.inclusion_conflict,
]
metrics = pytest.mark.parametrize("distance", METRICS, ids=lambda d: d.__name__)


def slow_jousselme(x, y, omega):
    square = sum(
        (x.get(A, 0) - y.get(A, 0))
        * (x.get(B, 0) - y.get(B, 0))
        * (len(A & B) / len(A | B) if A | B else 1.0)
        for A in x.keys() | y.keys()
        for B in x.keys() | y.keys()
    )
    return sqrt(max(square, 0) / 2)


def slow_pignistic(x, y, omega):
    return max(sum(betp(x, k) - betp(y, k) for k in A) for A in subsets(omega))


def slow_intervals(x, y, omega):
    total = 0.0
    for A in subsets(omega):
        (a1, b1), (a2, b2) = ((bel(m, A), pl(m, A)) for m in (x, y))
        total += ((a1 + b1 - a2 - b2) / 2) ** 2 + ((b1 - a1 - b2 + a2) / 2) ** 2 / 3
    return sqrt(total / 2 ** (len(omega) - 1))


def slow_bhattacharyya(x, y, omega):
    return sqrt(max(0.0, 1 - sum(sqrt(x.get(A, 0) * y.get(A, 0)) for A in x.keys() | y.keys())))


def slow_inclusion_conflict(x, y, omega):
    pairs = len(x) * len(y)
    forth = sum(A <= B for A in x for B in y) / pairs
    back = sum(B <= A for A in x for B in y) / pairs
    return (1 - max(forth, back)) * slow_jousselme(x, y, omega)


@frames
@pytest.mark.parametrize(
    ("distance", "slow"),
    [
        (ev.jousselme, slow_jousselme),
        (ev.pignistic_distance, slow_pignistic),
        (ev.belief_interval_distance, slow_intervals),
        (ev.bhattacharyya, slow_bhattacharyya),
        (ev.inclusion_conflict, slow_inclusion_conflict),
    ],
)
def test_against_sums_over_sets(distance, slow, focal):
    x, y = interior(focal, 2) if distance is ev.pignistic_distance else drawn(focal, 2)
    omega = range(focal.n_clusters)
    expected = [slow(a, b, omega) for a, b in zip(dicts(x, focal), dicts(y, focal), strict=True)]
    np.testing.assert_allclose(distance(x, y, focal), expected, **ROOTS)


@frames
@pytest.mark.parametrize("p", [1.0, 2.0, 3.5, np.inf])
def test_minkowski(p, focal):
    x, y = drawn(focal, 2)
    everything = subsets(range(focal.n_clusters))
    functions = {
        "mass": (lambda m, A: m.get(A, 0.0), everything),
        "belief": (bel, everything),
        "plausibility": (pl, everything),
        "commonality": (q, everything),
        "contour": (pl, [A for A in everything if len(A) == 1]),
    }
    for on, (function, sets) in functions.items():
        got = ev.minkowski(x, y, focal, on=on, p=p)
        for value, a, b in zip(got, dicts(x, focal), dicts(y, focal), strict=True):
            difference = [abs(function(a, A) - function(b, A)) for A in sets]
            expected = max(difference) if p == np.inf else sum(d**p for d in difference) ** (1 / p)
            np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)


@metrics
@given(evidence(3))
def test_laws(distance, drawn):
    focal, x, y, z = drawn
    xy, yx = distance(x, y, focal), distance(y, x, focal)
    np.testing.assert_allclose(xy, yx, **ROOTS)
    assert (xy >= 0).all()
    np.testing.assert_allclose(distance(x, x, focal), 0, atol=1e-7)
    if distance is not ev.minkowski:
        assert (xy <= 1 + 1e-9).all()
    if distance is not ev.inclusion_conflict:
        assert (distance(x, z, focal) <= xy + distance(y, z, focal) + 1e-7).all()


@metrics
@given(evidence(2), st.randoms())
def test_names_of_clusters_and_sets_without_mass_do_not_matter(distance, drawn, random):
    focal, x, y = drawn
    value = distance(x, y, focal)
    names = list(range(focal.n_clusters))
    random.shuffle(names)
    np.testing.assert_allclose(distance(x, y, renamed(focal, names)), value, **ROOTS)
    (wide, full), (other, _) = ev.on_power_set(x, focal), ev.on_power_set(y, focal)
    # An outlier's bets are ignorance, which a family without Omega spreads over its sets.
    if focal.omega is not None or distance is not ev.pignistic_distance:
        np.testing.assert_allclose(distance(wide, other, full), value, **ROOTS)


@metrics
def test_one_mass_function_is_compared_with_every_row(distance):
    focal = FocalSets.full(3)
    x, y = drawn(focal, 2)
    got = distance(x, y[0], focal)
    np.testing.assert_allclose(got, distance(x, np.tile(y[0], (5, 1)), focal), **ROUNDING)
    np.testing.assert_allclose(distance(x[1], y[0], focal), got[1], **ROUNDING)
    single = distance(x.astype(np.float32), y[0].astype(np.float32), focal)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, got, rtol=1e-4, atol=2e-3)
    assert distance(x[:0], y[0], focal).shape == (0,)


def test_certain_masses_apart():
    focal = FocalSets.full(2)
    one, two, both = np.eye(4)[1:]
    assert ev.pignistic_distance(one, two, focal) == 1.0
    assert ev.pignistic_distance(one, both, focal) == 0.5
    assert ev.belief_interval_distance(one, two, focal) == pytest.approx(1.0)
    assert ev.bhattacharyya(one, both, focal) == ev.bhattacharyya(one, two, focal) == 1.0
    # What is included is no conflict.
    assert ev.inclusion_conflict(one, both, focal) == 0.0
    assert ev.inclusion_conflict(one, two, focal) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [({"on": "bets"}, "on must be one of mass, belief"), ({"p": 0.5}, "p must be at least 1")],
)
def test_what_minkowski_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        ev.minkowski(np.eye(4)[1], np.eye(4)[2], FocalSets.full(2), **options)

"""Measures of uncertainty against sums over sets, and the algorithm of Harmanec and Klir."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from belief.belief_strategies import evidence, renamed
from belief.slow_belief import bel, betp, dicts, drawn, frames, pl, subsets
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING, TIES

from evdist import belief as ev
from evdist.belief import FocalSets

MEASURES = {
    "nonspecificity": lambda m, omega: sum(v * log2(len(A)) for A, v in m.items()),
    "dissonance": lambda m, omega: -sum(v * log2(pl(m, A)) for A, v in m.items()),
    "confusion": lambda m, omega: -sum(v * log2(bel(m, A)) for A, v in m.items()),
    "discord": lambda m, omega: (
        -sum(v * log2(sum(x * len(A & B) / len(B) for B, x in m.items())) for A, v in m.items())
    ),
    "strife": lambda m, omega: (
        -sum(v * log2(sum(x * len(A & B) / len(A) for B, x in m.items())) for A, v in m.items())
    ),
    "mass_entropy": lambda m, omega: -sum(v * log2(v) for v in m.values()),
    "pignistic_entropy": lambda m, omega: entropy([betp(m, k) for k in omega]),
    "pal_entropy": lambda m, omega: sum(v * log2(len(A) / v) for A, v in m.items()),
    "deng_entropy": lambda m, omega: -sum(v * log2(v / (2 ** len(A) - 1)) for A, v in m.items()),
    "jirousek_shenoy_entropy": lambda m, omega: (
        entropy(shares([pl(m, frozenset([k])) for k in omega]))
        + sum(v * log2(len(A)) for A, v in m.items())
    ),
    "aggregated_uncertainty": lambda m, omega: slow_aggregated(m, omega),
}
measures = pytest.mark.parametrize("name", list(MEASURES))


def entropy(p):
    return -sum(x * log2(x) for x in p if x > 0)


def shares(p):
    return [x / sum(p) for x in p]


def slow_aggregated(m, omega):
    """Harmanec and Klir (1994), as it is written."""
    belief = {A: bel(m, A) for A in subsets(omega)}
    left, p = frozenset(omega), []
    while left:
        sets = [A for A in subsets(left) if A]
        A = max(sets, key=lambda A: (round(belief[A] / len(A), 12), len(A)))
        p += [belief[A] / len(A)] * len(A)
        left -= A
        belief = {B: belief[B | A] - belief[A] for B in subsets(left)}
    return entropy(p)


def closed(m, omega):
    """The empty set counts as Omega."""
    m = dict(m)
    whole = frozenset(omega)
    m[whole] = m.get(whole, 0.0) + m.pop(frozenset(), 0.0)
    return {A: v for A, v in m.items() if v}


@measures
@frames
def test_against_sums_over_sets(name, focal):
    (m,) = drawn(focal)
    omega = range(focal.n_clusters)
    expected = [MEASURES[name](closed(row, omega), omega) for row in dicts(m, focal)]
    np.testing.assert_allclose(getattr(ev, name)(m, focal), expected, **TIES)


@measures
@given(evidence(), st.randoms())
def test_names_of_clusters_and_sets_without_mass_do_not_matter(name, drawn, random):
    focal, m = drawn
    measure = getattr(ev, name)
    value = measure(m, focal)
    assert (value >= 0).all()
    names = list(range(focal.n_clusters))
    random.shuffle(names)
    np.testing.assert_allclose(measure(m, renamed(focal, names)), value, **TIES)
    np.testing.assert_allclose(measure(*ev.on_power_set(m, focal)), value, **TIES)


@given(evidence())
def test_on_probabilities_totals_are_shannons_entropy(drawn):
    focal, m = drawn
    simple = FocalSets.simple(focal.n_clusters, omega=False)
    p = ev.pignistic(ev.normalise(m, focal), focal)
    p = p / p.sum(axis=1, keepdims=True)
    bayesian = np.pad(p, ((0, 0), (1, 0)))
    expected = [entropy(row) for row in p]
    for name in (
        "mass_entropy",
        "pignistic_entropy",
        "pal_entropy",
        "deng_entropy",
        "jirousek_shenoy_entropy",
        "aggregated_uncertainty",
        "discord",
        "strife",
        "dissonance",
        "confusion",
    ):
        np.testing.assert_allclose(getattr(ev, name)(bayesian, simple), expected, **TIES)


@pytest.mark.parametrize("c", range(2, 7))
def test_of_ignorance_and_of_an_outlier(c):
    focal = FocalSets.full(c)
    rows = np.eye(2**c)[[focal.omega, 0]]
    expected = {
        "nonspecificity": log2(c),
        "discord": 0,
        "strife": 0,
        "dissonance": 0,
        "confusion": 0,
        "pal_entropy": log2(c),
        "deng_entropy": log2(2**c - 1),
        "jirousek_shenoy_entropy": 2 * log2(c),
        "aggregated_uncertainty": log2(c),
        "pignistic_entropy": log2(c),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(ev, name)(rows, focal), [value] * 2, **ROUNDING)


@given(evidence())
def test_aggregated_uncertainty_is_the_largest_entropy_of_allowed_probabilities(drawn):
    """No way to share each mass among its clusters has a larger one."""
    focal, m = drawn
    top = ev.aggregated_uncertainty(m, focal)
    closed_masses = ev.normalise(*ev.on_power_set(m, focal), "yager")
    full = FocalSets.full(focal.n_clusters)
    rng = np.random.default_rng(0)
    for _ in range(20):
        share = np.where(full.matrix, rng.exponential(size=full.matrix.shape) ** 3, 0.0)
        share[0, 0] = 1.0
        p = closed_masses @ (share / share.sum(axis=1, keepdims=True))
        assert (top >= [entropy(row) - 1e-9 for row in p]).all()
    assert (top >= ev.pignistic_entropy(m, focal) - 1e-9).all()
    assert (top <= log2(focal.n_clusters) + 1e-9).all()


@measures
def test_one_row_single_precision_and_no_rows(name):
    focal = FocalSets.pairs(4)
    (m,) = drawn(focal)
    measure = getattr(ev, name)
    value = measure(m, focal)
    np.testing.assert_allclose(measure(m[2], focal), value[2], **ROUNDING)
    single = measure(m.astype(np.float32), focal)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, value, rtol=1e-4, atol=1e-4)
    assert measure(m[:0], focal).shape == (0,)

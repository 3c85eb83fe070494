"""Laws of conflict, Jousselme's distance and nonspecificity."""

from __future__ import annotations

import numpy as np
import pytest
from belief.belief_strategies import evidence, renamed
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING, SINGLE

from evdist import belief as ev
from evdist.belief import FocalSets


@given(evidence(2))
def test_conflict_is_the_mass_of_the_empty_set_of_the_conjunctive_sum(drawn):
    focal, m1, m2 = drawn
    kappa = ev.conflict(m1, m2, focal)
    mass, _ = ev.conjunctive([m1, m2], focal)
    np.testing.assert_allclose(kappa, mass[:, 0], **ROUNDING)
    np.testing.assert_allclose(kappa, np.diag(m1 @ focal.C @ m2.T), **ROUNDING)


@given(evidence(2))
def test_conflict_is_symmetric_and_between_0_and_1(drawn):
    focal, m1, m2 = drawn
    kappa = ev.conflict(m1, m2, focal)
    np.testing.assert_allclose(kappa, ev.conflict(m2, m1, focal), **ROUNDING)
    assert (kappa >= 0).all()
    assert (kappa <= 1 + 1e-12).all()


@given(evidence(3))
def test_jousselme_is_a_metric(drawn):
    focal, x, y, z = drawn
    xy, yz, xz = (ev.jousselme(*pair, focal) for pair in ((x, y), (y, z), (x, z)))
    assert (ev.jousselme(x, x, focal) == 0).all()
    np.testing.assert_allclose(xy, ev.jousselme(y, x, focal), **ROUNDING)
    assert (xz <= xy + yz + 1e-12).all()
    assert (xy <= 1 + 1e-12).all()
    # Distinct masses are apart: the Jaccard matrix is positive definite.
    apart = np.abs(x - y).max(axis=1) > 1e-9
    assert (xy[apart] > 1e-9).all()


def test_jousselme_of_two_certain_mass_functions_is_the_jaccard_distance():
    focal = FocalSets.full(3)
    certain = np.eye(8)
    got = ev.jousselme(certain[focal.index([0, 1])], certain, focal)
    np.testing.assert_allclose(got, np.sqrt(1 - focal.jaccard[3]), **ROUNDING)


@given(evidence())
def test_nonspecificity_bounds(drawn):
    focal, m = drawn
    got = ev.nonspecificity(m, focal)
    assert (got >= 0).all()
    assert (got <= np.log2(focal.n_clusters) + 1e-12).all()


@given(evidence())
def test_nonspecificity_is_the_sum_of_log_cardinalities(drawn):
    focal, m = drawn
    sizes = [len(s) or focal.n_clusters for s in focal.sets]
    expected = [sum(v * np.log2(s) for v, s in zip(row, sizes, strict=True)) for row in m]
    np.testing.assert_allclose(ev.nonspecificity(m, focal), expected, **ROUNDING)


def test_ignorance_and_outliers_are_most_unspecific_and_certainty_least():
    focal = FocalSets.simple(8)
    rows = np.eye(len(focal))
    np.testing.assert_allclose(ev.nonspecificity(rows, focal), [3, *[0] * 8, 3], **ROUNDING)


@given(evidence(2), st.randoms())
def test_renaming_clusters_changes_nothing(drawn, random):
    focal, m1, m2 = drawn
    names = list(range(focal.n_clusters))
    random.shuffle(names)
    other = renamed(focal, names)
    for measure in (ev.conflict, ev.jousselme):
        np.testing.assert_allclose(
            measure(m1, m2, other), measure(m1, m2, focal), rtol=1e-12, atol=1e-9
        )


@pytest.mark.parametrize("measure", [ev.conflict, ev.jousselme])
@given(evidence(2))
def test_one_mass_function_is_compared_with_every_row(measure, drawn):
    focal, m1, m2 = drawn
    got = measure(m1, m2[0], focal)
    assert got.shape == (3,)
    np.testing.assert_allclose(got, measure(m1, np.tile(m2[0], (3, 1)), focal), **ROUNDING)
    np.testing.assert_allclose(measure(m1[1], m2[0], focal), got[1], **ROUNDING)
    single = measure(m1.astype(np.float32), m2[0].astype(np.float32), focal)
    assert single.dtype == np.float32
    np.testing.assert_allclose(
        single, got, rtol=1e-5, atol=1e-3 if measure is ev.jousselme else SINGLE["atol"]
    )
    assert measure(m1[:0], m2[0], focal).shape == (0,)


@pytest.mark.parametrize("measure", [ev.conflict, ev.jousselme])
def test_different_numbers_of_objects_are_refused(measure):
    with pytest.raises(ValueError, match="same number of rows, got 2 and 3"):
        measure(np.zeros((2, 4)), np.zeros((3, 4)), FocalSets.full(2))

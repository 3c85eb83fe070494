"""PCR5 and PCR6 against the sum over all choices of a set per source."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from itertools import product
from math import prod

import numpy as np
import pytest
from belief.belief_strategies import evidence
from belief.slow_belief import assert_masses, dicts, drawn, frames
from hypothesis import given
from tolerances import ROUNDING, SINGLE

from evdist import belief as ev
from evdist.belief import FocalSets, redistribution


def slow_pcr6(sources):
    """Martin and Osswald (2006): products without a common cluster go back to their sets."""
    out = defaultdict(float)
    for choice in product(*(m.items() for m in sources)):
        sets, masses = zip(*choice, strict=True)
        meet = reduce(frozenset.__and__, sets)
        if meet:
            out[meet] += prod(masses)
            continue
        for A, x in choice:
            out[A] += prod(masses) * x / sum(masses)
    return out


@frames
def test_two_sources(focal):
    x, y = drawn(focal, 2)
    for mass, family in (ev.pcr5(x, y, focal), ev.pcr6([x, y], focal)):
        for got, *pair in zip(dicts(mass, family), dicts(x, focal), dicts(y, focal), strict=True):
            assert_masses(got, slow_pcr6(pair))


@pytest.mark.parametrize("focal", [FocalSets.full(2), FocalSets.full(3), FocalSets.pairs(4)])
@pytest.mark.parametrize("sources", [1, 3, 4])
def test_several_sources(focal, sources):
    m = [source[:2] for source in drawn(focal, sources)]
    mass, family = ev.pcr6(m, focal)
    for got, *row in zip(dicts(mass, family), *(dicts(x, focal) for x in m), strict=True):
        assert_masses(got, slow_pcr6(row))


@given(evidence(2))
def test_two_sources_may_be_exchanged_and_masses_sum_to_one(drawn):
    focal, x, y = drawn
    mass, _ = ev.pcr5(x, y, focal)
    np.testing.assert_allclose(mass.sum(axis=1), 1.0, **ROUNDING)
    assert (mass >= 0).all()
    np.testing.assert_allclose(ev.pcr5(y, x, focal)[0], mass, **ROUNDING)
    # Without conflict it is the conjunctive sum.
    calm = ev.conflict(x, y, focal) == 0
    joint, _ = ev.conjunctive([x, y], focal)
    np.testing.assert_allclose(mass[calm], joint[calm], **ROUNDING)


def test_total_conflict_is_shared_by_mass():
    focal = FocalSets.full(2)
    mass, _ = ev.pcr5([0.0, 1, 0, 0], [0.0, 0, 1, 0], focal)
    assert mass.tolist() == [0, 0.5, 0.5, 0]
    mass, _ = ev.pcr6([[0.0, 1, 0, 0], [0.0, 0, 1, 0], [0.0, 1, 0, 0]], focal)
    np.testing.assert_allclose(mass, [0, 2 / 3, 1 / 3, 0], **ROUNDING)


def test_one_row_with_many_single_precision_and_no_rows():
    focal = FocalSets.full(3)
    x, y = drawn(focal, 2)
    mass, _ = ev.pcr6([x, y[0]], focal)
    np.testing.assert_allclose(mass[2], ev.pcr6([x[2], y[0]], focal)[0], **ROUNDING)
    three, _ = ev.pcr6([x, y[0], y[1]], focal)
    np.testing.assert_allclose(three[2], ev.pcr6([x[2], y[0], y[1]], focal)[0], **ROUNDING)
    single, _ = ev.pcr5(x.astype(np.float32), y[0].astype(np.float32), focal)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, mass, **SINGLE)
    assert ev.pcr5(x[:0], y[:0], focal)[0].shape == (0, 8)


def test_too_many_choices_are_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(redistribution, "MAX_COMBINATIONS", 100)
    with pytest.raises(MemoryError, match=r"at most 100, got 512. Combine fewer sources"):
        ev.pcr6([np.full(8, 1 / 8)] * 3, FocalSets.full(3))

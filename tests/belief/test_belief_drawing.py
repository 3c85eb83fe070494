"""Random masses are of their kind, and uniform where they say so."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from belief.slow_belief import frames
from tolerances import ROUNDING

from evdist.belief import FocalSets, random_masses

KINDS = ("uniform", "sparse", "bayesian", "consonant", "simple", "categorical")


@frames
@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_masses_and_the_empty_set_takes_part_when_asked(kind, empty, focal):
    m = random_masses(300, focal, np.random.default_rng(0), kind=kind, n_sets=3, empty=empty)
    assert m.shape == (300, len(focal))
    assert (m >= 0).all()
    np.testing.assert_allclose(m.sum(axis=1), 1.0, **ROUNDING)
    assert m[:, 0].any() == empty
    again = random_masses(300, focal, np.random.default_rng(0), kind=kind, n_sets=3, empty=empty)
    np.testing.assert_array_equal(m, again)


@frames
def test_kinds(focal):
    def draw(kind):
        return random_masses(200, focal, np.random.default_rng(1), kind=kind, n_sets=2)

    assert (draw("uniform")[:, 1:] > 0).all()
    assert ((draw("sparse") > 0).sum(axis=1) == 2).all()
    several = focal.cardinality > 1
    assert not draw("bayesian")[:, several].any()
    assert ((draw("simple") > 0).sum(axis=1) <= 2).all()
    assert (draw("simple")[:, focal.omega] > 0).all()
    assert (draw("categorical").max(axis=1) == 1).all()
    for row in draw("consonant"):
        chain = sorted((set(focal.sets[q]) for q in np.flatnonzero(row)), key=len)
        assert all(small < large for small, large in pairwise(chain))
        # Every set of a chain of clusters that the family has: one per size on the power set.
        assert len(focal) < 2**focal.n_clusters or len(chain) == focal.n_clusters


def test_uniform_is_uniform_on_the_simplex():
    """Dirichlet(1, 1, 1): mean 1/3, variance 1/18, covariance -1/36."""
    m = random_masses(40_000, FocalSets.full(2), np.random.default_rng(2))[:, 1:]
    np.testing.assert_allclose(m.mean(axis=0), 1 / 3, atol=0.006)
    np.testing.assert_allclose(np.cov(m.T), np.eye(3) / 12 - 1 / 36, atol=0.002)


def test_every_set_is_as_likely():
    focal = FocalSets.full(3)
    rng = np.random.default_rng(3)
    for kind in ("categorical", "sparse"):
        m = random_masses(20_000, focal, rng, kind=kind, n_sets=1)
        np.testing.assert_allclose(m.mean(axis=0)[1:], 1 / 7, atol=0.012)


@pytest.mark.parametrize(
    ("focal", "options", "message"),
    [
        (FocalSets.full(2), {"kind": "dense"}, "kind must be one of uniform, sparse"),
        (FocalSets.full(2), {"kind": "sparse", "n_sets": 4}, r"n_sets must be in 1\.\.3, got 4"),
        (FocalSets.of([[0, 1]], 2), {"kind": "bayesian"}, "single clusters among the focal sets"),
        (FocalSets.of([[0]], 2), {"kind": "consonant"}, "need Omega"),
        (FocalSets.of([[0]], 2), {"kind": "simple"}, "need Omega"),
        (FocalSets.of([], 2), {}, "only the empty set"),
    ],
)
def test_what_is_refused(focal, options, message):
    with pytest.raises(ValueError, match=message):
        random_masses(1, focal, np.random.default_rng(0), **options)

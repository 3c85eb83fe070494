"""The Shepard diagram counts every pair, whatever form they come in."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import LogNorm

from evdist import plot
from evdist.plot import PairDensity
from evdist.sketch.pairs import BLOCK, CELLS


def pairs(n: int, seed: int = 0, top: float = 1.0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0, top, n), rng.uniform(0, 1, n)


def mesh(ax):
    return next(child for child in ax.get_children() if child.get_gid() == "pairs")


def test_the_cells_hold_all_pairs_on_a_logarithmic_scale_of_colours():
    delta, kappa = pairs(3000)
    ax = plot.shepard(delta, kappa)
    assert mesh(ax).get_array().sum() == 3000
    assert isinstance(mesh(ax).norm, LogNorm)
    assert "3,000 pairs" in ax.get_title()
    assert any(line.get_gid() == "diagonal" for line in ax.lines)
    plot.to_svg(ax)


def test_cells_agree_with_numpy():
    delta, kappa = pairs(5000, top=3.0)
    density = PairDensity().add(delta, kappa)
    assert density.top == 4.0
    edges = np.linspace(0, 1, CELLS + 1)
    expected, _, _ = np.histogram2d(delta, kappa, bins=[edges * 4, edges])
    np.testing.assert_array_equal(density.counts, expected)
    assert density.stress == pytest.approx(np.mean((delta - kappa) ** 2))


@given(st.lists(st.integers(0, 40), max_size=6), st.sampled_from([0.5, 1.0, 3.0, 70.0]))
def test_blocks_and_merged_densities_count_like_one_array(cuts, top):
    delta, kappa = pairs(200, seed=1, top=top)
    whole = PairDensity().add(delta, kappa)
    bounds = [0, *sorted(5 * cut for cut in cuts), 200]
    blocks = [(delta[a:b], kappa[a:b]) for a, b in pairwise(bounds)]
    streamed, merged = PairDensity(), PairDensity()
    for block in blocks:
        streamed.add(*block)
        merged = merged.merge(PairDensity().add(*block))
    for other in (streamed, merged):
        np.testing.assert_array_equal(other.counts, whole.counts)
        assert other.top == whole.top
        assert other.squared_error == pytest.approx(whole.squared_error)


def test_merging_leaves_both_parts_as_they_were():
    small, large = PairDensity().add([0.5], [0.5]), PairDensity().add([7.0], [1.0])
    both = small.merge(large)
    assert (small.n_pairs, small.top, large.n_pairs, both.n_pairs) == (1, 1.0, 1, 2)


def test_an_iterator_of_blocks_is_read_once():
    blocks = (pairs(100, seed) for seed in range(7))
    assert mesh(plot.shepard(blocks)).get_array().sum() == 700


def test_arrays_longer_than_a_block_and_of_any_shape_are_counted():
    n = BLOCK + 10
    delta = np.full((n // 2, 2), 0.25, dtype=np.float32)
    assert PairDensity().add(delta, delta).counts[CELLS // 4, CELLS // 4] == n


def test_rounding_beyond_one_is_forgiven():
    one = np.float32(1) + np.finfo(np.float32).eps
    density = PairDensity().add([one, 1.0], [one, -1e-7])
    assert density.top == 1.0
    assert density.counts[-1, -1] == 1
    assert density.counts[-1, 0] == 1


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_impossible_values_are_refused_with_their_pair(value):
    with pytest.raises(ValueError, match=r"delta must be finite and not negative.*pair 1"):
        plot.shepard([0.5, value], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"kappa must lie in \[0, 1\].*pair 1"):
        plot.shepard([0.5, 0.5], [0.5, value])


def test_missing_or_unequal_halves_are_refused():
    with pytest.raises(ValueError, match="kappa is missing"):
        plot.shepard(np.ones(3))
    with pytest.raises(ValueError, match="same pairs, got 3 and 2"):
        plot.shepard(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="at least one pair"):
        plot.shepard([])

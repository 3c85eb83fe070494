"""The calibration figure."""

from __future__ import annotations

import numpy as np
import pytest

from evdist import plot


def columns(n: int = 500, seed: int = 0):
    rng = np.random.default_rng(seed)
    lower = rng.uniform(0, 0.6, n)
    upper = lower + 0.3
    return lower, upper, lower * 0.9, upper


def meshes(figure):
    return {
        child.get_gid(): child
        for ax in figure.axes
        for child in ax.collections
        if child.get_gid() is not None
    }


def test_every_pair_stands_in_both_panels():
    figure = plot.calibration(*columns())
    drawn = meshes(figure)
    assert set(drawn) == {"belief-lower-bound", "plausibility-upper-bound"}
    assert all(mesh.get_array().sum() == 500 for mesh in drawn.values())
    assert "500 pairs" in figure.get_suptitle()
    assert plot.to_png(figure).startswith(b"\x89PNG")


def test_with_the_truth_the_title_says_how_often_it_is_held():
    lower, upper, belief, plausibility = columns()
    truth = np.where(np.arange(500) < 400, belief, 1.0)
    figure = plot.calibration(lower, upper, belief, plausibility, truth=truth)
    assert len(meshes(figure)) == 4
    assert "truth within [Bel, Pl] for 80.0%" in figure.get_suptitle()


def test_columns_of_different_pairs_are_refused():
    lower, upper, belief, plausibility = columns()
    with pytest.raises(ValueError, match="one value for each pair, got 500 for lower, 499 for up"):
        plot.calibration(lower, upper[1:], belief, plausibility)
    with pytest.raises(ValueError, match="one value for each pair, got 0 for lower"):
        plot.calibration([], [], [], [])


@pytest.mark.parametrize("bad", [1.2, -0.1, np.nan])
def test_what_is_no_probability_is_refused(bad):
    lower, upper, belief, plausibility = columns()
    belief[7] = bad
    with pytest.raises(ValueError, match=r"belief must lie in \[0, 1\], got .* for pair 7"):
        plot.calibration(lower, upper, belief, plausibility)
    with pytest.raises(ValueError, match="lower must have one axis"):
        plot.calibration(lower[None], upper, belief, plausibility)

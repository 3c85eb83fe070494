"""Curves of a fit and bars per cluster carry the numbers they were given."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from matplotlib.figure import Figure

from evdist import CredalPartition, FocalSets, plot


def child(ax, gid):
    return next(c for c in ax.get_children() if c.get_gid() == gid)


def bars(ax, gid):
    """Widths of a group of bars; matplotlib gives the gid to each of them."""
    return [patch.get_width() for patch in ax.patches if patch.get_gid() == gid]


# ---------------------------------------------------------------------- convergence
def test_a_tenfold_fall_is_shown_on_a_logarithmic_axis():
    history = 10.0 ** -np.arange(5)
    ax = plot.convergence(history)
    assert ax.get_yscale() == "log"
    np.testing.assert_array_equal(child(ax, "history-1").get_ydata(), history)
    plot.to_svg(ax)


def test_a_figure_that_was_written_can_be_drawn_on_and_written_again():
    ax = plot.convergence([0.3, 0.2])
    engine = ax.figure.get_layout_engine()
    assert engine is not None
    first = plot.to_png(ax)
    assert ax.figure.get_layout_engine() is engine
    assert plot.to_png(ax) == first
    ax.set_ylabel("two\nlines")
    assert plot.to_png(ax) != first
    assert ax.get_position().x0 > 0.1, "room was made for the label"


@pytest.mark.parametrize("history", [[0.3, 0.2, 0.19], [1.0, 0.0], [2.0, -1.0], [5.0]])
def test_a_small_fall_or_a_value_of_zero_is_shown_on_a_linear_axis(history):
    ax = plot.convergence(history)
    assert ax.get_yscale() == "linear"
    plot.to_svg(ax)


def test_named_curves_share_the_axes():
    ax = plot.convergence({"training $": [1.0, 0.5], "validation": [1.1, 0.7, 0.6]})
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["training $", "validation"]
    plot.to_svg(ax)


def test_a_history_without_values_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        plot.convergence([])
    with pytest.raises(ValueError, match="objective must be finite, got nan at position 1"):
        plot.convergence([1.0, np.nan])


# ---------------------------------------------------------------------- delta-Bel graph
def test_chosen_centres_are_marked_and_numbered():
    rng = np.random.default_rng(0)
    delta, bel = rng.uniform(size=50), rng.uniform(size=50)
    ax = plot.delta_bel(delta, bel, centres=[7, 3])
    assert len(child(ax, "objects").get_offsets()) == 50
    np.testing.assert_allclose(child(ax, "centre-0").get_offsets(), [[delta[7], bel[7]]])
    np.testing.assert_allclose(child(ax, "centre-1").get_offsets(), [[delta[3], bel[3]]])
    assert [text.get_text() for text in ax.texts] == ["0", "1"]
    plot.to_svg(ax)


def test_centres_at_one_place_keep_their_numbers_apart():
    ax = plot.delta_bel([1.0, 1.0, 0.0], [1.0, 1.0, 0.0], centres=[0, 1])
    first, second = (text.xyann for text in ax.texts)
    assert first != second


def test_candidates_survive_the_sampling_of_many_objects():
    rng = np.random.default_rng(1)
    delta, bel = rng.uniform(size=3000), rng.uniform(size=3000)
    delta[11] = 9.0
    shown = child(plot.delta_bel(delta, bel, max_points=200), "objects").get_offsets()
    assert 100 <= len(shown) <= 200
    assert shown[:, 0].max() == 9.0


def test_centres_that_are_not_objects_are_refused():
    with pytest.raises(ValueError, match=r"rows 0\.\.2, got \[3\]"):
        plot.delta_bel([1, 2, 3], [1, 2, 3], centres=[3])
    with pytest.raises(ValueError, match="same objects, got 3 and 2"):
        plot.delta_bel([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match=r"bel must be a sequence of numbers, got shape \(1, 3\)"):
        plot.delta_bel([1, 2, 3], [[1, 2, 3]])


# ---------------------------------------------------------------------- nonspecificity curve
def test_the_least_nonspecific_number_of_clusters_is_marked():
    ax = plot.nonspecificity_curve([4, 2, 3], [0.3, 0.4, 0.1])
    np.testing.assert_array_equal(child(ax, "curve").get_xdata(), [2, 3, 4])
    np.testing.assert_array_equal(child(ax, "minimum").get_xydata(), [[3, 0.1]])
    assert ax.texts[0].get_text() == "3 clusters: 0.100"
    plot.to_svg(ax)


def test_of_two_equal_minima_the_smaller_number_of_clusters_is_marked():
    ax = plot.nonspecificity_curve([2, 3, 4], [0.2, 0.1, 0.1])
    assert child(ax, "minimum").get_xdata()[0] == 3


def test_a_curve_of_unequal_lengths_is_refused():
    with pytest.raises(ValueError, match="same length, at least one, got 2 and 3"):
        plot.nonspecificity_curve([2, 3], [0.1, 0.2, 0.3])


# ---------------------------------------------------------------------- bars
FOCAL = FocalSets.pairs(3)


@pytest.fixture
def partition() -> CredalPartition:
    sets = [(0,), (0,), (1,), (0, 1), (2,), ()]
    mass = np.full((6, len(FOCAL)), 0.02)
    mass[np.arange(6), [FOCAL.index(s) for s in sets]] += 1 - 0.02 * len(FOCAL)
    return CredalPartition(mass, FOCAL)


def test_bars_of_sizes_are_sure_members_the_possible_rest_and_outliers(partition):
    ax = plot.sizes(partition)
    assert bars(ax, "sure") == [2, 1, 1]
    assert bars(ax, "possible") == [1, 1, 0]
    assert bars(ax, "outliers") == [1]
    assert [t.get_text() for t in ax.texts] == ["2 to 3", "1 to 2", "1", "1"]
    assert [t.get_text() for t in ax.get_yticklabels()] == [
        *("cluster 0", "cluster 1", "cluster 2"),
        "outliers",
    ]
    plot.to_svg(ax)


def test_bars_of_nonspecificity_average_over_the_objects_of_each_cluster(partition):
    ax = plot.nonspecificity(partition)
    empty = partition.mass[:, 0]
    unions = partition.object_nonspecificity() - empty
    group = np.where(partition.outliers(), 3, partition.labels())
    for k in range(4):
        assert bars(ax, "unions")[k] == pytest.approx(unions[group == k].mean())
        assert bars(ax, "empty")[k] == pytest.approx(empty[group == k].mean())
    assert child(ax, "mean").get_xdata()[0] == pytest.approx(partition.nonspecificity())
    plot.to_svg(ax)


def test_the_sizes_of_a_summary_are_the_approximations_of_its_partition(partition):
    here, there = plot.sizes(partition, rule="mass"), plot.sizes(partition.summary())
    assert [p.get_width() for p in here.patches] == [p.get_width() for p in there.patches]
    for ax in (here, there):
        named = [text.get_text() for text in ax.get_legend().get_texts()]
        assert named == ["lower approximation", "upper approximation"]


def test_a_rule_that_there_is_not_is_told_with_those_that_there_are(partition):
    with pytest.raises(ValueError, match="one of decision, mass, dominance, got 'most'"):
        plot.sizes(partition, rule="most")


def test_bars_of_sure_members_are_those_of_the_decision_at_any_level(partition):
    for level in (0.6, 0.9, 1.0):
        said = partition.decide(level)
        for ax in (plot.sizes(partition, level=level), plot.sizes(partition, level=said)):
            assert sum(bars(ax, "sure")) == said.sure.sum()
            assert sum(bars(ax, "sure")) + sum(bars(ax, "possible")) == said.open.sum()
            assert bars(ax, "outliers") == [said.outlier.sum()]


def test_a_dask_partition_gives_the_same_bars(partition):
    lazy = CredalPartition(da.from_array(partition.mass, chunks=(2, -1)), FOCAL)
    for draw in (plot.sizes, plot.nonspecificity):
        here, there = draw(partition), draw(lazy)
        assert [p.get_width() for p in here.patches] == [p.get_width() for p in there.patches]


@pytest.mark.parametrize("c", [1, 2, 25])
def test_a_sure_partition_of_any_number_of_clusters_is_drawn(c):
    partition = CredalPartition.from_labels(np.arange(50) % c, n_clusters=c)
    assert len(plot.sizes(partition).patches) == 2 * c + 1
    ax = plot.nonspecificity(partition)
    assert ax.texts[-1].get_text() == "none"  # no outliers, no mean
    plot.to_svg(ax)


def test_given_axes_are_used(partition):
    figure = Figure(figsize=(15, 8), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    assert plot.sizes(partition, ax=axes[0]) is axes[0]
    assert plot.nonspecificity(partition, ax=axes[1]) is axes[1]
    assert plot.convergence([2.0, 1.0], ax=axes[2]) is axes[2]
    assert plot.delta_bel([1.0], [1.0], ax=axes[3]) is axes[3]
    assert plot.nonspecificity_curve([2], [0.1], ax=axes[4]) is axes[4]
    assert plot.shepard([0.5], [0.5], ax=axes[5]) is axes[5]
    plot.to_png(figure)


def test_axes_without_a_figure_cannot_become_an_image():
    ax = plot.convergence([2.0, 1.0])
    ax.remove()
    with pytest.raises(ValueError, match="must belong to a figure"):
        plot.to_svg(ax)

"""The figure of lower and upper approximations shows what the partition says, and all of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull
from sklearn.decomposition import PCA

from evdist import CredalPartition, FocalSets, plot
from evdist.partition import rows
from evdist.sketch import plane
from evdist.sketch.palette import COLOURS, MARKERS

FOCAL = FocalSets.pairs(3)


@pytest.fixture
def partition() -> CredalPartition:
    """Three squares of sure members, one object between 1 and 2, one anywhere, two outliers."""
    sets = [(0,)] * 4 + [(1,)] * 4 + [(2,)] * 4 + [(0, 1), (0, 1, 2), (), ()]
    mass = np.zeros((len(sets), len(FOCAL)))
    mass[np.arange(len(sets)), [FOCAL.index(s) for s in sets]] = 1.0
    return CredalPartition(mass, FOCAL)


@pytest.fixture
def X() -> np.ndarray:
    square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]], dtype=float)
    extra = np.array([[3, 1], [3, 3], [20, 20], [-20, 5]], dtype=float)
    return np.concatenate([square, square + np.array([6, 0]), square + np.array([3, 6]), extra])


def artist(ax, gid):
    found = [child for child in ax.get_children() if child.get_gid() == gid]
    assert len(found) <= 1
    return found[0] if found else None


def test_solid_lines_enclose_the_lower_and_dashed_lines_the_upper_approximation(partition, X):
    ax = plot.approximations(partition, X)
    for k, start in enumerate((0, 4, 8)):
        lower, upper = artist(ax, f"lower-{k}"), artist(ax, f"upper-{k}")
        assert (lower.get_linestyle(), upper.get_linestyle()) == ("-", "--")
        square = {tuple(row) for row in X[start : start + 4]}
        assert {tuple(row) for row in lower.get_xydata()} == square
        assert (3.0, 3.0) in {tuple(row) for row in upper.get_xydata()}
        for line in (lower, upper):  # closed
            assert tuple(line.get_xydata()[0]) == tuple(line.get_xydata()[-1])


def test_decisions_are_drawn_in_their_words(partition, X):
    ax = plot.approximations(partition, X, rule="decision", level=0.8)
    found = partition.decide(0.8)
    drawn = [artist(ax, f"sure-{k}") for k in range(3)]
    assert sum(len(points.get_offsets()) for points in drawn if points) == found.sure.sum()
    drawn = [artist(ax, f"between-{k}") for k in range(3)]
    assert sum(len(points.get_offsets()) for points in drawn if points) == found.between.sum()
    assert len(artist(ax, "outliers").get_offsets()) == found.outlier.sum()
    words = {text.get_text() for text in ax.get_legend().get_texts()}
    assert {"sure member", "between clusters", "outlier", "around sure members"} <= words
    assert ax.get_title() == "Sure, between and outliers"


def test_every_object_is_drawn_once_and_outliers_are_circles(partition, X):
    ax = plot.approximations(partition, X)
    outliers = artist(ax, "outliers")
    np.testing.assert_array_equal(outliers.get_offsets(), X[-2:])
    assert len(outliers.get_facecolors()) == 0
    sure = [artist(ax, f"sure-{k}") for k in range(3)]
    assert [len(points.get_offsets()) for points in sure] == [4, 4, 4]
    between = [artist(ax, f"between-{k}") for k in range(3)]
    assert sum(len(points.get_offsets()) for points in between if points) == 2


def test_clusters_are_numbered_from_zero(partition, X):
    texts = {text.get_text() for text in plot.approximations(partition, X).texts}
    assert {"0", "1", "2"} <= texts


def test_classes_give_colours_and_clusters_markers(partition, X):
    y = np.array(["$a", "b$"])[np.arange(len(X)) % 2]
    ax = plot.approximations(partition, X, y=y)
    plot.to_png(ax)  # a dollar sign is not a formula
    assert len(np.unique(artist(ax, "sure-0").get_facecolors(), axis=0)) == 2
    assert {"$a", "b$"} <= {text.get_text() for text in ax.get_legend().get_texts()}
    assert artist(ax, "lower-0").get_color() == artist(ax, "lower-1").get_color()


def test_interval_dominance_can_be_asked_for(partition, X):
    ax = plot.approximations(partition, X, rule="dominance")
    assert artist(ax, "lower-0") is not None


def test_an_unknown_rule_is_told_all_there_are(partition, X):
    with pytest.raises(ValueError, match=r"rule must be .*mass.*dominance.*decision.*'most'"):
        plot.approximations(partition, X, rule="most")


def test_many_objects_are_sampled_but_hulls_are_those_of_all():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=5000)
    X = rng.normal(size=(5000, 2)) + 8 * labels[:, None]
    partition = CredalPartition.from_labels(labels)
    everything = plot.approximations(partition, X)
    some = plot.approximations(partition, X, max_points=300)
    for k in (0, 1):
        np.testing.assert_array_equal(
            artist(some, f"lower-{k}").get_xydata(), artist(everything, f"lower-{k}").get_xydata()
        )
    drawn = np.concatenate([artist(some, f"sure-{k}").get_offsets() for k in (0, 1)])
    assert 300 <= len(drawn) < 400
    corners = artist(some, "lower-0").get_xydata()
    assert {tuple(row) for row in corners} <= {tuple(row) for row in drawn}
    assert any("of 5,000 objects drawn" in text.get_text() for text in some.texts)
    assert artist(everything, "sure-0").get_rasterized()
    assert len(plot.to_svg(everything)) < 500_000


def test_more_than_two_attributes_are_shown_on_principal_components():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5)) * [9, 3, 1, 1, 1]
    ax = plot.approximations(CredalPartition.from_labels(np.arange(60) % 2), X)
    assert ax.get_xlabel().startswith("principal component 1 (")
    widths = [np.ptp(getattr(ax.dataLim, side)) for side in ("intervalx", "intervaly")]
    assert widths[0] > widths[1]


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_degenerate_clouds_are_drawn(n, d):
    partition = CredalPartition.from_labels(np.arange(n) % 2, n_clusters=2)
    for X in (np.zeros((n, d)), np.arange(n * d, dtype=float).reshape(n, d)):
        plot.to_png(plot.approximations(partition, X))


def test_points_on_a_line_get_the_segment_between_the_ends():
    X = np.array([[1.0, 1.0], [0.0, 0.0], [3.0, 3.0], [2.0, 2.0]])
    ax = plot.approximations(CredalPartition.from_labels([0, 0, 0, 0]), X)
    corners = {tuple(row) for row in artist(ax, "lower-0").get_xydata()}
    assert corners == {(0.0, 0.0), (3.0, 3.0)}


def test_columns_of_a_data_frame_name_the_axes(partition, X):
    frame = pd.DataFrame(X, columns=["cost in $", "weight in $"])
    ax = plot.approximations(partition, frame)
    plot.to_svg(ax)
    assert ax.get_xlabel() == r"cost in \$"


def test_given_axes_are_used_and_returned(partition, X):
    ax = Figure().subplots(1, 2)[1]
    assert plot.approximations(partition, X, ax=ax) is ax


def test_wrong_data_are_refused(partition, X):
    with pytest.raises(ValueError, match=r"16 objects of the partition in rows.*shape \(3, 2\)"):
        plot.approximations(partition, X[:3])
    holes = X.copy()
    holes[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"must be finite.*row 5"):
        plot.approximations(partition, holes)
    with pytest.raises(ValueError, match="one class for each of 16 objects"):
        plot.approximations(partition, X, y=[1, 2])


def test_fifty_clusters_look_different():
    looks = {(plot.cluster_colour(k), plot.cluster_marker(k)) for k in range(50)}
    assert len(looks) == 50
    assert len(set(COLOURS)) == len(COLOURS)
    assert "o" not in MARKERS  # a circle is an outlier


@pytest.mark.parametrize("shape", ["ball", "square", "line"])
def test_the_hull_of_many_points_is_that_of_all(shape):
    rng = np.random.default_rng(0)
    xy = rng.normal(size=(20_000, 2)) if shape == "ball" else rng.uniform(size=(20_000, 2))
    if shape == "line":
        xy[:, 1] = 0.0
        assert sorted(plane.hull(xy)) == sorted([xy[:, 0].argmin(), xy[:, 0].argmax()])
    else:
        assert set(plane.hull(xy)) == set(ConvexHull(xy).vertices)


def test_principal_components_do_not_depend_on_the_blocks(monkeypatch):
    X = 1e3 + np.random.default_rng(1).normal(size=(500, 4)) * [3.0, 2.0, 1.0, 0.1]
    whole, names = plane.plane(X, 500)
    expected = PCA(n_components=2).fit_transform(X)
    np.testing.assert_allclose(np.abs(whole), np.abs(expected), atol=1e-9)
    monkeypatch.setattr(rows, "MIN_ROWS", 32)
    monkeypatch.setattr(rows, "MAX_ROWS", 32)
    parts, same_names = plane.plane(X, 500)
    np.testing.assert_allclose(parts, whole, atol=1e-9)
    assert names == same_names


def test_neighbours_can_be_laid_out_together():
    y = np.arange(120) % 3
    X = np.random.default_rng(0).normal(size=(120, 6)) + 20 * np.eye(6)[y]
    partition = CredalPartition.from_labels(y)
    ax = plot.approximations(partition, X, layout="neighbours")
    assert "near is alike" in ax.get_xlabel()
    xy = np.concatenate([artist(ax, f"sure-{k}").get_offsets() for k in range(3)])
    middle = xy.reshape(3, 40, 2).mean(axis=1)
    away = np.linalg.norm(xy[:, None] - middle, axis=2)
    np.testing.assert_array_equal(away.argmin(axis=1), np.repeat(np.arange(3), 40))
    again = plot.approximations(partition, X, layout="neighbours")
    np.testing.assert_array_equal(
        artist(ax, "sure-0").get_offsets(), artist(again, "sure-0").get_offsets()
    )


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_objects_are_laid_out_too(n):
    X = np.arange(4.0 * n).reshape(n, 4)
    partition = CredalPartition.from_labels(np.arange(n) % 2, n_clusters=2)
    plot.to_png(plot.approximations(partition, X, layout="neighbours"))


def test_an_unknown_layout_is_told_all_there_are(partition, X):
    with pytest.raises(ValueError, match=r"layout must be .*components.*neighbours.*'tsne'"):
        plot.approximations(partition, X, layout="tsne")

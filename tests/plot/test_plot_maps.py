"""Maps show masses and plausibilities over the plane, one panel each."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure

from evdist import FocalSets, plot

X = np.array([[-1.0, -2.0], [1.0, 2.0], [0.5, 0.0]])
FOCAL = FocalSets.simple(2)


def predict_mass(points: np.ndarray) -> np.ndarray:
    """Cluster 1 to the left of 0, cluster 2 to the right, in doubt near 0, outliers far off."""
    right = 1 / (1 + np.exp(-4 * points[:, 0]))
    sure = np.stack([1 - right, right], axis=1) * 0.6
    empty = np.minimum(np.abs(points[:, 1]) / 10, 0.4)
    return np.column_stack([empty, sure, 0.4 - empty])


def panels(figure: Figure) -> dict:
    return {ax.get_title(): ax for ax in figure.axes if ax.get_title()}


def test_one_panel_for_each_focal_set():
    figure = plot.mass_map(predict_mass, X, focal_sets=FOCAL, resolution=20)
    assert list(panels(figure)) == ["m(∅)", "m({0})", "m({1})", "m(Ω)"]
    for ax in panels(figure).values():
        assert any(isinstance(child, QuadContourSet) for child in ax.get_children())
        np.testing.assert_array_equal(ax.lines[0].get_xydata(), X)
    plot.to_png(figure)


def test_one_panel_for_each_cluster_with_the_decision_boundary():
    figure = plot.contour_map(predict_mass, X, focal_sets=FOCAL, resolution=41)
    assert list(panels(figure)) == ["pl(0)", "pl(1)"]
    for ax in panels(figure).values():
        boundary = [c for c in ax.get_children() if isinstance(c, QuadContourSet)][-1]
        vertices = np.concatenate([path.vertices for path in boundary.get_paths()])
        np.testing.assert_allclose(vertices[:, 0], 0.0, atol=1e-9)  # pl_1 = pl_2 at 0
    plot.to_png(figure)


def test_the_map_reaches_beyond_the_objects():
    ax = next(iter(panels(plot.mass_map(predict_mass, X, focal_sets=FOCAL)).values()))
    assert ax.get_xlim()[0] < -1 < 1 < ax.get_xlim()[1]


def test_an_estimator_brings_its_focal_sets():
    model = SimpleNamespace(
        predict_mass=predict_mass, credal_partition_=SimpleNamespace(focal_sets=FOCAL)
    )
    assert len(panels(plot.mass_map(model, X, resolution=10))) == 4


def test_too_many_panels_are_cut_to_those_with_most_mass():
    focal = FocalSets.full(4)

    def uneven(points):
        m = np.tile(np.arange(1.0, 17.0), (len(points), 1))
        return m / m.sum(axis=1, keepdims=True)

    figure = plot.mass_map(uneven, X, focal_sets=focal, resolution=5, max_panels=3)
    assert list(panels(figure)) == [f"m({focal.names[q]})" for q in (13, 14, 15)]
    assert "3 of 16" in figure.get_suptitle()


def test_one_cluster_has_no_boundary():
    focal = FocalSets.simple(1)
    figure = plot.contour_map(
        lambda p: np.tile([0.25, 0.75], (len(p), 1)), X, focal_sets=focal, resolution=5
    )
    ax = panels(figure)["pl(0)"]
    assert sum(isinstance(child, QuadContourSet) for child in ax.get_children()) == 1


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match=r"two attributes.*got \(3, 3\)"):
        plot.mass_map(predict_mass, np.zeros((3, 3)), focal_sets=FOCAL)
    with pytest.raises(ValueError, match="focal_sets is needed"):
        plot.mass_map(predict_mass, X)
    with pytest.raises(ValueError, match=r"one mass per focal set, shape \(25, 8\), got \(25, 4\)"):
        plot.contour_map(predict_mass, X, focal_sets=FocalSets.full(3), resolution=5)

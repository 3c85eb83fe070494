"""Risk against coverage, by hand and drawn."""

from __future__ import annotations

import numpy as np
import pytest

from evdist import CredalPartition, plot
from evdist.metrics import risk_coverage

#: Two clusters, called 7 and 3; the last object is the least sure one and wrong.
P = CredalPartition.from_fuzzy([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.55, 0.45]])
Y = np.array([7, 7, 3, 3])


def test_by_hand() -> None:
    curve = risk_coverage(P, Y)
    np.testing.assert_allclose(curve.coverage, [0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(curve.risk, [0, 0, 0, 0.25])
    assert curve.area == pytest.approx(0.0625)
    assert curve.decided == (0.75, 0.0)
    assert (curve.coverage_at(0.1), curve.coverage_at(0.25)) == (0.75, 1.0)
    assert "area=0.0625" in repr(curve)


def test_a_score_that_tells_nothing_has_the_error_rate_as_area() -> None:
    assert risk_coverage(P, Y, score=np.zeros(4)).area == pytest.approx(0.25)


def test_the_order_of_objects_and_the_names_of_clusters_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    p = CredalPartition.from_fuzzy(rng.dirichlet(np.ones(3), 50).round(1) / 1.2)
    y = rng.integers(0, 3, 50)
    turned = rng.permutation(50)
    areas = [risk_coverage(q, z).area for q, z in ((p, y), (p[turned], y[turned]))]
    assert areas[0] == pytest.approx(areas[1])


def test_refused() -> None:
    with pytest.raises(ValueError, match=r"each of the 4 objects, at least one; got shape \(3,\)"):
        risk_coverage(P, Y[:3])
    with pytest.raises(ValueError, match="score must have shape"):
        risk_coverage(P, Y, score=[1.0])
    with pytest.raises(ValueError, match="at least one RiskCoverage"):
        plot.risk_coverage({})


def test_the_figure_marks_the_level() -> None:
    curve = risk_coverage(P, Y)
    ax = plot.risk_coverage({"ours": curve, "none": risk_coverage(P, Y, level=1.0)})
    drawn = {line.get_gid() for line in ax.lines}
    assert drawn == {"curve-0", "level-0", "curve-1"}  # at level 1 there is no point to mark
    assert ax.get_legend().get_texts()[0].get_text() == "ours, area 0.062"
    assert plot.to_svg(plot.risk_coverage(curve)).startswith(b"<?xml")

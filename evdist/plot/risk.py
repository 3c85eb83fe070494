"""Risk against coverage: how many labels are wrong among the objects that are surest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from evdist.metrics.risk import RiskCoverage
from evdist.plot.style import new_axes, plain_frame
from evdist.sketch.palette import cluster_colour


def risk_coverage(
    curves: RiskCoverage | Mapping[str, RiskCoverage], *, ax: Axes | None = None
) -> Axes:
    """Draw one curve or several of :func:`evdist.metrics.risk_coverage`; dots: the sure members.

    Parameters
    ----------
    curves : RiskCoverage, or mapping of names to them
        What `evdist.metrics.risk_coverage` gives; several with their names.
    ax : Axes, optional
        To draw on; by default of a new figure.
    """
    named = {"": curves} if isinstance(curves, RiskCoverage) else dict(curves)
    if not named:
        raise ValueError("There is no curve to draw: give at least one RiskCoverage.")
    ax = new_axes(ax)
    for k, (name, curve) in enumerate(named.items()):
        colour = cluster_colour(k)
        label = f"{name + ', ' if name else ''}area {curve.area:.3f}"
        ax.plot(curve.coverage, curve.risk, color=colour, label=label, gid=f"curve-{k}")
        at, risk = curve.decided
        if np.isfinite(risk):
            ax.plot([at], [risk], "o", color=colour, gid=f"level-{k}")
            ax.annotate(
                f"level {curve.level:.2f}", (at, risk), xytext=(4, -11), textcoords="offset points"
            )
    ax.set(xlim=(0.0, 1.0), xlabel="coverage (surest objects first)", ylabel="risk (share wrong)")
    ax.set_ylim(bottom=0.0)
    ax.legend(frameon=False)
    plain_frame(ax)
    return ax

"""The criterion of :func:`evdist.select` against the number of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from evdist.plot.style import INK, new_axes, plain_frame
from evdist.sketch.palette import cluster_colour

if TYPE_CHECKING:
    from evdist.selection import Selection


def selection_curve(selection: Selection, *, ax: Axes | None = None) -> Axes:
    """The value of every candidate, the chosen one marked, unconverged fits drawn hollow.

    Parameters
    ----------
    selection : Selection
        What `evdist.select` gives.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    c, values = np.array(selection.n_clusters), np.array(selection.values)
    done = np.array([candidate.converged for candidate in selection.candidates])
    at = selection.n_clusters.index(selection.best)
    ax = new_axes(ax)
    blue = cluster_colour(0)
    ax.plot(c, values, "-", color=blue, lw=1.6, gid="curve")
    ax.plot(c[done], values[done], "o", color=blue, ms=5, gid="converged")
    if not done.all():
        ax.plot(c[~done], values[~done], "o", mec=blue, mfc="white", ms=5, gid="not-converged")
    ax.plot(c[at], values[at], "o", ms=11, mfc="none", mec=cluster_colour(1), mew=2, gid="best")
    ax.annotate(
        f"{c[at]} clusters: {values[at]:.4g}",
        (c[at], values[at]),
        xytext=(0, -18 if values[at] == values.min() else 10),
        textcoords="offset points",
        ha="left" if at == 0 else "right" if at == len(c) - 1 else "center",
        fontsize=9,
        color=INK,
    )
    ax.set(xlabel="number of clusters", ylabel=selection.label, title="Number of clusters")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(x=0.12, y=0.25)
    plain_frame(ax, grid="y")
    return ax

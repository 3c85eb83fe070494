"""Curves and graphs of a fit: convergence, belief peaks, nonspecificity against clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from evdist.plot.style import INK, RASTER_FROM, new_axes, plain_frame
from evdist.sketch.palette import cluster_colour, cluster_marker, some_rows


def convergence(
    history: ArrayLike | Mapping[str, ArrayLike],
    *,
    ax: Axes | None = None,
) -> Axes:
    """The objective after each iteration, on a logarithmic axis when it falls tenfold or more.

    Parameters
    ----------
    history : (t,) array, or mapping of names to such arrays
        Values of the objective, the first before any iteration; several named curves, such as
        training and validation loss, share the axes.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    curves = history if isinstance(history, Mapping) else {"objective": history}
    series = {str(name): _finite(values, str(name)) for name, values in curves.items()}
    if not series or any(values.size == 0 for values in series.values()):
        raise ValueError("history must hold at least one value of the objective, got none.")
    ax = new_axes(ax)
    for k, (name, values) in enumerate(series.items()):
        ax.plot(
            values,
            color=cluster_colour(k),
            marker="." if values.size <= 40 else None,
            lw=1.6,
            label=name,
            gid=f"history-{k + 1}",
        )
        ax.annotate(
            f"{values[-1]:.4g}",
            (values.size - 1, values[-1]),
            xytext=(0, 6),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=INK,
        )
    everything = np.concatenate(list(series.values()))
    if everything.min() > 0 and everything.max() >= 10 * everything.min():
        ax.set_yscale("log")
        if everything.max() < 1000 * everything.min():  # few powers of ten: name 2 and 5 as well
            ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set(xlabel="iteration", ylabel="objective", title="Convergence")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(y=0.12)
    if len(series) > 1:
        for text in ax.legend(frameon=False).get_texts():
            text.set_parse_math(False)
    plain_frame(ax, grid="y")
    return ax


def delta_bel(
    delta: ArrayLike,
    bel: ArrayLike,
    *,
    centres: Sequence[int] | NDArray[np.intp] = (),
    max_points: int = 20_000,
    ax: Axes | None = None,
) -> Axes:
    """Decision graph of belief peaks: cluster centres stand out at the upper right.

    Parameters
    ----------
    delta : (n,) array
        Distance of each object to the nearest one with a larger belief of being a centre.
    bel : (n,) array
        Degree of belief that each object is a cluster centre.
    centres : sequence of int
        Rows of the chosen centres; centre k gets the number and colour of cluster k.
    max_points : int
        Above this many objects, those of largest delta and a random sample are drawn.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    d, b = _finite(delta, "delta"), _finite(bel, "bel")
    if d.shape != b.shape:
        raise ValueError(f"delta and bel must hold the same objects, got {d.size} and {b.size}.")
    rows = np.asarray(centres, dtype=np.intp)
    if rows.size and not (0 <= rows.min() and rows.max() < d.size):
        raise ValueError(f"centres must be rows 0..{d.size - 1}, got {rows.tolist()}.")
    ax = new_axes(ax, height=4.0)
    # A candidate that is no prototype must not vanish in a sample: it has a large delta.
    top = np.argsort(-d, kind="stable")[: max_points // 2]
    shown = some_rows(d.size, max_points // 2 if d.size > max_points else d.size, top)
    ax.scatter(
        d[shown],
        b[shown],
        s=10,
        c="#8A8A8A",
        alpha=0.6,
        linewidths=0,
        gid="objects",
        rasterized=shown.size > RASTER_FROM,
    )
    for k, row in enumerate(rows):
        ax.scatter(
            d[row],
            b[row],
            s=55,
            marker=cluster_marker(k),
            c=cluster_colour(k),
            edgecolors="white",
            linewidths=0.8,
            gid=f"centre-{k}",
            zorder=3,
        )
        near = (np.abs(d[rows[:k]] - d[row]) < 0.04 * np.ptp(d)) & (
            np.abs(b[rows[:k]] - b[row]) < 0.04 * np.ptp(b)
        )
        ax.annotate(
            str(k),
            (d[row], b[row]),
            xytext=(6 + 9 * int(near.sum()), 4),  # beside the numbers that are there already
            textcoords="offset points",
            fontsize=9,
            fontweight="bold",
            color=INK,
            zorder=4,
        )
    ax.set(
        xlabel=r"$\delta$: distance to the nearest object of larger belief",
        ylabel="Bel: belief of being a centre",
        title=r"$\delta$-Bel graph",
    )
    ax.margins(0.08)
    plain_frame(ax, grid="both")
    return ax


def nonspecificity_curve(
    n_clusters: ArrayLike,
    nonspecificity: ArrayLike,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Nonspecificity N* of partitions against their numbers of clusters, the least one marked.

    Parameters
    ----------
    n_clusters : (t,) array of int
        The numbers of clusters.
    nonspecificity : (t,) array in [0, 1]
        N* of a partition with that many clusters.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> from evdist import plot
    >>> ax = plot.nonspecificity_curve([2, 3, 4], [0.3, 0.1, 0.2])
    """
    c, values = np.asarray(n_clusters), _finite(nonspecificity, "nonspecificity")
    if c.shape != values.shape or not c.size:
        raise ValueError(
            "n_clusters and nonspecificity must have the same length, at least one, got "
            f"{c.size} and {values.size}."
        )
    order = np.argsort(c, kind="stable")
    c, values = c[order], values[order]
    best = int(np.argmin(values))
    ax = new_axes(ax)
    ax.plot(c, values, "o-", color=cluster_colour(0), ms=4, lw=1.6, gid="curve")
    ax.plot(
        c[best],
        values[best],
        "o",
        ms=11,
        mfc="none",
        mec=cluster_colour(1),
        mew=2,
        gid="minimum",
    )
    ax.annotate(
        f"{c[best]} clusters: {values[best]:.3f}",
        (c[best], values[best]),
        xytext=(0, -18),
        textcoords="offset points",
        ha="left" if best == 0 else "right" if best == c.size - 1 else "center",
        fontsize=9,
        color=INK,
    )
    ax.set(xlabel="number of clusters", ylabel="nonspecificity N*", title="Nonspecificity")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(x=0.12, y=0.25)
    plain_frame(ax, grid="y")
    return ax


def _finite(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """(t,) floats, refused when one is not finite."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a sequence of numbers, got shape {array.shape}.")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"{name} must be finite, got {array[row]} at position {row}.")
    return array

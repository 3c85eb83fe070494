"""Calibration of a credal partition: belief and plausibility of pairs against interval and truth.

Reference: Denoeux, Calibrated model-based evidential clustering using bootstrapping, figures 9, 10.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from evdist.plot.density import PAIRS
from evdist.plot.style import INK, plain_frame
from evdist.sketch.pairs import CELLS, PairDensity


def calibration(
    lower: ArrayLike,
    upper: ArrayLike,
    belief: ArrayLike,
    plausibility: ArrayLike,
    *,
    truth: ArrayLike | None = None,
) -> Figure:
    """Belief and plausibility that two objects are together, darker where there are more pairs.

    Above: against the bounds of the confidence intervals; a good fit lies along the diagonal. With
    `truth` a second row shows both against the true probabilities: belief should lie below the
    diagonal and plausibility above it, and the title says for how many pairs both hold.

    Parameters
    ----------
    lower, upper : (p,) arrays
        Bounds of the intervals of the pairs.
    belief, plausibility : (p,) arrays
        What the masses give the same pairs; `Bootclus.calibration_pairs` returns all four.
    truth : (p,) array, optional
        True probabilities that the pairs' objects are of one cluster, as simulations know them;
        labels are no probabilities.
    """
    columns = {"lower": lower, "upper": upper, "belief": belief, "plausibility": plausibility}
    if truth is not None:
        columns["truth"] = truth
    given = {name: _probabilities(name, values) for name, values in columns.items()}
    sizes = {len(values) for values in given.values()}
    if len(sizes) != 1 or 0 in sizes:
        lengths = ", ".join(f"{len(values)} for {name}" for name, values in given.items())
        raise ValueError(f"All columns must have one value for each pair, got {lengths}.")
    rows = 1 if truth is None else 2
    figure = Figure(figsize=(8.0, 3.8 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False)
    _panel(axes[0, 0], given["lower"], given["belief"], "lower bound", "belief")
    _panel(axes[0, 1], given["upper"], given["plausibility"], "upper bound", "plausibility")
    title = f"Calibration: {len(given['lower']):,} pairs"
    if truth is not None:
        true = given["truth"]
        _panel(axes[1, 0], true, given["belief"], "true probability", "belief")
        _panel(axes[1, 1], true, given["plausibility"], "true probability", "plausibility")
        # Rounding to float32 decides nothing.
        held = (given["belief"] <= true + 1e-6) & (true <= given["plausibility"] + 1e-6)
        title += f", truth within [Bel, Pl] for {held.mean():.1%}"
    figure.suptitle(title, fontsize=11)
    return figure


def _panel(ax: Axes, x: NDArray[Any], y: NDArray[Any], xlabel: str, ylabel: str) -> None:
    """One density on the unit square, with the diagonal."""
    counts = np.ma.masked_equal(PairDensity().add(x, y).counts.T, 0)
    edges = np.linspace(0.0, 1.0, CELLS + 1)
    mesh = ax.pcolormesh(
        edges,
        edges,
        counts,
        norm=LogNorm(vmin=1, vmax=max(10, int(counts.max()))),
        cmap=PAIRS,
        rasterized=True,
        gid=f"{ylabel}-{xlabel}".replace(" ", "-"),
    )
    light = [withStroke(linewidth=2.6, foreground="white")]
    ax.plot([0, 1], [0, 1], "--", color=INK, lw=1.2, path_effects=light, gid="diagonal")
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel=xlabel, ylabel=ylabel, aspect="equal")
    bar = ax.figure.colorbar(mesh, ax=ax, shrink=0.85)
    bar.set_label("pairs per cell")
    plain_frame(ax)


def _probabilities(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """(p,) floats in [0, 1], but for rounding."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one axis, got shape {array.shape}.")
    good = (array >= -1e-5) & (array <= 1.0 + 1e-5)  # false for NaN too
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(f"{name} must lie in [0, 1], got {array[row]} for pair {row}.")
    return np.clip(array, 0.0, 1.0)

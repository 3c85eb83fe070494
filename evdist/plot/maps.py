"""Maps of what a method predicts over the plane, as figures 18 and 19 of the NN-EVCLUS paper.

Symbols
-------
m    (g, f) masses predicted on a grid of g points
pl   (g, c) contour plausibilities, pl_k = sum of m(A) over the focal sets A that contain k
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets, contour
from evdist.plot.style import INK, RASTER_FROM, plain_frame
from evdist.sketch.palette import some_rows

LEVELS = np.linspace(0.0, 1.0, 11)


def mass_map(
    model: Any,
    X: ArrayLike,
    *,
    focal_sets: FocalSets | None = None,
    resolution: int = 100,
    max_panels: int = 12,
) -> Figure:
    """Contours of the mass of each focal set over the plane, one panel per set (figure 18).

    Parameters
    ----------
    model : estimator with ``predict_mass``, or a callable
        Gives masses (g, f) for points (g, 2).
    X : (n, 2) array
        Objects to draw on top; the map reaches a little beyond them.
    focal_sets : FocalSets, optional
        Needed for a callable; an estimator brings those of its ``credal_partition_``.
    resolution : int
        Points of the grid along each axis.
    max_panels : int
        With more focal sets than that, those with the largest mean mass are shown.
    """
    plane = _Plane(model, X, focal_sets, resolution)
    heads = [f"m({name})" for name in plane.focal.names]
    return plane.panels(plane.mass, heads, max_panels, "Masses of focal sets")


def contour_map(
    model: Any,
    X: ArrayLike,
    *,
    focal_sets: FocalSets | None = None,
    resolution: int = 100,
    max_panels: int = 12,
) -> Figure:
    """Contours of the plausibility of each cluster over the plane, one panel each (figure 19).

    The red line bounds the region where the cluster is the most plausible one; with two clusters
    it is the curve pl_1 = pl_2 of the paper. Parameters as for :func:`mass_map`.

    Parameters
    ----------
    model : estimator with ``predict_mass``, or a callable
        Gives masses (g, f) for points (g, 2).
    X : (n, 2) array
        Objects to draw on top.
    focal_sets : FocalSets, optional
        Needed for a callable.
    resolution : int, default=100
        Points of the grid along each axis.
    max_panels : int, default=12
        With more clusters than that, the most plausible on average are shown.
    """
    plane = _Plane(model, X, focal_sets, resolution)
    pl = contour(plane.mass, plane.focal)
    heads = [f"pl({k})" for k in range(plane.focal.n_clusters)]
    figure = plane.panels(pl, heads, max_panels, "Plausibility of clusters")
    if pl.shape[1] > 1:
        for ax in figure.axes[: min(max_panels, pl.shape[1])]:
            k = heads.index(ax.get_title())
            plane.boundary(ax, pl[:, k] - np.delete(pl, k, axis=1).max(axis=1))
    return figure


class _Plane:
    """A grid around the objects and the masses predicted on it."""

    def __init__(self, model: Any, X: Any, focal_sets: FocalSets | None, resolution: int) -> None:
        self.X = np.asarray(X, dtype=float)
        if self.X.ndim != 2 or self.X.shape[1] != 2 or not len(self.X):
            raise ValueError(
                f"A map needs objects with two attributes, X of shape (n, 2), got {self.X.shape}. "
                "Fit on two columns, or draw plot.approximations instead."
            )
        predict: Callable[[NDArray[Any]], ArrayLike] = getattr(model, "predict_mass", model)
        if focal_sets is None:
            fitted = getattr(model, "credal_partition_", None)
            if fitted is None:
                raise ValueError(
                    "focal_sets is needed to read the masses of a model without "
                    f"credal_partition_, got {type(model).__name__}. Pass focal_sets=..."
                )
            focal_sets = fitted.focal_sets
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        margin = np.where(high > low, 0.08 * (high - low), 0.5)
        self.u = np.linspace(low[0] - margin[0], high[0] + margin[0], resolution)
        self.v = np.linspace(low[1] - margin[1], high[1] + margin[1], resolution)
        grid = np.stack(np.meshgrid(self.u, self.v), axis=-1).reshape(-1, 2)
        self.focal: FocalSets = focal_sets
        # A model fitted to a data frame knows its columns; the grid has them, too.
        named = type(X)(grid, columns=X.columns) if hasattr(X, "columns") else grid
        self.mass = np.asarray(predict(named), dtype=float)
        expected = (len(grid), len(focal_sets))
        if self.mass.shape != expected:
            raise ValueError(
                f"predict_mass must give one mass per focal set, shape {expected}, got "
                f"{self.mass.shape}. Pass the focal_sets the model was fitted with."
            )

    def panels(self, values: NDArray[Any], heads: list[str], max_panels: int, title: str) -> Figure:
        """One filled contour plot per column of ``values`` (g, panels), all on the scale 0..1."""
        total = values.shape[1]
        columns = np.sort(np.argsort(-values.mean(axis=0), kind="stable")[:max_panels])
        wide = min(len(columns), 2 if len(columns) in (2, 4) else 3)
        high = -(-len(columns) // wide)
        figure = Figure(figsize=(0.8 + 2.3 * wide, 0.7 + 2.1 * high), layout="constrained")
        axes = figure.subplots(high, wide, squeeze=False, sharex=True, sharey=True).ravel()
        shown = some_rows(len(self.X), RASTER_FROM, np.empty(0, dtype=np.intp))
        for ax, q in zip(axes, columns, strict=False):
            z = np.clip(values[:, q], 0.0, 1.0).reshape(len(self.v), len(self.u))
            filled = ax.contourf(self.u, self.v, z, levels=LEVELS, cmap="Blues")
            ax.plot(*self.X[shown].T, ".", ms=2, color=INK, alpha=0.6, rasterized=True, zorder=3)
            ax.set_title(heads[q], fontsize=10)
            ax.tick_params(labelsize=8)
            plain_frame(ax)
        for ax in axes[len(columns) :]:
            ax.remove()
        bar = min(0.8, 2.6 / figure.get_figheight())  # at most 2.6 inches long
        figure.colorbar(filled, ax=figure.axes, shrink=bar, aspect=18, ticks=LEVELS[::2])
        left_out = "" if len(columns) == total else f" ({len(columns)} of {total} shown)"
        figure.suptitle(title + left_out, fontsize=12)
        return figure

    def boundary(self, ax: Axes, difference: NDArray[np.float64]) -> None:
        """The curve on which ``difference`` (g,) changes sign, if it does."""
        if difference.min() < 0.0 < difference.max():
            z = difference.reshape(len(self.v), len(self.u))
            ax.contour(self.u, self.v, z, levels=[0.0], colors="#CC3311", linewidths=1.8)

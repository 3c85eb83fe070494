"""Lower and upper approximations of clusters, as in figure 2 of the NN-EVCLUS paper.

Symbols
-------
X    (n, d) objects, shown as they are when d = 2 and on two principal components when d > 2
xy   (n, 2) the plane that is drawn
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull, QhullError
from sklearn.decomposition import PCA

from evdist.partition import CredalPartition
from evdist.plot.style import (
    INK,
    RASTER_FROM,
    cluster_colour,
    cluster_marker,
    legend_below,
    new_axes,
    plain_frame,
    some_rows,
    tint,
)

__all__ = ["approximations"]


def approximations(
    partition: CredalPartition,
    X: ArrayLike,
    *,
    y: ArrayLike | None = None,
    rule: Literal["mass", "dominance"] = "mass",
    max_points: int = 20_000,
    ax: Axes | None = None,
) -> Axes:
    """Clusters with the hulls of their lower (solid) and upper (dashed) approximations.

    Sure members are filled, objects between clusters pale, outliers circled. Every object counts
    for the hulls; above ``max_points`` objects only a random sample of them (and all corners of
    hulls) is drawn, and the figure says so.

    Parameters
    ----------
    partition : CredalPartition of n objects
    X : (n, d) array or data frame
        Drawn as it is when d = 2, on its first two principal components when d > 2, and against
        the row number when d = 1.
    y : (n,) array, optional
        Known classes. Points then take the colour of their class and the marker of their cluster,
        and hulls are grey, as in the paper.
    rule : {"mass", "dominance"}
        How the approximations are formed, see :meth:`CredalPartition.lower`.
    max_points : int
        How many points are drawn at most, corners of hulls apart.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes
        Its artists carry a gid: ``lower-1``, ``upper-1``, ``sure-1``, ``between-1``, ...,
        ``outliers``, numbered like the clusters, from 1.
    """
    xy, names = _plane(X, partition.n_objects)
    labels = np.asarray(partition.labels())
    lower = np.asarray(partition.lower(rule=rule))
    upper = np.asarray(partition.upper(rule=rule))
    outlier = np.asarray(partition.outliers())
    classes = None if y is None else _checked_classes(y, partition.n_objects)

    ax = new_axes(ax, height=4.6)
    corners = []
    for k in range(partition.n_clusters):
        colour = cluster_colour(k) if classes is None else INK
        for kind, members, dashes in (("upper", upper, "--"), ("lower", lower, "-")):
            rows = np.flatnonzero(members[:, k])
            hull = rows[_hull(xy[rows])]
            corners.append(hull)
            if hull.size > 1:
                path = xy[np.append(hull, hull[0])]
                ax.plot(*path.T, dashes, color=colour, lw=1.3, gid=f"{kind}-{k + 1}", zorder=3)

    n = partition.n_objects
    shown = some_rows(n, max_points, np.concatenate(corners))
    sure = np.asarray(lower.any(axis=1))
    _points(ax, xy, shown, labels, sure, outlier, classes)
    _numbers(ax, xy, labels, lower, outlier)
    ax.set(xlabel=names[0], ylabel=names[1], title="Lower and upper approximations")
    if shown.size < n:
        note = f"{shown.size:,} of {n:,} objects drawn; hulls of all"
        ax.annotate(note, (0.01, 0.01), xycoords="axes fraction", fontsize=7, color=INK, zorder=6)
    _legend(ax, classes, has_outliers=bool(outlier.any()))
    plain_frame(ax)
    return ax


def _plane(X: Any, n: int) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """(n, 2) coordinates to draw and the names of their axes."""
    columns = [str(name).replace("$", r"\$") for name in getattr(X, "columns", ())]
    values = np.asarray(X, dtype=float)
    if values.ndim != 2 or values.shape[0] != n or values.size == 0:
        raise ValueError(
            f"X must hold the {n} objects of the partition in rows, at least one, and attributes "
            f"in columns, got shape {values.shape}. Pass the data that were clustered."
        )
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"X must be finite, got {values[np.argmin(finite)]} in row {np.argmin(finite)}. "
            "Fill in or leave out such rows before drawing."
        )
    if values.shape[1] == 1:
        name = columns[0] if columns else "value"
        return np.column_stack([values[:, 0], np.arange(n)]), (name, "row")
    if values.shape[1] == 2:
        return values, (columns[0], columns[1]) if columns else ("first column", "second column")
    if not np.ptp(values, axis=0).any():  # all objects are the same: there is no component
        return np.zeros((n, 2)), ("principal component 1", "principal component 2")
    pca = PCA(n_components=2, svd_solver="covariance_eigh")  # O(n d^2)
    xy = pca.fit_transform(values)
    share = pca.explained_variance_ratio_
    return xy, (
        f"principal component 1 ({share[0]:.0%})",
        f"principal component 2 ({share[1]:.0%})",
    )


def _checked_classes(y: ArrayLike, n: int) -> NDArray:
    classes = np.asarray(y)
    if classes.shape != (n,):
        raise ValueError(f"y must hold one class for each of {n} objects, got {classes.shape}.")
    return classes


def _hull(xy: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows of the corners of the convex hull, in order; two ends when the points lie on a line."""
    if len(xy) < 2:
        return np.arange(len(xy))
    try:
        return ConvexHull(xy).vertices
    except QhullError:  # fewer than three points, or all on one line: the segment between the ends
        along = (xy - xy[0]) @ (xy[np.argmax(((xy - xy[0]) ** 2).sum(axis=1))] - xy[0])
        return np.unique([np.argmin(along), np.argmax(along)])


def _points(
    ax: Axes,
    xy: NDArray[np.float64],
    shown: NDArray[np.intp],
    labels: NDArray[np.intp],
    sure: NDArray[np.bool_],
    outlier: NDArray[np.bool_],
    classes: NDArray | None,
) -> None:
    size = 18 if shown.size <= 500 else 9 if shown.size <= RASTER_FROM else 4
    pixels = shown.size > RASTER_FROM
    if classes is None:
        hue = labels[shown]
    else:
        hue = np.unique(classes, return_inverse=True)[1][shown]
    strong = np.array([cluster_colour(h) for h in range(int(hue.max(initial=0)) + 1)])
    pale = np.array([tint(colour) for colour in strong])
    for k in np.unique(labels[shown]):
        for kind, chosen, face in (
            ("between", ~sure & ~outlier, pale),
            ("sure", sure & ~outlier, strong),
        ):
            here = (labels[shown] == k) & chosen[shown]
            if here.any():
                ax.scatter(
                    xy[shown[here], 0],
                    xy[shown[here], 1],
                    s=size,
                    marker=cluster_marker(k),
                    c=face[hue[here]],
                    edgecolors=strong[hue[here]],
                    linewidths=0.4,
                    gid=f"{kind}-{k + 1}",
                    rasterized=pixels,
                    zorder=2,
                )
    rows = shown[outlier[shown]]
    if rows.size:
        ax.scatter(
            xy[rows, 0],
            xy[rows, 1],
            s=2.2 * size,
            marker="o",
            facecolors="none",
            edgecolors=INK,
            linewidths=0.5 if pixels else 0.9,
            gid="outliers",
            rasterized=pixels,
            zorder=2.5,
        )


def _numbers(
    ax: Axes,
    xy: NDArray[np.float64],
    labels: NDArray[np.intp],
    lower: NDArray[np.bool_],
    outlier: NDArray[np.bool_],
) -> None:
    """The number of each cluster amid its sure members, or its labelled ones if none is sure."""
    for k in range(lower.shape[1]):
        members = lower[:, k] if lower[:, k].any() else (labels == k) & ~outlier
        if members.any():
            across, up = np.median(xy[members], axis=0)
            ax.annotate(
                str(k + 1),
                (across, up),
                ha="center",
                va="center",
                fontweight="bold",
                fontsize=12 if lower.shape[1] <= 12 else 9,
                color=INK,
                path_effects=[withStroke(linewidth=3, foreground="white")],
                zorder=5,
            )


def _legend(ax: Axes, classes: NDArray | None, *, has_outliers: bool) -> None:
    def dot(face: str, edge: str, marker: str, label: str) -> Line2D:
        return Line2D(
            [], [], ls="", marker=marker, mfc=face, mec=edge, markersize=6, mew=0.8, label=label
        )

    blank = "#777777"
    handles = [
        dot(blank, blank, "s", "sure member"),
        dot(tint(blank), blank, "s", "between clusters"),
        Line2D([], [], color=blank, lw=1.3, label="lower approximation"),
        Line2D([], [], color=blank, lw=1.3, ls="--", label="upper approximation"),
    ]
    if has_outliers:
        handles.append(dot("none", INK, "o", "outlier"))
    if classes is not None:
        handles += [
            dot(cluster_colour(h), cluster_colour(h), "s", str(name))
            for h, name in enumerate(np.unique(classes)[:20])
        ]
    legend_below(ax, 2 if classes is None else 3, handles)

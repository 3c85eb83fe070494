"""Lower and upper approximations of clusters, as in figure 2 of the NN-EVCLUS paper.

Symbols
-------
X    (n, d) objects, shown as they are when d = 2 and by a layout when d > 2
xy   (n, 2) the plane that is drawn
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from evdist.estimators.checks import one_of
from evdist.partition import CredalPartition
from evdist.partition.decisions import Decisions
from evdist.partition.open_sets import OpenTable
from evdist.plot.style import INK, RASTER_FROM, legend_below, new_axes, plain_frame, tint
from evdist.sketch.palette import (
    MOST_NAMED,
    cluster_colour,
    cluster_marker,
    named_clusters,
    some_rows,
)
from evdist.sketch.plane import Layout, hull_of, plane

#: Clusters that have hulls where they are many: more hulls would lie on each other.
MOST_HULLS = 12
#: Objects of the clusters that are not told apart.
OTHERS = "#C4C4C4"

Rows = NDArray[np.intp]
Rule = Literal["mass", "dominance", "decision"]


def approximations(
    partition: CredalPartition,
    X: ArrayLike,
    *,
    y: ArrayLike | None = None,
    rule: Rule = "mass",
    level: float | Decisions | None = None,
    layout: Layout = "components",
    max_points: int = 20_000,
    ax: Axes | None = None,
) -> Axes:
    """Clusters with the hulls of their lower (solid) and upper (dashed) approximations.

    Sure members are filled, objects between clusters pale, outliers circled. Every object counts
    for the hulls; above ``max_points`` objects only a random sample of them, all corners of hulls
    and the outliers are drawn, and the figure says so. Of more than 25 clusters the 12 largest have
    hulls, numbers and colours; the objects of the others are grey dots.

    Parameters
    ----------
    partition : CredalPartition of n objects
        The partition to draw.
    X : (n, d) array or data frame
        Drawn as it is when d = 2, by `layout` when d > 2, and against the row number when d = 1.
    y : (n,) array, optional
        Known classes. Points then take the colour of their class and the marker of their cluster,
        and hulls are grey, as in the paper.
    rule : {"mass", "dominance", "decision"}
        How the approximations are formed, see :meth:`CredalPartition.lower`. "decision" draws what
        :meth:`CredalPartition.decide` says: the hulls of the sure members of each cluster, and of
        all objects for which it stays open.
    level : float or Decisions, optional
        That of the decision; or what :meth:`CredalPartition.decide` said, where it is known.
    layout : {"components", "neighbours"}
        More than two attributes as their first two principal components, or laid out so that
        nearest neighbours lie together, see :class:`evdist.features.NeighbourLayout`.
    max_points : int
        How many points are drawn at most, corners of hulls apart.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
        Its artists carry a gid: ``lower-0``, ``upper-0``, ``sure-0``, ``between-0``, ...,
        ``outliers``, numbered like the clusters, from 0.
    """
    one_of("rule", rule, get_args(Rule))
    one_of("layout", layout, get_args(Layout))
    n = partition.n_objects
    xy, names = plane(X, n, layout)
    classes = None if y is None else _checked_classes(y, n)
    best = np.asarray(partition.assigned())
    outlier = best == 0
    c, named = partition.n_clusters, _with_hulls(partition, outlier)

    ax = new_axes(ax, height=4.6)
    found = zip(named.tolist(), _members(partition, best, rule, level, named), strict=True)
    home, corners = _draw_hulls(ax, xy, found, coloured=classes is None)

    lone = np.flatnonzero(outlier)[:max_points]  # few, and what people look for
    shown = some_rows(n, max_points, np.concatenate([*corners, lone]))
    xy, home, outlier = xy[shown], home[shown], outlier[shown]
    labels = np.asarray(partition[shown].labels())
    hue = None if classes is None else np.unique(classes, return_inverse=True)[1][shown]
    _points(ax, xy, labels, home >= 0, outlier, hue, named)
    _numbers(ax, xy, labels, home, outlier, named, c)
    decided = rule == "decision"
    title = "Sure, between and outliers" if decided else "Lower and upper approximations"
    ax.set(xlabel=names[0], ylabel=names[1], title=title)
    _say_what_is_missing(ax, len(named), c, shown.size, n)
    _legend(ax, classes, has_outliers=bool(outlier.any()), decided=decided)
    plain_frame(ax)
    return ax


def _draw_hulls(
    ax: Axes,
    xy: NDArray[np.float64],
    clusters: Iterable[tuple[int, tuple[Rows, Rows]]],
    *,
    coloured: bool,
) -> tuple[NDArray[np.int32], list[Rows]]:
    """Draw the hulls of clusters, each with its sure and its possible members.

    Returns the cluster that each object surely belongs to, or -1, and the corners of all hulls.
    """
    home = np.full(len(xy), -1, dtype=np.int32)
    corners = []
    for k, (sure, between) in clusters:
        home[sure] = k
        colour = cluster_colour(k) if coloured else INK
        sure_hull = hull_of(xy, sure)
        # What lies inside the hull of the sure members is no corner of the wider one either.
        wide_hull = hull_of(xy, np.union1d(sure_hull, between)) if between.size else sure_hull
        for kind, hull, dashes in (("upper", wide_hull, "--"), ("lower", sure_hull, "-")):
            corners.append(hull)
            if hull.size > 1:
                path = xy[np.append(hull, hull[0])]
                ax.plot(*path.T, dashes, color=colour, lw=1.3, gid=f"{kind}-{k}", zorder=3)
    return home, corners


def _say_what_is_missing(ax: Axes, hulls: int, clusters: int, shown: int, objects: int) -> None:
    notes = []
    if hulls < clusters:
        notes.append(f"the {hulls} largest of {clusters:,} clusters, others grey")
    if shown < objects:
        notes.append(f"{shown:,} of {objects:,} objects drawn; hulls of all")
    if notes:
        text = "\n".join(notes)
        ax.annotate(text, (0.01, 0.01), xycoords="axes fraction", fontsize=7, color=INK, zorder=6)


def _with_hulls(partition: CredalPartition, outlier: NDArray[np.bool_]) -> Rows:
    """The clusters that get hulls: all, or the largest where they are many."""
    c = partition.n_clusters
    if c <= MOST_NAMED:
        return np.arange(c)
    members = np.asarray(partition.labels())[~outlier]
    return named_clusters(np.bincount(members, minlength=c), MOST_HULLS)


def _members(
    partition: CredalPartition,
    best: Rows,
    rule: Rule,
    level: float | Decisions | None,
    clusters: Rows,
) -> Iterator[tuple[Rows, Rows]]:
    """Of each of these clusters, the rows that surely belong to it, and those that possibly do.

    ``best`` are the focal sets of largest mass.
    """
    sets: Any
    rows: Any = slice(None)
    if rule == "mass":  # A_i is a focal set: there are few
        sets, rows = partition.focal_sets.matrix, best
    elif rule == "decision":
        sets = (level if isinstance(level, Decisions) else partition.decide(level)).open
        sets = sets if isinstance(sets, OpenTable) else np.asarray(sets)
    else:
        sets = np.asarray(partition.upper(rule=rule))
    single = np.asarray(sets.sum(axis=1) == 1)
    for k in clusters.tolist():
        named = np.asarray(sets[:, k])
        yield np.flatnonzero((named & single)[rows]), np.flatnonzero((named & ~single)[rows])


def _checked_classes(y: ArrayLike, n: int) -> NDArray[Any]:
    classes = np.asarray(y)
    if classes.shape != (n,):
        raise ValueError(f"y must hold one class for each of {n} objects, got {classes.shape}.")
    return classes


def _points(
    ax: Axes,
    xy: NDArray[np.float64],
    labels: NDArray[np.intp],
    sure: NDArray[np.bool_],
    outlier: NDArray[np.bool_],
    hue: NDArray[np.intp] | None,
    named: Rows,
) -> None:
    """The objects: the marker that of the cluster, the colour, too, unless there is a `hue`.

    Those of clusters that are not `named` are dots below the others.
    """
    size = 18 if len(xy) <= 500 else 9 if len(xy) <= RASTER_FROM else 4
    pixels = len(xy) > RASTER_FROM
    names = [cluster_colour(h) for h in range(int((labels if hue is None else hue).max()) + 1)]
    strong = to_rgba_array(names)
    pale = to_rgba_array([tint(name) for name in names])
    for k in np.intersect1d(labels, named):
        for kind, chosen, face in (
            ("between", ~sure & ~outlier, pale),
            ("sure", sure & ~outlier, strong),
        ):
            here = (labels == k) & chosen
            if here.any():
                # Points of one colour are drawn at once.
                which: Any = [k] if hue is None else hue[here]
                ax.scatter(
                    xy[here, 0],
                    xy[here, 1],
                    s=size,
                    marker=cluster_marker(k),
                    c=face[which],
                    edgecolors=strong[which],
                    linewidths=0.4,
                    gid=f"{kind}-{k}",
                    rasterized=pixels,
                    zorder=2,
                )
    other = ~np.isin(labels, named) & ~outlier
    if other.any():
        ax.scatter(
            xy[other, 0],
            xy[other, 1],
            s=size,
            marker=".",
            color=OTHERS if hue is None else pale[hue[other]],
            linewidths=0,
            gid="others",
            rasterized=pixels,
            zorder=1.5,
        )
    if outlier.any():
        ax.scatter(
            xy[outlier, 0],
            xy[outlier, 1],
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
    home: NDArray[np.int32],
    outlier: NDArray[np.bool_],
    named: Rows,
    n_clusters: int,
) -> None:
    """The number of each named cluster amid its sure members, or its labelled ones."""
    for k in named.tolist():
        members = home == k
        if not members.any():
            members = (labels == k) & ~outlier
        if members.any():
            across, up = np.median(xy[members], axis=0)
            ax.annotate(
                str(k),
                (across, up),
                ha="center",
                va="center",
                fontweight="bold",
                fontsize=12 if n_clusters <= 12 else 9,
                color=INK,
                path_effects=[withStroke(linewidth=3, foreground="white")],
                zorder=5,
            )


def _legend(ax: Axes, classes: NDArray[Any] | None, *, has_outliers: bool, decided: bool) -> None:
    def dot(face: str, edge: str, marker: str, label: str) -> Line2D:
        return Line2D(
            [], [], ls="", marker=marker, mfc=face, mec=edge, markersize=6, mew=0.8, label=label
        )

    blank = "#777777"
    handles = [
        dot(blank, blank, "s", "sure member"),
        dot(tint(blank), blank, "s", "between clusters"),
        Line2D([], [], color=blank, lw=1.3,
               label="around sure members" if decided else "lower approximation"),
        Line2D([], [], color=blank, lw=1.3, ls="--",
               label="around all that may belong" if decided else "upper approximation"),
    ]  # fmt: skip
    if has_outliers:
        handles.append(dot("none", INK, "o", "outlier"))
    if classes is not None:
        handles += [
            dot(cluster_colour(h), cluster_colour(h), "s", str(name))
            for h, name in enumerate(np.unique(classes)[:20])
        ]
    legend_below(ax, 2 if classes is None else 3, handles)

"""Lower and upper approximations of clusters, as in figure 2 of the NN-EVCLUS paper.

Symbols
-------
X    (n, d) objects, shown as they are when d = 2 and on two principal components when d > 2
xy   (n, 2) the plane that is drawn
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull, QhullError

from evdist.estimators.checks import one_of
from evdist.partition import CredalPartition
from evdist.partition.decisions import Decisions
from evdist.partition.open_sets import OpenTable
from evdist.partition.rows import gather_rows, map_rows
from evdist.plot.style import (
    INK,
    MOST_NAMED,
    RASTER_FROM,
    cluster_colour,
    cluster_marker,
    legend_below,
    named_clusters,
    new_axes,
    plain_frame,
    some_rows,
    tint,
)

#: Points above which those well inside are left out before the hull.
MANY = 1 << 12
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
    X : (n, d) array or data frame
        Drawn as it is when d = 2, on its first two principal components when d > 2, and against
        the row number when d = 1.
    y : (n,) array, optional
        Known classes. Points then take the colour of their class and the marker of their cluster,
        and hulls are grey, as in the paper.
    rule : {"mass", "dominance", "decision"}
        How the approximations are formed, see :meth:`CredalPartition.lower`. "decision" draws what
        :meth:`CredalPartition.decide` says: the hulls of the sure members of each cluster, and of
        all objects for which it stays open.
    level : float or Decisions, optional
        That of the decision; or what :meth:`CredalPartition.decide` said, where it is known.
    max_points : int
        How many points are drawn at most, corners of hulls apart.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes
        Its artists carry a gid: ``lower-0``, ``upper-0``, ``sure-0``, ``between-0``, ...,
        ``outliers``, numbered like the clusters, from 0.
    """
    one_of("rule", rule, get_args(Rule))
    n = partition.n_objects
    xy, names = plane(X, n)
    classes = None if y is None else _checked_classes(y, n)
    best = np.asarray(partition.assigned())
    outlier = best == 0
    c, named = partition.n_clusters, _with_hulls(partition, outlier)

    ax = new_axes(ax, height=4.6)
    corners = []
    home = np.full(n, -1, dtype=np.int32)  # the cluster that an object surely belongs to
    found = _members(partition, best, rule, level, named)
    for k, (sure, between) in zip(named.tolist(), found, strict=True):
        home[sure] = k
        colour = cluster_colour(k) if classes is None else INK
        sure_hull = _hull_of(xy, sure)
        # What lies inside the hull of the sure members is no corner of the wider one either.
        wide_hull = _hull_of(xy, np.union1d(sure_hull, between)) if between.size else sure_hull
        for kind, hull, dashes in (("upper", wide_hull, "--"), ("lower", sure_hull, "-")):
            corners.append(hull)
            if hull.size > 1:
                path = xy[np.append(hull, hull[0])]
                ax.plot(*path.T, dashes, color=colour, lw=1.3, gid=f"{kind}-{k}", zorder=3)

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
    notes = [f"the {len(named)} largest of {c:,} clusters, others grey"] if len(named) < c else []
    if shown.size < n:
        notes.append(f"{shown.size:,} of {n:,} objects drawn; hulls of all")
    if notes:
        text = "\n".join(notes)
        ax.annotate(text, (0.01, 0.01), xycoords="axes fraction", fontsize=7, color=INK, zorder=6)
    _legend(ax, classes, has_outliers=bool(outlier.any()), decided=decided)
    plain_frame(ax)
    return ax


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


def plane(X: Any, n: int) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """(n, 2) coordinates to draw and the names of their axes."""
    columns = [str(name).replace("$", r"\$") for name in getattr(X, "columns", ())]
    values = np.asarray(X)
    if values.dtype.kind != "f":
        values = values.astype(float)
    if values.ndim != 2 or values.shape[0] != n or values.size == 0:
        raise ValueError(
            f"X must hold the {n} objects of the partition in rows, at least one, and attributes "
            f"in columns, got shape {values.shape}. Pass the data that were clustered."
        )
    if values.shape[1] == 1:
        name = columns[0] if columns else "value"
        return np.column_stack([_finite(values)[:, 0], np.arange(n)]), (name, "row")
    if values.shape[1] == 2:
        names = (columns[0], columns[1]) if columns else ("first column", "second column")
        return _finite(values), names
    return _components(values)


def _finite(values: NDArray[Any], first: int = 0) -> NDArray[np.float64]:
    """These rows as float64, when all are finite."""
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise ValueError(
            f"X must be finite, got {values[bad]} in row {first + bad}. Fill in or leave out such "
            "rows before drawing."
        )
    return values.astype(float)


def _components(values: NDArray[Any]) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """The first two principal components; O(n d^2), a block of rows at a time."""
    n = len(values)

    def total(rows: NDArray[Any], first: int) -> NDArray[np.float64]:
        with np.errstate(over="ignore", invalid="ignore"):
            found = rows.sum(axis=0, dtype=np.float64)
        return found if np.isfinite(found).all() else _finite(rows, first).sum(axis=0)

    mean = np.sum(gather_rows(total, values), axis=0) / n

    def spread(rows: NDArray[Any], first: int) -> NDArray[np.float64]:
        centred = rows - mean
        return centred.T @ centred

    variance, axes = np.linalg.eigh(np.sum(gather_rows(spread, values), axis=0))  # largest last
    names = ("principal component 1", "principal component 2")
    if not variance[-1] > 0:  # all objects are the same: there is no component
        return np.zeros((n, 2)), names
    axes = axes[:, :-3:-1]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])  # one of two signs, always
    xy = map_rows(lambda rows, first: (rows - mean) @ axes, values, width=2, dtype=float)
    share = variance[:-3:-1] / variance.sum()
    return xy, (f"{names[0]} ({share[0]:.0%})", f"{names[1]} ({share[1]:.0%})")


def _checked_classes(y: ArrayLike, n: int) -> NDArray[Any]:
    classes = np.asarray(y)
    if classes.shape != (n,):
        raise ValueError(f"y must hold one class for each of {n} objects, got {classes.shape}.")
    return classes


def _hull_of(xy: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Which of these rows are the corners of their convex hull, in order."""
    return rows[_hull(xy[rows])]


def _hull(xy: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows of the corners of the convex hull, in order; two ends when the points lie on a line."""
    if len(xy) < 2:
        return np.arange(len(xy))
    try:
        if len(xy) <= MANY:
            return ConvexHull(xy).vertices
        outer = _outer(xy)
        return outer[ConvexHull(xy[outer]).vertices]
    except QhullError:  # fewer than three points, or all on one line: the segment between the ends
        along = (xy - xy[0]) @ (xy[np.argmax(((xy - xy[0]) ** 2).sum(axis=1))] - xy[0])
        return np.unique([np.argmin(along), np.argmax(along)])


def _outer(xy: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows of the points outside a polygon of points: all corners of the hull are among them."""
    x, y = np.ascontiguousarray(xy[:, 0]), np.ascontiguousarray(xy[:, 1])
    far: list[np.intp] = []
    for angle in np.linspace(0.0, np.pi, 4, endpoint=False):
        along = np.cos(angle) * x + np.sin(angle) * y
        far += [along.argmin(), along.argmax()]
    inside = np.ones(len(xy), dtype=bool)
    for a, b, c in ConvexHull(xy[np.unique(far)]).equations:  # a x + b y + c < 0 inside
        inside &= a * x + b * y < -c
    return np.flatnonzero(~inside)


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

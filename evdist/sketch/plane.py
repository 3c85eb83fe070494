"""Objects as points of a plane, and the convex hulls of some of them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evdist.partition.rows import gather_rows, map_rows
from evdist.registry import load

#: How objects with more than two attributes come into a plane.
Layout = Literal["components", "neighbours"]

#: Steps of a layout to look at, fewer than those of one to cluster on.
STEPS = 200
#: Points above which those well inside are left out before the hull.
MANY = 1 << 12


def plane(
    X: Any, n: int, layout: Layout = "components"
) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """(n, 2) coordinates to draw and the names of their axes.

    Objects with more than two attributes lie on their first two principal components, or where a
    layout of their nearest neighbours puts them.
    """
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
    return _neighbours(values) if layout == "neighbours" else _components(values)


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


def _neighbours(values: NDArray[Any]) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """Neighbours lie together: see `evdist.features.NeighbourLayout`, which compiles kernels."""
    found = load("evdist.features:NeighbourLayout")(2, n_epochs=STEPS, random_state=0)
    names = ("layout of neighbours: near is alike", "(the axes have no unit)")
    if len(values) < 2:
        return np.zeros((len(values), 2)), names
    return found.fit_transform(_finite(values)).astype(float), names


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


def hull_of(xy: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Which of these rows are the corners of their convex hull, in order."""
    return rows[hull(xy[rows])]


def hull(xy: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows of the corners of the convex hull, counterclockwise; two ends when all lie on a line.

    Of the points from left to right those are kept at which the way turns left, once from below and
    once back (A. M. Andrew, 1979, Information Processing Letters 9). SciPy's would take a fifth of
    a second to load.
    """
    near = _outer(xy) if len(xy) > MANY else np.arange(len(xy))
    order = near[np.lexsort((xy[near, 1], xy[near, 0]))]
    points = list(zip(order.tolist(), *xy[order].T.tolist(), strict=True))
    way = _left_turns(points)[:-1] + _left_turns(points[::-1])[:-1]
    return np.array([row for row, _, _ in way] or order[:1], dtype=np.intp)


def _left_turns(points: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """The points (row, x, y) at which a way along them turns left, its two ends among them."""
    kept: list[tuple[int, float, float]] = []
    for point in points:
        if kept and kept[-1][1:] == point[1:]:
            continue
        while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= 0:
            kept.pop()
        kept.append(point)
    return kept


def _turn(a: tuple[int, float, float], b: tuple[int, float, float], c: Any) -> float:
    """Above zero where the way from a over b to c turns left."""
    return (b[1] - a[1]) * (c[2] - a[2]) - (b[2] - a[2]) * (c[1] - a[1])


def _outer(xy: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows of the points outside a polygon of points: all corners of the hull are among them."""
    x, y = np.ascontiguousarray(xy[:, 0]), np.ascontiguousarray(xy[:, 1])
    far: list[np.intp] = []
    for angle in np.linspace(0.0, np.pi, 4, endpoint=False):
        along = np.cos(angle) * x + np.sin(angle) * y
        far += [along.argmin(), along.argmax()]
    few = np.unique(far)
    corners = few[hull(xy[few])]
    inside = np.full(len(xy), len(corners) > 2)
    for a, b in zip(corners, np.roll(corners, -1), strict=True):
        inside &= (x[b] - x[a]) * (y - y[a]) - (y[b] - y[a]) * (x - x[a]) > 0
    return np.flatnonzero(~inside)

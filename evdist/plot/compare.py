"""Several partitions of the same objects: how good, and how like each other.

References: Denoeux (2021), NN-EVCLUS, figures 22 to 26 (consistency against nonspecificity);
Denoeux, slides "Belief functions and clustering" (2017), "Seeds data": a map of partitions by their
credal Rand indices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, spatial

from evdist.metrics import consistency, credal_rand_index, nonspecificity
from evdist.partition import CredalPartition
from evdist.plot.style import INK, new_axes, plain_frame
from evdist.sketch.palette import cluster_colour, cluster_marker


def consistency_plane(
    partitions: Mapping[str, CredalPartition], truth: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Consistency with the truth against nonspecificity, a point for each partition.

    Up and to the left is better. A partition for which another is at least as consistent and as
    specific, and better in one, is dominated, and drawn pale; the others are joined by a line.

    Parameters
    ----------
    partitions : mapping of names to CredalPartition
        Partitions of the same n objects.
    truth : (n,) labels
        The known class of each object.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    if not partitions:
        raise ValueError("partitions must hold at least one partition, got none.")
    truth = np.asarray(truth)
    points = np.array([(nonspecificity(p), consistency(p, truth)) for p in partitions.values()])
    ax = new_axes(ax, height=4.0)
    dominated = [
        bool(((points[:, 0] <= x) & (points[:, 1] >= y) & ((points != [x, y]).any(axis=1))).any())
        for x, y in points
    ]
    front = points[~np.array(dominated)]
    front = front[np.argsort(front[:, 0], kind="stable")]
    ax.plot(*front.T, color="#999999", lw=1, ls=":", gid="front", zorder=1)
    for k, (name, (x, y)) in enumerate(zip(partitions, points, strict=True)):
        pale = 0.4 if dominated[k] else 1.0
        look: dict[str, Any] = {"marker": cluster_marker(k), "color": cluster_colour(k)}
        ax.plot([x], [y], ls="", ms=8, alpha=pale, zorder=4, gid=f"partition-{k}", **look)
        _name(ax, name, (x, y))
    ax.margins(0.18)
    ax.set(xlabel="nonspecificity", ylabel="consistency", title="Consistent and specific")
    plain_frame(ax, grid="both")
    return ax


def partition_map(
    partitions: Mapping[str, CredalPartition | NDArray[Any]], *, ax: Axes | None = None
) -> Axes:
    """Partitions as points, the nearer the more they agree: a map by 1 - the credal Rand index.

    Metric multidimensional scaling (stress of the distances themselves), started from the
    classical one; nothing is random. The title says how far distances on the map are off.

    Parameters
    ----------
    partitions : mapping of names to CredalPartition or (n,) labels, over the same objects
        At least three.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    if len(partitions) < 3:
        raise ValueError(f"A map needs at least three partitions, got {len(partitions)}.")
    members = list(partitions.values())
    D = np.zeros((len(members), len(members)))
    for a in range(len(members)):
        for b in range(a):
            D[a, b] = D[b, a] = 1.0 - credal_rand_index(members[a], members[b])
    xy, off = _scaled(D)
    ax = new_axes(ax, height=4.4)
    for k, (name, point) in enumerate(zip(partitions, xy, strict=True)):
        look: dict[str, Any] = {"marker": cluster_marker(k), "color": cluster_colour(k)}
        ax.plot(*point[:, None], ls="", ms=8, zorder=4, gid=f"partition-{k}", **look)
        _name(ax, name, (float(point[0]), float(point[1])))
    # A unit is as long down as across, and names have room.
    middle, reach = (xy.min(axis=0) + xy.max(axis=0)) / 2, 0.62 * np.ptp(xy, axis=0).max() + 0.02
    ax.set_xlim(middle[0] - reach, middle[0] + reach)
    ax.set_ylim(middle[1] - reach, middle[1] + reach)
    ax.set_aspect("equal")
    ax.set(xlabel="1 - credal Rand index", title=f"Map of partitions (off by {off:.3f})")
    plain_frame(ax, grid="both")
    return ax


def _scaled(D: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """(k, 2) points whose distances are as near to D as can be, and the root mean square error."""
    k = len(D)
    centre = np.eye(k) - 1.0 / k
    values, axes = np.linalg.eigh(-0.5 * centre @ (D * D) @ centre)
    start = axes[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-12))
    goal = spatial.distance.squareform(D, checks=False)

    def stress(flat: NDArray[np.float64]) -> float:
        return float(((spatial.distance.pdist(flat.reshape(k, 2)) - goal) ** 2).sum())

    found = optimize.minimize(stress, start.ravel(), method="L-BFGS-B")
    return found.x.reshape(k, 2), float(np.sqrt(found.fun / len(goal)))


def _name(ax: Axes, name: str, point: tuple[float, float]) -> None:
    text = ax.annotate(
        str(name), point, xytext=(7, 5), textcoords="offset points", fontsize=8, color=INK, zorder=3
    )
    text.set_parse_math(False)
    text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])

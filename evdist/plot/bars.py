"""Bars per cluster: how many objects are surely or possibly in it, and how unsure they are.

Symbols
-------
N*   nonspecificity of an object, divided by log2 c so that it lies in [0, 1]:
     (sum over non-empty A of m(A) log2 |A|, plus m(empty) log2 c) / log2 c
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.belief import nonspecificity as object_nonspecificity
from evdist.partition import CredalPartition
from evdist.partition.rows import map_rows
from evdist.plot.style import INK, cluster_colour, legend_below, new_axes, plain_frame, tint

__all__ = ["nonspecificity", "sizes", "uncertainty"]

UNION, EMPTY = "#0072B2", "#D55E00"


def sizes(
    partition: CredalPartition,
    *,
    rule: Literal["mass", "dominance"] = "mass",
    ax: Axes | None = None,
) -> Axes:
    """Sizes of clusters: sure members (full bar), possible members (pale end), outliers.

    Parameters
    ----------
    partition : CredalPartition of n objects
    rule : {"mass", "dominance"}
        How the approximations are formed, see :meth:`CredalPartition.lower`.
    """
    sure = np.asarray(partition.lower(rule=rule).sum(axis=0))
    possible = np.asarray(partition.upper(rule=rule).sum(axis=0))
    outliers = int(partition.outliers().sum())
    ax = _rows_of_bars(partition.n_clusters, ax)
    at = np.arange(partition.n_clusters)
    colours = [cluster_colour(int(k)) for k in at]
    ax.barh(at, sure, color=colours, height=0.7, gid="sure")
    ax.barh(
        at,
        possible - sure,
        left=sure,
        color=[tint(colour) for colour in colours],
        edgecolor=colours,
        hatch="///",
        linewidth=0.6,
        height=0.7,
        gid="possible",
    )
    ax.barh(partition.n_clusters, outliers, color=INK, height=0.7, gid="outliers")
    ends = [f"{s:,}" if s == p else f"{s:,} to {p:,}" for s, p in zip(sure, possible, strict=True)]
    _end_texts(ax, np.append(possible, outliers), [*ends, f"{outliers:,}"])
    grey = "#777777"
    legend_below(
        ax,
        2,
        [
            Patch(color=grey, label="sure members"),
            Patch(facecolor=tint(grey), edgecolor=grey, hatch="///", label="possible members"),
        ],
    )
    ax.set(xlabel="objects", title="Sizes of clusters")
    return ax


def nonspecificity(partition: CredalPartition, *, ax: Axes | None = None) -> Axes:
    """Mean nonspecificity of the objects of each cluster, and of the outliers.

    The two parts of a bar are the doubt between clusters (mass on unions) and the doubt whether
    the object is in any (mass on the empty set); the dotted line is the mean over all objects, N*.
    """
    unions, empty = uncertainty(partition)
    outlier = np.asarray(partition.outliers())
    c = partition.n_clusters
    group = np.where(outlier, c, np.asarray(partition.labels()))
    present = np.bincount(group, minlength=c + 1)
    members = np.maximum(present, 1)
    from_unions = np.bincount(group, weights=unions, minlength=c + 1) / members
    from_empty = np.bincount(group, weights=empty, minlength=c + 1) / members
    ax = _rows_of_bars(c, ax)
    at = np.arange(c + 1)
    ax.barh(at, from_unions, color=UNION, height=0.7, label="between clusters", gid="unions")
    ax.barh(
        at,
        from_empty,
        left=from_unions,
        color=tint(EMPTY, 0.8),
        hatch="...",
        edgecolor="white",
        linewidth=0,
        height=0.7,
        label="in no cluster",
        gid="empty",
    )
    mean = float((unions + empty).mean())
    ax.axvline(mean, color=INK, ls=":", lw=1.4, label=f"all objects, N* = {mean:.3f}", gid="mean")
    ends = from_unions + from_empty
    texts = [f"{value:.3f}" for value in ends]
    _end_texts(ax, ends, [t if present[k] else "none" for k, t in enumerate(texts)])
    legend_below(ax, 3)
    ax.set(xlabel="mean nonspecificity (0 sure, 1 nothing known)", title="Nonspecificity")
    return ax


def uncertainty(partition: CredalPartition) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nonspecificity of each object in [0, 1], in two parts; the mean of their sum is N*.

    Returns
    -------
    unions : (n,) sum over non-empty A of m(A) log2 |A| / log2 c
    empty : (n,) m(empty), 0 with one cluster
    """
    split = partial(_two_parts, focal=partition.focal_sets)
    parts = np.asarray(map_rows(split, partition.mass, width=2, dtype=np.float64))
    return parts[:, 0], parts[:, 1]


def _two_parts(m: NDArray, first: int, focal: FocalSets) -> NDArray[np.float64]:
    """(b, 2) parts of the nonspecificity of one block of masses (b, f)."""
    whole = np.log2(focal.n_clusters)
    empty = m[:, 0] * whole
    unions = np.maximum(object_nonspecificity(m, focal) - empty, 0.0)
    # With one cluster nothing can be unspecific: log2 1 = 0, and so are both parts.
    return np.stack([unions, empty], axis=1) / max(whole, 1.0)


def _rows_of_bars(n_clusters: int, ax: Axes | None) -> Axes:
    ax = new_axes(ax, height=1.7 + 0.28 * (n_clusters + 1))
    names = [f"cluster {k + 1}" for k in range(n_clusters)]
    ax.set_yticks(range(n_clusters + 1), [*names, "outliers"])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(n_clusters + 0.6, -0.6)  # the first cluster on top
    plain_frame(ax, grid="x")
    ax.spines["left"].set_visible(False)
    return ax


def _end_texts(ax: Axes, ends: NDArray, texts: list[str]) -> None:
    """Texts beside the ends of the bars, with room for them on the right."""
    for row, (end, text) in enumerate(zip(ends, texts, strict=True)):
        ax.annotate(
            text,
            (end, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=INK,
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
        )
    # When all is sure there is no bar: an axis to 0.05 then, not one that magnifies nothing.
    ax.set_xlim(0, 1.25 * max(float(np.max(ends)), 0.04))

"""Bars per cluster: how many objects are surely or possibly in it, and how unsure they are.

Symbols
-------
N*   nonspecificity of an object, divided by log2 c so that it lies in [0, 1]:
     (sum over non-empty A of m(A) log2 |A|, plus m(empty) log2 c) / log2 c
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from evdist.estimators.checks import one_of
from evdist.partition import CredalPartition, Decisions, Summary
from evdist.plot.style import INK, legend_below, new_axes, plain_frame, tint
from evdist.sketch.palette import cluster_colour, named_clusters

SizeRule = Literal["decision", "mass", "dominance"]

UNION, EMPTY = "#0072B2", "#D55E00"
REST = "#777777"
#: A bar of the rest that is longer than so many of the longest others is left out.
MOST_LENGTHS = 3


def sizes(
    partition: CredalPartition | Summary,
    *,
    rule: SizeRule = "decision",
    level: float | Decisions | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Sizes of clusters: sure members (full bar), possible members (pale end), outliers.

    Of more than 25 clusters the 24 largest are shown, and the others together; by a number alone
    where their bar would leave no room for those of the largest.

    Parameters
    ----------
    partition : CredalPartition of n objects, or its summary
        Of a summary its approximations are drawn.
    rule : {"decision", "mass", "dominance"}
        "decision" counts what :meth:`CredalPartition.decide` says: the sure members of each
        cluster, and all objects for which it stays open. The others count the lower and upper
        approximations, see :meth:`CredalPartition.lower`.
    level : float or Decisions, optional
        That of the decision; or what :meth:`CredalPartition.decide` said, where it is known.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    counted = _counted(partition, rule, level)
    named = named_clusters(counted.largest)
    sure, possible = (_with_rest(x, named) for x in (counted.sure, counted.possible))
    outliers = counted.outliers
    ends = [f"{s:,}" if s == p else f"{s:,} to {p:,}" for s, p in zip(sure, possible, strict=True)]
    if len(named) < len(sure) and possible[-1] > MOST_LENGTHS * max(possible[:-1].max(), outliers):
        sure[-1] = possible[-1] = 0
        ends[-1] += " (no bar)"
    ax = _rows_of_bars(named, partition.n_clusters, ax)
    at = np.arange(len(sure))
    colours = [cluster_colour(int(k)) for k in named] + [REST] * (len(sure) - len(named))
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
    ax.barh(len(sure), outliers, color=INK, height=0.7, gid="outliers")
    _end_texts(ax, np.append(possible, outliers), [*ends, f"{outliers:,}"])
    grey = "#777777"
    legend_below(
        ax,
        2,
        [
            Patch(color=grey, label=counted.names[0]),
            Patch(facecolor=tint(grey), edgecolor=grey, hatch="///", label=counted.names[1]),
        ],
    )
    ax.set(xlabel="objects", title="Sizes of clusters")
    return ax


class _Counted(NamedTuple):
    """Objects of each cluster, (c,), and what they are called."""

    largest: NDArray[np.int64]  # by which clusters are chosen for a bar of their own
    sure: NDArray[np.int64]
    possible: NDArray[np.int64]
    outliers: int
    names: tuple[str, str]


def _counted(
    partition: CredalPartition | Summary, rule: SizeRule, level: float | Decisions | None
) -> _Counted:
    one_of("rule", rule, get_args(SizeRule))
    if isinstance(partition, Summary):
        found = partition
    elif rule == "decision":
        said = level if isinstance(level, Decisions) else partition.decide(level)
        sure, still = said.members()
        outliers = int(np.asarray(said.outlier).sum())
        return _Counted(still, sure, still, outliers, ("sure members", "possible members"))
    else:
        found = partition.summary(rule)
    sizes, names = found.sizes, ("lower approximation", "upper approximation")
    return _Counted(sizes.labels, sizes.lower, sizes.upper, found.n_outliers, names)


def nonspecificity(partition: CredalPartition, *, ax: Axes | None = None) -> Axes:
    """Mean nonspecificity of the objects of each cluster, and of the outliers.

    The two parts of a bar are the doubt between clusters (mass on unions) and the doubt whether
    the object is in any (mass on the empty set); the dotted line is the mean over all objects, N*.

    Parameters
    ----------
    partition : CredalPartition
        The partition to draw.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    every = _by_cluster(partition)
    mean = float(every[1:].sum() / max(partition.n_objects, 1))
    named = named_clusters(every[0, :-1])
    present, unions, empty = (np.append(_with_rest(x[:-1], named), x[-1]) for x in every)
    members = np.maximum(present, 1)
    from_unions, from_empty = unions / members, empty / members
    ax = _rows_of_bars(named, partition.n_clusters, ax)
    at = np.arange(len(present))
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
    ax.axvline(mean, color=INK, ls=":", lw=1.4, label=f"all objects, N* = {mean:.3f}", gid="mean")
    ends = from_unions + from_empty
    texts = [f"{value:.3f}" for value in ends]
    _end_texts(ax, ends, [t if present[k] else "none" for k, t in enumerate(texts)])
    legend_below(ax, 3)
    ax.set(xlabel="mean nonspecificity (0 sure, 1 nothing known)", title="Nonspecificity")
    return ax


def _by_cluster(partition: CredalPartition) -> NDArray[np.float64]:
    """(3, c + 1) objects of each cluster and outliers, and the sums of both parts over them."""
    c = partition.n_clusters
    group = np.asarray(partition.labels(outlier=c))
    both = np.asarray(partition.object_nonspecificity())
    # With one cluster nothing can be unspecific: log2 1 = 0, and so are both parts.
    empty = np.asarray(partition.mass[:, 0], dtype=np.float64) if c > 1 else np.zeros(len(both))
    parts = (None, np.maximum(both - empty, 0.0), empty)
    return np.stack([np.bincount(group, weights=w, minlength=c + 1) for w in parts])


def _with_rest(values: NDArray[Any], named: NDArray[np.intp]) -> NDArray[Any]:
    """The values of the named clusters and, where there are others, their sum."""
    if len(named) == len(values):
        return np.asarray(values)
    return np.append(values[named], values.sum() - values[named].sum())


def _rows_of_bars(named: NDArray[np.intp], n_clusters: int, ax: Axes | None) -> Axes:
    names = [f"cluster {k}" for k in named]
    if len(named) < n_clusters:
        names.append(f"{n_clusters - len(named):,} smaller ones")
    names.append("outliers")
    ax = new_axes(ax, height=1.7 + 0.28 * len(names))
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)  # the first cluster on top
    plain_frame(ax, grid="x")
    ax.spines["left"].set_visible(False)
    return ax


def _end_texts(ax: Axes, ends: NDArray[Any], texts: list[str]) -> None:
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

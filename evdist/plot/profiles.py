"""Masses object by object, and classes against focal sets.

References: Denoeux, slides "Belief functions and clustering" (2017), "Butterfly dataset" and
"Credal partition"; Denoeux, Calibrated model-based evidential clustering using bootstrapping,
tables 5 to 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from evdist.partition import CredalPartition
from evdist.plot.style import INK, legend_below, new_axes, plain_frame
from evdist.sketch.palette import cluster_colour, cluster_marker

#: More objects than this are no longer read one by one.
MOST_OBJECTS = 500
#: Rows and columns of a table that can be read.
MOST_CELLS = 30
#: Digits side by side under an axis.
MOST_DIGITS = 32


def mass_profile(
    partition: CredalPartition,
    *,
    objects: ArrayLike | None = None,
    max_sets: int = 8,
    ax: Axes | None = None,
) -> Axes:
    """The mass of each focal set against the number of the object: the slides' butterfly figure.

    Single clusters have their colours and markers, the empty set is a dashed line, unions are grey.

    Parameters
    ----------
    partition : CredalPartition of n objects
        The partition to draw.
    objects : (k,) integers, optional
        The objects to show, in this order; needed above 500 objects.
    max_sets : int
        With more focal sets than that, those with the largest mass among these objects are shown.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    n = partition.n_objects
    if objects is None and n > MOST_OBJECTS:
        raise ValueError(
            f"A profile of {n:,} objects cannot be read: pass objects=..., at most {MOST_OBJECTS}."
        )
    rows = np.arange(n) if objects is None else np.asarray(objects, dtype=np.intp)
    if rows.ndim != 1 or not 0 < len(rows) <= MOST_OBJECTS:
        raise ValueError(
            f"objects must be 1 to {MOST_OBJECTS} numbers of objects, got {rows.shape}."
        )
    mass = np.asarray(partition[rows].mass, dtype=float)
    sets = partition.focal_sets
    shown = np.sort(np.argsort(-mass.sum(axis=0), kind="stable")[:max_sets])
    ax = new_axes(ax)
    at = np.arange(len(rows))
    greys = iter(np.linspace(0.25, 0.75, max(len(shown), 1)))
    for j in shown.tolist():
        members, name = sets.sets[j], f"m({sets.names[j]})"
        look: dict[str, Any] = {"color": str(next(greys)), "ls": "-.", "marker": "."}
        if not members:
            look = {"color": INK, "ls": "--", "marker": "o", "mfc": "white"}
        elif len(members) == 1:
            (k,) = members
            look = {"color": cluster_colour(k), "ls": "-", "marker": cluster_marker(k)}
        ax.plot(at, mass[:, j], lw=1.3, ms=5, label=name, gid=f"mass-{j}", **look)
    if objects is None:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        room = min(len(rows), 8, MOST_DIGITS // len(str(rows.max())))
        few = np.unique(np.linspace(0, len(rows) - 1, room).round().astype(int))
        ax.set_xticks(few, [str(rows[t]) for t in few])
    left_out = "" if len(shown) == len(sets) else f" ({len(shown)} of {len(sets):,} focal sets)"
    ax.set(xlabel="object", ylabel="mass", ylim=(-0.03, 1.03), title=f"Masses{left_out}")
    legend_below(ax, min(4, len(shown)))
    plain_frame(ax, grid="y")
    return ax


def class_table(
    partition: CredalPartition,
    y: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """How many objects of each known class have their largest mass on each focal set.

    Parameters
    ----------
    partition : CredalPartition of n objects
        The partition to draw.
    y : (n,) known classes
        The known class of each object.
    names : sequence of str, optional
        Names of the classes, in the order of ``np.unique(y)``.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    y = np.asarray(y)
    if y.shape != (partition.n_objects,):
        raise ValueError(
            f"y must be the class of each of the {partition.n_objects} objects, got shape "
            f"{y.shape}."
        )
    classes, row = np.unique(y, return_inverse=True)
    sets = partition.focal_sets
    counts = np.zeros((len(classes), len(sets)), dtype=np.int64)
    np.add.at(counts, (row, np.asarray(partition.assigned())), 1)
    used = np.flatnonzero(counts.any(axis=0))
    if len(classes) > MOST_CELLS or len(used) > MOST_CELLS:
        raise ValueError(
            f"A table of {len(classes)} classes and {len(used)} focal sets cannot be read: at most "
            f"{MOST_CELLS} of each."
        )
    if names is not None and len(names) != len(classes):
        raise ValueError(f"names must be those of the {len(classes)} classes, got {len(names)}.")
    counts = counts[:, used]
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax = new_axes(ax, 1.6 + 0.62 * len(used), 1.3 + 0.42 * len(classes))
    ax.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto", gid="table")
    for (i, j), count in np.ndenumerate(counts):
        colour = "white" if share[i, j] > 0.6 else INK
        text = f"{count:,}" if count else "·"
        ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=9)
    ax.set_xticks(range(len(used)), [sets.names[j] for j in used])
    heads = [str(c) for c in classes] if names is None else list(names)
    ax.set_yticks(range(len(classes)), heads, parse_math=False)
    ax.set(xlabel="largest mass on", ylabel="class", title="Classes and focal sets")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax

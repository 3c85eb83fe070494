"""Pairs of objects as images and bars: distances, relations, bootstrap estimates.

References: Denoeux (2021), NN-EVCLUS, figure 17 (images of distance matrices); Denoeux, slides
"Belief functions and clustering" (2017), "Relational representation"; Denoeux, Calibrated
model-based evidential clustering using bootstrapping, figures 4 and 8 (histograms of pairs).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray
from scipy import spatial

from evdist.metrics import pairwise_belief, pairwise_plausibility
from evdist.partition import CredalPartition
from evdist.plot.style import INK, legend_below, new_axes, plain_frame
from evdist.sketch.palette import MOST_NAMED, cluster_colour, named_clusters

#: Objects along each side of an image: more could not be told apart on paper.
MOST_OBJECTS = 1_000
#: Clusters named along an axis at most: more names would lie on each other.
MOST_NAMES = 20
#: Letters of all names side by side under an image.
MOST_LETTERS = 24


def distance_matrix(
    X: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    metric: str = "euclidean",
    ax: Axes | None = None,
) -> Axes:
    """The dissimilarities of all pairs as an image, objects of a cluster side by side.

    Parameters
    ----------
    X : (n, d) array, or (n, n) dissimilarities with ``metric="precomputed"``
        Of more than 1,000 objects, evenly spaced ones are shown.
    labels : (n,) integers, optional
        Clusters or classes: objects are sorted by them, and lines drawn between. Of more than 25
        the 24 largest are shown.
    metric : str
        One of :func:`scipy.spatial.distance.pdist`, or "precomputed".
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist import plot
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot.distance_matrix(X, y)
    """
    values = np.asarray(X, dtype=float)
    if values.ndim != 2 or (metric == "precomputed" and values.shape[0] != values.shape[1]):
        raise ValueError(
            f"X must be (n, d), or (n, n) with metric='precomputed', got shape {values.shape}."
        )
    rows, groups = _order(len(values), labels)
    if metric == "precomputed":
        D = values[np.ix_(rows, rows)]
    else:
        D = spatial.distance.squareform(spatial.distance.pdist(values[rows], metric))
    ax = _image(D, groups, ax, "dissimilarity", None)
    ax.set_title(f"Dissimilarities{_left_out(labels)}")
    return ax


def relation_matrix(
    partition: CredalPartition,
    *,
    what: Literal["belief", "plausibility"] = "plausibility",
    labels: ArrayLike | None = None,
    max_objects: int = MOST_OBJECTS,
    ax: Axes | None = None,
) -> Axes:
    """How surely (belief) or possibly (plausibility) two objects are in one cluster, as an image.

    Parameters
    ----------
    partition : CredalPartition of n objects
        Of more than ``max_objects``, evenly spaced ones are shown.
    what : {"belief", "plausibility"}, default="plausibility"
        Which degree is drawn.
    labels : (n,) integers, optional
        The order of the objects; by default that of the partition's own labels. Of more than 25
        clusters the 24 largest are shown.
    max_objects : int
        Objects shown at most.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    found = {"belief": pairwise_belief, "plausibility": pairwise_plausibility}.get(what)
    if found is None:
        raise ValueError(f'what must be "belief" or "plausibility", got {what!r}.')
    own = np.asarray(partition.labels()) if labels is None else labels
    rows, groups = _order(partition.n_objects, own, max_objects)
    some = partition[rows]
    R = spatial.distance.squareform(np.asarray(found(some), dtype=float), checks=False)
    # An object and itself: nothing is asked of the pair, and the image has no hole.
    np.fill_diagonal(R, 1.0)
    ax = _image(R, groups, ax, f"{what} of being together", (0.0, 1.0))
    ax.set_title(f"Relation of pairs{_left_out(own)}")
    return ax


def _order(
    n: int, labels: ArrayLike | None, most: int = MOST_OBJECTS
) -> tuple[NDArray[np.intp], NDArray[Any] | None]:
    """The objects to show, those of a group side by side, and their groups."""
    if labels is None:
        order, groups = np.arange(n), None
    else:
        groups = np.asarray(labels)
        if groups.shape != (n,):
            raise ValueError(f"labels must be one for each of the {n} objects, got {groups.shape}.")
        _, number, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        order = np.argsort(number, kind="stable")
        order = order[np.isin(number[order], named_clusters(sizes))]
    if len(order) > most:
        order = order[np.linspace(0, len(order) - 1, most).round().astype(np.intp)]
    return order, None if groups is None else groups[order]


def _left_out(labels: ArrayLike | None) -> str:
    """For a title: which groups are shown, where not all are."""
    groups = 0 if labels is None else len(np.unique(np.asarray(labels)))
    return f", {MOST_NAMED - 1} largest of {groups:,}" if groups > MOST_NAMED else ""


def _image(
    M: NDArray[np.float64],
    groups: NDArray[Any] | None,
    ax: Axes | None,
    label: str,
    limits: tuple[float, float] | None,
) -> Axes:
    ax = new_axes(ax, 5.0, 4.2)
    low, high = limits or (0.0, float(M.max()) or 1.0)
    shown = ax.imshow(
        M, cmap="Blues" if limits else "Blues_r", vmin=low, vmax=high, interpolation="nearest",
        gid="matrix",
    )  # fmt: skip
    ax.figure.colorbar(shown, ax=ax, shrink=0.85).set_label(label)
    if groups is not None:
        names, first = np.unique(groups, return_index=True)
        edges = np.append(first, len(groups))
        for edge in first[1:]:
            ax.axhline(edge - 0.5, color="#CC3311", lw=0.8)
            ax.axvline(edge - 0.5, color="#CC3311", lw=0.8)
        middle = (edges[:-1] + edges[1:] - 1) / 2
        few = slice(None, None, -(-len(names) // MOST_NAMES))  # all, every second, ...
        texts = [str(name) for name in names[few]]
        upright = 90 if sum(map(len, texts)) > MOST_LETTERS else 0
        ax.set_xticks(middle[few], texts, rotation=upright, parse_math=False)
        ax.set_yticks(middle[few], texts, parse_math=False)
        ax.tick_params(length=0)
    ax.set(xlabel="object" if groups is None else "objects by cluster")
    return ax


def pair_histogram(
    estimates: ArrayLike,
    *,
    interval: Sequence[float] | None = None,
    bel_pl: Sequence[float] | None = None,
    truth: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Bootstrap estimates that the objects of one pair are together, and what is made of them.

    Parameters
    ----------
    estimates : (B,) array in [0, 1]
        One for each replicate.
    interval : (lower, upper), optional
        The percentile interval, broken lines.
    bel_pl : (belief, plausibility), optional
        What the masses give the pair, dotted lines.
    truth : float, optional
        The true probability, where a simulation knows it.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> from evdist import plot
    >>> ax = plot.pair_histogram([0.7, 0.8, 0.8, 0.9], interval=(0.7, 0.9))
    """
    values = np.asarray(estimates, dtype=float)
    if values.ndim != 1 or not len(values) or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(
            f"estimates must be numbers from 0 to 1, one for each replicate, got {values.shape}."
        )
    ax = new_axes(ax)
    ax.hist(values, bins=40, range=(0.0, 1.0), color=cluster_colour(5), gid="estimates")
    lines = (("interval", interval, INK, "--"), ("Bel and Pl", bel_pl, cluster_colour(1), ":"))
    for name, ends, colour, dashes in lines:
        for side, end in enumerate(ends if ends is not None else ()):
            label = name if side == 0 else None
            ax.axvline(end, color=colour, ls=dashes, lw=1.8, label=label, gid=f"{name}-{side}")
    if truth is not None:
        ax.axvline(truth, color="#CC3311", lw=1.8, label="truth", gid="truth")
    ax.set(xlim=(-0.01, 1.01), xlabel="probability of being together", ylabel="replicates")
    ax.set_title(f"{len(values):,} estimates for one pair")
    if ax.get_legend_handles_labels()[0]:
        legend_below(ax, 3)
    plain_frame(ax, grid="y")
    return ax

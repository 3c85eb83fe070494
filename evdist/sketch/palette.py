"""Colours and markers of clusters, and which clusters and objects are shown where they are many.

Eight colours that people with any common colour blindness tell apart (after Okabe and Ito, their
yellow and light blue darkened for white paper, and Tol's wine and sand), times seven markers: as
8 and 7 have no common divisor, the first 56 clusters all look different.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

COLOURS = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # green
    "#CC79A7",  # pink
    "#E69F00",  # orange
    "#56B4E9",  # sky
    "#882255",  # wine
    "#8C8C3C",  # olive
)
#: The same, lighter, for dark pages.
DARK = (
    "#5AAEEA",
    "#FF8A4D",
    "#35C79B",
    "#EAA6CE",
    "#F5B93C",
    "#9ADAFB",
    "#D4568C",
    "#B9BA62",
)
#: No circle: in these figures a circle is an outlier.
MARKERS = ("s", "^", "D", "v", "P", "X", "p")
#: With more clusters than this a figure names the largest and shows the others together.
MOST_NAMED = 25


def cluster_colour(k: int) -> str:
    """Colour of cluster ``k`` (from 0) in every figure, as ``#rrggbb``.

    Parameters
    ----------
    k : int
        The cluster.

    Examples
    --------
    >>> from evdist import plot
    >>> plot.cluster_colour(0)
    '#0072B2'
    """
    return COLOURS[k % len(COLOURS)]


def cluster_marker(k: int) -> str:
    """Marker of cluster ``k`` (from 0) in every figure.

    Parameters
    ----------
    k : int
        The cluster.

    Examples
    --------
    >>> from evdist import plot
    >>> plot.cluster_marker(0)
    's'
    """
    return MARKERS[k % len(MARKERS)]


def named_clusters(sizes: ArrayLike, most: int = MOST_NAMED - 1) -> NDArray[np.intp]:
    """The clusters that a figure tells apart: all of them, or the largest where they are many."""
    found = np.asarray(sizes)
    if len(found) <= MOST_NAMED:
        return np.arange(len(found))
    return np.argsort(-found, kind="stable")[:most]


def some_rows(n: int, at_most: int, keep: NDArray[np.intp], seed: int = 0) -> NDArray[np.intp]:
    """Sorted rows to draw out of ``n``: all, or about ``at_most`` at random, ``keep`` always.

    The seed is fixed, so that a figure drawn twice is the same figure.
    """
    if n <= at_most:
        return np.arange(n)
    drawn = np.random.default_rng(seed).choice(n, size=at_most, replace=False)
    return np.union1d(drawn, keep)

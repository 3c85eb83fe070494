"""What a report says beyond the summary of a partition: tables and sentences, without any HTML.

Symbols
-------
n, c, f   objects, clusters, focal sets
N*        nonspecificity of an object divided by log2 c, in [0, 1]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evdist.partition import CredalPartition, Summary
from evdist.plot.bars import uncertainty

__all__ = ["Facts", "collect", "duration", "in_words", "plain"]

#: Rows of the table of uncertain objects, masses named in each, rows of the table of focal sets.
MOST_UNCERTAIN = 20
MOST_MASSES = 5
MOST_FOCAL_SETS = 15
#: Masses below this are not worth a word.
LEAST_MASS = 0.005


@dataclass(frozen=True)
class ClusterRow:
    """One cluster: its number from 1, sizes and mean nonspecificity of its labelled objects."""

    number: int
    labelled: int
    sure: int
    possible: int
    nonspecificity: float


@dataclass(frozen=True)
class UncertainRow:
    """One object: its row from 0, cluster from 1, nonspecificity, and largest masses in words."""

    row: int
    cluster: int
    nonspecificity: float
    masses: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """All that the text and the tables of a report need to know about a partition."""

    summary: Summary
    clusters: tuple[ClusterRow, ...]
    focal: tuple[tuple[str, float], ...]
    uncertain: tuple[UncertainRow, ...]


def collect(partition: CredalPartition) -> Facts:
    """Look at a partition block by block; keeps O(n) numbers, never O(n f)."""
    if partition.n_objects == 0:
        raise ValueError("A report needs at least one object, got an empty partition.")
    summary = partition.summary()
    labels = np.asarray(partition.labels())
    unions, empty = uncertainty(partition)
    unsure = unions + empty
    sizes = summary.sizes
    total = np.bincount(labels, weights=unsure, minlength=partition.n_clusters)
    mean = total / np.maximum(sizes.labels, 1)
    clusters = tuple(
        ClusterRow(k + 1, int(labelled), int(sure), int(possible), float(mean[k]))
        for k, (labelled, sure, possible) in enumerate(
            zip(sizes.labels, sizes.lower, sizes.upper, strict=True)
        )
    )
    chosen = np.sort(np.argsort(-summary.mean_mass, kind="stable")[:MOST_FOCAL_SETS])
    names = partition.focal_sets.names
    return Facts(
        summary=summary,
        clusters=clusters,
        focal=tuple((names[q], float(summary.mean_mass[q])) for q in chosen),
        uncertain=_uncertain_rows(partition, labels, unsure),
    )


def _uncertain_rows(
    partition: CredalPartition, labels: NDArray, unsure: NDArray[np.float64]
) -> tuple[UncertainRow, ...]:
    """The most uncertain objects first; of two alike, the one with the lower row number."""
    rows = np.argsort(-unsure, kind="stable")[:MOST_UNCERTAIN]
    names = partition.focal_sets.names
    table = []
    for row in rows[unsure[rows] >= LEAST_MASS]:
        m = np.asarray(partition.mass[int(row) : int(row) + 1])[0]
        order = np.argsort(-m, kind="stable")[:MOST_MASSES]
        masses = tuple(f"{names[q]} {m[q]:.2f}" for q in order if m[q] >= LEAST_MASS)
        table.append(UncertainRow(int(row), int(labels[row]) + 1, float(unsure[row]), masses))
    return tuple(table)


def in_words(summary: Summary) -> str:
    """The summary as two or three sentences."""
    n, sizes = summary.n_objects, summary.sizes.labels
    words = [
        f"{_count(n, 'object')} in {_count(summary.n_clusters, 'cluster')}. "
        f"Sure members of one cluster: {_share(summary.n_sure, n)}; between clusters: "
        f"{_share(summary.n_between, n)}; outliers, which fit no cluster: "
        f"{_share(summary.n_outliers, n)}."
    ]
    if summary.n_clusters > 1:
        words.append(
            f"By most plausible cluster, number {int(np.argmax(sizes)) + 1} is the largest with "
            f"{_count(int(sizes.max()), 'object')} and number {int(np.argmin(sizes)) + 1} the "
            f"smallest with {int(sizes.min()):,}."
        )
    words.append(
        f"The nonspecificity N* is {summary.nonspecificity:.3f}, on a scale from 0 (no object "
        "has mass on several clusters or on none) to 1 (nothing is known)."
    )
    return " ".join(words)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _share(part: int, whole: int) -> str:
    if part == 0:
        return "none"
    if part == whole:
        return "all"
    return f"{part:,} ({100 * part / whole:.1f} %)"


def duration(seconds: float) -> str:
    """A time a person can read: ``0.42 s``, ``12.3 s``, ``3 min 20 s``, ``2 h 05 min``."""
    if seconds < 1:
        return f"{seconds:.2g} s"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def plain(value: object) -> str:
    """A parameter or score as text: floats with four significant digits, None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)

"""What a report says beyond the summary of a partition: tables and sentences, without any HTML.

Symbols
-------
n, c, f   objects, clusters, focal sets
N*        nonspecificity of an object divided by log2 c, in [0, 1]
doubt     one less the plausibility margin of an object, in [0, 1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.partition import CredalPartition, Decisions, Summary, decisions, sparse_views, views
from evdist.partition.rows import gather_rows
from evdist.partition.sparse import SparseMasses

#: Rows of the table of uncertain objects, masses named in each, rows of the table of focal sets.
MOST_UNCERTAIN = 20
MOST_MASSES = 5
MOST_FOCAL_SETS = 15
#: Masses below this are not worth a word.
LEAST_MASS = 0.005


@dataclass(frozen=True)
class ClusterRow:
    """One cluster: its number, sizes, and the mean nonspecificity of its objects.

    Its objects are those labelled with it that are no outliers; outliers have a row of their own,
    whose number is None.
    """

    number: int | None
    labelled: int
    sure: int | None
    possible: int | None
    nonspecificity: float

    @property
    def name(self) -> str:
        return "outliers" if self.number is None else str(self.number)


@dataclass(frozen=True)
class UncertainRow:
    """One object: its id (or row), the decision and open clusters, margin, largest masses."""

    row: int
    id: str
    decision: str
    margin: float
    masses: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """All that the text and the tables of a report need to know about a partition."""

    summary: Summary
    answer: Decisions
    clusters: tuple[ClusterRow, ...]
    focal: tuple[tuple[str, float], ...]
    uncertain: tuple[UncertainRow, ...]


def collect(partition: CredalPartition, summary: Summary | None = None) -> Facts:
    """Look at a partition block by block; keeps a few numbers of each, and what is decided.

    ``summary`` is that of the partition, where it is known already.
    """
    if partition.n_objects == 0:
        raise ValueError("A report needs at least one object, got an empty partition.")
    summary = partition.summary() if summary is None else summary
    answer = partition.decide(summary.level)
    looks = _looks(partition)
    many = np.sum([look.many for look in looks], axis=0)
    mean = np.sum([look.vague for look in looks], axis=0) / np.maximum(many, 1)
    clusters = [
        ClusterRow(k, int(many[k]), int(sure), int(possible), float(mean[k]))
        for k, (sure, possible) in enumerate(zip(*answer.members(), strict=True))
    ]
    if many[-1]:
        clusters.append(ClusterRow(None, int(many[-1]), None, None, float(mean[-1])))
    chosen = np.sort(np.argsort(-summary.mean_mass, kind="stable")[:MOST_FOCAL_SETS])
    names = partition.focal_sets.names
    return Facts(
        summary=summary,
        answer=answer,
        clusters=tuple(clusters),
        focal=tuple((names[q], float(summary.mean_mass[q])) for q in chosen),
        uncertain=_uncertain_rows(looks, partition, summary.level),
    )


def _looks(partition: CredalPartition) -> list[_Look]:
    mass, focal = partition.mass, partition.focal_sets
    if isinstance(mass, SparseMasses) and sparse_views.has_list_views(focal):
        block = partial(_look, focal=focal, labels=sparse_views.labels,
                        loss=sparse_views.specificity_loss, margin=sparse_views.margin)  # fmt: skip
        return gather_rows(block, mass.rows, block_width=mass.shape[1])
    block = partial(_look, focal=focal, labels=views.labels, loss=views.specificity_loss,
                    margin=decisions.margin)  # fmt: skip
    return gather_rows(block, mass)


class _Look(NamedTuple):
    """What a block of objects gives: sums by cluster, and its most uncertain objects."""

    many: NDArray[np.int64]  # (c + 1,) objects of each cluster, then outliers
    vague: NDArray[np.float64]  # (c + 1,) sum of their nonspecificities
    rows: NDArray[np.intp]
    doubt: NDArray[np.float64]
    mass: NDArray[Any]  # or lists of clusters


def _look(
    m: NDArray[Any],
    first: int,
    focal: FocalSets,
    labels: Callable[..., Any],
    loss: Callable[..., Any],
    margin: Callable[..., Any],
) -> _Look:
    """Of a block of masses or lists, by the functions for these."""
    if labels is views.labels:
        m = np.ascontiguousarray(m, dtype=np.float64)
    c = focal.n_clusters
    group = labels(m, focal, "plausibility", outlier=c)
    many = np.bincount(group, minlength=c + 1)
    vague = np.bincount(group, weights=loss(m, focal), minlength=c + 1).astype(np.float64)
    doubt = 1.0 - margin(m, focal)
    most = _largest(doubt, MOST_UNCERTAIN)
    return _Look(many, vague, first + most, doubt[most], m[most])


def _largest(values: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Where the largest values are, the largest first; of two alike, the first."""
    if len(values) <= count:
        return np.argsort(-values, kind="stable")
    some = np.flatnonzero(values >= np.partition(values, -count)[-count])  # no need to sort all
    return some[np.argsort(-values[some], kind="stable")[:count]]


def _uncertain_rows(
    looks: Sequence[_Look], partition: CredalPartition, level: float
) -> tuple[UncertainRow, ...]:
    """The most uncertain objects first; of two alike, the one with the lower row number."""
    focal, ids = partition.focal_sets, partition.ids
    rows, doubt, mass = (np.concatenate([look[part] for look in looks]) for part in range(2, 5))
    most = np.lexsort((rows, -doubt))[:MOST_UNCERTAIN]
    rows, doubt, mass = rows[most], doubt[most], mass[most]
    if isinstance(partition.mass, SparseMasses) and sparse_views.has_list_views(focal):
        mass = SparseMasses(mass, focal.n_clusters).dense().astype(np.float64)
    decided = decisions.decide(mass, focal, level)
    still = decisions.named_sets(decided[:, 1:].astype(bool))
    table = []
    for r in range(len(rows)):
        if doubt[r] >= LEAST_MASS:
            order = np.argsort(-mass[r], kind="stable")[:MOST_MASSES]
            named = (
                f"{focal.names[q]} {mass[r, q]:.2f}" for q in order if mass[r, q] >= LEAST_MASS
            )
            word = decisions.DECISIONS[decided[r, 0]]
            said = word if word == "outlier" else f"{word} {still[r]}"
            name = str(rows[r] if ids is None else ids[rows[r]])
            margin = 1.0 - float(doubt[r])
            table.append(UncertainRow(int(rows[r]), name, said, margin, tuple(named)))
    return tuple(table)


def in_words(facts: Facts) -> str:
    """The summary as two or three sentences."""
    summary = facts.summary
    n = summary.n_objects
    sizes = np.array([row.labelled for row in facts.clusters if row.number is not None])
    words = [
        f"{_count(n, 'object')} in {_count(summary.n_clusters, 'cluster')}. "
        f"Sure members of one cluster{_at(summary)}: {_share(summary.n_sure, n)}; "
        f"between clusters: {_share(summary.n_between, n)}; outliers, which fit no cluster: "
        f"{_share(summary.n_outliers, n)}."
    ]
    if summary.n_clusters > 1:
        words.append(
            f"Without outliers, cluster {int(np.argmax(sizes))} is the largest with "
            f"{_count(int(sizes.max()), 'object')} and cluster {int(np.argmin(sizes))} the "
            f"smallest with {int(sizes.min()):,}."
        )
    words.append(
        f"The nonspecificity N* is {summary.nonspecificity:.3f}, on a scale from 0 (no object "
        "has mass on several clusters or on none) to 1 (nothing is known)."
    )
    return " ".join(words)


def _at(summary: Summary) -> str:
    if isinstance(summary.level, decisions.Level):
        low, high = summary.level.bounds
        return f" at level {low:.2f} to {high:.2f}, by pair of clusters"
    if summary.level < 1.0:
        return f" at level {summary.level:.2f}"
    return " (too many objects are undecided to be sure of any)" if summary.n_clusters > 1 else ""


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

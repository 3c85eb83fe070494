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
from evdist.partition.describe import ClusterCard
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

    `in_none` is the part of it that is mass on the empty set. Its objects are those labelled with
    it that are no outliers; outliers have a row of their own, whose number is None.
    """

    number: int | None
    labelled: int
    sure: int | None
    possible: int | None
    nonspecificity: float
    in_none: float

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
    # With one cluster nothing can be unspecific: log2 1 = 0.
    part = 1.0 if summary.n_clusters > 1 else 0.0
    none = part * np.sum([look.empty for look in looks], axis=0) / np.maximum(many, 1)
    clusters = [
        ClusterRow(k, int(many[k]), int(sure), int(possible), float(mean[k]), float(none[k]))
        for k, (sure, possible) in enumerate(zip(*answer.members(), strict=True))
    ]
    if many[-1]:
        clusters.append(
            ClusterRow(None, int(many[-1]), None, None, float(mean[-1]), float(none[-1]))
        )
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
    empty: NDArray[np.float64]  # (c + 1,) sum of their masses on the empty set
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
    empty = np.bincount(group, weights=m[:, 0], minlength=c + 1).astype(np.float64)
    doubt = 1.0 - margin(m, focal)
    most = _largest(doubt, MOST_UNCERTAIN)
    return _Look(many, vague, empty, first + most, doubt[most], m[most])


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
    rows, doubt, mass = (np.concatenate([look[part] for look in looks]) for part in range(3, 6))
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


def in_words(facts: Facts, cards: Sequence[ClusterCard] = ()) -> list[str]:
    """The answer in three sentences; cards add what the clusters are."""
    summary = facts.summary
    n, c = summary.n_objects, summary.n_clusters
    kinds = (
        (summary.n_sure, "surely in one of them", "surely in it"),
        (summary.n_between, "between several", "between several"),
        (summary.n_outliers, "far from all (outliers)", "far from it (outliers)"),
    )
    said = [f"{_share(part, n)} {one if c == 1 else many}" for part, many, one in kinds if part]
    words = [f"{_count(n, 'object')} in {_count(c, 'cluster')}: {', '.join(said)}."]
    if c > 1:
        sizes = np.array([row.labelled for row in facts.clusters if row.number is not None])
        high, low = int(np.argmax(sizes)), int(np.argmin(sizes))
        words.append(
            f"The largest is cluster {high} with {_count(int(sizes[high]), 'object')}"
            f"{_headline(cards, high)}, the smallest cluster {low} with {int(sizes[low]):,}"
            f"{_headline(cards, low)}."
        )
        words.append(_nearest(facts, cards))
    return words


def _headline(cards: Sequence[ClusterCard], k: int) -> str:
    return f" ({cards[k].headline})" if cards and cards[k].headline else ""


def _nearest(facts: Facts, cards: Sequence[ClusterCard]) -> str:
    """Which two clusters are hardest to tell apart."""
    summary = facts.summary
    if summary.level == 1.0:
        return "Too many objects are undecided to call any of them sure."
    if not summary.n_between:
        return "No object lies between two clusters."
    pairs = [(t.objects, card.cluster, t.cluster) for card in cards for t in card.touches]
    if not pairs:
        return f"{_count(summary.n_between, 'object')} may belong to several clusters."
    many, a, b = max(pairs, key=lambda pair: (pair[0], -pair[1], -pair[2]))
    lie = "object lies" if many == 1 else "objects lie"
    return f"Hardest to tell apart are clusters {a} and {b}: {many:,} {lie} between them."


def level_in_words(summary: Summary) -> str:
    """What the answer calls sure."""
    if isinstance(summary.level, decisions.Level):
        low, high = summary.level.bounds
        return f"at level {low:.2f} to {high:.2f}, by pair of clusters"
    return f"at level {summary.level:.2f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _share(part: int, whole: int) -> str:
    if part == whole:
        return "all"
    percent = 100 * part / whole
    return f"{part:,} ({percent:.1f} %)" if percent >= 0.1 else f"{part:,} (under 0.1 %)"


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

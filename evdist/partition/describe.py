"""What each cluster is: its size, what sets it apart in original units, typical and border members.

All objects are counted; attributes and words are looked at for at most `ROWS` of them, evenly
spaced, and of every cluster at least `FEW` where it has so many. The members that a cluster is
described by are its sure ones; where hardly any are, all objects labelled with it, and a note says
so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evdist.partition.columns import (
    Column,
    Columns,
    frame_of,
    joined,
    read_columns,
    rows_of,
    texts_of,
)
from evdist.partition.decisions import Decisions, coded_sets
from evdist.partition.telling import (
    LEAST,
    Attribute,
    Level,
    Measured,
    alike,
    by_chance,
    measure,
    told,
)
from evdist.partition.words import telling_words

#: Objects whose attributes are looked at, at most about; of a cluster at least.
ROWS, FEW = 100_000, 50
#: Attributes told of a cluster, and in its headline; words of a headline.
ATTRIBUTES, HEADLINE, WORDS = 6, 3, 5
#: Members named as typical, and on the border; clusters named as touching.
MEMBERS, TOUCHING = 3, 5
#: Sure members that speak for a cluster: so many, and this share of the objects labelled with it.
SURE, SURE_SHARE = 5, 0.1
#: Columns without names that are worth looking at: more are pixels or coordinates of a model.
UNNAMED = 30
#: Clusters that `str()` shows.
SHOWN = 25


@dataclass(frozen=True)
class Touching:
    """A cluster that objects lie between this one and it, and how many."""

    cluster: int
    objects: int


@dataclass(frozen=True)
class Border:
    """An object for which a cluster stays open, among others: its id and the open clusters."""

    id: Any
    open: tuple[int, ...]


@dataclass(frozen=True)
class ClusterCard:
    """One cluster (numbered from 0) in words and numbers; ``print`` it.

    Attributes
    ----------
    cluster : int
    labelled, sure, possible : int
        Objects labelled with it that are no outliers, surely in it, and for which it stays open.
    headline : str
        What sets it apart, in words; empty where nothing is known of the objects.
    words : tuple of str
        The words that tell its texts from the others', where texts were given.
    attributes : tuple of Attribute
        The attributes that tell it from the rest, the most telling first, in original units.
    typical : tuple of ids
        Members that are as sure as any, with the usual values.
    border : tuple of Border
        The least decided objects for which it stays open.
    touches : tuple of Touching
        Clusters by the number of objects between it and them.
    note : str
        What to know before reading the rest; mostly empty.
    """

    cluster: int
    labelled: int
    sure: int
    possible: int
    headline: str
    words: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    typical: tuple[Any, ...]
    border: tuple[Border, ...]
    touches: tuple[Touching, ...]
    note: str = ""

    @property
    def size(self) -> str:
        """How many objects belong to it, surely and possibly."""
        if self.sure == self.possible == self.labelled:
            return f"{self.sure:,} objects, all sure"
        return f"{self.labelled:,} objects, {self.sure:,} sure, {self.possible:,} possible"

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What is known beside the headline, as names and texts."""
        found = [("words", ", ".join(self.words))] if self.words else []
        found += [(one.name, one.line) for one in self.attributes]
        if self.typical:
            found.append(("typical", ", ".join(map(str, self.typical))))
        if self.border:
            said = (
                f"{one.id} (also {', '.join(f'{{{k}}}' for k in one.open if k != self.cluster)})"
                for one in self.border
            )
            found.append(("on the border", ", ".join(said)))
        if self.touches:
            said = (f"{{{one.cluster}}} ({one.objects:,} between)" for one in self.touches)
            found.append(("touches", ", ".join(said)))
        return found + ([("note", self.note)] if self.note else [])

    def __str__(self) -> str:
        head = f"{{{self.cluster}}}  {self.size}" + (f": {self.headline}" if self.headline else "")
        wide = max((len(name) for name, _ in self.rows), default=0)
        return "\n".join([head, *(f"     {name:<{wide}}  {said}" for name, said in self.rows)])

    __repr__ = __str__


@dataclass(frozen=True)
class Description:
    """What :meth:`CredalPartition.describe` says: a card for each cluster; ``print`` it.

    Attributes
    ----------
    n_objects, n_sure, n_between, n_outliers : int
    level : float
        Of the decision what is sure; see :meth:`CredalPartition.decide`.
    clusters : tuple of ClusterCard
        By number; the description itself is a sequence of them.
    notes : tuple of str
        Columns that were not looked at, and the like.
    """

    n_objects: int
    n_sure: int
    n_between: int
    n_outliers: int
    level: float
    clusters: tuple[ClusterCard, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, cluster: int) -> ClusterCard:
        return self.clusters[cluster]

    def __len__(self) -> int:
        return len(self.clusters)

    def __iter__(self) -> Iterator[ClusterCard]:
        return iter(self.clusters)

    @property
    def title(self) -> str:
        many = f"{len(self)} cluster" + ("" if len(self) == 1 else "s")
        return (
            f"{self.n_objects:,} objects in {many}: {self.n_sure:,} sure, {self.n_between:,} "
            f"between clusters, {self.n_outliers:,} outliers"
        )

    def __str__(self) -> str:
        cards = [str(card) for card in self.clusters[:SHOWN]]
        if len(self) > SHOWN:
            cards.append(f"... and {len(self) - SHOWN} more clusters")
        return "\n\n".join([self.title, *cards, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self.title)}</p>"]
        for card in self.clusters[:SHOWN]:
            rows = "".join(
                f"<tr><th>{escape(name)}</th><td>{escape(said)}</td></tr>"
                for name, said in card.rows
            )
            head = f"{{{card.cluster}}} {card.size}: {card.headline}"
            parts.append(f"<h4>{escape(head)}</h4><table>{rows}</table>")
        return "".join([*parts, *(f"<p>{escape(note)}</p>" for note in self.notes)])

    def to_json(self) -> dict[str, Any]:
        """Everything as values that JSON can hold; see :meth:`of_json`."""
        return _plain(asdict(self))

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> Description:
        """What :meth:`to_json` gave."""
        cards = []
        for one in values["clusters"]:
            attributes = []
            for a in one["attributes"]:
                levels = tuple(Level(**level) for level in a["levels"])
                attributes.append(Attribute(**{**a, "levels": levels}))
            border = tuple(Border(b["id"], tuple(b["open"])) for b in one["border"])
            cards.append(
                ClusterCard(**{
                    **one, "attributes": tuple(attributes), "words": tuple(one["words"]),
                    "typical": tuple(one["typical"]), "border": border,
                    "touches": tuple(Touching(**t) for t in one["touches"]),
                })
            )  # fmt: skip
        return cls(**{**values, "clusters": tuple(cards), "notes": tuple(values["notes"])})

    def to_frame(self) -> pd.DataFrame:
        """One row per cluster: sizes, headline, words, and typical members."""
        return pd.DataFrame(
            {
                "sure": [card.sure for card in self],
                "possible": [card.possible for card in self],
                "headline": [card.headline for card in self],
                "words": [", ".join(card.words) for card in self],
                "typical": [", ".join(map(str, card.typical)) for card in self],
            },
            index=pd.RangeIndex(len(self), name="cluster"),
        )


def describe(
    partition: Any, X: Any = None, *, text: Any = None, level: float | Decisions | None = None
) -> Description:
    """See :meth:`CredalPartition.describe`."""
    n, c = partition.n_objects, partition.n_clusters
    answer = level if isinstance(level, Decisions) else partition.decide(level)
    codes, label = np.asarray(answer.codes), np.asarray(partition.labels("pignistic"))
    group = np.where(codes == 2, -1, label)
    sure, possible = answer.members()
    labelled = np.bincount(group[group >= 0], minlength=c)
    enough = sure >= np.maximum(SURE, SURE_SHARE * labelled)
    speaks = np.where((codes == 0) | ~enough[label], group, -1)
    rows = _rows(speaks, group, c)
    found, words, notes = _known(X, text, n, c, rows, group, speaks)
    margin = np.asarray(answer.margin)
    cards = []
    between = np.flatnonzero(codes == 1)
    still = answer.open[between]
    together = _together(still, c)
    for k in range(c):
        inside, outside = speaks[rows] == k, (group[rows] != k) & (group[rows] >= 0)
        attributes = _attributes(found, k, inside, outside)
        chance = by_chance(int(inside.sum()), int(outside.sum()), len(found))
        headline = _headline(found, attributes, c, chance)
        if words:
            headline = ", ".join(words[k][:WORDS])
        note = ""
        if labelled[k] == 0:
            note, headline = "no object is labelled with it", headline if words else ""
        elif not enough[k]:
            some = "none is sure" if not sure[k] else f"few are sure ({sure[k]:,})"
            note = f"{some}: described by all {labelled[k]:,} labelled with it"
        cards.append(
            ClusterCard(
                k, int(labelled[k]), int(sure[k]), int(possible[k]), headline,
                words[k] if words else (),
                tuple(one for one, _ in attributes),
                _typical(partition, rows, inside, margin, [column for _, column in attributes]),
                _border(partition, between, still, margin, k),
                together[k], note,
            )
        )  # fmt: skip
    many = np.bincount(codes, minlength=3).tolist()
    return Description(n, many[0], many[1], many[2], answer.level, tuple(cards), notes)


def _rows(speaks: NDArray[Any], group: NDArray[Any], c: int) -> NDArray[np.int64]:
    """Evenly spaced rows, and of every cluster some; all where they are few."""
    n = len(group)
    if n <= ROWS:
        return np.arange(n)
    parts = [np.linspace(0, n - 1, ROWS).astype(np.int64)]
    order = np.argsort(speaks, kind="stable")
    edges = np.searchsorted(speaks[order], np.arange(c + 1))
    for k in range(c):
        mine = order[edges[k] : edges[k + 1]]
        if len(mine):
            parts.append(mine[np.linspace(0, len(mine) - 1, min(FEW, len(mine))).astype(np.int64)])
    return np.unique(np.concatenate(parts))


def _known(
    X: Any, text: Any, n: int, c: int, rows: NDArray[np.int64], group: NDArray[Any],
    speaks: NDArray[Any],
) -> tuple[list[Measured], list[tuple[str, ...]], tuple[str, ...]]:  # fmt: skip
    """The columns looked at for all clusters, words of each, and what to say of the rest."""
    X = None if X is None else frame_of(X)
    words: list[tuple[str, ...]] = []
    notes: list[str] = []
    if X is not None and (len(X.shape) != 2 or X.shape[0] != n):
        raise ValueError(f"X must have one row for each of the {n} objects, got {X.shape}.")
    if text is not None:
        X, texts = texts_of(X, text, n)
        words = telling_words(texts[rows], speaks[rows], c)
    if X is None:
        return [], words, ()
    unnamed = isinstance(getattr(X, "columns", None), pd.RangeIndex)
    named = getattr(X, "named", hasattr(X, "columns") and not unnamed)
    if not named and X.shape[1] > UNNAMED:
        notes.append(
            f"X has {X.shape[1]} columns without names, which say nothing to a reader: give a data "
            "frame of attributes, or texts."
        )
        return [], words, tuple(notes)
    columns: Columns = read_columns(rows_of(X, rows), named)
    if columns.left_out:
        notes.append(
            f"Not looked at, as they name objects or hold one value: {joined(columns.left_out)}."
        )
    inside, outside = speaks[rows], group[rows]
    return [measure(column, outside, inside, c) for column in columns.columns], words, tuple(notes)


def _attributes(
    found: list[Measured], k: int, inside: NDArray[np.bool_], outside: NDArray[np.bool_]
) -> list[tuple[Attribute, Column]]:
    """What the most telling columns say of cluster k; without others, of all columns in order."""
    if not found or not inside.any():
        return []
    order = np.argsort([-one.strength[k] for one in found], kind="stable").tolist()
    if outside.any():
        order = [j for j in order if found[j].strength[k] >= LEAST]
    return [(told(found[j], k, inside, outside), found[j].column) for j in order[:ATTRIBUTES]]


def _headline(
    found: list[Measured], attributes: list[tuple[Attribute, Column]], c: int, chance: float
) -> str:
    """The most telling attributes in words, none that says what one before it has said.

    Where even the first could be by `chance`, as of a cluster of five objects, the words say so.
    """
    if c == 1:
        return "all objects together"
    if not found:
        return ""
    firm = [pair for pair in attributes if pair[0].strength >= chance]
    doubtful = "" if firm or not attributes else "perhaps "
    attributes = firm or attributes[:1]
    kept: list[tuple[Attribute, Column]] = []
    for one, column in attributes:
        if not any(alike(column, other) for _, other in kept):
            kept.append((one, column))
    said = "; ".join(one.words for one, _ in kept[:HEADLINE])
    return doubtful + said if said else "no attribute sets it apart"


def _typical(
    partition: Any, rows: NDArray[np.int64], inside: NDArray[np.bool_], margin: NDArray[Any],
    columns: list[Column],
) -> tuple[Any, ...]:  # fmt: skip
    """Ids of members that are as sure as any, with the most usual values of these columns."""
    rows = rows[inside]
    if not len(rows):
        return ()
    sure = np.argsort(-margin[rows], kind="stable")[: max(10, len(rows) // 5)]
    away = np.zeros(len(sure))
    for column in columns:
        values = column.values[inside]
        if column.kind == "category":
            away += values[sure] != np.bincount(values[values >= 0], minlength=1).argmax()
            continue
        known = values[~np.isnan(values)]
        spread = float(np.subtract(*np.quantile(known, [0.75, 0.25]))) or 1.0
        away += np.nan_to_num(np.abs(values[sure] - np.median(known)) / spread, nan=1.0)
    best = sure[np.argsort(away, kind="stable")[:MEMBERS]]
    return tuple(_id(partition, int(row)) for row in rows[best])


def _border(
    partition: Any, between: NDArray[np.int64], still: Any, margin: NDArray[Any], k: int
) -> tuple[Border, ...]:
    """The objects with the least margin for which cluster k stays open beside others."""
    mine = np.flatnonzero(np.asarray(still[:, k]))
    mine = mine[np.argsort(margin[between[mine]], kind="stable")[:MEMBERS]]
    return tuple(
        Border(
            _id(partition, int(between[row])),
            tuple(np.flatnonzero(np.asarray(still[int(row)])).tolist()),
        )
        for row in mine
    )


def _together(still: Any, c: int) -> list[tuple[Touching, ...]]:
    """For each cluster the others that stay open with it, by the number of objects."""
    counts: dict[tuple[int, int], int] = {}
    names, codes = np.unique(_sets(still), return_counts=True)
    for name, many in zip(names.tolist(), codes.tolist(), strict=True):
        members = [int(k) for k in name.split(",")] if name else []
        if len(members) > 50:
            continue  # open to all: no border between two
        for a in members:
            for b in members:
                if a != b:
                    counts[a, b] = counts.get((a, b), 0) + many
    found: list[list[Touching]] = [[] for _ in range(c)]
    for (a, b), many in counts.items():
        found[a].append(Touching(b, many))
    return [tuple(sorted(one, key=lambda t: (-t.objects, t.cluster))[:TOUCHING]) for one in found]


def _sets(still: Any) -> NDArray[Any]:
    if not len(still):
        return np.empty(0, dtype=str)
    codes, names = coded_sets(still)
    return np.array([name.strip("{}∅") for name in names])[codes]


def _id(partition: Any, row: int) -> Any:
    value = row if partition.ids is None else partition.ids[row]
    return value.item() if isinstance(value, np.generic) else value


def _plain(value: Any) -> Any:
    """Tuples as lists, numbers of NumPy as those of Python, ids of other kinds as text."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)

"""Why an object is where it is: its clusters, unusual attributes, nearest sure members.

Reads the masses of one object, and with attributes those of a sample of the sure members of its
nearest cluster: at most `SAMPLE` of them, evenly spaced, whatever the number of objects.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets, singleton_belief
from evdist.partition import decisions, views
from evdist.partition.rows import as_table, is_dask, select_rows
from evdist.registry import load

#: Clusters, attributes and neighbours that an explanation names.
CLUSTERS, ATTRIBUTES, NEIGHBOURS = 4, 5, 5
#: Sure members that the attributes are compared with.
SAMPLE = 20_000
#: A robust z-score beyond this is strange: one in 460 of a Gaussian attribute.
STRANGE = 3.0
#: What eight of ten members lie between is typical.
TYPICAL = (0.1, 0.9)


@dataclass(frozen=True)
class ClusterEvidence:
    """One cluster (numbered from 0) and what speaks for it; `sets` holds the masses behind that."""

    cluster: int
    belief: float
    pignistic: float
    plausibility: float
    is_open: bool
    sets: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class StrangeAttribute:
    """An attribute, its value, what is typical of the members, and how strange the value is.

    Of a number: the median of the members, its robust z-score, and as `low` and `high` what eight
    of ten members lie between. Of a category: the most frequent level; `low` and `high` are empty,
    `share` is that of the members with the value of the object, and z the score of a Gaussian
    number as rare as that.
    """

    name: str
    value: float | str
    typical: float | str
    z: float
    low: str = ""
    high: str = ""
    share: float | None = None

    def __str__(self) -> str:
        strange = ", strange" if abs(self.z) > STRANGE else ""
        if isinstance(self.value, str) and self.share is not None:
            return (
                f"{self.name}: {self.value}, as of {100 * self.share:.0f} % of them; typically "
                f"{self.typical}{strange}"
            )
        value = self.value if isinstance(self.value, str) else f"{self.value:.4g}"
        near = self.low if self.low == self.high else f"{self.low} to {self.high}"
        return f"{self.name}: {value}, typically {near}{strange}"


@dataclass(frozen=True)
class Explanation:
    """What :meth:`CredalPartition.explain` says; ``print`` it.

    Attributes
    ----------
    row : int
    decision : "sure", "between" or "outlier"
    level, margin, empty : float
        Level of the decision, plausibility margin, mass on the empty set.
    clusters : tuple of ClusterEvidence
        The nearest first, by pignistic probability.
    attributes : tuple of StrangeAttribute
        The strangest first; empty without X.
    neighbours : tuple of (row, distance)
        The nearest sure members of the nearest cluster; empty without X.
    id : the object's id; its row where the partition has no ids
    neighbour_ids : tuple of the neighbours' ids, or rows
    """

    row: int
    decision: str
    level: float
    margin: float
    empty: float
    clusters: tuple[ClusterEvidence, ...]
    attributes: tuple[StrangeAttribute, ...] = ()
    neighbours: tuple[tuple[int, float], ...] = ()
    notes: tuple[str, ...] = field(default=())
    id: Any = None
    neighbour_ids: tuple[Any, ...] = ()

    def __str__(self) -> str:
        names = " and ".join(f"{{{e.cluster}}}" for e in self.clusters if e.is_open)
        said = {
            "sure": f"surely in cluster {names}",
            "between": f"between clusters {names}",
            "outlier": f"an outlier: mass {self.empty:.2f} on the empty set",
        }[self.decision]
        lines = [f"Object {self.id} is {said} (level {self.level:.2f}, margin {self.margin:.2f})."]
        lines.append("  cluster  belief  pignistic  plausibility  masses behind it")
        for e in self.clusters:
            behind = ", ".join(f"{name} {mass:.2f}" for name, mass in e.sets) or "none"
            lines.append(
                f"  {f'{{{e.cluster}}}':>7}  {e.belief:6.2f}  {e.pignistic:9.2f}  "
                f"{e.plausibility:12.2f}  {behind}"
            )
        lines += [f"  {note}" for note in self.notes]
        # Where the cluster has no sure members its likeliest ones stand in, as a note has said.
        who = "likeliest" if self.notes else "sure"
        if self.attributes:
            lines.append(f"  Attributes against the {who} members of {{{self.nearest}}}:")
            lines += [f"    {attribute}" for attribute in self.attributes]
        if self.neighbours:
            named = zip(self.neighbour_ids, self.neighbours, strict=True)
            near = ", ".join(f"{name} (at {away:.3g})" for name, (_, away) in named)
            lines.append(f"  Nearest {who} members: {near}")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def nearest(self) -> int:
        """The nearest cluster, numbered from 0."""
        return self.clusters[0].cluster


def explain(
    partition: Any, i: int, X: Any, level: float | decisions.Decisions | None
) -> Explanation:
    """See :meth:`CredalPartition.explain`."""
    n, focal = int(partition.mass.shape[0]), partition.focal_sets
    row = operator.index(i)
    if not -n <= row < n:
        raise IndexError(f"There are objects 0..{n - 1}, got {row}.")
    row %= n
    answer = None
    if isinstance(level, decisions.Decisions):
        answer, level = level, level.level
    q = partition.level() if level is None else decisions.check_level(level)
    m = np.asarray(partition[row].mass, dtype=np.float64)
    code = decisions.decide(m, focal, q)[0]
    clusters = _evidence(m, focal, code[1:].astype(bool))
    attributes: tuple[StrangeAttribute, ...] = ()
    neighbours: tuple[tuple[int, float], ...] = ()
    notes: tuple[str, ...] = ()
    if X is not None:
        X = X if is_dask(X) else load("evdist.partition.columns:frame_of")(X)
        if len(X.shape) != 2 or X.shape[0] != n:
            raise ValueError(f"X must have one row for each of the {n} objects, got {X.shape}.")
        rows, notes = _members(partition, clusters[0].cluster, row, q, answer)
        if len(rows) and _mixed(X):
            attributes, neighbours = _compare_mixed(X, row, rows)
        elif len(rows):
            names = [str(name) for name in getattr(X, "columns", ())]
            X = as_table(X)
            x = np.asarray(select_rows(X, slice(row, row + 1)), dtype=np.float64)[0]
            table = np.asarray(select_rows(X, rows), dtype=np.float64)
            attributes, neighbours = _compare(x, table, rows, names)
    return Explanation(
        row=row,
        decision=decisions.DECISIONS[code[0]],
        level=q,
        margin=float(decisions.margin(m, focal)[0]),
        empty=float(m[0, 0]),
        clusters=clusters,
        attributes=attributes,
        neighbours=neighbours,
        notes=notes,
        id=_id(partition, row),
        neighbour_ids=tuple(_id(partition, near) for near, _ in neighbours),
    )


def _id(partition: Any, row: int) -> Any:
    value = row if partition.ids is None else partition.ids[row]
    return value.item() if isinstance(value, np.generic) else value


def _evidence(
    m: NDArray[Any], focal: FocalSets, is_open: NDArray[np.bool_]
) -> tuple[ClusterEvidence, ...]:
    """The nearest clusters of one object, (1, f) masses, and all that are open."""
    bel, bet = singleton_belief(m, focal)[0], views.pignistic(m, focal)[0]
    pl = views.contour(m, focal)[0]
    order = np.lexsort((-pl, -bet))
    shown = [int(k) for place, k in enumerate(order) if place < CLUSTERS or is_open[k]]
    mass = m[0]
    return tuple(
        ClusterEvidence(
            cluster=k,
            belief=float(bel[k]),
            pignistic=float(bet[k]),
            plausibility=float(pl[k]),
            is_open=bool(is_open[k]),
            sets=tuple(
                (focal.names[s], float(mass[s]))
                for s in np.argsort(-mass, kind="stable")
                if focal.matrix[s, k] and mass[s] >= 0.005
            ),
        )
        for k in shown
    )


def _members(
    partition: Any, cluster: int, row: int, level: float, answer: decisions.Decisions | None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Other objects to compare with: sure members of the cluster, else those labelled with it."""
    if level < 1.0:
        answer = partition.decide(level) if answer is None else answer
        kept = np.asarray(answer.sure) & np.asarray(answer.open[:, cluster])
    else:
        kept = np.zeros(partition.n_objects, bool)
    kept[row] = False
    notes: tuple[str, ...] = ()
    if not kept.any():
        kept = np.asarray(partition.labels("pignistic")) == cluster
        kept[row] = False
        notes = (f"Cluster {{{cluster}}} has no sure members: its likeliest ones are shown.",)
    rows = np.flatnonzero(kept)
    if len(rows) > SAMPLE:
        rows = rows[np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64)]
    return rows, notes


def _mixed(X: Any) -> bool:
    """Whether a table has other columns than numbers, which are read one by one."""
    if hasattr(X, "frame"):
        return True
    kinds = getattr(X, "dtypes", None)
    return kinds is not None and any(getattr(kind, "kind", "O") not in "iuf" for kind in kinds)


def _compare(
    x: NDArray[Any], table: NDArray[Any], rows: NDArray[Any], names: list[str]
) -> tuple[tuple[StrangeAttribute, ...], tuple[tuple[int, float], ...]]:
    """z = (x - median) / (1.4826 median |table - median|) of each attribute; nearest rows."""
    number = load("evdist.partition.columns:number")
    median = np.nanmedian(table, axis=0)
    z = (x - median) / _spread(table, median)
    low, high = np.nanquantile(table, TYPICAL, axis=0)
    names = names or [f"attribute {j}" for j in range(len(x))]
    strange = tuple(
        StrangeAttribute(
            names[j], float(x[j]), float(median[j]), float(z[j]), number(low[j]), number(high[j])
        )
        for j in np.argsort(-np.abs(np.nan_to_num(z)), kind="stable")[:ATTRIBUTES]
    )
    away = np.linalg.norm(table - x, axis=1)
    near = np.argsort(away, kind="stable")[:NEIGHBOURS]
    return strange, tuple((int(rows[j]), float(away[j])) for j in near)


def _spread(table: NDArray[Any], median: NDArray[Any]) -> NDArray[np.float64]:
    spread = 1.4826 * np.nanmedian(np.abs(table - median), axis=0)
    # More than half the members may share one value: the standard deviation then, or one.
    spread = np.where(spread > 0, spread, np.nanstd(table, axis=0))
    return np.where(spread > 0, spread, 1.0)


def _compare_mixed(
    X: Any, row: int, rows: NDArray[Any]
) -> tuple[tuple[StrangeAttribute, ...], tuple[tuple[int, float], ...]]:
    """The same of columns in their own units. Distances are the mean over columns of |z_i - z_j|,
    of categories of whether they differ."""
    together = np.union1d(rows, [row])
    frame = load("evdist.partition.columns:rows_of")(X, together)
    columns = load("evdist.partition.columns:read_columns")(frame).columns
    me, others = np.searchsorted(together, row), np.searchsorted(together, rows)
    found = []
    away = np.zeros(len(rows))
    for column in columns:
        x, table = column.values[me], column.values[others]
        if column.kind == "category":
            away += table != x
            known = table[table >= 0]
            if not len(known) or x < 0:
                continue
            share = float(np.mean(known == x))
            rare = max(share, 0.5 / len(known))
            typical = column.said(np.bincount(known).argmax())
            z = float(np.sqrt(-2.0 * np.log(rare)))
            found.append(StrangeAttribute(column.name, column.said(x), typical, z, share=share))
            continue
        known = table[~np.isnan(table)]
        if not len(known) or np.isnan(x):
            away += 1.0
            continue
        median = np.median(known)
        z = float((x - median) / _spread(known[:, None], median)[0])
        low, high = (column.said(float(v)) for v in np.quantile(known, TYPICAL))
        value, typical = (
            (column.said(x), column.said(median))
            if column.kind == "date"
            else (float(x), float(median))
        )
        found.append(StrangeAttribute(column.name, value, typical, z, low, high))
        away += np.nan_to_num(np.abs(table - x) / _spread(known[:, None], median)[0], nan=1.0)
    away /= max(len(columns), 1)
    near = np.argsort(away, kind="stable")[:NEIGHBOURS]
    found.sort(key=lambda one: -abs(one.z))
    return tuple(found[:ATTRIBUTES]), tuple((int(rows[j]), float(away[j])) for j in near)

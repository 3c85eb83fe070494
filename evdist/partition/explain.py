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
from evdist.partition.rows import as_table, select_rows

#: Clusters, attributes and neighbours that an explanation names.
CLUSTERS, ATTRIBUTES, NEIGHBOURS = 4, 5, 5
#: Sure members that the attributes are compared with.
SAMPLE = 20_000
#: A robust z-score beyond this is strange: one in 460 of a Gaussian attribute.
STRANGE = 3.0


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
    """An attribute, its value, the median of the sure members, and the robust z-score of it."""

    name: str
    value: float
    typical: float
    z: float


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

    def __str__(self) -> str:
        names = " and ".join(f"{{{e.cluster}}}" for e in self.clusters if e.is_open)
        said = {
            "sure": f"surely in cluster {names}",
            "between": f"between clusters {names}",
            "outlier": f"an outlier: mass {self.empty:.2f} on the empty set",
        }[self.decision]
        lines = [f"Object {self.row} is {said} (level {self.level:.2f}, margin {self.margin:.2f})."]
        lines.append("  cluster  belief  pignistic  plausibility  masses behind it")
        for e in self.clusters:
            behind = ", ".join(f"{name} {mass:.2f}" for name, mass in e.sets) or "none"
            lines.append(
                f"  {f'{{{e.cluster}}}':>7}  {e.belief:6.2f}  {e.pignistic:9.2f}  "
                f"{e.plausibility:12.2f}  {behind}"
            )
        if self.attributes:
            lines.append(f"  Attributes against the sure members of {{{self.nearest}}}:")
            lines += [
                f"    {a.name}: {a.value:.4g}, typically {a.typical:.4g} (z = {a.z:+.1f}"
                f"{', strange' if abs(a.z) > STRANGE else ''})"
                for a in self.attributes
            ]
        if self.neighbours:
            near = ", ".join(f"{row} (at {away:.3g})" for row, away in self.neighbours)
            lines.append(f"  Nearest sure members: {near}")
        lines += [f"  {note}" for note in self.notes]
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
        names = [str(name) for name in getattr(X, "columns", ())]
        X = as_table(X)
        if len(X.shape) != 2 or X.shape[0] != n:
            raise ValueError(f"X must have one row for each of the {n} objects, got {X.shape}.")
        rows, notes = _members(partition, clusters[0].cluster, row, q, answer)
        if len(rows):
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
    )


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


def _compare(
    x: NDArray[Any], table: NDArray[Any], rows: NDArray[Any], names: list[str]
) -> tuple[tuple[StrangeAttribute, ...], tuple[tuple[int, float], ...]]:
    """z = (x - median) / (1.4826 median |table - median|) of each attribute; nearest rows."""
    median = np.median(table, axis=0)
    spread = 1.4826 * np.median(np.abs(table - median), axis=0)
    # More than half the members may share one value: the standard deviation then, or one.
    spread = np.where(spread > 0, spread, table.std(axis=0))
    z = (x - median) / np.where(spread > 0, spread, 1.0)
    names = names or [f"attribute {j}" for j in range(len(x))]
    strange = tuple(
        StrangeAttribute(names[j], float(x[j]), float(median[j]), float(z[j]))
        for j in np.argsort(-np.abs(z), kind="stable")[:ATTRIBUTES]
    )
    away = np.linalg.norm(table - x, axis=1)
    near = np.argsort(away, kind="stable")[:NEIGHBOURS]
    return strange, tuple((int(rows[j]), float(away[j])) for j in near)

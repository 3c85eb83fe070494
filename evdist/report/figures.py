"""The figures of a report beside its map: sizes, doubt, masses, relations, and how the fit went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.metrics import pairwise_plausibility
from evdist.partition import CredalPartition
from evdist.partition.merge import ClusterTree
from evdist.report.facts import ClusterRow, Facts
from evdist.report.svg import WIDTH, Bar, Drawing, Part, bars, curves, hue, shades
from evdist.sketch.pairs import PairDensity
from evdist.sketch.palette import named_clusters

#: Up to so many objects have their masses drawn one by one; of more the most uncertain ones.
PROFILED, MOST_PROFILED = 40, 20
#: Masses drawn of each of them; what is left is one piece.
PIECES = 12
#: Objects along each side of the image of relations.
RELATED = 100
#: Clusters whose tree is drawn.
MOST_BRANCHES = 60
#: Cells along each side of the image of pairs.
PAIR_CELLS = 64


@dataclass(frozen=True)
class Figure:
    """A drawing, what it is called, and how it is read."""

    title: str
    drawing: Drawing
    caption: str
    #: Ids along the sides of an image, for the script.
    ids: tuple[str, ...] = ()


def sizes(facts: Facts) -> Figure:
    """Sure members of each cluster, and those for which it stays open as well."""
    rows, rest = _told(facts.clusters)
    found = [_size(row) for row in rows if row.number is not None]
    if rest:
        found.append(Bar(f"{rest:,} smaller ones", []))
    n = facts.summary.n_outliers
    found.append(Bar("outliers", [Part(n, "outlier", title=f"{n:,} outliers")], f"{n:,}"))
    said = "; ".join(f"{bar.name}: {bar.end}" for bar in found if bar.end)
    return Figure(
        "Sizes",
        bars(found, f"Bar chart of the number of sure to possible members. {said}.", "objects"),
        "How many objects surely (full bars) and possibly (with the pale ends) belong to each "
        "cluster.",
    )


def _size(row: ClusterRow) -> Bar:
    k, sure, possible = row.number or 0, row.sure or 0, row.possible or 0
    end = f"{sure:,}" if sure == possible else f"{sure:,} to {possible:,}"
    parts = [
        Part(sure, "sure", hue(k), f"cluster {k}: {sure:,} sure members"),
        Part(possible - sure, "between", hue(k), f"cluster {k}: open for {possible:,} in all"),
    ]
    return Bar(f"cluster {k}", parts, end, k)


def nonspecificity(facts: Facts) -> Figure:
    """How unsure the objects of each cluster are, and in what."""
    rows, rest = _told(facts.clusters)
    found = []
    for row in rows:
        name = row.name if row.number is None else f"cluster {row.name}"
        parts = [
            Part(row.nonspecificity - row.in_none, "unions", title=f"{name}: between clusters"),
            Part(row.in_none, "empty", title=f"{name}: in no cluster"),
        ]
        found.append(Bar(name, parts, f"{row.nonspecificity:.3f}", row.number))
    said = "; ".join(f"{bar.name}: {bar.end}" for bar in found)
    more = f"; and {rest:,} smaller clusters" if rest else ""
    mean = float(facts.summary.nonspecificity)
    return Figure(
        "Nonspecificity",
        bars(found, f"Bar chart of the mean nonspecificity. {said}{more}.",
             "mean nonspecificity (0 sure, 1 nothing known)", line=mean),
        "How unsure the cluster of an object is on average: doubt between clusters (full), and "
        f"whether it is in any (pale). The dotted line is the mean of all objects, {mean:.3f}.",
    )  # fmt: skip


def _told(rows: tuple[ClusterRow, ...]) -> tuple[list[ClusterRow], int]:
    """The rows of the largest clusters and of outliers, and how many there are besides."""
    held = [row.possible or 0 for row in rows if row.number is not None]
    named = set(named_clusters(held).tolist())
    told = [row for row in rows if row.number is None or row.number in named]
    return told, len(held) - len(named)


def tree(partition: CredalPartition) -> Figure | None:
    """Which clusters become one when fewer are wanted."""
    c = partition.n_clusters
    if not 1 < c <= MOST_BRANCHES:
        return None
    found = partition.tree()
    left, right, top, foot = 40.0, WIDTH - 12.0, 10.0, 190.0
    order = _leaves(found)
    step = (right - left) / c
    place: dict[tuple[int, ...], tuple[float, float]] = {
        (k,): (left + step * (at + 0.5), foot) for at, k in enumerate(order)
    }
    said = "; ".join(f"{_set(m.left)} and {_set(m.right)}" for m in found.merges[:3])
    drawing = Drawing(f"Tree of the clusters. The first that become one: {said}.", foot + 44)
    for value in (0.0, 0.5, 1.0):
        y = foot - value * (foot - top)
        drawing.add("path", kind="grid", d=f"M{left} {y}H{right}")
        drawing.text(left - 6, y, f"{value:g}", "end", kind="axis")
    for merge, height in zip(found.merges, found.linkage[:, 2].tolist(), strict=True):
        (a, low), (b, high) = place[merge.left], place[merge.right]
        y = foot - height * (foot - top)
        told = f"{_set(merge.left)} and {_set(merge.right)}: confusion {merge.confusion:.3f}"
        path = f"M{a:.1f} {low:.1f}V{y:.1f}H{b:.1f}V{high:.1f}"
        drawing.add("path", title=told, kind="line", d=path)
        place[tuple(sorted(merge.left + merge.right))] = ((a + b) / 2, y)
    small = 10 if c > 25 else 12
    for at, k in enumerate(order):
        x, y = left + step * (at + 0.5), foot + 12 + (11 * (at % 2) if c > 25 else 0)
        drawing.text(x, y, str(k), style=f"font-size:{small}px", data_cluster=k)
    drawing.text((left + right) / 2, foot + 36, "cluster", kind="axis")
    return Figure(
        "Which clusters become one",
        drawing,
        "The lower two branches meet, the harder the clusters are to tell apart: the more objects "
        "lie between them for their sizes.",
    )


def _leaves(found: ClusterTree) -> list[int]:
    """The clusters from left to right, so that no two branches cross."""
    lines: dict[tuple[int, ...], list[int]] = {(k,): [k] for k in range(found.n_clusters)}
    for merge in found.merges:
        both = lines.pop(merge.left) + lines.pop(merge.right)
        lines[tuple(sorted(both))] = both
    return [k for line in lines.values() for k in line]


def _set(clusters: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, clusters)) + "}"


def masses(partition: CredalPartition, facts: Facts) -> Figure:
    """Masses object by object: of all, or of the most uncertain."""
    n = partition.n_objects
    rows, who = list(range(n)), f"all {n} objects"
    if n > PROFILED:
        rows = [one.row for one in facts.uncertain[:MOST_PROFILED]]
        who = f"the {len(rows)} most uncertain objects"
    if not rows:  # every object is sure: any of them will do
        rows, who = list(range(MOST_PROFILED)), f"the first {MOST_PROFILED} objects"
    m = np.asarray(partition[rows].mass, dtype=np.float64)
    focal = partition.focal_sets
    ids = partition.ids
    found = []
    for row, mass in zip(rows, m, strict=True):
        shown = np.sort(np.argsort(-mass, kind="stable")[:PIECES])
        parts = [_mass(focal.sets[q], focal.names[q], float(mass[q])) for q in shown.tolist()]
        parts.append(Part(1.0 - float(mass[shown].sum()), "", title="other sets"))
        found.append(Bar(str(row if ids is None else ids[row]), parts))
    return Figure(
        "Masses",
        bars(found, f"Bars of the masses on the sets of clusters of {who}.", "mass"),
        f"The masses of {who}: coloured on one cluster, grey on several, hollow on none.",
    )


def _mass(members: tuple[int, ...], name: str, mass: float) -> Part:
    title = f"{name}: {mass:.2f}"
    if len(members) == 1:
        return Part(mass, "sure", hue(members[0]), title)
    return Part(mass, "union" if members else "outlier", title=title)


def relations(partition: CredalPartition) -> Figure | None:
    """How possibly two objects are in one cluster, objects of a cluster side by side."""
    n = partition.n_objects
    if n < 2:
        return None
    label = np.asarray(partition.labels())
    order = np.argsort(label, kind="stable")
    order = order[np.isin(label[order], named_clusters(np.bincount(label)))]
    if len(order) > RELATED:
        order = order[np.linspace(0, len(order) - 1, RELATED).round().astype(np.intp)]
    k = len(order)
    R = np.eye(k)
    R[np.triu_indices(k, 1)] = pairwise_plausibility(partition[order])
    R = np.maximum(R, R.T)
    shown = f"{k:,} of {n:,} objects" if n > k else f"{n:,} objects"
    drawing = Drawing(
        f"Image of the plausibility that two objects are in one cluster, for {shown}.", WIDTH - 8
    )
    box = (34.0, 6.0, WIDTH - 44.0, WIDTH - 44.0)
    drawing.box = " ".join(f"{one:g}" for one in box[:3])
    shades(drawing, R, box)
    _clusters_along(drawing, label[order], box)
    ids = order if partition.ids is None else partition.ids[order]
    return Figure(
        "Who belongs together",
        drawing,
        "How possible it is that two objects belong together. Dark squares on the diagonal are "
        "clusters; dark fields beside it are clusters that are hard to tell apart. Point at it to "
        "see which objects.",
        tuple(str(one) for one in ids.tolist()),
    )


def _clusters_along(
    drawing: Drawing, label: NDArray[Any], box: tuple[float, float, float, float]
) -> None:
    """A colour and the number of each cluster along the left and lower side of an image."""
    left, top, width, _ = box
    cell = width / len(label)
    names, first = np.unique(label, return_index=True)
    ends = np.append(first, len(label))
    for k, a, b in zip(names.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        size, middle = (b - a) * cell, (a + b) / 2 * cell
        foot = top + width + 2
        drawing.add("rect", kind="sure", style=hue(k), x=left - 8, y=top + a * cell, width=6.0,
                    height=size)  # fmt: skip
        drawing.add("rect", kind="sure", style=hue(k), x=left + a * cell, y=foot, width=size,
                    height=6.0)  # fmt: skip
        if size > 12:
            drawing.text(left - 12, top + middle, str(k), "end", kind="axis")
            drawing.text(left + middle, foot + 16, str(k), kind="axis")


def convergence(history: ArrayLike | Mapping[str, ArrayLike]) -> Figure:
    """The objective after each iteration."""
    given = history if isinstance(history, Mapping) else {"objective": history}
    named = [(str(name), np.asarray(values, dtype=float)) for name, values in given.items()]
    for name, values in named:
        if not values.size or not np.isfinite(values).all():
            raise ValueError(
                f"history must hold finite values, at least one, got {values}: {name}."
            )
    label = "Curve of the objective after each iteration."
    return Figure(
        "Convergence", curves(named, label, "iteration", "objective"), "The objective after each "
        "iteration."
    )  # fmt: skip


def shepard(density: PairDensity) -> Figure:
    """Degrees of conflict against transformed dissimilarities."""
    used = int(np.flatnonzero(density.counts.any(axis=1))[-1]) + 1
    cells = density.counts.shape[0]
    high = max(1.0, used * density.top / cells)  # what the axis of dissimilarities ends at
    coarse = density.counts.reshape(cells, PAIR_CELLS, -1).sum(axis=2)
    shown = int(np.ceil(high / density.top * cells))
    shade = np.log1p(coarse[:shown]) / np.log1p(max(int(coarse.max()), 1))
    drawing = Drawing(
        "Density plot of degrees of conflict against transformed dissimilarities of "
        f"{density.n_pairs:,} pairs; stress {density.stress:.3g}.", 330.0,
    )  # fmt: skip
    left, top, width, height = 48.0, 8.0, WIDTH - 60.0, 280.0
    shades(drawing, shade.T[::-1], (left, top, width, height))
    foot = top + height
    drawing.add("path", kind="line dotted", d=f"M{left} {foot}L{left + width / high:.1f} {top}")
    for value in (0.0, 0.5, 1.0):
        drawing.text(left - 6, foot - value * height, f"{value:g}", "end", kind="axis")
        drawing.text(left + value / high * width, foot + 12, f"{value:g}", kind="axis")
    drawing.text(left + width / 2, foot + 30, "transformed dissimilarity δ", kind="axis")
    drawing.upright(top + height / 2, "degree of conflict κ")
    return Figure(
        "Does the fit match the distances?",
        drawing,
        f"Shepard diagram of {density.n_pairs:,} pairs, stress {density.stress:.3g}: a good fit "
        "lies along the dotted diagonal.",
    )

"""Sizes of clusters and a summary that a person can read, from one pass over the masses."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.partition import decisions, views

#: Clusters listed by ``str(summary)``; the rest are counted.
SHOWN_CLUSTERS = 25


@dataclass(frozen=True, eq=False)
class ClusterSizes:
    """How large each cluster is, counted in four ways; arrays of shape (c,).

    Attributes
    ----------
    expected : float array
        Sum of the pignistic probabilities; over all clusters n minus the mass of the empty set.
    labels, lower, upper : int array
        Objects with that label, surely in the cluster, possibly in it.
    """

    expected: NDArray[np.float64]
    labels: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Summary:
    """What a credal partition says, in a few numbers; ``str()`` makes a table of it.

    Attributes
    ----------
    n_objects, n_clusters, n_focal_sets : int
    n_sure, n_between, n_outliers : int
        Objects with one open cluster at the level, with several, with the largest mass on the
        empty set: those of ``partition.decide(level)``. They add up to ``n_objects``.
    level : float
        At which objects are sure; 1 where the clusters are not separated and none is.
    nonspecificity : float
        N* of k-CEVCLUS, eq. (23).
    mean_mass : (f,) array
        Mean mass of each focal set.
    sizes : ClusterSizes
    focal_sets : FocalSets
    """

    n_objects: int
    n_sure: int
    n_between: int
    n_outliers: int
    level: float
    nonspecificity: float
    mean_mass: NDArray[np.float64]
    sizes: ClusterSizes
    focal_sets: FocalSets

    @property
    def n_clusters(self) -> int:
        return self.focal_sets.n_clusters

    @property
    def n_focal_sets(self) -> int:
        return len(self.focal_sets)

    @property
    def _said_level(self) -> str:
        if isinstance(self.level, decisions.Level):
            low, high = self.level.bounds
            return f"  at level {low:.2f} to {high:.2f}, by pair of clusters"
        if self.level < 1.0:
            return f"  at level {self.level:.2f}"
        return "  too many objects undecided to be sure of any" if self.n_clusters > 1 else ""

    def _facts(self) -> list[tuple[str, str, str]]:
        def share(count: int) -> str:
            return f"{100 * count / max(self.n_objects, 1):.1f} %"

        return [
            ("sure members", f"{self.n_sure:,}", f"{share(self.n_sure)}{self._said_level}"),
            ("between clusters", f"{self.n_between:,}", share(self.n_between)),
            ("outliers", f"{self.n_outliers:,}", share(self.n_outliers)),
            ("nonspecificity N*", f"{self.nonspecificity:.3f}", "0 precise, 1 vacuous"),
        ]

    def _table(self) -> list[tuple[str, ...]]:
        """Header and one row per cluster, numbered from 0 like the names of the focal sets."""
        size = self.sizes
        rows = [
            (f"{{{k}}}", f"{e:,.1f}", f"{lab:,}", f"{lo:,}", f"{up:,}")
            for k, (e, lab, lo, up) in enumerate(
                zip(size.expected, size.labels, size.lower, size.upper, strict=True)
            )
        ]
        return [("cluster", "expected", "labels", "lower", "upper"), *rows]

    @property
    def _title(self) -> str:
        return (
            f"Credal partition of {self.n_objects:,} objects into {self.n_clusters} "
            f"{'cluster' if self.n_clusters == 1 else 'clusters'}, {self.n_focal_sets} focal sets"
        )

    def __str__(self) -> str:
        facts, table = self._facts(), self._table()[: SHOWN_CLUSTERS + 1]
        wide = max(len(count) for _, count, _ in facts)
        lines = [self._title, ""]
        lines += [f"  {name:<17}  {count:>{wide}}  {note}" for name, count, note in facts]
        widths = [max(len(row[j]) for row in table) for j in range(len(table[0]))]
        lines.append("")
        lines += [
            "  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
            for row in table
        ]
        if self.n_clusters > SHOWN_CLUSTERS:
            lines.append(f"  ... and {self.n_clusters - SHOWN_CLUSTERS} more clusters")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th>{escape(name)}</th><td>{count}</td><td>{escape(note)}</td></tr>"
            for name, count, note in self._facts()
        )
        header, *rows = self._table()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        return (
            f"<p>{escape(self._title)}</p><table>{facts}</table>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


# ---------------------------------------------------------------------- one block, and the sum
@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over the rows of a block; those of two blocks are added field by field."""

    objects: int
    mass: NDArray[np.float64]  # (f,)
    labels: NDArray[np.int64]  # (c,)
    lower: NDArray[np.int64]  # (c,)
    upper: NDArray[np.int64]  # (c,)
    decided: NDArray[np.int64]  # (2 + levels,) see decisions.counts
    #: By the two best clusters, where each pair may have a level of its own.
    pairs: NDArray[np.int64] | None = None


def tally(m: NDArray[Any], focal: FocalSets, rule: str, levels: tuple[float, ...]) -> Tally:
    """The sums of one (b, f) block; ``rule`` is that of the approximations."""
    c, f = focal.n_clusters, len(focal)
    if rule == "mass":  # the approximations are focal sets: counts of these tell them
        upper, many = focal.matrix, np.bincount(views.assigned_set(m, focal), minlength=f)
    else:
        upper, many = views.possible(m, focal, rule), np.ones(len(m), dtype=np.int64)
    return Tally(
        objects=len(m),
        mass=m.sum(axis=0, dtype=np.float64),
        labels=np.bincount(views.labels(m, focal, "plausibility"), minlength=c),
        lower=many @ views.certain(upper),
        upper=many @ upper,
        decided=decisions.counts(m, focal, levels),
        pairs=pair_counts(m, focal, levels),
    )


def pair_counts(
    m: NDArray[Any], focal: FocalSets, levels: tuple[float, ...]
) -> NDArray[np.int64] | None:
    """Those of a block, where the level is to be found and each pair may have its own."""
    if len(levels) == 1 or not decisions.is_local(focal.n_clusters):
        return None
    return decisions.pair_counts(m, focal, levels)


def add_tallies(tallies: list[Tally], focal: FocalSets, levels: tuple[float, ...]) -> Summary:
    """The summary of the whole partition; blocks are added in the order of their rows.

    ``levels`` are those of the tallies: one, or the choice of :func:`decisions.auto_level`.
    """
    c, f = focal.n_clusters, len(focal)
    counts = {
        name: sum((getattr(t, name) for t in tallies), np.zeros(width, dtype=np.int64))
        for name, width in (
            ("labels", c), ("lower", c), ("upper", c), ("decided", 2 + len(levels))
        )
    }  # fmt: skip
    n = sum(t.objects for t in tallies)
    judged, undecided, *sure = counts["decided"].tolist()
    level = levels[0] if len(levels) == 1 else decisions.auto_level(judged, undecided)
    by_pair = [t.pairs for t in tallies if t.pairs is not None]
    if by_pair:
        found = decisions.PairCounts.of(by_pair, c)
        level = found.level()
        n_sure = found.count_sure(level, levels)
    else:
        n_sure = sure[levels.index(level)]
    # Pignistic probability and nonspecificity are linear in the masses: so are their sums.
    mass = sum((t.mass for t in tallies), np.zeros(f))[None, :]
    return Summary(
        n_objects=n,
        n_sure=n_sure,
        n_between=judged - n_sure,
        n_outliers=n - judged,
        level=level,
        nonspecificity=float(views.specificity_loss(mass, focal)[0]) / max(n, 1),
        mean_mass=mass[0] / max(n, 1),
        sizes=ClusterSizes(
            expected=views.pignistic(mass, focal)[0],
            labels=counts["labels"],
            lower=counts["lower"],
            upper=counts["upper"],
        ),
        focal_sets=focal,
    )

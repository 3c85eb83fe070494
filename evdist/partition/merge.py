"""Which clusters are hard to tell apart, and what remains when they are made one.

A credal partition says of each object between which clusters its mass does not choose. Two clusters
that many such objects lie between may be two halves of one.

Symbols
-------
p      (n, c) pignistic probabilities, what is on the empty set left out
S_kl   sum_i p_ik p_il, how much doubt there is between clusters k and l
n_k    sum_i p_ik, the expected size of cluster k; N = sum_k n_k
T_kl   N S_kl / (n_k n_l), the confusion: 0 where no object is in doubt between k and l, 1 where
       objects are between them as often as if two bets on each were drawn at random

The pair with the largest T becomes one, again and again. For merged clusters probabilities add up,
p_i(kl) = p_ik + p_il, and with them S and n: the tree of c clusters needs the (c, c) matrix S
alone. (A merged partition shares the mass of a set equally among fewer clusters: its own tree may
differ in the upper steps where there is much mass on large sets.)

Divided by the smaller n, by sqrt(n_k n_l) or by the norms of p, the largest cluster swallows one
after another (benchmarks/merging.py).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.registry import load

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Merge:
    """One step: the clusters (numbered from 0) on both sides, and their confusion T."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    confusion: float


@dataclass(frozen=True)
class ClusterTree:
    """What :meth:`CredalPartition.tree` says: which clusters become one, step by step.

    Attributes
    ----------
    n_clusters : int
    merges : tuple of Merge
        c - 1 steps, the clusters that are hardest to tell apart first.
    """

    n_clusters: int
    merges: tuple[Merge, ...]

    def __len__(self) -> int:
        return len(self.merges)

    def __iter__(self) -> Iterator[Merge]:
        return iter(self.merges)

    def groups(self, k: int) -> Groups:
        """The clusters that are one when k remain, by their smallest numbers."""
        k = operator.index(k)
        if not 1 <= k <= self.n_clusters:
            raise ValueError(f"k must lie between 1 and {self.n_clusters}, got {k}.")
        left: set[tuple[int, ...]] = {(j,) for j in range(self.n_clusters)}
        for merge in self.merges[: self.n_clusters - k]:
            left -= {merge.left, merge.right}
            left.add(tuple(sorted(merge.left + merge.right)))
        return tuple(sorted(left))

    @property
    def linkage(self) -> Floats:
        """As SciPy's linkage matrices are, (c - 1, 4): heights are 1 / (1 + T), never falling."""
        number: dict[tuple[int, ...], int] = {(j,): j for j in range(self.n_clusters)}
        rows, height = [], 0.0
        for step, merge in enumerate(self.merges):
            height = max(height, 1.0 / (1.0 + merge.confusion))
            both = tuple(sorted(merge.left + merge.right))
            rows.append([number[merge.left], number[merge.right], height, len(both)])
            number[both] = self.n_clusters + step
        return np.array(rows, dtype=np.float64).reshape(-1, 4)

    def to_frame(self) -> pd.DataFrame:
        """One row per step: clusters that remain, what became one, confusion."""
        pandas = load("pandas")
        return pandas.DataFrame(
            {
                "left": [_name(merge.left) for merge in self],
                "right": [_name(merge.right) for merge in self],
                "confusion": [merge.confusion for merge in self],
            },
            index=pandas.Index(range(self.n_clusters - 1, 0, -1), name="clusters"),
        )

    def __str__(self) -> str:
        lines = ["clusters  confusion  what becomes one"]
        lines += [
            f"{self.n_clusters - 1 - step:>8}  {merge.confusion:9.3f}  "
            f"{_name(merge.left)} and {_name(merge.right)}"
            for step, merge in enumerate(self)
        ]
        return "\n".join(lines)

    __repr__ = __str__


def _name(clusters: Sequence[int]) -> str:
    return "{" + ",".join(map(str, clusters)) + "}"


def doubt_between(p: Floats, first: int = 0) -> tuple[Floats, Floats]:
    """S and n of a block of pignistic probabilities."""
    return p.T @ p, p.sum(axis=0)


def tree_of(S: Floats, n: Floats) -> ClusterTree:
    """Merge the most confused pair until one cluster is left; ties to the first pair."""
    c = len(n)
    S, n = S.astype(np.float64).copy(), n.astype(np.float64).copy()
    members: list[tuple[int, ...]] = [(k,) for k in range(c)]
    alive = np.ones(c, dtype=bool)
    total = n.sum()
    T = total * S / np.maximum(n[:, None] * n, 1e-300)
    np.fill_diagonal(T, -1.0)
    merges = []
    for _ in range(c - 1):
        k, other = (int(j) for j in np.unravel_index(T.argmax(), T.shape))
        k, other = min(k, other), max(k, other)
        merges.append(Merge(members[k], members[other], max(float(T[k, other]), 0.0)))
        members[k] = tuple(sorted(members[k] + members[other]))
        S[k] += S[other]
        S[:, k] += S[:, other]
        n[k] += n[other]
        alive[other] = False
        T[k] = total * S[k] / np.maximum(n[k] * n, 1e-300)
        T[k, ~alive] = T[k, k] = -1.0
        T[:, k] = T[k]
        T[other] = T[:, other] = -1.0
    return ClusterTree(c, tuple(merges))


def checked_groups(groups: Sequence[Sequence[int]], c: int) -> Groups:
    """Groups of clusters, each cluster in one; those that are not named stay alone."""
    found = [tuple(sorted({operator.index(k) for k in group})) for group in groups]
    named = [k for group in found for k in group]
    if len(set(named)) != len(named) or any(not 0 <= k < c for k in named) or () in found:
        raise ValueError(
            f"Each of the clusters 0..{c - 1} may stand in one group of at least one, got "
            f"{[list(group) for group in groups]}."
        )
    found += [(k,) for k in range(c) if k not in set(named)]
    return tuple(sorted(found))


def coarser(focal: FocalSets, groups: Groups) -> tuple[FocalSets, NDArray[np.int64]]:
    """The focal sets over the groups, and for each old one the place of its image."""
    onto = np.zeros((focal.n_clusters, len(groups)), dtype=bool)
    for j, group in enumerate(groups):
        onto[list(group), j] = True
    images = [tuple(np.flatnonzero(row).tolist()) for row in (focal.matrix @ onto)]
    kept = sorted({*images, ()}, key=lambda image: (len(image), image))
    found = FocalSets.of(kept, len(groups))
    return found, np.array([found.index(image) for image in images], dtype=np.int64)


def added(
    m: NDArray[Any], focal: FocalSets, to: NDArray[np.int64], sets: int
) -> NDArray[np.float64]:
    """Masses of a block, (b, f), added where their sets have one image: (b, sets)."""
    out = np.zeros((len(m), sets))
    for q, place in enumerate(to.tolist()):
        out[:, place] += m[:, q]
    return out

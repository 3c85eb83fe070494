"""Far from the core of a cluster, or an outlier: mass on the empty set against the neighbours.

A small d0 follows clusters of any shape, and pays with the empty set: an object conflicts with all
that are farther than d0 from it, so that it is "outside" as soon as most of its own cluster is. An
outlier is something else: it has no near neighbours. So where d0 was found by itself, mass on the
empty set is held against the distance r to the fifth neighbour. On a logarithmic scale, with Q3 the
third quartile of r and F the fence of Tukey's box plot,

    m'(empty) = m(empty) h(r),  h = (log r - Q3) / (F - Q3), at least 0 and at most 1,
    F = Q3 + max(1.5 (Q3 - Q1), log 1.25),

and the other sets get what is left in proportion: bets among clusters, labels and doubts stay what
they were. With a d0 that the user gives the masses are those of the papers, and a warning tells
where it makes outliers that no distance to neighbours sees.

Neighbours are looked for among some of the landmarks, so that new objects are judged as fitted ones
are, and the cost grows with the number of objects alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evdist.data.sources import CallableSource, Source
from evdist.kernels.grid import GRID

#: The neighbour whose distance is taken; of few objects an earlier one, one in so many.
NEIGHBOUR, ONE_IN = 5, 4
#: Objects that neighbours are looked for among: so many at most, fewer where all objects are so
#: many that comparing them takes long, but some of every cluster; of a function in Python fewer.
MOST, COMPARED, LEAST, PER_CLUSTER, MOST_CALLED = 1000, 10**9, 100, 20, 100
#: Objects with less mass on the empty set keep it, and are not looked at.
LOOKED_AT = 0.05
#: The least distance of the fence, and how many quartile ranges it is.
FENCE, LEAST_FENCE = 1.5, float(np.log(1.25))
#: A share of objects that are outliers by a d0 of the user's, and not by the fence, that is told.
TOLD = 0.25
#: Dissimilarities held at a time.
_AT_ONCE = 1 << 22

#: Dissimilarities of rows (b,) to the objects that neighbours are looked for among, (b, p).
Distances = Callable[[NDArray[Any]], NDArray[np.floating]]


class OutlierWarning(UserWarning):
    """A d0 that calls many objects outliers whose neighbours are near."""


@dataclass(frozen=True)
class Reach:
    """How far from its neighbours an object of these data is.

    Attributes
    ----------
    place : (p,) uint32
        The objects that neighbours are looked for among, by their numbers among the landmarks.
    usual, fence : float
        Q3 and F, logarithms.
    """

    place: NDArray[np.uint32]
    usual: float
    fence: float

    @classmethod
    def of(cls, source: Source, n: int, n_clusters: int) -> Self | None:
        """From landmarks of n objects; None where they are too few to tell."""
        most = min(MOST, max(COMPARED // n, LEAST, PER_CLUSTER * n_clusters))
        if isinstance(source, CallableSource):
            most = MOST_CALLED
        place = np.unique(np.linspace(0, source.n - 1, min(most, source.n)).astype(np.uint32))
        found = cls(place, 0.0, 0.0)
        if found._neighbour < 1:
            return None
        own = np.ones(len(place), bool)
        far = found.distance(
            np.arange(len(place)), own,
            lambda rows: source.distances(place[rows], np.tile(place, (len(rows), 1))),
        )  # fmt: skip
        if not (far > 0).any():
            return None
        low, usual = np.quantile(np.log(np.maximum(far, far[far > 0].min())), [0.25, 0.75])
        fence = usual + max(FENCE * (usual - low), LEAST_FENCE)
        return cls(place, float(usual), float(fence))

    @property
    def _neighbour(self) -> int:
        return min(NEIGHBOUR, (len(self.place) - 1) // ONE_IN)

    def distance(
        self, rows: NDArray[Any], own: NDArray[np.bool_], distances: Distances
    ) -> NDArray[np.float64]:
        """Distance to the fifth neighbour; `own` says which rows are among the objects looked at,
        and so their own nearest."""
        far, K = np.empty(len(rows)), self._neighbour
        step = max(1, _AT_ONCE // len(self.place))
        for lo in range(0, len(rows), step):
            some = slice(lo, lo + step)
            D = np.partition(np.asarray(distances(rows[some])), (K - 1, K), axis=1)
            far[some] = np.where(own[some], D[:, K], D[:, K - 1])
        return far

    def kept(self, far: NDArray[np.float64]) -> NDArray[np.float64]:
        """h, the share of the mass on the empty set that an object keeps."""
        with np.errstate(divide="ignore"):
            share = (np.log(far) - self.usual) / (self.fence - self.usual)
        return np.clip(share, 0.0, 1.0)

    def give_back(
        self, mass: NDArray[Any], own: NDArray[np.bool_], distances: Distances, largest: int
    ) -> None:
        """m'(empty) instead of m(empty), in place; `largest` is the column of the largest set.

        That gets what was on the empty set of an object which has no other mass.
        """
        rows = np.flatnonzero(mass[:, 0] > LOOKED_AT)
        if not len(rows):
            return
        keep = self.kept(self.distance(rows, own[rows], distances))
        rows, keep = rows[keep < 1.0], keep[keep < 1.0]
        found = mass[rows].astype(np.float64)
        empty, rest = found[:, 0], found[:, 1:].sum(axis=1)
        left = np.floor(empty * keep * GRID) / GRID
        found[rest == 0.0, largest] = 1.0
        rest = np.where(rest == 0.0, 1.0, rest)
        found *= ((1.0 - left) / rest)[:, None]
        found = np.floor(found * GRID) / GRID
        # What rounding has left over goes to the largest mass, so that a row sums to one exactly.
        most = 1 + found[:, 1:].argmax(axis=1)
        found[:, 0] = left
        found[np.arange(len(found)), most] += 1.0 - found.sum(axis=1)
        mass[rows] = found


def tell_outliers(outlier: NDArray[np.bool_], source: Source, n_clusters: int, d0: float) -> None:
    """Warn of a user's d0 at which many objects are outliers whose neighbours are near."""
    n = len(outlier)
    if outlier.mean() <= TOLD:
        return
    some = np.unique(np.linspace(0, n - 1, min(n, MOST)).astype(np.uint32))
    among = source.subset(some) if len(some) < n else source
    reach = Reach.of(among, len(some), n_clusters)
    if reach is None:
        return
    place = reach.place
    everyone = np.arange(len(place))
    far = reach.distance(
        everyone, np.ones(len(place), bool),
        lambda rows: among.distances(place[rows], np.tile(place, (len(rows), 1))),
    )  # fmt: skip
    near = np.log(np.maximum(far, np.finfo(float).tiny)) <= reach.fence
    share = float((outlier[some[place]] & near).mean())
    if share > TOLD:
        warnings.warn(
            f"{int(outlier.sum()):,} of {n:,} objects are outliers at d0 = {d0:.4g}, though "
            f"{share:.0%} of all are such whose neighbours are as near as others' are. A larger "
            'd0, such as "q0.9", or "auto" makes them members of clusters.',
            OutlierWarning,
            stacklevel=4,
        )

"""Objects with known masses, and others that are placed against them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets, contour
from evdist.data.sources import AttributeSource, Source
from evdist.evclus.reach import Reach
from evdist.kernels.looks import most_mass

#: Landmarks of a cluster that an object near to it meets, and how many clusters are near.
MEMBERS, NEAR_CLUSTERS = 16, 3
#: Dissimilarities to middles that are held at a time.
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Landmarks:
    """Objects with known masses, against which others are placed."""

    source: Source
    objects: NDArray[np.uint32]
    mass: NDArray[np.float32]
    focal_sets: FocalSets
    d0: float
    #: With many clusters: landmarks of each cluster, (clusters, members), the first in the middle.
    members: NDArray[np.uint32] | None = None
    #: Whether `mass` has encoded rows (`evdist.kernels.sparse_rows`). Their width does not tell:
    #: thirty clusters have as many focal sets as an encoded row has words.
    sparse: bool = False
    #: How far objects lie from their neighbours, where mass on the empty set is given back.
    reach: Reach | None = None

    def labels(self) -> NDArray[np.int64]:
        """The most plausible cluster of each."""
        if self.sparse:
            return most_mass(self.mass)[0]
        return contour(self.mass.astype(float), self.focal_sets).argmax(axis=1)

    def with_reach(self, n: int) -> Landmarks:
        """The same, knowing how far from its neighbours an object of all n is."""
        reach = Reach.of(self.source, n, self.focal_sets.n_clusters)
        return replace(self, reach=reach)

    def give_back(self, mass: NDArray[Any], source: Source) -> None:
        """Mass of the objects of `source`, the landmarks among them, back from the empty set."""
        if self.reach is None:
            return
        near = self.objects[self.reach.place]
        own = np.zeros(len(mass), bool)
        own[near] = True
        self.reach.give_back(
            mass, own,
            lambda rows: source.distances(rows.astype(np.uint32), np.tile(near, (len(rows), 1))),
            self._largest,
        )  # fmt: skip

    def give_back_new(
        self, mass: NDArray[Any], X: NDArray[Any], own: NDArray[np.bool_] | None = None
    ) -> None:
        """The same of objects that are described as the fitted ones were.

        `own` says which of them neighbours are looked for among; none of new ones.
        """
        if self.reach is None:
            return
        place, source = self.reach.place, self.source
        own = np.zeros(len(mass), bool) if own is None else own
        self.reach.give_back(
            mass, own, lambda rows: source.cross(X[rows], np.tile(place, (len(rows), 1))),
            self._largest,
        )  # fmt: skip

    @property
    def _largest(self) -> int:
        return int(self.focal_sets.cardinality.argmax())

    def with_members(self) -> Landmarks:
        """The same, knowing which of them belong to each cluster.

        The middle of a cluster is the one of MEMBERS random members that is nearest to the
        others; it stands first.
        """
        labels = self.labels()
        order = np.argsort(labels, kind="stable")
        found = []
        for mine in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            some = mine[np.linspace(0, len(mine) - 1, min(len(mine), MEMBERS)).astype(int)]
            some = some.astype(np.uint32)
            D = self.source.distances(some, np.tile(some, (len(some), 1)))
            middle = int(D.sum(axis=1).argmin())
            some = np.concatenate([some[middle:], some[:middle]])
            found.append(np.resize(some, MEMBERS))
        return replace(self, members=np.array(found))


@dataclass(frozen=True)
class Placing:
    """n objects, each of which gets the minimiser of its own program against k landmarks.

    Attributes
    ----------
    landmarks : Landmarks
    objects : Source or (n, ...) array
        The source that the landmarks are from, all of whose objects are placed, the landmarks
        where they are; or new objects, described as the fitted ones were.
    shifts : (k,) int64, increasing, below L
    spread : bool
        Object i meets landmarks i + shift (mod L): k streams through a table in random order.
        Without `spread` all objects meet landmarks `shift`, so that what an object gets does not
        depend on its place among the others.
    """

    landmarks: Landmarks
    objects: Any  # a Source, or rows
    shifts: NDArray[np.int64]
    spread: bool

    @property
    def n(self) -> int:
        return self.objects.shape[0] if self._is_new else self.objects.n

    @property
    def _is_new(self) -> bool:
        """Whether the objects are rows, dense or sparse, and not a source."""
        return hasattr(self.objects, "shape")

    @property
    def known(self) -> NDArray[np.int64]:
        """Which of the objects are landmarks and keep their masses."""
        return np.zeros(0, np.int64) if self._is_new else self.landmarks.objects.astype(np.int64)

    def chosen(self, lo: int, hi: int) -> NDArray[np.uint32]:
        """Landmarks that objects lo..hi-1 meet, (rows, k); with many clusters near ones too."""
        L = np.uint32(len(self.landmarks.mass))
        start = np.arange(lo, hi)[:, None] if self.spread else np.zeros((hi - lo, 1), np.int64)
        some = (start % L).astype(np.uint32) + self.shifts.astype(np.uint32)
        # Modulo L without a division: where some < L, some - L wraps around to a larger number.
        some = np.minimum(some, some - L)
        members = self.landmarks.members
        if members is None:
            return some
        near = members[self.near(lo, hi)].reshape(hi - lo, -1)
        return np.hstack([near, np.broadcast_to(some, (hi - lo, some.shape[1]))])

    def label(self, chosen: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The cluster whose middle is nearest to each object that meets landmarks `chosen`."""
        return self._labels[chosen[:, 0]]

    @cached_property
    def _labels(self) -> NDArray[np.int64]:
        return self.landmarks.labels()

    def near(self, lo: int, hi: int) -> NDArray[np.int64]:
        """Rows of `members` whose middles are nearest to objects lo..hi-1, the nearest first.

        (rows, NEAR_CLUSTERS), or as many as there are; of equally near ones the first.
        """
        assert self.landmarks.members is not None
        middles = self.landmarks.members[:, 0]
        near = np.empty((hi - lo, min(NEAR_CLUSTERS, len(middles))), np.int64)
        step = max(1, _AT_ONCE // len(middles))
        for first in range(lo, hi, step):
            last = min(first + step, hi)
            D = self.distances(first, last, np.tile(middles, (last - first, 1)))
            for column in near[first - lo : last - lo].T:
                column[:] = D.argmin(axis=1)
                D[np.arange(len(D)), column] = np.inf
        return near

    def distances(self, lo: int, hi: int, chosen: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Dissimilarities of objects lo..hi-1 to landmarks `chosen` (rows, k)."""
        if self._is_new:
            return self.landmarks.source.cross(self.objects[lo:hi], chosen)
        mine = np.arange(lo, hi, dtype=np.uint32)
        return self.objects.distances(mine, self.landmarks.objects[chosen])

    @property
    def attributes(self) -> NDArray[np.float32] | None:
        """The objects' rows, ready for the metric (n, d); None where there are no attributes."""
        source = self.landmarks.source
        if not isinstance(source, AttributeSource):
            return None
        if isinstance(self.objects, AttributeSource):
            table = self.objects.table
        else:
            table = source.metric.table(np.asarray(self.objects))
        return table[:, : source.metric.width]

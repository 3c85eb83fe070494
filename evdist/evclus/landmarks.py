"""Objects with known masses, and others that are placed against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource, Source

__all__ = ["Landmarks", "Placing"]


@dataclass(frozen=True)
class Landmarks:
    """Objects with known masses, against which others are placed."""

    source: Source
    objects: NDArray[np.uint32]
    mass: NDArray[np.float32]
    focal_sets: FocalSets
    d0: float


@dataclass(frozen=True)
class Placing:
    """n objects, each of which gets the minimiser of its own program against k landmarks.

    Attributes
    ----------
    landmarks : Landmarks
    objects : Source or (n, ...) array
        The source that the landmarks are from, all of whose objects are placed, the landmarks
        where they are; or new objects, described as the fitted ones were.
    shifts : (k,) int64, increasing
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
        """Landmarks that objects lo..hi-1 meet, (rows, k)."""
        start = np.arange(lo, hi)[:, None] if self.spread else np.zeros((hi - lo, 1), np.int64)
        return ((start + self.shifts) % len(self.landmarks.mass)).astype(np.uint32)

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
        return table[:, : len(source.metric.centre)]

"""What partitions take of a memory: known before any row is read."""

from __future__ import annotations

from dataclasses import dataclass

from evdist.evclus.partitions.graph import odd_offsets
from evdist.kernels.shuffle import Shuffle
from evdist.kernels.vector import padded_width

#: Rows whose dissimilarities one thread computes at a time.
BLOCK = 8192


@dataclass(frozen=True)
class Sizes:
    """Bytes of views, pairs and masses; see `evdist.evclus.partitions.graph` for a view.

    Attributes
    ----------
    d, k, width : attributes and partners of an object, numbers in its row of masses
    """

    shuffle: Shuffle
    d: int
    k: int
    width: int

    @property
    def rows(self) -> int:
        """Rows of the largest partition."""
        return self.shuffle.rows

    def view(self) -> int:
        """A view at work but for its pairs: masses, their table, and attributes.

        Masses are there twice for a moment, before the attributes are.
        """
        P = self.shuffle.count
        partners = {o % P for offset in odd_offsets(P) for o in (offset, -offset)}
        masses, table = 4 * self.width, 4 * padded_width(self.width)
        row = masses + table + max(masses, 4 * padded_width(self.d))
        return self.rows * (1 + len(partners)) * row

    def whole(self) -> int:
        """All partitions with their pairs and masses, and a view at work."""
        masses = self.shuffle.n * (4 * self.width + 8)
        return masses + self.shuffle.count * self.pairs(self.rows) + self.view()

    def pairs(self, rows: int) -> int:
        """The pairs of so many rows, and what is needed to make them."""
        return rows * self._row + 8 * BLOCK * self.k

    def rows_within(self, size: int) -> int:
        """How many rows' pairs fit into `size` bytes."""
        return max(size - self.pairs(0), 0) // self._row

    @property
    def _row(self) -> int:
        return 8 * self.k + 40

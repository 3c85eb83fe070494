"""What partitions take of a memory: known before any row is read."""

from __future__ import annotations

from dataclasses import dataclass

from evdist.evclus.partitions.graph import odd_offsets
from evdist.kernels.shuffle import Shuffle
from evdist.kernels.vector import padded_width

#: Rows whose dissimilarities all threads together compute at a time.
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
    #: Whether some partners are near.
    near: bool = False

    @property
    def rows(self) -> int:
        """Rows of the largest partition."""
        return self.shuffle.rows

    def view(self) -> int:
        """A view at work but for its pairs: masses, their table, and attributes.

        Masses are there twice for a moment, before the attributes are.
        """
        masses, table = 4 * self.width, 4 * padded_width(self.width)
        row = masses + table + max(masses, 4 * padded_width(self.d))
        row += 16 if self.near else 0  # the group of each row, and the order by group
        return self.view_rows * row

    @property
    def view_rows(self) -> int:
        """Rows of a partition and its partners."""
        P = self.shuffle.count
        partners = {o % P for offset in odd_offsets(P) for o in (offset, -offset)}
        return self.rows * (1 + len(partners))

    def placing(self) -> int:
        """A partition while its objects are placed: as stored, ready for the metric, and masses."""
        return self.rows * (8 * self.d + 2 * 4 * padded_width(self.d) + 2 * 4 * self.width)

    def whole(self, pairs: bool = True) -> int:
        """All partitions with their masses, a view at work, and `pairs` where they are kept."""
        masses = self.shuffle.n * (4 * self.width + 8)
        kept = self.shuffle.count * self.pairs(self.rows) if pairs else 0
        return masses + kept + self.view()

    def pairs(self, rows: int) -> int:
        """The pairs of so many rows, and what is needed to make them."""
        return rows * self._row + 8 * BLOCK * self.k

    def rows_within(self, size: int) -> int:
        """How many rows' pairs fit into `size` bytes."""
        return max(size - self.pairs(0), 0) // self._row

    @property
    def _row(self) -> int:
        return 8 * self.k + 40

"""Masses of many clusters as a table: rows are lists of clusters, blocks are made dense on demand.

What looks at a credal partition does so block by block, so that (n, f) numbers are never made at
once; what lists of clusters can say by themselves is read from them
(`evdist.partition.sparse_views`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.sparse_rows import WORDS, cluster_slots, decode, encode, mass_slots

_ROWS = 1 << 10


class SparseMasses:
    """A table (n, c + 2) of masses on the empty set, the singletons and Omega.

    Parameters
    ----------
    rows : (n, WORDS) float32, as `evdist.kernels.sparse_rows` lays them out
        In memory, or a zarr array: then they are read when they are needed.
    n_clusters : int
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, rows: Any, n_clusters: int):
        if rows.ndim != 2 or rows.shape[1] != WORDS:
            raise ValueError(f"Sparse rows must have {WORDS} words, got shape {rows.shape}.")
        self.rows = rows
        self.n_clusters = n_clusters

    @classmethod
    def of(cls, mass: Any) -> SparseMasses:
        """From masses (n, c + 2), or lists; of a row with more clusters than a list can name the
        largest are kept, see `evdist.kernels.sparse_rows.encode`."""
        if isinstance(mass, SparseMasses):
            return mass
        parts = [
            encode(np.asarray(mass[lo : lo + _ROWS], dtype=np.float32))
            for lo in range(0, max(len(mass), 1), _ROWS)
        ]
        return cls(np.concatenate(parts), mass.shape[1] - 2)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.rows.shape[0]), self.n_clusters + 2

    @property
    def oindex(self) -> SparseMasses:
        """Rows by number, as a zarr array gives them."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the lists."""
        return 4 * self.shape[0] * WORDS

    @property
    def stored(self) -> bool:
        """Whether the lists are read when they are needed."""
        return not isinstance(self.rows, np.ndarray)

    def in_memory(self) -> SparseMasses:
        """The same lists, read."""
        return self[:] if self.stored else self

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Rows as a sparse table (a slice, a mask, numbers), as masses where one is asked for."""
        if isinstance(key, tuple):
            rows, columns = key
            if isinstance(columns, slice) and columns == slice(None):
                return self[rows]
            return self[rows]._columns(columns) if _several(rows) else self[rows][columns]
        if not _several(key):
            row = range(len(self))[key]
            return self[row : row + 1].dense()[0]
        return SparseMasses(self._taken(key), self.n_clusters)

    def _columns(self, columns: Any) -> NDArray[np.float32]:
        """Some columns of all rows: one from the lists, several from a few dense rows at a time."""
        j = np.arange(self.shape[1])[columns]
        if j.ndim:
            parts = [self[lo : lo + _ROWS].dense()[:, j] for lo in range(0, len(self) or 1, _ROWS)]
            return np.concatenate(parts)
        T = np.asarray(self.rows[:])
        if j == 0 or j == self.n_clusters + 1:  # the empty set, and Omega
            return np.ascontiguousarray(T[:, min(int(j), 1)])
        here = cluster_slots(T) == j - 1
        return np.where(here, mass_slots(T), np.float32(0.0)).sum(axis=1, dtype=np.float32)

    def _taken(self, key: Any) -> NDArray[np.float32]:
        if not self.stored or (isinstance(key, slice) and (key.step is None or key.step > 0)):
            return np.asarray(self.rows[key])
        # zarr calls this orthogonal indexing, and knows whole numbers from 0 on.
        return np.asarray(self.rows.oindex[np.arange(len(self))[key], :])

    def dense(self) -> NDArray[np.float32]:
        """All masses, (n, c + 2)."""
        T = np.ascontiguousarray(self.rows[:])
        unknown = cluster_slots(T)[mass_slots(T) > 0]
        if unknown.max(initial=0) >= self.n_clusters:
            raise ValueError(
                f"A list names cluster {unknown.max()}; there are 0..{self.n_clusters - 1}. "
                "Restore the masses from a copy."
            )
        return decode(T, self.n_clusters)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = self.dense()
        return found if dtype is None else found.astype(dtype)


def _several(rows: Any) -> bool:
    return isinstance(rows, slice) or np.ndim(rows) > 0

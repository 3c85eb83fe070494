"""Masses of many clusters as a table: rows are lists of clusters, blocks are made dense on demand.

What looks at a credal partition does so block by block, so that (n, f) numbers are never made at
once; what a list of clusters can say by itself (labels, outliers) is read from the list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.sparse_rows import WORDS, decode, most_mass


class SparseMasses:
    """A table (n, c + 2) of masses on the empty set, the singletons and Omega.

    Parameters
    ----------
    rows : (n, WORDS) float32, as `evdist.kernels.sparse_rows` lays them out
    n_clusters : int
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, rows: NDArray[np.float32], n_clusters: int):
        if rows.ndim != 2 or rows.shape[1] != WORDS:
            raise ValueError(f"Sparse rows must have {WORDS} words, got shape {rows.shape}.")
        self.rows = rows
        self.n_clusters = n_clusters

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.n_clusters + 2

    @property
    def oindex(self) -> SparseMasses:
        """Rows by number, as a zarr array gives them."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes that all masses would take as an array."""
        return 4 * self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        """Rows as a sparse table (a slice, a mask, numbers), as masses where one is asked for."""
        if isinstance(key, tuple):
            rows, columns = key
            if isinstance(columns, slice) and columns == slice(None):
                return self[rows]
            return self[rows].dense()[:, columns] if _several(rows) else self[rows][columns]
        if not _several(key):
            return decode(self.rows[[key]], self.n_clusters)[0]
        return SparseMasses(self.rows[key], self.n_clusters)

    def dense(self) -> NDArray[np.float32]:
        """All masses, (n, c + 2)."""
        return decode(np.ascontiguousarray(self.rows), self.n_clusters)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = self.dense()
        return found if dtype is None else found.astype(dtype)

    def labels(self) -> NDArray[np.int64]:
        """The cluster of the largest mass, ties to the first; (n,).

        With the empty set, singletons and Omega it is also the most plausible one.
        """
        return most_mass(self.rows)[0]

    def outliers(self) -> NDArray[np.bool_]:
        """Whether no mass is larger than that on the empty set; (n,)."""
        largest = np.maximum(most_mass(self.rows)[1], self.rows[:, 1])
        return self.rows[:, 0] >= largest


def _several(rows: Any) -> bool:
    return isinstance(rows, slice) or np.ndim(rows) > 0

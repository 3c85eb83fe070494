"""Which clusters stay open for each object, as a table (n, c) of lists.

Nearly every object has one or two open clusters, whatever their number: so many numbers are kept,
and rows or columns of the table are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray


class OpenTable(NDArrayOperatorsMixin):
    """A table (n, c) of bool, read as an array is: rows, columns, ``np.asarray``, ``sum``, ``any``.

    Functions of NumPy and operators make an array of it first.

    Parameters
    ----------
    rest : (n,) bool
        Whether the clusters that are not listed are open, and those that are listed are not.
    count : (n,) int
        Clusters listed of each object.
    cluster : int array
        The listed clusters, row after row, ascending in each.
    n_clusters : int
    """

    dtype = np.dtype(bool)
    ndim = 2

    def __init__(
        self, rest: NDArray[np.bool_], count: NDArray[Any], cluster: NDArray[Any], n_clusters: int
    ):
        self._rest, self._cluster, self.n_clusters = rest, cluster, n_clusters
        self._first = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._rest), self.n_clusters

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of the lists."""
        return self._rest.nbytes + self._first.nbytes + self._cluster.nbytes

    def __len__(self) -> int:
        return len(self._rest)

    def __repr__(self) -> str:
        return f"OpenTable(shape={self.shape}, lists of open clusters; np.asarray makes an array)"

    def __getitem__(self, key: Any) -> Any:
        """As an array does it, with a table of lists for several rows and all columns."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            number = range(len(self))[rows]
            return np.asarray(self._some(slice(number, number + 1)))[0, columns]
        if isinstance(columns, slice) and columns == slice(None):
            return self._some(rows)
        if np.ndim(columns) == 0 and not isinstance(columns, slice):
            return self._column(range(self.n_clusters)[columns])[rows]
        return np.asarray(self._some(rows))[:, columns]

    def _column(self, cluster: int) -> NDArray[np.bool_]:
        found = self._rest.copy()
        place = np.flatnonzero(self._cluster == cluster)
        found[np.searchsorted(self._first, place, side="right") - 1] ^= True
        return found

    def _some(self, rows: Any) -> OpenTable:
        number = np.arange(len(self))[rows]
        first, count = self._first[number], np.diff(self._first)[number]
        # Places of the listed clusters: those of a row follow each other.
        step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        listed = self._cluster[np.repeat(first, count) + step]
        return OpenTable(self._rest[number], count, listed, self.n_clusters)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = np.repeat(self._rest[:, None], self.n_clusters, axis=1)
        row = np.repeat(np.arange(len(self)), np.diff(self._first))
        found[row, self._cluster] ^= True
        return found if dtype is None else found.astype(dtype)

    def __array_ufunc__(self, function: np.ufunc, method: str, *given: Any, **more: Any) -> Any:
        arrays = (np.asarray(a) if isinstance(a, OpenTable) else a for a in given)
        return getattr(function, method)(*arrays, **more)

    def astype(self, dtype: Any) -> NDArray[Any]:
        return np.asarray(self).astype(dtype)

    def any(self, axis: int | None = None) -> Any:
        """Whether an object has an open cluster (axis 1), a cluster an object (0), or any."""
        return self.sum(axis) > 0

    def sum(self, axis: int | None = None) -> Any:
        """Open clusters of each object (axis 1), objects of each cluster (0), or of all."""
        if axis in (1, -1):
            count = np.diff(self._first)
            return np.where(self._rest, self.n_clusters - count, count)
        if axis is None:
            return self.sum(axis=1).sum()
        row = np.repeat(self._rest, np.diff(self._first))
        listed = self._cluster
        more, fewer = (np.bincount(listed[row == r], minlength=self.n_clusters) for r in (0, 1))
        return self._rest.sum() + more - fewer

    def coded(self) -> tuple[NDArray[np.int32], list[str]]:
        """Numbers and names of the sets: see `evdist.partition.decisions.coded_sets`."""
        codes = np.empty(len(self), np.int32)
        # Nearly all sets are one cluster: these are numbered at once.
        single = ~self._rest & (np.diff(self._first) == 1)
        alone, codes[single] = np.unique(
            self._cluster[self._first[:-1][single]], return_inverse=True
        )
        names = [set_name([k]) for k in alone.tolist()]
        known: dict[tuple[bool, bytes], int] = {}
        for row in np.flatnonzero(~single).tolist():
            rest = bool(self._rest[row])
            listed = self._cluster[self._first[row] : self._first[row + 1]]
            key = (rest, listed.tobytes())
            if key not in known:
                known[key] = len(names)
                names.append(set_name(self._open(rest, listed)))
            codes[row] = known[key]
        return codes, names

    def _open(self, rest: bool, listed: NDArray[Any]) -> Sequence[int]:
        if not rest:
            return list(map(int, listed))
        return np.setdiff1d(np.arange(self.n_clusters), listed).tolist()


def set_name(clusters: Sequence[int]) -> str:
    return "{" + ",".join(map(str, clusters)) + "}" if clusters else "∅"

"""Sparse attributes, such as words of texts (TF-IDF): dissimilarities without a dense copy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from evdist.stores.fingerprints import fingerprint

#: Metrics that follow from inner products: all that is cheap of sparse rows.
SPARSE_METRICS = ("euclidean", "sqeuclidean", "cosine")
#: Pairs of rows multiplied at a time.
_PAIRS = 1 << 15

Objects = NDArray[np.uint32]


@dataclass(frozen=True)
class SparseSource:
    """Rows of a sparse matrix, (n, d) CSR, and a metric; a `Source`."""

    X: Any
    name: str

    @classmethod
    def of(cls, X: Any, metric: Any) -> SparseSource:
        if metric not in SPARSE_METRICS:
            raise ValueError(
                f"metric of a sparse X must be one of {', '.join(SPARSE_METRICS)}, got "
                f"{metric!r}. For others pass X.toarray()."
            )
        X = sp.csr_matrix(X, dtype=np.float64)
        X.sum_duplicates()
        source = cls(X, metric)
        if metric == "cosine" and not source._squares.all():
            row = int(np.argmin(source._squares != 0))
            raise ValueError(
                f"Row {row} of X is empty: a cosine needs a direction. Leave that row out."
            )
        return source

    @cached_property
    def _squares(self) -> NDArray[np.float64]:
        return _squares(self.X)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    def distances(self, mine: Objects, others: Objects) -> NDArray[np.float32]:
        return self._between(self.X[mine], self._squares[mine], others)

    def cross(self, new: Any, others: Objects) -> NDArray[np.float32]:
        rows = sp.csr_matrix(new, dtype=np.float64)
        return self._between(rows, _squares(rows), others)

    def _between(
        self, rows: Any, squares: NDArray[np.float64], others: Objects
    ) -> NDArray[np.float32]:
        """Of rows (r, d) to the objects `others` (r, k)."""
        r, k = others.shape
        product = np.empty(r * k)
        left, right = np.repeat(np.arange(r), k), others.ravel()
        for lo in range(0, r * k, _PAIRS):
            some = slice(lo, lo + _PAIRS)
            both = rows[left[some]].multiply(self.X[right[some]])
            product[some] = np.asarray(both.sum(axis=1)).ravel()
        a, b = squares[left], self._squares[right]
        if self.name == "cosine":
            length = np.sqrt(a * b)
            found = 1.0 - np.divide(product, length, out=np.zeros_like(product), where=length > 0)
        else:
            found = a + b - 2.0 * product
        found = np.maximum(found, 0.0)
        if self.name == "euclidean":
            found = np.sqrt(found)
        return found.reshape(r, k).astype(np.float32)

    def fingerprint(self) -> str:
        return fingerprint(self.name, list(self.X.shape), *self.arrays().values())

    def subset(self, objects: Objects) -> SparseSource:
        return SparseSource(self.X[objects], self.name)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a store keeps of it."""
        X = self.X
        return {
            "data": X.data,
            "index": X.indices.astype(np.int64),
            "first": X.indptr.astype(np.int64),
        }

    @classmethod
    def of_arrays(cls, arrays: Any, width: int, metric: str) -> SparseSource:
        shape = (len(arrays["first"]) - 1, width)
        return cls(sp.csr_matrix((arrays["data"], arrays["index"], arrays["first"]), shape), metric)


def _squares(X: Any) -> NDArray[np.float64]:
    """Sums of squares of the rows."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel()

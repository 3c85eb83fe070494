"""Sparse rows on the threads of this process: what `NumbaState` does to lists of clusters."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evdist.evclus.rows.sparse_loss import put_on_grid, sparse_objective
from evdist.evclus.rows.sparse_sweep import update_sparse
from evdist.evclus.rows.sweep import Block
from evdist.kernels.lanes import LANES
from evdist.kernels.slots import joined, split
from evdist.kernels.sparse_rows import ids_of


class SparseKernel:
    """Encoded rows (n, WORDS) and their updates; `promise` is that of `update_sparse`."""

    def __init__(
        self,
        mass: NDArray[np.float32],
        weight: NDArray[np.float32],
        clusters: int,
        promise: float = 0.0,
    ):
        self._table = split(mass)
        self._ids = ids_of(self._table)
        self._weight, self._clusters, self._promise = weight, clusters, promise
        put_on_grid(self._table, self._ids, 0, len(mass))

    def update(
        self, block: Block, rows: NDArray[np.int64], change: NDArray, skip_below: float
    ) -> None:
        # Between full sweeps a row moves among the clusters that it names; the next full sweep
        # looks at all others.
        promise = self._promise if skip_below == 0.0 else np.inf
        update_sparse(
            self._table, self._ids, self._clusters, block, self._weight, rows, change, skip_below,
            promise,
        )  # fmt: skip

    def losses(self, block: Block, cuts: NDArray[np.int64]) -> NDArray[np.float64]:
        of = partial(sparse_objective, self._table, self._ids, block, self._weight)
        return np.array([(of(lo, hi), 0.0) for lo, hi in pairwise(cuts.tolist())])

    def patch(self, rows: NDArray[np.uint32], mass: NDArray[np.float32]) -> None:
        self._table.reshape(2, -1, LANES)[:, rows] = mass.reshape(-1, 2, LANES).transpose(1, 0, 2)

    def masses(self, rows: NDArray | slice) -> NDArray[np.float32]:
        """Encoded rows: a copy."""
        return joined(self._table, rows)


def assign_sparse(
    landmarks: NDArray[np.float32], start: NDArray[np.float32], block: Block, clusters: int
) -> NDArray[np.float32]:
    """Rows that minimise their own programs against fixed landmarks, both encoded.

    `block` has the rows' pairs, whose partners are numbers of landmarks.
    """
    L, rows = len(landmarks), len(start)
    T = split(np.concatenate([landmarks, start]))
    ids = ids_of(T)
    put_on_grid(T, ids, 0, L + rows)
    mine = np.arange(L, L + rows)
    none = np.zeros(0, np.float32)
    update_sparse(T, ids, clusters, block._replace(row0=L), none, mine, np.zeros(rows))
    return joined(T, slice(L, None))

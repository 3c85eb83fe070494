"""Where the objects of ECM lie: in this process, on threads, or in blocks on a Dask cluster.

The objects are cut into blocks of BLOCK rows whatever the number of threads or workers, each block
gives one vector of sums, and the vectors are added in the order of the blocks: the same bits
everywhere. On a cluster the rows are sent to the workers once; an iteration sends them a model and
brings back one short vector per block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.ecm.solver import Model, Rows, Sums
from evdist.engine.workers import WorkersLostError, smallest_worker, wait_for_workers
from evdist.kernels.threads import thread_count

#: Rows of a block: a hundred tiles, so that a vector of sums costs next to nothing.
BLOCK = 8192
#: Parts sent to a cluster for each of its threads, so that a fast worker takes one more.
_PARTS = 2
_ATTEMPTS = 10


class LocalRows:
    """Objects in memory, worked through on threads: X (n, d), w (n,) or None."""

    def __init__(self, X: NDArray[Any], w: NDArray[Any] | None = None, n_threads: int = 1):
        self.n = len(X)
        self._X, self._w, self._n_threads = X, w, n_threads

    def sums(self, model: Model) -> Sums:
        """Sums over all objects."""
        vectors = self._map(lambda lo, hi: model.sums(self._X[lo:hi], _part(self._w, lo, hi)))
        return model.read(np.add.reduce(vectors))

    def masses(self, model: Model) -> NDArray[np.float32]:
        """Masses of all objects, (n, f)."""
        M = np.empty((self.n, len(model.focal_sets)), np.float32)

        def write(lo: int, hi: int) -> None:
            M[lo:hi] = model.masses(self._X[lo:hi])

        self._map(write)
        return M

    def _map(self, work: Callable[[int, int], Any]) -> list[Any]:
        """`work(lo, hi)` of every block, in the order of the blocks."""
        starts = range(0, self.n, BLOCK)
        bounds = [(lo, min(lo + BLOCK, self.n)) for lo in starts]
        if self._n_threads == 1 or len(bounds) == 1:
            return [work(*b) for b in bounds]
        with ThreadPoolExecutor(self._n_threads) as pool:
            return list(pool.map(lambda b: work(*b), bounds))


class ClusterRows:
    """The same objects, sent to the workers of `client` (a distributed.Client) in parts."""

    def __init__(self, X: NDArray[Any], w: NDArray[Any] | None, client: Any):
        smallest_worker(client)  # refuses what is no client
        self.n = len(X)
        self._X, self._w, self._client = X, w, client
        self._send()

    def _send(self) -> None:
        threads = sum(wait_for_workers(self._client).values())
        blocks = -(-self.n // BLOCK)
        cuts = np.linspace(0, blocks, min(blocks, _PARTS * threads) + 1).round().astype(int) * BLOCK
        parts = [(self._X[lo:hi], _part(self._w, lo, hi)) for lo, hi in pairwise(cuts.tolist())]
        self._parts = self._client.scatter(parts, hash=False)

    def sums(self, model: Model) -> Sums:
        """Sums over all objects."""
        vectors = [v for part in self._run(part_sums, model) for v in part]
        return model.read(np.add.reduce(vectors))

    def masses(self, model: Model) -> NDArray[np.float32]:
        """Masses of all objects, (n, f)."""
        return np.concatenate(self._run(_part_masses, model))

    def _run(self, task: Any, model: Model) -> list[Any]:
        """`task` on every part; the parts of a worker that was lost are sent again."""
        for _ in range(_ATTEMPTS):
            jobs = self._client.map(task, self._parts, model=model, pure=False)
            try:
                return self._client.gather(jobs)
            except CancelledError:
                self._send()
        raise WorkersLostError("Workers are lost faster than iterations are done.")


def rows_of(X: NDArray[Any], w: NDArray[Any] | None, n_jobs: int | None, client: Any) -> Rows:
    """The objects on threads, or on the workers of a client."""
    if client is None:
        return LocalRows(X, w, thread_count(n_jobs))
    return ClusterRows(X, w, client)


def _part(w: NDArray[Any] | None, lo: int, hi: int) -> NDArray[Any] | None:
    return None if w is None else w[lo:hi]


def part_sums(part: Sequence[Any], model: Model) -> list[NDArray[np.float64]]:
    """One vector for each block of a part."""
    X, w = part
    return [
        model.sums(X[lo : lo + BLOCK], _part(w, lo, lo + BLOCK)) for lo in range(0, len(X), BLOCK)
    ]


def _part_masses(part: Sequence[Any], model: Model) -> NDArray[np.float32]:
    return model.masses(part[0])

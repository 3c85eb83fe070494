"""ECM over data that are never in one place: a Dask array, or a file larger than memory.

The rows are cut into the same blocks as those of an array in memory, so that the sums over them
have the same bits, however the array was cut before and on however many workers. An iteration sends
a model to the chunks and brings back one short vector per block. Masses are computed when they are
looked at: those of an object follow from its row and the fitted model.

On a cluster with enough memory the workers keep the rows; else, and in one process, they are read
again in every iteration.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.data.inputs import refuse_bad_values
from evdist.data.readers import RowReader, row_reader
from evdist.ecm.blocks import BLOCK, part_sums
from evdist.ecm.solver import Floats, Model, Sums
from evdist.engine.memory import available
from evdist.engine.partitioning import whole_rows
from evdist.engine.workers import smallest_worker, wait_for_workers
from evdist.kernels.shuffle import PARTITION_ROWS
from evdist.kernels.threads import thread_count
from evdist.partition.rows import is_dask, map_rows

#: Rows of a chunk: whole blocks, whatever the chunks of the user's array.
CHUNK = 16 * BLOCK
#: Share of the memory of all workers that rows may take to be kept there.
_KEPT = 0.4
#: Copies of X that a fit in memory makes: what was read, and what is compared.
_COPIES = 2


def lazy_table(X: Any) -> Any:
    """A Dask array of X where a fit shall not load it whole; None where it may."""
    if is_dask(X):
        table = whole_rows(X)
        if table.dtype.kind not in "fiub":
            return None  # text, which is refused with its column and row by the usual way
        return table if table.shape[0] > PARTITION_ROWS else None
    if not isinstance(X, str | os.PathLike):
        return None
    try:
        reader = row_reader(X)
    except (ValueError, TypeError, OSError):
        return None  # what is wrong with it is told by the usual way
    n, d = reader.shape
    if n <= PARTITION_ROWS or _COPIES * 8 * n * d <= available():
        return None
    return _read_lazily(reader)


def _read_lazily(reader: RowReader) -> Any:
    delayed, array = import_module("dask").delayed, import_module("dask.array")
    n, d = reader.shape
    cuts = [*range(0, n, CHUNK), n]
    chunks = [
        array.from_delayed(delayed(reader.read)(lo, hi), (hi - lo, d), reader.dtype)
        for lo, hi in pairwise(cuts)
    ]
    return array.concatenate(chunks)


@dataclass(frozen=True)
class Moments:
    """Mean (d,) and variance (d,) of the columns over all rows; covariance (d, d) if asked for."""

    mean: Floats
    variance: Floats
    covariance: Floats | None


class LazyRows:
    """The objects of a Dask array, on threads of this process or on the workers of a client."""

    def __init__(self, X: Any, n_jobs: int | None, client: Any):
        self.shape: tuple[int, int] = X.shape
        self.n = X.shape[0]
        self._X = X  # as it was given: masses stay lazy as long as it does
        self._client, self._threads = client, thread_count(n_jobs)
        rows = X.rechunk((CHUNK, -1))
        if client is not None:
            workers, memory = smallest_worker(client)
            wait_for_workers(client)
            if X.size * X.dtype.itemsize <= _KEPT * workers * memory:
                rows = client.persist(rows)
        self._rows = rows
        self._chunks = rows.to_delayed().ravel().tolist()

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, some: NDArray[np.integer]) -> NDArray[np.float64]:
        """Some rows, by their numbers in rising order, in memory."""
        return np.asarray(self._compute([self._rows[some]])[0], dtype=float)

    def moments(self, about: Floats, *, covariance: bool = False) -> Moments:
        """Sums are taken from `about`, a row in the middle, where numbers are small.

        Refuses values that are not finite, by their rows.
        """
        d, firsts, function = self.shape[1], range(0, self.n, CHUNK), _delayed(_part_moments)
        jobs = [
            function(chunk, first, about, covariance)
            for chunk, first in zip(self._chunks, firsts, strict=True)
        ]
        total = np.add.reduce([v for part in self._compute(jobs) for v in part]) / self.n
        away, square = total[:d], total[d:]
        if not covariance:
            return Moments(about + away, square - away**2, None)
        found = square.reshape(d, d) - np.outer(away, away)
        return Moments(about + away, np.diag(found), found)

    def sums(self, model: Model) -> Sums:
        """Sums over all objects."""
        function, sent = _delayed(_chunk_sums), _delayed(model)
        parts = self._compute([function(chunk, sent) for chunk in self._chunks])
        return model.read(np.add.reduce([v for part in parts for v in part]))

    def masses(self, model: Model) -> Any:
        """Masses of all objects, (n, f), computed where they are looked at."""
        f = len(model.focal_sets)
        return map_rows(partial(_masses, model=model), self._X, width=f, dtype=np.float32)

    def _compute(self, jobs: Sequence[Any]) -> list[Any]:
        """Results in the order of the jobs; Dask does those of a lost worker again."""
        if self._client is not None:
            return self._client.gather(self._client.compute(list(jobs), retries=3))
        dask = import_module("dask")
        return list(dask.compute(*jobs, scheduler="threads", num_workers=self._threads))


def _delayed(value: Any) -> Any:
    return import_module("dask").delayed(value, pure=False, traverse=False)


def _chunk_sums(chunk: NDArray[Any], model: Model) -> list[Floats]:
    return part_sums((chunk, None), model)


def _part_moments(chunk: NDArray[Any], first: int, about: Floats, covariance: bool) -> list[Floats]:
    """First and second moments of each block of a chunk, one vector each."""
    refuse_bad_values(chunk, first)
    found = []
    for lo in range(0, len(chunk), BLOCK):
        away = chunk[lo : lo + BLOCK].astype(float) - about
        # einsum, not BLAS: its sums do not depend on a number of threads.
        square = np.einsum("ia,ib->ab" if covariance else "ia,ia->a", away, away)
        found.append(np.append(away.sum(axis=0), square))
    return found


def _masses(rows: NDArray[Any], first: int, model: Model) -> NDArray[np.float32]:
    return model.masses(rows)

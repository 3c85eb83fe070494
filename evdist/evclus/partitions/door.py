"""When EVCLUS works in partitions, and the folder that it then works in.

`partitions="auto"`: where there are objects for more than one, for a Dask collection with a client,
and for data that with their pairs and masses would not fit the memory otherwise.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.engine.memory import available
from evdist.engine.partitioning import table_shape
from evdist.engine.workers import smallest_worker
from evdist.evclus.memory import projected
from evdist.kernels.distances import METRICS
from evdist.kernels.shuffle import PARTITION_ROWS
from evdist.kernels.vector import padded_width
from evdist.partition import CredalPartition
from evdist.partition.rows import block_rows, is_dask
from evdist.partition.sparse import SparseMasses
from evdist.stores.paths import address, exists, remove

_VALUES = ("auto", "always", "never")


@dataclass(frozen=True)
class Asked:
    """What decides whether a fit is done in partitions, beside the data."""

    partitions: str | int
    metric: Any
    k: int
    focal_sets: int
    memory_limit: int | None
    #: `Rows` of a device; None for threads.
    device: Any = None
    #: Whether rows would be lists of clusters without partitions.
    lists: bool = False
    #: Whether some partners would be near: then they are kept for every object.
    near: bool = False
    #: What partitions cannot do yet, in words, where it was asked for; "" for nothing.
    other: str = ""


def check_partitions(partitions: Any) -> None:
    """Refuse anything but "auto", "always", "never" and an even number."""
    if isinstance(partitions, str) and partitions in _VALUES:
        return
    number = isinstance(partitions, Integral) and not isinstance(partitions, bool)
    if not number or partitions < 2 or partitions % 2:
        raise ValueError(
            f"partitions must be one of {_VALUES} or an even number of at least 2, got "
            f"{partitions!r}."
        )


def needs_partitions(X: Any, asked: Asked, client: Any) -> bool:
    """Whether X is to be fitted in partitions; refused where that was asked for and cannot be."""
    check_partitions(asked.partitions)
    if asked.partitions == "never":
        return False
    forced = asked.partitions != "auto"
    attributes = isinstance(asked.metric, str) and asked.metric in METRICS
    cannot = asked.other or ("" if attributes else f"metric={asked.metric!r}")
    if cannot:
        if forced:
            raise ValueError(
                f"partitions={asked.partitions!r} cannot be combined with {cannot}: leave that "
                'out, or set partitions="never".'
            )
        return False
    if forced:
        return True
    if not hasattr(X, "shape") and not isinstance(X, str | os.PathLike):
        return False  # a list or the like
    try:
        n, d = table_shape(X)
    except (ValueError, TypeError, OSError):
        return False  # what is wrong with it is told by the usual way
    if n <= PARTITION_ROWS:
        return False  # one partition would hold them all: nothing is gained
    if client is not None and is_dask(X):
        return True
    workers = 1 if client is None else smallest_worker(client)[0]
    if _usual(n, d, asked, workers) > _there(asked, client):
        return True
    if asked.device is None:
        return False
    try:
        asked.device.check_room(
            (n, d), min(asked.k, n - 1), asked.focal_sets, client=client, lists=asked.lists
        )
    except MemoryError:
        return True
    return False


def _usual(n: int, d: int, asked: Asked, workers: int) -> int:
    """Bytes of a fit that has all masses and all data in one process; a device makes the pairs."""
    data = n * (8 * d + 2 * 4 * padded_width(d))
    k = min(asked.k, max(n - 1, 1))
    need = projected(n, k, asked.focal_sets, data, workers, asked.near)
    return need.total - (0 if asked.device is None else need.pairs)


def _there(asked: Asked, client: Any) -> int:
    # The limit is one on the memory of a device where there is one.
    limit = 2**62
    if asked.memory_limit is not None and asked.device is None:
        limit = asked.memory_limit
    if client is not None:
        limit = min(limit, smallest_worker(client)[1])
    return min(limit, available())


def work_folder(model: Any, checkpoint: Any, client: Any) -> str:
    """The folder of a fit: `checkpoint`, or one that is removed with the model."""
    if checkpoint is not None:
        folder = address(str(checkpoint))
    else:
        folder = tempfile.mkdtemp(prefix="evdist-")
        weakref.finalize(model, remove, folder)
    if client is not None and checkpoint is None:
        blind = [worker for worker, sees in client.run(exists, folder).items() if not sees]
        if blind:
            raise ValueError(
                f"Worker {blind[0]} does not see the folder {folder} of this process. Name one "
                "that all workers reach, a path or an object storage URL: checkpoint=..."
            )
    return folder


def lazy_partition(url: str, lazy: bool) -> CredalPartition:
    """The answer: masses that stay in their store, as a Dask array where `lazy`."""
    stored = CredalPartition.load(url)
    if not lazy:
        return stored
    mass, from_zarr = stored.mass, import_module("dask.array").from_zarr
    if not isinstance(mass, SparseMasses):
        return CredalPartition(from_zarr(mass), stored.focal_sets)
    # A chunk of lists would make a large one of masses: it is cut first.
    rows = from_zarr(mass.rows).rechunk((block_rows(mass.shape[1]), -1))
    dense = rows.map_blocks(
        _dense, mass.n_clusters, dtype=mass.dtype, chunks=(rows.chunks[0], (mass.shape[1],)),
        meta=np.empty((0, 0), mass.dtype),
    )  # fmt: skip
    return CredalPartition(dense, stored.focal_sets)


def _dense(rows: NDArray[np.float32], n_clusters: int) -> NDArray[np.float32]:
    return SparseMasses(rows, n_clusters).dense()

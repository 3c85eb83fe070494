"""Data of any size and kind laid out in partitions, by this process or by Dask workers.

A killed run goes on where it stopped: what was sent or written is not sent or written again.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from evdist.data.layout import (
    PartitionedData,
    Writing,
    block_name,
    collect,
    send_block,
    send_rows,
)
from evdist.data.readers import row_reader
from evdist.data.tables import is_frame
from evdist.engine.turns import all_done, in_turn
from evdist.partition.rows import is_dask
from evdist.stores.paths import Url

#: Copies of a block's rows that a task makes, at most: read, sorted, joined, with their places.
_COPIES = 5

#: `tell(stage, done, all)`: how far a stage is.
Tell = Callable[[str, int, int], None]


def table_shape(X: Any) -> tuple[int, int]:
    """Rows and columns of what can be laid out; of a Dask frame the rows are counted."""
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return X.shape
    if is_dask(X):
        return whole_rows(X).shape
    if is_frame(X):
        return X.shape
    return row_reader(X).shape


def lay_out(
    X: Any,
    url: Url,
    *,
    client: Any = None,
    partitions: int | None = None,
    tell: Tell | None = None,
) -> PartitionedData:
    """Write X into partitions at `url`, or finish what an earlier call began.

    Parameters
    ----------
    X : Dask array or frame, zarr array, path of .npy, .zarr, .parquet or a folder of Parquet files,
        memory map, array; or a `RowReader`
    url : path or URL that all workers reach
    client : distributed.Client
        Its workers read and write; by default this process does.
    partitions : int
        How many; by default from the number of rows alone.
    """
    tell = tell or (lambda stage, done, whole: None)
    if is_dask(X):
        X = whole_rows(X)
        writing = Writing.begin(url, X.shape, np.dtype(X.dtype), partitions)
        if writing.complete:
            return PartitionedData.open(url)
        cuts = np.cumsum([0, *X.chunks[0]]).tolist()
        blocks = [block for block in pairwise(cuts) if block[0] < block[1]]
        _send_dask(X, writing, blocks, client, tell)
    else:
        reader = row_reader(X)
        columns = getattr(reader, "columns", None)
        writing = Writing.begin(url, reader.shape, reader.dtype, partitions, columns)
        if writing.complete:
            return PartitionedData.open(url)
        blocks = writing.blocks(reader.step)
        left = writing.unsent(blocks)
        run_tasks(
            client, send_block, writing, reader, items=left, size=_COPIES * writing.block_bytes,
            tell=_stage(tell, "shuffle"),
        )  # fmt: skip
    names = [block_name(*block) for block in blocks]
    missing = [(b,) for b in writing.missing()]
    run_tasks(
        client, collect, writing, names, items=missing, size=_COPIES * writing.partition_bytes,
        tell=_stage(tell, "lay out"),
    )  # fmt: skip
    return writing.end(names)


def run_tasks(
    client: Any,
    task: Any,
    *shared: Any,
    items: Sequence[tuple[Any, ...]],
    size: int = 0,
    tell: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """`task(*shared, *item)` for every item: here one after another, or on workers.

    Of tasks of `size` bytes, a worker with several threads runs no more at once than it has room
    for.
    """
    found: list[Any] = []
    if client is None:
        for item in items:
            found.append(task(*shared, *item))
            if tell is not None:
                tell(len(found), len(items))
        return found
    # What all tasks share is the result of a task itself, which Dask makes again where it is lost.
    # Not scattered: where a worker dies just then, Dask tries to reach it for ever.
    sent = [client.submit(_same, value, pure=False) for value in shared]
    jobs = [client.submit(in_turn, size, task, *sent, *item, pure=False, retries=3,
                          key=f"{task.__name__}-{uuid.uuid4().hex}")
            for item in items]  # fmt: skip
    return all_done(client, jobs, tell)


def _same(value: Any) -> Any:
    return value


def _stage(tell: Tell, name: str) -> Callable[[int, int], None]:
    return lambda done, whole: tell(name, done, whole)


def whole_rows(X: Any) -> Any:
    """A Dask array of whole rows with known lengths."""
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True)
    if X.ndim != 2:
        raise ValueError(f"X must be a table, (rows, columns), got shape {X.shape}.")
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    return X.rechunk({1: -1})


def _send_dask(
    X: Any, writing: Writing, blocks: list[tuple[int, int]], client: Any, tell: Tell
) -> None:
    """Every chunk of a Dask array is a block; Dask makes a lost one again."""
    send = sys.modules["dask"].delayed(send_rows, pure=False)
    chunks = zip(X.chunks[0], X.to_delayed().ravel(), strict=True)
    chunk = dict(zip(blocks, (rows for size, rows in chunks if size), strict=True))
    left = writing.unsent(blocks)
    jobs = [send(writing, block[0], chunk[block]) for block in left]
    if client is None:
        # One at a time: so many chunks are in memory.
        for done, job in enumerate(jobs, 1):
            job.compute(scheduler="threads")
            tell("shuffle", done, len(jobs))
        return
    futures = client.compute(jobs, retries=3)
    all_done(client, futures, _stage(tell, "shuffle"))

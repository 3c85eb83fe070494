"""Tables with many rows, worked through in blocks: the same code for NumPy, zarr and Dask.

A table is anything with ``shape``, ``dtype`` and slicing of rows. Two blueprints are enough:
:func:`map_rows` gives one result per row, :func:`gather_rows` one small result per block. The
blocks of :func:`gather_rows` depend on the width of the table alone, never on how it is chunked
or on the number of workers, so that a sum over blocks has the same bits everywhere. Blocks are
worked through on all cores; what they give is put in their order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evdist.kernels.threads import thread_count
from evdist.partition.sparse import SparseMasses

#: Numbers in a block: 2 MB as float64, which stays in the cache while several views are taken.
BLOCK_SIZE = 1 << 18
#: With thousands of columns a block keeps enough rows to hide the cost of a Python call.
MIN_ROWS, MAX_ROWS = 1 << 10, 1 << 16
#: Blocks in a piece of an array in memory, which one thread works through.
PIECE_BLOCKS = 4
#: Threads of NumPy calls on blocks in memory, at most. Between the calls one runs at a time:
#: sixteen took half as long again as eight.
MOST_THREADS = 8

#: A block function: (rows, number of the first of them) -> array.
BlockFunction = Callable[[NDArray[Any], int], Any]


def is_dask(table: Any) -> bool:
    """Whether this is a Dask collection, whose results stay lazy."""
    dask = sys.modules.get("dask")  # which a collection of it has loaded
    return dask is not None and dask.is_dask_collection(table)


def as_table(table: Any) -> Any:
    """The table itself when its rows can be sliced, else a NumPy array of it."""
    sliceable = hasattr(table, "shape") and hasattr(table, "__getitem__")
    if sliceable and isinstance(getattr(table, "dtype", None), np.dtype):
        return table
    return np.asarray(table)


def block_rows(width: int) -> int:
    """Rows in a block of a table with ``width`` columns, a power of two."""
    rows = max(BLOCK_SIZE // max(width, 1), MIN_ROWS)
    return min(1 << (rows.bit_length() - 1), MAX_ROWS)


def _each(function: BlockFunction, table: Any, rows: int, n_threads: int | None) -> list[Any]:
    """`function` of every block of a table that is not a Dask array, in the order of the rows."""
    n = table.shape[0]
    lists = isinstance(table, SparseMasses)
    held = table.rows if lists else table
    # A compressed chunk is read whole whatever is asked of it: read it once, then cut it.
    stored = not isinstance(held, np.ndarray)
    chunk = getattr(held, "chunks", (rows,))[0] if stored else rows * PIECE_BLOCKS
    step = rows * -(-chunk // rows)

    def one(start: int) -> list[Any]:
        piece = table[start : start + step]
        piece = piece if lists else np.asarray(piece)  # of lists, a block at a time is made dense
        cuts = range(0, len(piece), rows)
        return [function(np.asarray(piece[lo : lo + rows]), start + lo) for lo in cuts]

    starts = range(0, n, step)
    if n_threads is None and not stored:
        n_threads = min(thread_count(None), MOST_THREADS)
    threads = min(thread_count(n_threads), len(starts))
    if threads <= 1:
        return [result for start in starts for result in one(start)]
    with ThreadPoolExecutor(threads) as pool:
        return [result for results in pool.map(one, starts) for result in results]


def map_rows(
    function: BlockFunction,
    table: Any,
    *,
    width: int | None,
    dtype: DTypeLike,
    block_width: int | None = None,
) -> Any:
    """One result per row: Dask in, Dask out (lazy); anything else in, NumPy out.

    Parameters
    ----------
    function : callable
        ``function(block, first)`` with a (b, f) block gives (b, width), or (b,) when ``width``
        is None. Each row of the result may depend on its own row alone.
    table : (n, f) table
    width : int or None
        Columns of the result; None for one value per row.
    block_width : int, optional
        Columns that a block has while it is worked on, where the table has fewer.
    """
    dtype = np.dtype(dtype)
    if is_dask(table):
        table = table.rechunk({1: -1})
        shape = {"drop_axis": 1} if width is None else {"chunks": (table.chunks[0], (width,))}
        return table.map_blocks(
            _map_chunk,
            function=function,
            width=width,
            result_dtype=dtype,
            dtype=dtype,
            meta=np.empty((0,) if width is None else (0, 0), dtype=dtype),
            **shape,
        )
    return _fill(function, table, width, dtype, 0, None, block_width)


def _fill(
    function: BlockFunction,
    table: Any,
    width: int | None,
    dtype: np.dtype,
    offset: int,
    n_threads: int | None,
    block_width: int | None = None,
) -> NDArray[Any]:
    n = table.shape[0]
    out = np.empty(n if width is None else (n, width), dtype=dtype)

    def put(block: NDArray[Any], first: int) -> None:
        out[first : first + len(block)] = function(block, offset + first)

    _each(put, table, block_rows(block_width or table.shape[1]), n_threads)
    return out


def _map_chunk(
    chunk: NDArray[Any],
    function: BlockFunction,
    width: int | None,
    result_dtype: np.dtype,
    block_info: Any = None,
) -> NDArray[Any]:
    """A chunk of a Dask array is itself a table: it goes through the same blocks."""
    offset = block_info[0]["array-location"][0][0]
    return _fill(function, chunk, width, result_dtype, offset, 1)  # Dask has its own threads


def gather_rows(
    function: BlockFunction, table: Any, *, block_width: int | None = None
) -> list[Any]:
    """``function(block, first)`` of every block, in the order of the rows, computed now.

    Blocks have the rows of those of a table with `block_width` columns, where that is given.
    """
    rows = block_rows(block_width or table.shape[1])
    if is_dask(table):
        pieces = table.rechunk((rows, -1)).to_delayed()[:, 0]
        dask = sys.modules["dask"]
        call = dask.delayed(function)
        return list(dask.compute(*(call(p, i * rows) for i, p in enumerate(pieces))))
    return _each(function, table, rows, None)


def write_rows(function: BlockFunction, table: Any, target: Any) -> None:
    """Write ``function(block, first)`` to the same rows of a chunked array, whole chunks each."""
    rows = target.chunks[0]
    if is_dask(table):
        result = map_rows(function, table, width=target.shape[1], dtype=target.dtype)
        # Aligned chunks: no two tasks touch the same one, so no lock is needed.
        result.rechunk((rows, -1)).store(target, lock=False)
        return

    def put(block: NDArray[Any], first: int) -> None:
        target[first : first + len(block)] = function(block, first)

    _each(put, table, rows, thread_count(None))  # most of it packs chunks


def select_rows(table: Any, rows: Any) -> Any:
    """Rows of a table by a slice, a mask or a list of numbers."""
    simple = isinstance(rows, slice) and (rows.step is None or rows.step > 0)
    if isinstance(table, np.ndarray) or is_dask(table) or simple:
        return table[rows]
    # zarr calls this orthogonal indexing, and knows whole numbers from 0 on.
    return table.oindex[np.arange(table.shape[0])[rows], :]

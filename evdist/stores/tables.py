"""Tables of numbers in files: NumPy, CSV, Parquet and zarr."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import zarr
from numpy.typing import NDArray

__all__ = ["array_pieces", "read_table", "refuse_text", "rows_at_once", "table_pieces"]

#: Numbers read at a time where a table is not wanted whole: 64 MB as float64.
PIECE_SIZE = 1 << 23
#: Rows at a time at most, a power of two.
PIECE_ROWS = 1 << 16


def read_table(path: str | Path) -> NDArray:
    """All rows of a .npy, .csv(.gz), .parquet or .zarr file; text columns are refused."""
    name = str(path)
    bare = name.removesuffix(".gz")
    if bare.endswith(".npy"):
        # Never unpickle: a file of objects is an error, not a program.
        return np.load(name, allow_pickle=False)
    if bare.endswith((".zarr", ".zarr/")):
        return np.asarray(_zarr(name)[:])
    if bare.endswith(".csv"):
        return _numbers(pd.read_csv(name), name)
    if bare.endswith((".parquet", ".pq")):
        return _numbers(pd.read_parquet(name), name)
    raise _unknown(name)


def table_pieces(path: str | Path) -> Iterator[NDArray]:
    """What :func:`read_table` gives, as consecutive pieces of rows: never the whole table."""
    name = str(path)
    bare = name.removesuffix(".gz")
    if bare.endswith(".npy"):
        yield from array_pieces(np.load(name, mmap_mode="r", allow_pickle=False))
    elif bare.endswith((".zarr", ".zarr/")):
        yield from array_pieces(_zarr(name))
    elif bare.endswith((".csv", ".parquet", ".pq")):
        first = 0
        for frame in _csv_pieces(name) if bare.endswith(".csv") else _parquet_pieces(name):
            yield _numbers(frame, name, first)
            first += len(frame)
    else:
        raise _unknown(name)


def array_pieces(array: Any) -> Iterator[NDArray]:
    """Consecutive pieces of rows of anything with ``shape`` and slices of rows; at least one."""
    rows = rows_at_once(array.shape[1] if len(array.shape) > 1 else 1)
    # A compressed chunk is read whole whatever is asked of it: read it once.
    chunk = (getattr(array, "chunks", None) or (rows,))[0]
    step = max(rows // chunk, 1) * chunk
    for lo in range(0, max(array.shape[0], 1), step):
        yield np.asarray(array[lo : lo + step])


def rows_at_once(width: int) -> int:
    """How many rows of `width` numbers to take at a time: a power of two."""
    rows = max(PIECE_SIZE // max(width, 1), 1)
    return min(1 << (rows.bit_length() - 1), PIECE_ROWS)


def _csv_pieces(name: str) -> Iterator[pd.DataFrame]:
    width = len(pd.read_csv(name, nrows=0).columns)
    with pd.read_csv(name, chunksize=rows_at_once(width)) as pieces:
        yield from pieces


def _parquet_pieces(name: str) -> Iterator[pd.DataFrame]:
    table = pa.dataset.dataset(name, format="parquet")
    rows = rows_at_once(len(table.schema))
    for batch in table.to_batches(batch_size=rows, batch_readahead=1, fragment_readahead=1):
        yield pa.Table.from_batches([batch]).to_pandas()


def _zarr(name: str) -> zarr.Array:
    node = zarr.open(name, mode="r")
    if not isinstance(node, zarr.Array):
        raise ValueError(f"{name} is a zarr group; name the array in it, e.g. {name}/X.")
    return node


def _unknown(name: str) -> ValueError:
    return ValueError(
        f"Cannot read {name}: known endings are .npy, .csv, .csv.gz, .parquet, .zarr."
    )


def _numbers(frame: pd.DataFrame, name: str, first: int = 0) -> NDArray:
    refuse_text(frame, name, first)
    return frame.to_numpy()


def refuse_text(frame: pd.DataFrame, name: str, first: int = 0) -> None:
    """Refuse columns of anything but numbers, naming the column and the first such row.

    The rows of the frame are those of the table from `first` on.
    """
    for place, column in enumerate(frame.columns):
        values = frame.iloc[:, place]
        if pd.api.types.is_numeric_dtype(values):
            continue
        number = pd.to_numeric(values.astype(object), errors="coerce")
        bad = (number.isna() & values.notna()).to_numpy()
        if pd.api.types.is_object_dtype(values) and not bad.any():
            continue  # numbers that a frame of mixed columns keeps as objects
        row = int(bad.argmax())
        raise ValueError(
            f"Column {column!r} of {name} is not numeric: row {first + row} holds "
            f"{values.iloc[row]!r}. "
            "Leave that column out or encode it as numbers."
        )

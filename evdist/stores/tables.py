"""Tables of numbers in files: NumPy, CSV, Parquet and zarr."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import zarr
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

__all__ = ["array_pieces", "column_names", "frame_numbers", "frame_pieces", "read_table"]
__all__ += ["refuse_text", "rows_at_once", "table_pieces"]

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
        yield from _npy_pieces(name)
    elif bare.endswith((".zarr", ".zarr/")):
        yield from array_pieces(_zarr(name))
    else:
        first = 0
        for frame in frame_pieces(name):
            yield _numbers(frame, name, first)
            first += len(frame)


def frame_pieces(path: str | Path, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    """Consecutive pieces of a .csv(.gz) or .parquet table, with the columns asked for."""
    name = str(path)
    bare = name.removesuffix(".gz")
    if bare.endswith(".csv"):
        yield from _csv_pieces(name, columns)
    elif bare.endswith((".parquet", ".pq")):
        yield from _parquet_pieces(name, columns)
    else:
        raise _unknown(name)


def column_names(path: str | Path) -> list[str] | None:
    """Names of the columns of a .csv(.gz) or .parquet table; None for arrays, which have none."""
    name = str(path)
    bare = name.removesuffix(".gz")
    with _readable(name):
        if bare.endswith(".csv"):
            return [str(column) for column in pd.read_csv(name, nrows=0).columns]
        if bare.endswith((".parquet", ".pq")):
            return list(_parquet(name).schema.names)
    return None


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Say which file it was that is not there, cut off, or not what its name says."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {name}.") from error
    except (EOFError, zlib.error, ValueError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"Cannot read {name}: {said}. Is it whole, and what its name says?"
        ) from error


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


def _npy_pieces(name: str) -> Iterator[NDArray]:
    """Rows of a .npy file, here or in object storage, read from front to back.

    Not by a memory map: pages once looked at would count as memory of this process.
    """
    filesystem, path = fsspec.core.url_to_fs(name)
    with _readable(name), filesystem.open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
        if dtype.hasobject or not shape:
            raise ValueError("it must hold rows of numbers")
        if fortran and len(shape) > 1:
            if not isinstance(filesystem, LocalFileSystem):
                raise ValueError(
                    "its rows must lie one after another; write it with "
                    "np.save(file, np.ascontiguousarray(X))"
                )
            yield from array_pieces(np.load(path, mmap_mode="r", allow_pickle=False))
            return
        width = int(np.prod(shape[1:], dtype=np.int64))
        step = rows_at_once(width)
        for lo in range(0, max(shape[0], 1), step):
            rows = min(step, shape[0] - lo)
            content = file.read(rows * width * dtype.itemsize)
            if len(content) < rows * width * dtype.itemsize:
                raise ValueError(f"it is cut off after row {lo}")
            yield np.frombuffer(content, dtype).reshape(rows, *shape[1:])


def _csv_pieces(name: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    with _readable(name):
        there = pd.read_csv(name, nrows=0).columns
        wanted = list(there if columns is None else columns)
        # All columns are read, the others as they stand there: asked for some, pandas would not
        # notice a row with too many values.
        others = {column: str for column in there if column not in wanted}
        rows = rows_at_once(len(there))
        with pd.read_csv(name, chunksize=rows, dtype=others, index_col=False) as pieces:
            while (piece := _next(pieces)) is not None:
                yield piece[wanted]


def _next(pieces: Iterator[pd.DataFrame]) -> pd.DataFrame | None:
    """The next piece; what pandas would only warn of, values beyond the last column, is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return next(pieces, None)
        except pd.errors.ParserWarning as error:
            raise ValueError("its rows have more values than there are columns") from error


def _parquet(name: str) -> pa.dataset.Dataset:
    filesystem, path = fsspec.core.url_to_fs(name)
    there = None if isinstance(filesystem, LocalFileSystem) else filesystem
    return pa.dataset.dataset(path, format="parquet", filesystem=there)


def _parquet_pieces(name: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    with _readable(name):
        table = _parquet(name)
        rows = rows_at_once(len(columns or table.schema))
        for batch in table.to_batches(
            batch_size=rows, batch_readahead=1, fragment_readahead=1, columns=columns
        ):
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


def frame_numbers(frame: pd.DataFrame, name: str, first: int = 0) -> NDArray:
    """The numbers of a frame, float32 where all columns are no wider, NaN where one is missing."""
    refuse_text(frame, name, first)
    narrow = all(dtype in (np.float32, np.float16) for dtype in frame.dtypes)
    return frame.to_numpy(dtype=np.float32 if narrow else np.float64, na_value=np.nan)


def refuse_text(frame: pd.DataFrame, name: str, first: int = 0) -> None:
    """Refuse columns of anything but numbers, naming the column and the first such row.

    The rows of the frame are those of the table from `first` on.
    """
    for place, column in enumerate(frame.columns):
        values = frame.iloc[:, place]
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_complex_dtype(values):
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

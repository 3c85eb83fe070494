"""Tables of numbers in files: NumPy, CSV, Parquet and zarr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import numpy as np
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from evdist.data.pieces import array_pieces, readable, rows_at_once
from evdist.data.zarr_tables import open_array

if TYPE_CHECKING:
    import pandas as pd


def frames() -> Any:
    """The module of tables with named columns, loaded on first use: pandas takes a while."""
    return import_module("evdist.data.frames")


def is_frame(table: Any) -> bool:
    """Whether this is a pandas frame."""
    pandas = sys.modules.get("pandas")  # which a frame of it has loaded
    return pandas is not None and isinstance(table, pandas.DataFrame)


def as_frame(table: Any) -> Any:
    """A polars frame or an Arrow table as a pandas frame; anything else as it is."""
    kind = f"{type(table).__module__}.{type(table).__name__}"
    if kind in ("pyarrow.lib.Table", "pyarrow.lib.RecordBatch"):
        return table.to_pandas()
    if kind.startswith("polars.") and kind.endswith("DataFrame") and hasattr(table, "to_arrow"):
        return table.to_arrow().to_pandas()
    return table


def is_lazy_frame(table: Any) -> bool:
    """Whether this is a Dask frame, whose parts have named columns."""
    return hasattr(table, "dask") and hasattr(table, "partitions") and hasattr(table, "columns")


def read_table(path: str | Path) -> NDArray[Any]:
    """All rows of a .npy, .csv(.gz), .parquet or .zarr file; text columns are refused."""
    name = str(path)
    bare = _ending(name)
    if bare.endswith(".npy"):
        # Never unpickle: a file of objects is an error, not a program.
        with readable(name):
            return np.load(name, allow_pickle=False)
    if bare.endswith((".zarr", ".zarr/")):
        array = open_array(name.rstrip("/"))
        with readable(name):
            return np.asarray(array[:])
    if _has_names(name):
        return _numbers(frames().whole(name), name)
    raise _unknown(name)


def table_pieces(path: str | Path) -> Iterator[NDArray[Any]]:
    """What :func:`read_table` gives, as consecutive pieces of rows: never the whole table."""
    name = str(path)
    bare = _ending(name)
    if bare.endswith(".npy"):
        yield from _npy_pieces(name)
    elif bare.endswith((".zarr", ".zarr/")):
        array = open_array(name.rstrip("/"))
        with readable(name):
            yield from array_pieces(array)
    elif _has_names(name):
        first = 0
        for frame in frames().pieces(name):
            yield _numbers(frame, name, first)
            first += len(frame)
    else:
        raise _unknown(name)


def column_names(path: str | Path, delimiter: str | None = None) -> list[str] | None:
    """Names of the columns of a .csv(.gz) or .parquet table; None for arrays, which have none."""
    return frames().names(str(path), delimiter) if _has_names(str(path)) else None


def _has_names(name: str) -> bool:
    return _ending(name).endswith((".csv", ".tsv", ".parquet", ".pq"))


def _ending(name: str) -> str:
    """The name without .gz, in small letters: endings are written either way."""
    return name.lower().removesuffix(".gz")


def _numbers(frame: pd.DataFrame, name: str, first: int = 0) -> NDArray[Any]:
    frames().refuse_text(frame, name, first)
    return frame.to_numpy()


def _npy_pieces(name: str) -> Iterator[NDArray[Any]]:
    """Rows of a .npy file, here or in object storage, read from front to back.

    Not by a memory map: pages once looked at would count as memory of this process.
    """
    filesystem, path = fsspec.core.url_to_fs(name)
    with readable(name), filesystem.open(path, "rb") as file:
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


def _unknown(name: str) -> ValueError:
    return ValueError(
        f"Cannot read {name}: known endings are .npy, .csv, .tsv, .csv.gz, .parquet, .zarr."
    )

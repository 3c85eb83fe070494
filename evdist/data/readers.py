"""Tables from which any rows can be read without the others: what workers are sent in their place.

An `.npy` file, a memory map of one, a zarr array, a Parquet file or a folder of them, an array.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import fsspec
import numpy as np
from numpy.typing import NDArray

from evdist.data.pieces import readable
from evdist.data.tables import frames, is_frame
from evdist.data.zarr_tables import open_array


@runtime_checkable
class RowReader(Protocol):
    """Rows of numbers on demand."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def step(self) -> int:
        """Reads should begin at multiples of it."""
        ...

    def read(self, lo: int, hi: int) -> NDArray[Any]:
        """Rows lo..hi-1."""
        ...


@dataclass(frozen=True)
class ArrayReader:
    """An array in memory, or a zarr array."""

    X: Any

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.X.dtype)

    @property
    def step(self) -> int:
        return (getattr(self.X, "chunks", None) or (1,))[0]

    def read(self, lo: int, hi: int) -> NDArray[Any]:
        return np.asarray(self.X[lo:hi])


@dataclass(frozen=True)
class FileReader:
    """Rows one after another in a file, from byte `offset` on."""

    name: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    offset: int
    step: int = 1

    @classmethod
    def of_npy(cls, name: str) -> FileReader:
        filesystem, path = fsspec.core.url_to_fs(name)
        with readable(name), filesystem.open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            header = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = header(file)
            if dtype.hasobject or len(shape) != 2 or (fortran and min(shape) > 1):
                raise ValueError(
                    f"it must hold rows of numbers, one after another, got {shape} of {dtype}; "
                    "write it with np.save(file, np.ascontiguousarray(X))"
                )
            return cls(name, shape, dtype, file.tell())

    def read(self, lo: int, hi: int) -> NDArray[Any]:
        filesystem, path = fsspec.core.url_to_fs(self.name)
        row = self.shape[1] * self.dtype.itemsize
        content = filesystem.cat_file(path, self.offset + lo * row, self.offset + hi * row)
        if len(content) < (hi - lo) * row:
            raise ValueError(f"Cannot read {self.name}: it is cut off before row {hi}.")
        return np.frombuffer(content, self.dtype).reshape(hi - lo, self.shape[1])


@dataclass(frozen=True)
class Transformed:
    """A reader's rows through a function of rows (r, d) that keeps their shape."""

    reader: RowReader
    function: Callable[[NDArray[Any]], NDArray[Any]]

    @property
    def shape(self) -> tuple[int, int]:
        return self.reader.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.reader.dtype

    @property
    def step(self) -> int:
        return self.reader.step

    def read(self, lo: int, hi: int) -> NDArray[Any]:
        return self.function(self.reader.read(lo, hi))


def row_reader(X: Any) -> RowReader:
    """The reader of what a user passes as X, or X where it is one; a Dask collection has none."""
    if isinstance(X, RowReader):
        return X
    if isinstance(X, str | Path):
        return _of_path(str(X))
    if is_frame(X):
        return ArrayReader(frames().numbers(X, "X"))
    if isinstance(X, np.memmap) and isinstance(X.base, mmap.mmap) and X.flags.c_contiguous:
        if X.ndim == 2 and X.filename is not None:
            # A map that is sent to a worker would be sent with all it shows.
            return FileReader(str(X.filename), X.shape, X.dtype, X.offset)
    found = ArrayReader(X if hasattr(X, "shape") else np.asarray(X))
    if len(found.shape) != 2 or found.dtype.kind not in "fiub":
        raise ValueError(
            f"X must be a table of numbers, (rows, columns), got shape {found.shape} of "
            f"{found.dtype}."
        )
    return found


def _of_path(name: str) -> RowReader:
    bare = name.rstrip("/")
    if bare.endswith(".npy"):
        return FileReader.of_npy(name)
    if bare.endswith(".zarr") or ".zarr/" in bare:
        return ArrayReader(open_array(bare))
    filesystem, path = fsspec.core.url_to_fs(name)
    if bare.endswith((".parquet", ".pq")) or filesystem.isdir(path):
        return frames().ParquetReader.of(name)
    raise ValueError(
        f"Cannot read {name} in parts: known are .npy, .zarr, .parquet and folders of Parquet "
        "files. Write it as one of them first."
    )

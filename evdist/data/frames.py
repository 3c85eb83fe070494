"""Tables whose columns have names: CSV and Parquet files, and pandas frames.

pandas takes a third of a second to load, so `evdist.data.tables` loads this module on first use.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from evdist.data.pieces import readable, rows_at_once

__all__ = [
    "ParquetReader",
    "classes",
    "cut",
    "names",
    "numbers",
    "pieces",
    "refuse_text",
    "weights",
    "whole",
]

#: Rows of a frame in memory looked at together.
_ROWS = 1 << 16


def whole(name: str) -> pd.DataFrame:
    """All of a .csv(.gz) or .parquet table."""
    return pd.read_csv(name) if _is_csv(name) else pd.read_parquet(name)


def pieces(name: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    """Consecutive pieces of a .csv(.gz) or .parquet table, with the columns asked for."""
    return _csv_pieces(name, columns) if _is_csv(name) else _parquet_pieces(name, columns)


def names(name: str) -> list[str]:
    """Names of the columns of a .csv(.gz) or .parquet table."""
    with readable(name):
        if _is_csv(name):
            return [str(column) for column in pd.read_csv(name, nrows=0).columns]
        return list(_parquet(name).schema.names)


def _is_csv(name: str) -> bool:
    return name.removesuffix(".gz").endswith(".csv")


def cut(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Consecutive pieces of a frame in memory, at least one; its columns are named by text."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    for lo in range(0, max(len(frame), 1), _ROWS):
        yield frame.iloc[lo : lo + _ROWS]


def _csv_pieces(name: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    with readable(name):
        there = pd.read_csv(name, nrows=0).columns
        wanted = list(there if columns is None else columns)
        # All columns are read, the others as they stand there: asked for some, pandas would not
        # notice a row with too many values.
        others = {column: str for column in there if column not in wanted}
        rows = rows_at_once(len(there))
        with pd.read_csv(name, chunksize=rows, dtype=others, index_col=False) as found:
            while (piece := _next(found)) is not None:
                yield piece[wanted]


def _next(found: Iterator[pd.DataFrame]) -> pd.DataFrame | None:
    """The next piece; what pandas would only warn of, values beyond the last column, is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return next(found, None)
        except pd.errors.ParserWarning as error:
            raise ValueError("its rows have more values than there are columns") from error


def _parquet(name: str) -> pa.dataset.Dataset:
    filesystem, path = fsspec.core.url_to_fs(name)
    there = None if isinstance(filesystem, LocalFileSystem) else filesystem
    return pa.dataset.dataset(path, format="parquet", filesystem=there)


def _parquet_pieces(name: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    with readable(name):
        table = _parquet(name)
        rows = rows_at_once(len(columns or table.schema))
        for batch in table.to_batches(
            batch_size=rows, batch_readahead=1, fragment_readahead=1, columns=columns
        ):
            yield pa.Table.from_batches([batch]).to_pandas()


@dataclass(frozen=True)
class ParquetReader:
    """Any rows of Parquet files, one or a folder of them in the order of their names."""

    name: str
    columns: tuple[str, ...]
    dtype: np.dtype[Any]
    #: Number of the first row of every row group, and of rows: (groups + 1,).
    first: NDArray[np.int64]
    step: int = 1

    @classmethod
    def of(cls, name: str) -> ParquetReader:
        with readable(name):
            table = _parquet(name)
            narrow = all(kind in (pa.float32(), pa.float16()) for kind in table.schema.types)
            sizes = [group.num_rows for f in table.get_fragments() for group in f.row_groups]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        dtype = np.dtype(np.float32 if narrow else np.float64)
        return cls(name, tuple(table.schema.names), dtype, first)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.first[-1]), len(self.columns)

    def read(self, lo: int, hi: int) -> NDArray[Any]:
        """Rows lo..hi-1; of the row groups that they lie in, no others are read."""
        a = int(np.searchsorted(self.first, lo, side="right")) - 1
        b = int(np.searchsorted(self.first, hi, side="left"))
        groups = [g for f in _parquet(self.name).get_fragments() for g in f.split_by_row_group()]
        found = []
        for number in range(a, b):
            start = int(self.first[number])
            frame = groups[number].to_table(columns=list(self.columns)).to_pandas()
            part = frame.iloc[max(lo - start, 0) : hi - start]
            found.append(numbers(part, self.name, max(lo, start)).astype(self.dtype, copy=False))
        return np.concatenate(found) if found else np.empty((0, self.shape[1]), self.dtype)


# ---------------------------------------------------------------------- what is in the columns
def numbers(frame: pd.DataFrame, name: str, first: int = 0) -> NDArray[Any]:
    """The numbers of a frame, float32 where all columns are no wider, NaN where one is missing."""
    refuse_text(frame, name, first)
    narrow = all(dtype in (np.float32, np.float16) for dtype in frame.dtypes)
    return frame.to_numpy(dtype=np.float32 if narrow else np.float64, na_value=np.nan)


def classes(values: pd.Series) -> NDArray[Any]:
    """Classes as text, "" where unknown."""
    return values.astype(object).where(values.notna(), "").astype(str).to_numpy()


def weights(values: pd.Series, name: str, first: int) -> NDArray[np.float64]:
    """Weights of objects, when all are above zero; those of row `first` on."""
    weight = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
    bad = ~np.isfinite(weight) | (weight <= 0)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"Column {name!r} of weights must be above zero and finite, but row {first + row} "
            f"holds {values.iloc[row]!r}. Leave out objects that should not count."
        )
    return weight


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

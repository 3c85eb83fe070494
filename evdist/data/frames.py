"""Tables whose columns have names: CSV and Parquet files, and pandas frames.

pandas takes a third of a second to load, so `evdist.data.tables` loads this module on first use.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from evdist.data.pieces import readable, rows_at_once

#: The index of a frame, as pandas calls it in a Parquet file.
_INDEX = re.compile(r"__index_level_\d+__")
#: Rows of a frame in memory looked at together.
_ROWS = 1 << 16


def whole(name: str) -> pd.DataFrame:
    """All of a .csv(.gz) or .parquet table."""
    found = list(pieces(name))
    if not found:
        raise ValueError(f"{name} holds no rows.")
    return pd.concat(found)


def pieces(
    name: str, columns: Sequence[str] | None = None, delimiter: str | None = None
) -> Iterator[pd.DataFrame]:
    """Consecutive pieces of a .csv(.gz) or .parquet table, with the columns asked for."""
    if _is_csv(name):
        return _csv_pieces(name, columns, delimiter)
    return _parquet_pieces(name, columns)


def names(name: str, delimiter: str | None = None) -> list[str]:
    """Names of the columns of a .csv(.gz) or .parquet table."""
    with readable(name):
        if _is_csv(name):
            return _head(name, delimiter).used
        return _attributes(_parquet(name))


def _is_csv(name: str) -> bool:
    return name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


class _Head(NamedTuple):
    """What the first line of a CSV file tells."""

    #: All columns as they are called there; "" for that of row names.
    columns: list[str]
    #: Whether the line holds names, and not the first row.
    named: bool
    delimiter: str

    @property
    def used(self) -> list[str]:
        """Columns of values: not the first one when it has no name, which holds row names."""
        return [name for i, name in enumerate(self.columns) if i or name]


def _head(name: str, delimiter: str | None) -> _Head:
    # Names as they stand there: pandas would call the second of two equal ones a.1.
    read = partial(pd.read_csv, name, header=None, nrows=1, dtype=str, keep_default_na=False)
    if delimiter is None:
        delimiter = ","
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            for trial in (",", ";", "\t", "|"):
                if read(sep=trial).shape[1] > 1:
                    delimiter = trial
                    break
    first = [str(value).strip() for value in read(sep=delimiter).iloc[0]]
    if all(_is_number(value) for value in first):
        return _Head([f"column {i + 1}" for i in range(len(first))], False, delimiter)
    return _Head(first, True, delimiter)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def cut(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Consecutive pieces of a frame in memory, at least one; its columns are named by text."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    for lo in range(0, max(len(frame), 1), _ROWS):
        yield frame.iloc[lo : lo + _ROWS]


def _csv_pieces(
    name: str, columns: Sequence[str] | None = None, delimiter: str | None = None
) -> Iterator[pd.DataFrame]:
    with readable(name):
        head = _head(name, delimiter)
        wanted = list(head.used if columns is None else columns)
        # Columns by number, as names may stand there twice. All are read, the others as they are:
        # asked for some, pandas would not notice a row with too many values.
        numbers = list(range(len(head.columns)))
        others = {i: str for i in numbers if head.columns[i] not in wanted}
        rows = rows_at_once(len(numbers))
        with pd.read_csv(
            name, sep=head.delimiter, chunksize=rows, dtype=others, index_col=False,
            header=0 if head.named else None, names=numbers,
        ) as found:  # fmt: skip
            while (piece := _next(found)) is not None:
                yield piece.set_axis(head.columns, axis=1).loc[:, wanted]


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


def _attributes(table: pa.dataset.Dataset) -> list[str]:
    """Columns of values: the index that pandas writes under a name of its own is none of them."""
    return [name for name in table.schema.names if not _INDEX.fullmatch(name)]


def _parquet_pieces(name: str, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
    with readable(name):
        table = _parquet(name)
        wanted = list(_attributes(table) if columns is None else columns)
        rows = rows_at_once(len(wanted))
        for batch in table.to_batches(
            batch_size=rows, batch_readahead=1, fragment_readahead=1, columns=wanted
        ):
            # Every column stays one: pandas would make the index of what was one when it wrote.
            yield pa.Table.from_batches([batch]).to_pandas(ignore_metadata=True)


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
            used = _attributes(table)
            kinds = [table.schema.field(name).type for name in used]
            narrow = all(kind in (pa.float32(), pa.float16()) for kind in kinds)
            sizes = [group.num_rows for f in table.get_fragments() for group in f.row_groups]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        dtype = np.dtype(np.float32 if narrow else np.float64)
        return cls(name, tuple(used), dtype, first)

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
            found_rows = groups[number].to_table(columns=list(self.columns))
            frame = found_rows.to_pandas(ignore_metadata=True)
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
    return values.astype(object).where(values.notna(), "").map(str).to_numpy(dtype=object)


def weights(values: pd.Series, name: str, first: int) -> NDArray[np.float64]:
    """Weights of objects, when all are above zero; those of row `first` on."""
    weight = _as_numbers(values, repr(name)).to_numpy(dtype=float)
    bad = ~np.isfinite(weight) | (weight <= 0)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"Column {name!r} of weights must be above zero and finite, but row {first + row} "
            f"holds {values.iloc[row]!r}. Leave out objects that should not count."
        )
    return weight


def ids(values: pd.Series, name: str, first: int) -> NDArray[Any]:
    """Names of objects: whole numbers or text, none missing; those of row `first` on."""
    gone = values.isna().to_numpy()
    if gone.any():
        row = first + int(gone.argmax())
        raise ValueError(f"Column {name!r} of ids has no value in row {row}. Fill it in.")
    if pd.api.types.is_integer_dtype(values):
        return values.to_numpy()
    return np.array([str(value) for value in values], dtype=object)


def _as_numbers(values: pd.Series, what: str) -> pd.Series:
    """The values as numbers, NaN where one is none."""
    try:
        return pd.to_numeric(values.astype(object), errors="coerce")
    except OverflowError as error:
        raise ValueError(
            f"Column {what} contains a number that is too large. Change its unit, or "
            "leave that column out."
        ) from error


def refuse_text(frame: pd.DataFrame, name: str, first: int = 0) -> None:
    """Refuse columns of anything but numbers, naming the column and the first such row.

    The rows of the frame are those of the table from `first` on.
    """
    for place, column in enumerate(frame.columns):
        values = frame.iloc[:, place]
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_complex_dtype(values):
            continue
        number = _as_numbers(values, f"{column!r} of {name}")
        bad = (number.isna() & values.notna()).to_numpy()
        if pd.api.types.is_object_dtype(values) and not bad.any():
            continue  # numbers that a frame of mixed columns keeps as objects
        row = int(bad.argmax())
        raise ValueError(
            f"Column {column!r} of {name} is not numeric: row {first + row} holds "
            f"{values.iloc[row]!r}. "
            "Leave that column out, or encode the table as numbers: with "
            "evdist.features.TableEncoder in a pipeline, in a job with data.encode (--encode)."
        )

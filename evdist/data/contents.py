"""A table as it is given, read from front to back: rows of numbers, classes, weights; and what
one pass over it tells.

The fingerprint is that of the content, whatever file it came from and however it is cut.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evdist.data.pieces import array_pieces
from evdist.data.tables import column_names, frames, is_frame, table_pieces

if TYPE_CHECKING:
    import pandas as pd


#: Classes at most; more are an identifier, not a class.
_MOST_CLASSES = 100_000


class Piece(NamedTuple):
    """Some consecutive rows: numbers (r, d), classes as text (r,), weights (r,)."""

    X: NDArray[Any]
    label: NDArray[Any] | None
    weight: NDArray[Any] | None


@dataclass(frozen=True)
class Table:
    """Rows that can be read from front to back as often as needed, piece by piece.

    Parameters
    ----------
    source : path or URL, array, data frame, zarr or Dask array
    columns : names of the columns to use, None for all others than `label` and `weight`
    label, weight : names of columns
    drop : names of columns to leave out
    delimiter : str, optional
        Between the values of a CSV file; found out when it is not given.
    """

    source: Any
    columns: tuple[str, ...] | None = None
    label: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    delimiter: str | None = None

    @property
    def name(self) -> str:
        return str(self.source) if isinstance(self.source, str | Path) else "X"

    def names(self) -> list[str] | None:
        """Names of the columns used, None for arrays."""
        there = self._there()
        if there is None:
            return None
        aside = (self.label, self.weight, *self.drop)
        return list(self.columns or [name for name in there if name not in aside])

    def pieces(self) -> Iterator[Piece]:
        """The rows; text, missing columns and empty tables are refused."""
        used = self.names()
        if used is None:
            if self.label or self.weight or self.columns or self.drop:
                raise ValueError(
                    f"{self.name} is an array without names of columns; leave out columns, drop, "
                    "label and weight, or store it as CSV or Parquet."
                )
            for rows in self._arrays():
                if rows.ndim != 2 or rows.dtype.kind not in "fiub":
                    raise ValueError(
                        f"{self.name} must be a table of numbers, (rows, columns), got shape "
                        f"{rows.shape} of {rows.dtype}."
                    )
                yield Piece(rows, None, None)
            return
        self._check_names(used)
        read, first = frames(), 0
        for frame in self._frames(used):
            yield Piece(
                read.numbers(frame[used], self.name, first),
                None if self.label is None else read.classes(frame[self.label]),
                None
                if self.weight is None
                else read.weights(frame[self.weight], self.weight, first),
            )
            first += len(frame)

    def _there(self) -> list[str] | None:
        if is_frame(self.source):
            return [str(name) for name in self.source.columns]
        if not isinstance(self.source, str | Path):
            return None
        return column_names(self.source, self.delimiter)

    def _check_names(self, used: Sequence[str]) -> None:
        there = self._there() or []
        for name in (*used, *filter(None, (self.label, self.weight)), *self.drop):
            if name not in there:
                raise ValueError(
                    f"{self.name} has no column {name!r}; it has {', '.join(map(repr, there))}."
                )
            if there.count(name) > 1 or list(used).count(name) > 1:
                raise ValueError(f"{self.name}: two columns are called {name!r}. Rename one.")
        if not used:
            raise ValueError(f"{self.name} has no column left to use.")

    def _arrays(self) -> Iterator[NDArray[Any]]:
        if isinstance(self.source, str | Path):
            yield from table_pieces(self.source)
        elif hasattr(self.source, "dask"):
            whole_rows = getattr(self.source, "ndim", 1) == 2 and hasattr(self.source, "rechunk")
            rows = self.source.rechunk({1: -1}) if whole_rows else self.source
            for block in rows.to_delayed().ravel():
                yield np.asarray(block.compute())
        else:
            array = self.source if hasattr(self.source, "shape") else np.asarray(self.source)
            if not array.shape:
                raise ValueError(
                    f"{self.name} must be a table of numbers, (rows, columns), or the path of one, "
                    f"got {type(self.source).__name__}."
                )
            yield from array_pieces(array)

    def _frames(self, used: Sequence[str]) -> Iterator[pd.DataFrame]:
        if is_frame(self.source):
            yield from frames().cut(self.source)
        else:
            aside = [name for name in (self.label, self.weight) if name]
            yield from frames().pieces(str(self.source), [*used, *aside], self.delimiter)


# ---------------------------------------------------------------------- what is in a table
@dataclass(frozen=True)
class Contents:
    """What one pass over a table tells: its shape, its type, its classes and its fingerprint."""

    n: int
    d: int
    dtype: str
    columns: list[str] | None
    classes: list[str] | None
    weighted: bool
    fingerprint: str

    @property
    def nbytes(self) -> int:
        """Of the rows, before compression."""
        return self.n * self.d * np.dtype(self.dtype).itemsize


@dataclass
class Digest:
    """SHA-256 of rows in their order, however they were cut into pieces."""

    rows: Any = field(default_factory=hashlib.sha256)
    label: Any = field(default_factory=hashlib.sha256)
    weight: Any = field(default_factory=hashlib.sha256)

    def add(self, X: NDArray[Any], label: NDArray[Any] | None, weight: NDArray[Any] | None) -> None:
        self.rows.update(np.ascontiguousarray(X, X.dtype.newbyteorder("<")).view(np.uint8).data)
        if label is not None:
            self.label.update("\0".join([*label.tolist(), ""]).encode())
        if weight is not None:
            self.weight.update(np.ascontiguousarray(weight, "<f8").view(np.uint8).data)

    def text(self, shape: tuple[int, int], dtype: str, columns: list[str] | None) -> str:
        parts = [self.rows, self.label, self.weight]
        known = json.dumps([list(shape), dtype, columns, [part.hexdigest() for part in parts]])
        return hashlib.sha256(known.encode()).hexdigest()


def read_contents(table: Table, tell: Callable[[int], None] | None = None) -> Contents:
    """Read a table once; `tell` hears how many rows were read."""
    n, d, dtype = 0, 0, ""
    digest = Digest()
    classes: dict[str, None] = {}
    label, weighted = table.label is not None, table.weight is not None
    for piece in table.pieces():
        d = d or piece.X.shape[1]
        dtype = dtype or ("float32" if piece.X.dtype in (np.float32, np.float16) else "float64")
        digest.add(piece.X.astype(dtype, copy=False), piece.label, piece.weight)
        if piece.label is not None:
            classes.update(dict.fromkeys(piece.label.tolist()))
            if len(classes) > _MOST_CLASSES:
                raise ValueError(
                    f"Column {table.label!r} has more than {_MOST_CLASSES:,} different values: "
                    "an identifier, not a class. Leave out label."
                )
        n += len(piece.X)
        if tell is not None:
            tell(n)
    if n == 0 or d == 0:
        raise ValueError(f"{table.name} holds no rows.")
    columns = table.names()
    names = sorted(name for name in classes if name) if label else None
    return Contents(n, d, dtype, columns, names, weighted, digest.text((n, d), dtype, columns))

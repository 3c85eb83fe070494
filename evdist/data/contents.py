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
from evdist.data.tables import (
    as_frame,
    column_names,
    frames,
    is_frame,
    is_lazy_frame,
    table_pieces,
)
from evdist.partition.ids import ids_of, storable

if TYPE_CHECKING:
    import pandas as pd


#: Classes at most; more are an identifier, not a class.
_MOST_CLASSES = 100_000


class Piece(NamedTuple):
    """Some consecutive rows: numbers (r, d), classes as text (r,), weights (r,), ids (r,)."""

    X: NDArray[Any]
    label: NDArray[Any] | None = None
    weight: NDArray[Any] | None = None
    id: NDArray[Any] | None = None


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
    id : name of the column that names the objects; without one the index of a data frame does,
        unless it only counts the rows
    encoding : how columns of any kind become numbers; None where they are numbers already
    """

    source: Any
    columns: tuple[str, ...] | None = None
    label: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    delimiter: str | None = None
    id: str | None = None
    encoding: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", as_frame(self.source))

    @property
    def name(self) -> str:
        return str(self.source) if isinstance(self.source, str | Path) else "X"

    def names(self) -> list[str] | None:
        """Names of the columns used, None for arrays."""
        there = self.there()
        if there is None:
            return None
        aside = (self.label, self.weight, self.id, *self.drop)
        return list(self.columns or [name for name in there if name not in aside])

    def columns_out(self) -> list[str] | None:
        """Names of the columns of numbers, None for arrays."""
        return self.names() if self.encoding is None else self.encoding.names

    def raw_pieces(self) -> Iterator[pd.DataFrame]:
        """The columns used, as they stand there."""
        used = self.names()
        if used is None:
            raise ValueError(f"{self.name} is an array of numbers: there is nothing to encode.")
        self._check_names(used)
        return (frame[used] for frame in self._frames(used))

    def pieces(self) -> Iterator[Piece]:
        """The rows; text, missing columns and empty tables are refused."""
        used = self.names()
        if used is None:
            if self.label or self.weight or self.columns or self.drop or self.id:
                raise ValueError(
                    f"{self.name} is an array without names of columns; leave out columns, drop, "
                    "label, weight and id, or store it as CSV or Parquet."
                )
            for rows in self._arrays():
                if rows.ndim != 2 or rows.dtype.kind not in "fiub":
                    raise ValueError(
                        f"{self.name} must be a table of numbers, (rows, columns), got shape "
                        f"{rows.shape} of {rows.dtype}."
                    )
                yield Piece(rows)
            return
        self._check_names(used)
        # Pieces of a table without ids count on from where the one before ended.
        indexed = ids_of(self.source) is not None
        read, first = frames(), 0
        for frame in self._frames(used):
            yield Piece(
                read.numbers(frame[used], self.name, first)
                if self.encoding is None
                else self.encoding(frame[used], first),
                None if self.label is None else read.classes(frame[self.label]),
                None
                if self.weight is None
                else read.weights(frame[self.weight], self.weight, first),
                (ids_of(frame) if indexed else None)
                if self.id is None
                else read.ids(frame[self.id], self.id, first),
            )
            first += len(frame)

    def there(self) -> list[str] | None:
        """Names of all columns, None for arrays."""
        if is_frame(self.source) or is_lazy_frame(self.source):
            return [str(name) for name in self.source.columns]
        if not isinstance(self.source, str | Path):
            return None
        return column_names(self.source, self.delimiter)

    def _check_names(self, used: Sequence[str]) -> None:
        there = self.there() or []
        for name in (*used, *filter(None, (self.label, self.weight, self.id)), *self.drop):
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
        elif is_lazy_frame(self.source):
            for part in self.source.partitions:
                yield from frames().cut(part.compute())
        else:
            aside = [name for name in (self.label, self.weight, self.id) if name]
            # A column may be an attribute and a weight: it is read once.
            wanted = list(dict.fromkeys([*used, *aside]))
            yield from frames().pieces(str(self.source), wanted, self.delimiter)


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
    #: Whether objects have ids: None, "number" or "text".
    ids: str | None = None
    #: How the columns were made numbers, as JSON.
    encoding: list[dict[str, Any]] | None = None

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
    id: Any = None

    def add(
        self,
        X: NDArray[Any],
        label: NDArray[Any] | None,
        weight: NDArray[Any] | None,
        ids: NDArray[Any] | None = None,
    ) -> None:
        if ids is not None:
            self.id = self.id or hashlib.sha256()
            self.id.update("\0".join([*map(str, storable(ids).tolist()), ""]).encode())
        self.rows.update(np.ascontiguousarray(X, X.dtype.newbyteorder("<")).view(np.uint8).data)
        if label is not None:
            self.label.update("\0".join([*label.tolist(), ""]).encode())
        if weight is not None:
            self.weight.update(np.ascontiguousarray(weight, "<f8").view(np.uint8).data)

    def text(self, shape: tuple[int, int], dtype: str, columns: list[str] | None) -> str:
        # Ids only where there are some: fingerprints of data without them stay what they were.
        parts = [self.rows, self.label, self.weight, *([self.id] if self.id else [])]
        known = json.dumps([list(shape), dtype, columns, [part.hexdigest() for part in parts]])
        return hashlib.sha256(known.encode()).hexdigest()


def read_contents(table: Table, tell: Callable[[int], None] | None = None) -> Contents:
    """Read a table once; `tell` hears how many rows were read."""
    n, d, dtype = 0, 0, ""
    ids: str | None = None
    digest = Digest()
    classes: dict[str, None] = {}
    label, weighted = table.label is not None, table.weight is not None
    for piece in table.pieces():
        d = d or piece.X.shape[1]
        dtype = dtype or ("float32" if piece.X.dtype in (np.float32, np.float16) else "float64")
        digest.add(piece.X.astype(dtype, copy=False), piece.label, piece.weight, piece.id)
        if piece.id is not None:
            kind = "number" if storable(piece.id).dtype.kind == "i" else "text"
            ids = "text" if "text" in (ids, kind) else "number"
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
    columns = table.columns_out()
    names = sorted(name for name in classes if name) if label else None
    mark = digest.text((n, d), dtype, columns)
    encoding = None if table.encoding is None else table.encoding.to_json()
    return Contents(n, d, dtype, columns, names, weighted, mark, ids, encoding)

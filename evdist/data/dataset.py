"""A data set in a store: rows of numbers, checked and fingerprinted, known classes beside them.

```
data.zarr/  zarr v3 group; attributes {"evdist": "data", "version": 1, "n", "d", "dtype",
            "columns", "classes", "fingerprint", "seal", "complete"}
  X         (n, d) float32 or float64, chunks of whole rows
  label     (n,) int32 numbers into "classes", -1 where unknown; only where there are labels
  weight    (n,) float64; only where there are weights
```
The fingerprint is that of the content, whatever file it came from. A store is filled chunk by
chunk; what a stopped writer has left is kept, and only what is missing is written again. Chunks end
with a checksum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.data.tables import array_pieces, column_names, frames, is_frame, table_pieces
from evdist.stores.encoding import (
    COMPRESSOR,
    StoreError,
    check_encoding,
    check_seal,
    checked,
    chunk_bounds,
    chunk_rows,
    open_group,
    reading,
    seal,
)
from evdist.stores.paths import Url, address, children, exists, join, remove

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Contents", "Dataset", "Table", "is_dataset", "read_contents", "write_dataset"]

KIND, VERSION = "data", 1
_CURE = "Remove it and load the data again."
_SEALED = ("evdist", "version", "n", "d", "dtype", "columns", "classes", "fingerprint")
#: Classes at most; more are an identifier, not a class.
_MOST_CLASSES = 100_000


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows: numbers (r, d), classes as text (r,), weights (r,)."""

    X: NDArray
    label: NDArray | None
    weight: NDArray | None


@dataclass(frozen=True)
class Table:
    """Rows that can be read from front to back as often as needed, piece by piece.

    Parameters
    ----------
    source : path or URL, array, data frame, zarr or Dask array
    columns : names of the columns to use, None for all others than `label` and `weight`
    label, weight : names of columns
    drop : names of columns to leave out
    """

    source: Any
    columns: tuple[str, ...] | None = None
    label: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()

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
        return column_names(self.source) if isinstance(self.source, str | Path) else None

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

    def _arrays(self) -> Iterator[NDArray]:
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
            yield from frames().pieces(str(self.source), [*used, *aside])


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


@dataclass
class _Digest:
    """SHA-256 of rows in their order, however they were cut into pieces."""

    rows: Any = field(default_factory=hashlib.sha256)
    label: Any = field(default_factory=hashlib.sha256)
    weight: Any = field(default_factory=hashlib.sha256)

    def add(self, X: NDArray, label: NDArray | None, weight: NDArray | None) -> None:
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
    digest = _Digest()
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


# ---------------------------------------------------------------------- the store
def is_dataset(url: Url) -> bool:
    """Whether the address is that of a store of this kind, whole or not."""
    try:
        return zarr.open_group(address(url), mode="r").attrs.get("evdist") == KIND
    except (OSError, ValueError, TypeError, KeyError):
        return False


def write_dataset(
    table: Table, url: Url, contents: Contents, tell: Callable[[int], None] | None = None
) -> Dataset:
    """Write a table to a store; of one begun before, only the chunks that are missing or damaged.

    The store there must be of the same content; `tell` hears how many rows are stored.
    """
    url = address(url)
    group = _group(url, contents)
    if group.attrs.get("complete") is True:
        return Dataset.open(url)
    X = group["X"]
    assert isinstance(X, zarr.Array)
    rows = X.chunks[0]
    there = set(children(join(url, "X/c"))) if exists(join(url, "X/c")) else set()
    number = {name: i for i, name in enumerate(contents.classes or [])}
    label = np.full(contents.n, -1, np.int32) if contents.classes is not None else None
    weight = np.empty(contents.n) if contents.weighted else None
    digest, lo = _Digest(), 0
    for piece in _regrouped(table.pieces(), rows):
        block = piece.X.astype(contents.dtype, copy=False)
        digest.add(block, piece.label, piece.weight)
        hi = lo + len(block)
        if hi > contents.n or block.shape[1] != contents.d:
            break  # the digest tells
        if str(lo // rows) not in there or not _holds(X, lo, hi, block):
            X[lo:hi] = block
        if label is not None and piece.label is not None:
            label[lo:hi] = [number.get(name, -1) for name in piece.label.tolist()]
        if weight is not None:
            weight[lo:hi] = piece.weight
        lo = hi
        if tell is not None:
            tell(lo)
    shape = (contents.n, contents.d)
    if lo != contents.n or digest.text(shape, contents.dtype, contents.columns) != (
        contents.fingerprint
    ):
        remove(url)
        raise StoreError(f"{table.name} changed while it was read. Start again when it is at rest.")
    for name, values in (("label", label), ("weight", weight)):
        if values is not None:
            target = group.create_array(
                name, shape=values.shape, chunks=values.shape, dtype=values.dtype,
                compressors=checked(COMPRESSOR), overwrite=True,
            )  # fmt: skip
            target[:] = values
    group.attrs["complete"] = True
    return Dataset.open(url)


def _holds(X: zarr.Array, lo: int, hi: int, block: NDArray) -> bool:
    """Whether these rows lie there as they should: a power cut may leave a chunk cut off."""
    try:
        there = np.ascontiguousarray(X[lo:hi])
    except ValueError:
        return False
    return there.tobytes() == np.ascontiguousarray(block).tobytes()


def _group(url: str, contents: Contents) -> zarr.Group:
    """The store, new or begun before."""
    sealed = seal(
        {
            "evdist": KIND,
            "version": VERSION,
            "n": contents.n,
            "d": contents.d,
            "dtype": contents.dtype,
            "columns": contents.columns,
            "classes": contents.classes,
            "fingerprint": contents.fingerprint,
        }
    )
    if exists(join(url, "X/zarr.json")):
        group = open_group(url, "data set", "r+")
        attributes: Any = dict(group.attrs)
        check_encoding(url, attributes, KIND, VERSION)
        if attributes.get("seal") != sealed["seal"]:
            raise StoreError(
                f"{url} holds other data: remove it, or store these under another name."
            )
        return group
    group = zarr.open_group(url, mode="a", zarr_format=3)
    group.attrs.update({**sealed, "complete": False})
    itemsize = np.dtype(contents.dtype).itemsize
    group.create_array(
        "X",
        shape=(contents.n, contents.d),
        chunks=(chunk_rows(contents.n, itemsize * contents.d), contents.d),
        dtype=contents.dtype,
        fill_value=float("nan"),
        compressors=checked(COMPRESSOR),
    )
    return group


def _regrouped(pieces: Iterator[Piece], rows: int) -> Iterator[Piece]:
    """The same rows in pieces of exactly `rows`, the last one shorter."""
    waiting: list[Piece] = []
    count = 0
    for piece in pieces:
        at = 0
        while at < len(piece.X):
            take = min(rows - count, len(piece.X) - at)
            part = slice(at, at + take)
            waiting.append(
                Piece(
                    piece.X[part],
                    None if piece.label is None else piece.label[part],
                    None if piece.weight is None else piece.weight[part],
                )
            )
            at, count = at + take, count + take
            if count == rows:
                yield _joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Piece]) -> Piece:
    def together(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)

    return Piece(together("X"), together("label"), together("weight"))


@dataclass(frozen=True)
class Dataset:
    """A finished store: `X` is read when it is needed; labels and weights are in memory."""

    url: str
    X: Any
    columns: list[str] | None
    classes: list[str] | None
    label: NDArray[np.int32] | None
    weight: NDArray[np.float64] | None
    fingerprint: str

    @property
    def n(self) -> int:
        return self.X.shape[0]

    @property
    def d(self) -> int:
        return self.X.shape[1]

    @classmethod
    def open(cls, url: Url) -> Dataset:
        url = address(url)
        group = open_group(url, "data set")
        attributes: Any = dict(group.attrs)
        check_encoding(url, attributes, KIND, VERSION)
        check_seal(url, attributes, _SEALED, _CURE)
        if attributes.get("complete") is not True:
            raise StoreError(f"{url} is half written: the upload did not finish. Submit it again.")
        X = group.get("X")
        shape = (attributes["n"], attributes["d"])
        if not isinstance(X, zarr.Array) or X.shape != shape or X.dtype != attributes["dtype"]:
            raise StoreError(f"{url} is damaged: the rows are lost or were changed. {_CURE}")
        if X.nchunks_initialized != X.nchunks:
            missing = X.nchunks - X.nchunks_initialized
            raise StoreError(f"{url} is damaged: {missing} of {X.nchunks} chunks are lost. {_CURE}")
        with reading(url, _CURE):
            aside = {
                name: np.asarray(found[:]) if isinstance(found := group.get(name), zarr.Array)
                else None
                for name in ("label", "weight")
            }  # fmt: skip
        return cls(
            url, X, attributes["columns"], attributes["classes"],
            aside["label"], aside["weight"], attributes["fingerprint"],
        )  # fmt: skip

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """(lo, hi) of every chunk of rows."""
        return chunk_bounds(self.n, self.X.chunks[0])

    def read(self, lo: int, hi: int) -> NDArray:
        """Rows lo..hi-1; a damaged chunk is refused."""
        with reading(self.url, _CURE):
            return np.asarray(self.X[lo:hi])

    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """(first row, rows), chunk by chunk."""
        for lo, hi in self.chunks:
            yield lo, self.read(lo, hi)

    def rows(self) -> NDArray:
        """All rows, in memory."""
        X = np.empty(self.X.shape, self.X.dtype)
        for lo, block in self.blocks():
            X[lo : lo + len(block)] = block
        return X

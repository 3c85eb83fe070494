"""A data set in a store: rows of numbers, checked and fingerprinted, known classes beside them.

```
data.zarr/  zarr v3 group; attributes {"evdist": "data", "version": 1, "n", "d", "dtype",
            "columns", "classes", "fingerprint", "seal", "complete"}
  X         (n, d) float32 or float64, chunks of whole rows
  label     (n,) int32 numbers into "classes", -1 where unknown; only where there are labels
  weight    (n,) float64; only where there are weights
  id        (n,) int64 or text; only where objects have ids
```
A store is filled chunk by chunk by one process at a time; what a stopped writer has left is kept,
and only what is missing is written again. Chunks end with a checksum. "complete" is written last,
in one step; a store that has it is never opened for writing again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.data.contents import Contents, Digest, Piece, Table, read_contents
from evdist.data.pieces import regrouped
from evdist.partition.ids import storable
from evdist.stores.encoding import (
    UNREADABLE,
    StoreError,
    check_encoding,
    check_seal,
    checked,
    chunk_bounds,
    chunk_rows,
    compressor,
    open_group,
    reading,
    seal,
    zarr_at,
)
from evdist.stores.lease import Lease, beating
from evdist.stores.paths import Url, address, alone, children, exists, is_local, join, remove

__all__ = ["Contents", "Dataset", "Table", "is_complete", "is_dataset", "read_contents"]
__all__ += ["write_dataset"]

KIND, VERSION = "data", 1
_CURE = "Remove it and load the data again."
#: Seconds to wait for another process that writes the same store.
_PATIENCE = 3600.0
_SEALED = ("evdist", "version", "n", "d", "dtype", "columns", "classes", "fingerprint")


def is_dataset(url: Url) -> bool:
    """Whether the address is that of a store of this kind, whole or not."""
    try:
        return zarr.open_group(**zarr_at(address(url)), mode="r").attrs.get("evdist") == KIND
    except (OSError, *UNREADABLE):
        return False


def is_complete(url: Url, fingerprint: str | None = None) -> bool:
    """Whether a whole store lies there, of this content if one is named; it is only looked at."""
    if not exists(join(address(url), "zarr.json")):
        return False
    attributes = dict(open_group(address(url), "data set").attrs)
    same = fingerprint is None or attributes.get("fingerprint") == fingerprint
    return attributes.get("complete") is True and same


def write_dataset(
    table: Table, url: Url, contents: Contents, tell: Callable[[int], None] | None = None
) -> Dataset:
    """Write a table to a store; of one begun before, only the chunks that are missing or damaged.

    The store there must be of the same content; `tell` hears how many rows are stored.
    """
    url = address(url)
    with _only_writer(url) as still_ours:
        if not is_complete(url, contents.fingerprint):
            _write(table, url, contents, tell, still_ours)
    return Dataset.open(url)


@contextmanager
def _only_writer(url: str) -> Iterator[Callable[[], None]]:
    """Wait until no other process writes there; what to call before a step that others see."""
    if is_local(url):
        os.makedirs(os.path.dirname(url), exist_ok=True)
        with alone(f"{url}.lock", _PATIENCE):
            yield lambda: None
        return
    lease = Lease(f"{url}.lease")
    with lease.held(_PATIENCE), beating(lease):
        yield lease.check


def _write(
    table: Table,
    url: str,
    contents: Contents,
    tell: Callable[[int], None] | None,
    still_ours: Callable[[], None],
) -> None:
    """All that is missing, then the word that nothing is, in one step."""
    group = _group(url, contents)
    X = group["X"]
    assert isinstance(X, zarr.Array)
    rows = X.chunks[0]
    there = set(children(join(url, "X/c")))
    number = {name: i for i, name in enumerate(contents.classes or [])}
    label = np.full(contents.n, -1, np.int32) if contents.classes is not None else None
    weight = np.empty(contents.n) if contents.weighted else None
    ids = None
    if contents.ids is not None:
        ids = np.empty(contents.n, dtype=np.int64 if contents.ids == "number" else object)
    digest, lo = Digest(), 0
    for piece in map(Piece._make, regrouped(table.pieces(), rows)):
        block = piece.X.astype(contents.dtype, copy=False)
        digest.add(block, piece.label, piece.weight, piece.id)
        hi = lo + len(block)
        if hi > contents.n or block.shape[1] != contents.d:
            break  # the digest tells
        if str(lo // rows) not in there or not _holds(X, lo, hi, block):
            X[lo:hi] = block
        if label is not None and piece.label is not None:
            label[lo:hi] = [number.get(name, -1) for name in piece.label.tolist()]
        if weight is not None:
            weight[lo:hi] = piece.weight
        if ids is not None and piece.id is not None:
            names = storable(piece.id)
            ids[lo:hi] = names if contents.ids == "number" else [str(name) for name in names]
        lo = hi
        if tell is not None:
            tell(lo)
    shape = (contents.n, contents.d)
    if lo != contents.n or digest.text(shape, contents.dtype, contents.columns) != (
        contents.fingerprint
    ):
        still_ours()
        remove(url)
        raise StoreError(
            f"{table.name} changed while it was read. Start again when it no longer changes."
        )
    if table.id is not None and ids is not None:
        _refuse_twice(ids, table.id, url)
    for name, values in (("label", label), ("weight", weight), ("id", ids)):
        if values is not None:
            # Never anew in the place of what is there: a reader would see it empty.
            target = group.require_array(
                name, shape=values.shape, chunks=values.shape,
                dtype=str if values.dtype == object else values.dtype,
                compressors=checked(compressor()),
            )  # fmt: skip
            target[:] = values
    still_ours()
    group.attrs["complete"] = True


def _refuse_twice(ids: NDArray[Any], column: str, url: str) -> None:
    """An id that two objects have joins neither."""
    seen: dict[Any, int] = {}
    for row, value in enumerate(ids.tolist()):
        if value in seen:
            remove(url)
            raise ValueError(
                f"Column {column!r} of ids holds {value!r} twice, in rows {seen[value]} and {row}. "
                "Choose a column that names each object once, or remove the copy."
            )
        seen[value] = row


def _holds(X: zarr.Array[Any], lo: int, hi: int, block: NDArray[Any]) -> bool:
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
    group = zarr.open_group(**zarr_at(url), mode="a")
    group.update_attributes({**sealed, "complete": False, "encoding": contents.encoding})
    itemsize = np.dtype(contents.dtype).itemsize
    group.create_array(
        "X",
        shape=(contents.n, contents.d),
        chunks=(chunk_rows(contents.n, itemsize * contents.d), contents.d),
        dtype=contents.dtype,
        fill_value=float("nan"),
        compressors=checked(compressor()),
    )
    return group


def _beside(url: str, group: zarr.Group, name: str) -> NDArray[Any] | None:
    """An array with one value per row, None where there is none."""
    with reading(url, _CURE):
        found = group.get(name)
    if not isinstance(found, zarr.Array):
        return None
    if found.nchunks_initialized != found.nchunks:
        raise StoreError(f"{url} is damaged: the values of {name!r} are lost. {_CURE}")
    with reading(url, _CURE):
        return np.asarray(found[:])


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
    ids: NDArray[Any] | None = None
    encoding: list[dict[str, Any]] | None = None

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
        with reading(url, _CURE):
            X = group.get("X")
        shape = (attributes["n"], attributes["d"])
        if not isinstance(X, zarr.Array) or X.shape != shape or X.dtype != attributes["dtype"]:
            raise StoreError(f"{url} is damaged: the rows are lost or were changed. {_CURE}")
        if X.nchunks_initialized != X.nchunks:
            missing = X.nchunks - X.nchunks_initialized
            raise StoreError(f"{url} is damaged: {missing} of {X.nchunks} chunks are lost. {_CURE}")
        aside = {name: _beside(url, group, name) for name in ("label", "weight", "id")}
        if (aside["label"] is None) != (attributes["classes"] is None):
            raise StoreError(f"{url} is damaged: the classes of the rows are lost. {_CURE}")
        ids = aside["id"]
        if ids is not None and ids.dtype.kind not in "iu":
            ids = ids.astype(object)
        return cls(
            url, X, attributes["columns"], attributes["classes"],
            aside["label"], aside["weight"], attributes["fingerprint"], ids,
            attributes.get("encoding"),
        )  # fmt: skip

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """(lo, hi) of every chunk of rows."""
        return chunk_bounds(self.n, self.X.chunks[0])

    def read(self, lo: int, hi: int) -> NDArray[Any]:
        """Rows lo..hi-1; a damaged chunk is refused."""
        with reading(self.url, _CURE):
            return np.asarray(self.X[lo:hi])

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """(first row, rows), chunk by chunk."""
        for lo, hi in self.chunks:
            yield lo, self.read(lo, hi)

    def rows(self) -> NDArray[Any]:
        """All rows, in memory."""
        X = np.empty(self.X.shape, self.X.dtype)
        for lo, block in self.blocks():
            X[lo : lo + len(block)] = block
        return X

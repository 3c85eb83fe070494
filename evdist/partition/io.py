"""Credal partitions on disk or in object storage: zarr v3 stores and NumPy archives.

```
NAME/       zarr v3 group; attributes {"evdist": "masses", "version": 1, "focal_sets",
            "n_clusters", "complete"}
  mass      (n, f) float32 or float64, chunks of whole rows
  id        (n,) int64 or text; only where the objects have ids
NAME.npz    the same attributes as JSON text under "attributes", "mass", and "id" where there is one
```
Lists of clusters (`evdist.partition.sparse`) are stored as such, never as (n, f) numbers:
```
NAME/       as above, with "version": 2 and "layout", the number of the layout of a row
            (`evdist.kernels.sparse_rows`)
  rows      (n, 32) float32, chunks of whole rows: masses on the empty set and on Omega, numbers q
            and masses of at most 20 others; number q is that of the focal set in column 1 + q
  id        as above
NAME.npz    "rows" for "mass"
```
Dense masses have version 1, whatever the number of clusters, and are read as before. Clusters are
numbered from 0 in "focal_sets"; so they were in every version. Tables (.csv, .parquet)
are for others to read: see `evdist.partition.export`.
``complete`` becomes true after the last chunk is written: a store without it is refused. Objects
may be added to a finished zarr store later (`evdist.stores.growth`).
"""

from __future__ import annotations

import errno
import json
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import fsspec
import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.kernels.sparse_rows import LAYOUT, WORDS
from evdist.partition.ids import storable
from evdist.partition.rows import map_rows, write_rows
from evdist.partition.sparse import SparseMasses
from evdist.partition.validate import check_lists, check_rows
from evdist.stores.encoding import (
    UNREADABLE,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
    as_written,
    check_encoding,
    checked,
    chunk_rows,
    compressor,
    open_group,
    reading,
    zarr_at,
)
from evdist.stores.growth import append_rows
from evdist.stores.paths import Url, address, exists, join

KIND = "masses"
#: Versions of dense masses and of lists, and the names of their arrays.
VERSION, LISTS_VERSION = 1, 2
_ARRAYS = {VERSION: "mass", LISTS_VERSION: "rows"}
_CURE = "Restore it from a copy."
#: Endings of tables.
TABLES = (".csv", ".parquet")
#: Endings of files that are something else: a folder called q.xlsx would be a surprise.
_STRANGE = {".tsv", ".txt", ".json", ".xls", ".xlsx", ".npy", ".pkl", ".pickle", ".feather", ".h5"}
_STRANGE |= {".gz", ".pq", ".html", ".xml", ".yaml", ".hdf5", ".arrow"}
#: About what an id takes.
_ID_BYTES = 16


def is_table(url: Url) -> bool:
    """Whether the ending is that of a table, not of a store."""
    return address(url).endswith(TABLES)


def new_place(url: Url) -> str:
    """The address, when nothing is there and the ending is one that evdist writes."""
    url = address(url)
    if exists(url):
        raise StoreExistsError(f"{url} exists already. Remove it, or save under another name.")
    ending = PurePosixPath(url.rstrip("/")).suffix
    if ending.lower() in _STRANGE:
        raise ValueError(
            f"A credal partition is not saved as {ending}: write a .csv or .parquet table, a .npz "
            f"archive or a .zarr store, got {url}."
        )
    return url


def write(url: Url, mass: Any, focal_sets: FocalSets, ids: NDArray[Any] | None = None) -> None:
    """Write masses, focal sets and ids to a new ``.npz`` archive or zarr store."""
    url = new_place(url)
    names = {} if ids is None else {"id": storable(ids)}
    lists = isinstance(mass, SparseMasses)
    table = mass.rows if lists else mass
    block = partial(_checked, names=focal_sets.names, lists=lists)
    if url.endswith(".npz"):
        found = map_rows(block, table, width=table.shape[1], dtype=_stored(mass))
        attributes = _attributes(focal_sets, lists=lists, complete=True)
        with fsspec.open(url, "wb") as file:
            content = {
                "attributes": np.array(json.dumps(attributes)),
                _ARRAYS[attributes["version"]]: np.asarray(found),
                **_packed(names),
            }
            np.savez(file, **content)  # type: ignore[arg-type]
        return
    write_rows(block, table, begin(url, mass.shape[0], focal_sets, _stored(mass), lists=lists))
    group = open_group(url, "credal partition", "r+")
    for name, values in names.items():
        kept = group.create_array(
            name,
            shape=values.shape,
            dtype=str if values.dtype == object else values.dtype,
            chunks=(chunk_rows(len(values), _ID_BYTES),),
            compressors=checked(compressor()),
        )
        kept[:] = values
    finish(url)


def begin(
    url: Url, n: int, focal_sets: FocalSets, dtype: np.dtype, *, lists: bool = False
) -> zarr.Array[Any]:
    """Make a zarr store that is yet to be filled, by one writer or several; its array.

    With `lists` it is for encoded rows (`evdist.kernels.sparse_rows`), else for masses.
    """
    attributes = _attributes(focal_sets, lists=lists, complete=False)
    width = WORDS if lists else len(focal_sets)
    group = zarr.open_group(**zarr_at(address(url)), mode="w-")
    group.update_attributes(attributes)
    return group.create_array(
        _ARRAYS[attributes["version"]],
        shape=(n, width),
        dtype=dtype,
        chunks=(chunk_rows(n, dtype.itemsize * width), width),
        compressors=checked(compressor()),
    )


def finish(url: Url) -> None:
    """Say that all rows of a store are there."""
    open_group(address(url), "credal partition", "r+").attrs["complete"] = True


def read(url: Url) -> tuple[Any, FocalSets, NDArray[Any] | None]:
    """Masses, focal sets and ids; masses of a zarr store as an array that is read when needed.

    Lists of clusters as a `SparseMasses`, whose rows are then such an array.
    """
    url = address(url)
    if is_table(url):
        raise StoreError(
            f"{url} is a table, which need not hold all masses. Load a .npz archive or a store."
        )
    mass, ids, attributes = _read_npz(url) if url.endswith(".npz") else _read_zarr(url)
    focal_sets = _focal_sets(url, attributes)
    if mass is None:
        name = _ARRAYS[attributes["version"]]
        raise StoreError(f"{url} has no array {name!r}: it is not a whole credal partition.")
    if attributes["version"] == LISTS_VERSION:
        mass = _lists(url, mass, attributes, focal_sets.n_clusters)
    return mass, focal_sets, ids


def _lists(url: str, rows: Any, attributes: dict[str, Any], c: int) -> SparseMasses:
    if attributes.get("layout") != LAYOUT:
        raise StoreError(
            f"{url} has lists of layout {attributes.get('layout')!r}, this evdist reads layout "
            f"{LAYOUT}. Read it with the evdist that wrote it."
        )
    shape, dtype = getattr(rows, "shape", None), getattr(rows, "dtype", None)
    if shape is None or len(shape) != 2 or shape[1] != WORDS or dtype != np.float32:
        raise StoreError(
            f"{url} is not as it was written: lists are rows of {WORDS} float32 words, got shape "
            f"{shape} of {dtype}. {_CURE}"
        )
    return SparseMasses(rows, c)


def append(url: Url, blocks: Iterable[Any], ids: NDArray[Any] | None = None) -> None:
    """Add masses to a finished zarr store; it stays as it was until the last block is written.

    Blocks are masses or `SparseMasses`; a store of lists makes lists of them. Where the objects
    there have ids, `ids` are those of all objects, old and new. There must be no other writer.
    """
    url = address(url)
    mass, focal_sets, old = read(url)
    lists = isinstance(mass, SparseMasses)
    if isinstance(mass.rows if lists else mass, np.ndarray):
        raise StoreError(f"{url} is a NumPy archive, which cannot grow. Save it as a zarr store.")
    if old is not None and ids is not None:
        # Ids beyond the last mass are those of an attempt that was stopped: no reader sees them.
        fresh = storable(ids[len(old) :])
        text = old.dtype == object
        if not text and fresh.dtype == object:
            raise ValueError(
                f"The ids in {url} are whole numbers, but new object 0 is {fresh[0]!r}. Use the "
                "same kind of ids."
            )
        _write_ids(join(url, "id"), len(old), fresh.astype(str).astype(object) if text else fresh)
    fresh_rows = _checked_in_turn(blocks, mass.shape[0], focal_sets.names, lists)
    append_rows(join(url, _ARRAYS[LISTS_VERSION if lists else VERSION]), fresh_rows)


def _checked_in_turn(
    blocks: Iterable[Any], first: int, names: tuple[str, ...], lists: bool
) -> Iterator[NDArray[Any]]:
    for block in blocks:
        if lists and block.shape[1] != len(names):
            raise StoreError(f"New masses must have {len(names)} columns, got {block.shape[1]}.")
        if isinstance(block, SparseMasses):
            rows = _checked(block.in_memory().rows, first, names, lists=True)
            yield rows if lists else np.asarray(block)
        else:
            mass = _checked(block, first, names, lists=False)
            yield SparseMasses.of(mass).rows if lists else mass
        first += len(block)


def _write_ids(url: str, first: int, ids: NDArray[Any]) -> None:
    array = zarr.open_array(**zarr_at(url), mode="r+")
    array.resize((first + len(ids),))
    array[first:] = ids


def _packed(names: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Text as NumPy archives hold it without pickling."""
    return {key: a.astype(str) if a.dtype == object else a for key, a in names.items()}


def _read_npz(url: str) -> tuple[NDArray[Any] | None, NDArray[Any] | None, dict[str, Any]]:
    if not exists(url):
        raise StoreNotFoundError(f"There is no credal partition at {url}.")
    try:
        with fsspec.open(url, "rb") as file, np.load(file, allow_pickle=False) as archive:
            text = str(archive["attributes"]) if "attributes" in archive else "{}"
            ids = archive["id"] if "id" in archive else None
            attributes = json.loads(text)
            name = _array_of(attributes)
            return archive[name] if name in archive else None, ids, attributes
    except (zipfile.BadZipFile, OSError, *UNREADABLE) as error:
        # A damaged archive may send its reader to a place outside the file.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise StoreError(
            f"{url} is not a whole NumPy archive of a credal partition ({error}). Was it written "
            "to the end?"
        ) from error


def _read_zarr(url: str) -> tuple[Any, NDArray[Any] | None, dict[str, Any]]:
    group = open_group(url, "credal partition")
    with reading(url, _CURE):
        mass, kept = group.get(_array_of(dict(group.attrs))), group.get("id")
    if not isinstance(mass, zarr.Array) or not isinstance(kept, zarr.Array):
        return mass, None, dict(group.attrs)
    with reading(join(url, "id"), _CURE):
        ids = np.asarray(kept[: mass.shape[0]])
    return mass, ids.astype(object) if ids.dtype.kind not in "iu" else ids, dict(group.attrs)


def _array_of(attributes: Any) -> str:
    """Name of the array that the masses are in, whether or not the attributes are in order."""
    version = attributes.get("version") if isinstance(attributes, dict) else None
    return _ARRAYS[LISTS_VERSION if version == LISTS_VERSION else VERSION]


def _focal_sets(url: str, attributes: dict[str, Any]) -> FocalSets:
    """The focal sets, when the attributes are those of a whole partition of a known version."""
    check_encoding(url, attributes, KIND, *_ARRAYS)
    if attributes.get("complete") is not True:
        raise StoreError(f"{url} is half written: the run that wrote it did not finish.")
    with as_written(url, _CURE):
        return FocalSets.of(attributes["focal_sets"], attributes["n_clusters"])


def _attributes(focal_sets: FocalSets, *, lists: bool, complete: bool) -> dict[str, Any]:
    return {
        "evdist": KIND,
        "version": LISTS_VERSION if lists else VERSION,
        **({"layout": LAYOUT} if lists else {}),
        "n_clusters": focal_sets.n_clusters,
        "focal_sets": [list(members) for members in focal_sets.sets],
        "complete": complete,
    }


def _stored(mass: Any) -> np.dtype:
    return np.dtype(np.float32 if mass.dtype == np.float32 else np.float64)


def _checked(
    block: NDArray[Any], first: int, names: tuple[str, ...], *, lists: bool
) -> NDArray[Any]:
    (check_lists if lists else check_rows)(block, first, names)
    return block

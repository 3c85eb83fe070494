"""Credal partitions on disk or in object storage: zarr v3 stores and NumPy archives.

```
NAME/       zarr v3 group; attributes {"evdist": "masses", "version": 1, "focal_sets",
            "n_clusters", "complete"}
  mass      (n, f) float32 or float64, chunks of whole rows
  id        (n,) int64 or text; only where the objects have ids
NAME.npz    the same attributes as JSON text under "attributes", "mass", and "id" where there is one
```
Clusters are numbered from 0 in "focal_sets"; so they were in every version. Tables (.csv, .parquet)
are for others to read: see `evdist.partition.export`.
``complete`` becomes true after the last chunk is written: a store without it is refused. Objects
may be added to a finished zarr store later (`evdist.stores.growth`).
"""

from __future__ import annotations

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
from evdist.partition.ids import storable
from evdist.partition.rows import map_rows, write_rows
from evdist.partition.validate import check_rows
from evdist.stores.encoding import (
    COMPRESSOR,
    UNREADABLE,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
    as_written,
    check_encoding,
    checked,
    chunk_rows,
    open_group,
    reading,
)
from evdist.stores.growth import append_rows
from evdist.stores.paths import Url, address, exists, join

KIND = "masses"
VERSION = 1
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
    block = partial(_checked, names=focal_sets.names)
    if url.endswith(".npz"):
        table = map_rows(block, mass, width=len(focal_sets), dtype=_stored(mass))
        text = json.dumps(_attributes(focal_sets, complete=True))
        with fsspec.open(url, "wb") as file:
            content = {"mass": np.asarray(table), "attributes": np.array(text), **_packed(names)}
            np.savez(file, **content)  # type: ignore[arg-type]
        return
    write_rows(block, mass, begin(url, mass.shape[0], focal_sets, _stored(mass)))
    group = open_group(url, "credal partition", "r+")
    for name, values in names.items():
        kept = group.create_array(
            name,
            shape=values.shape,
            dtype=str if values.dtype == object else values.dtype,
            chunks=(chunk_rows(len(values), _ID_BYTES),),
            compressors=checked(COMPRESSOR),
        )
        kept[:] = values
    finish(url)


def begin(url: Url, n: int, focal_sets: FocalSets, dtype: np.dtype) -> zarr.Array[Any]:
    """Make a zarr store that is yet to be filled, by one writer or several; its array."""
    group = zarr.open_group(address(url), mode="w-", zarr_format=3)
    group.attrs.update(_attributes(focal_sets, complete=False))
    return group.create_array(
        "mass",
        shape=(n, len(focal_sets)),
        dtype=dtype,
        chunks=(chunk_rows(n, dtype.itemsize * len(focal_sets)), len(focal_sets)),
        compressors=checked(COMPRESSOR),
    )


def finish(url: Url) -> None:
    """Say that all rows of a store are there."""
    open_group(address(url), "credal partition", "r+").attrs["complete"] = True


def read(url: Url) -> tuple[Any, FocalSets, NDArray[Any] | None]:
    """Masses, focal sets and ids; masses of a zarr store as an array that is read when needed."""
    url = address(url)
    if is_table(url):
        raise StoreError(
            f"{url} is a table, which need not hold all masses. Load a .npz archive or a store."
        )
    if not exists(url):
        raise StoreNotFoundError(f"There is no credal partition at {url}.")
    mass, ids, attributes = _read_npz(url) if url.endswith(".npz") else _read_zarr(url)
    focal_sets = _focal_sets(url, attributes)
    if mass is None:
        raise StoreError(f"{url} has no array 'mass': it is not a whole credal partition.")
    return mass, focal_sets, ids


def append(url: Url, blocks: Iterable[NDArray[Any]], ids: NDArray[Any] | None = None) -> None:
    """Add masses to a finished zarr store; it stays as it was until the last block is written.

    Where the objects there have ids, `ids` are those of all objects, old and new. There must be
    no other writer.
    """
    url = address(url)
    mass, focal_sets, old = read(url)
    if isinstance(mass, np.ndarray):
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
    append_rows(join(url, "mass"), _checked_in_turn(blocks, mass.shape[0], focal_sets.names))


def _checked_in_turn(
    blocks: Iterable[NDArray[Any]], first: int, names: tuple[str, ...]
) -> Iterator[NDArray[Any]]:
    for block in blocks:
        yield _checked(block, first, names)
        first += len(block)


def _write_ids(url: str, first: int, ids: NDArray[Any]) -> None:
    array = zarr.open_array(url, mode="r+", zarr_format=3)
    array.resize((first + len(ids),))
    array[first:] = ids


def _packed(names: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Text as NumPy archives hold it without pickling."""
    return {key: a.astype(str) if a.dtype == object else a for key, a in names.items()}


def _read_npz(url: str) -> tuple[NDArray[Any] | None, NDArray[Any] | None, dict[str, Any]]:
    try:
        with fsspec.open(url, "rb") as file, np.load(file, allow_pickle=False) as archive:
            text = str(archive["attributes"]) if "attributes" in archive else "{}"
            ids = archive["id"] if "id" in archive else None
            return archive["mass"] if "mass" in archive else None, ids, json.loads(text)
    except (zipfile.BadZipFile, *UNREADABLE) as error:
        raise StoreError(
            f"{url} is not a whole NumPy archive of a credal partition ({error}). Was it written "
            "to the end?"
        ) from error


def _read_zarr(url: str) -> tuple[Any, NDArray[Any] | None, dict[str, Any]]:
    group = open_group(url, "credal partition")
    with reading(url, "Restore it from a copy."):
        mass, kept = group.get("mass"), group.get("id")
    if not isinstance(mass, zarr.Array) or not isinstance(kept, zarr.Array):
        return mass, None, dict(group.attrs)
    with reading(join(url, "id"), "Restore it from a copy."):
        ids = np.asarray(kept[: mass.shape[0]])
    return mass, ids.astype(object) if ids.dtype.kind not in "iu" else ids, dict(group.attrs)


def _focal_sets(url: str, attributes: dict[str, Any]) -> FocalSets:
    """The focal sets, when the attributes are those of a whole partition of this version."""
    check_encoding(url, attributes, KIND, VERSION)
    if attributes.get("complete") is not True:
        raise StoreError(f"{url} is half written: the run that wrote it did not finish.")
    with as_written(url, "Restore it from a copy."):
        return FocalSets.of(attributes["focal_sets"], attributes["n_clusters"])


def _attributes(focal_sets: FocalSets, *, complete: bool) -> dict[str, Any]:
    return {
        "evdist": KIND,
        "version": VERSION,
        "n_clusters": focal_sets.n_clusters,
        "focal_sets": [list(members) for members in focal_sets.sets],
        "complete": complete,
    }


def _stored(mass: Any) -> np.dtype:
    return np.dtype(np.float32 if mass.dtype == np.float32 else np.float64)


def _checked(block: NDArray[Any], first: int, names: tuple[str, ...]) -> NDArray[Any]:
    check_rows(block, first, names)
    return block

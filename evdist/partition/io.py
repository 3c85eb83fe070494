"""Credal partitions on disk or in object storage: zarr v3 stores and NumPy archives.

```
NAME/       zarr v3 group; attributes {"evdist": "masses", "version": 1, "focal_sets",
            "n_clusters", "complete"}
  mass      (n, f) float32 or float64, chunks of whole rows
NAME.npz    the same attributes as JSON text under "attributes", and "mass"
```
``complete`` becomes true after the last chunk is written: a store without it is refused. Objects
may be added to a finished zarr store later (`evdist.stores.growth`).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import fsspec
import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.partition.rows import map_rows, write_rows
from evdist.partition.validate import check_rows
from evdist.stores.encoding import (
    COMPRESSOR,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
    check_encoding,
    checked,
    chunk_rows,
    open_group,
)
from evdist.stores.growth import append_rows
from evdist.stores.paths import Url, address, exists, join

__all__ = ["append", "begin", "finish", "read", "write"]

KIND = "masses"
VERSION = 1


def write(url: Url, mass: Any, focal_sets: FocalSets) -> None:
    """Write masses and focal sets to a new ``.npz`` archive or zarr store."""
    url = address(url)
    if exists(url):
        raise StoreExistsError(f"{url} exists already. Remove it, or save under another name.")
    block = partial(_checked, names=focal_sets.names)
    if url.endswith(".npz"):
        table = map_rows(block, mass, width=len(focal_sets), dtype=_stored(mass))
        text = json.dumps(_attributes(focal_sets, complete=True))
        with fsspec.open(url, "wb") as file:
            np.savez(file, mass=np.asarray(table), attributes=np.array(text))
        return
    write_rows(block, mass, begin(url, mass.shape[0], focal_sets, _stored(mass)))
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


def read(url: Url) -> tuple[Any, FocalSets]:
    """Masses and focal sets; those of a zarr store as a zarr array that is read when needed."""
    url = address(url)
    if not exists(url):
        raise StoreNotFoundError(f"There is no credal partition at {url}.")
    mass, attributes = _read_npz(url) if url.endswith(".npz") else _read_zarr(url)
    focal_sets = _focal_sets(url, attributes)
    if mass is None:
        raise StoreError(f"{url} has no array 'mass': it is not a whole credal partition.")
    return mass, focal_sets


def append(url: Url, blocks: Iterable[NDArray[Any]]) -> None:
    """Add masses to a finished zarr store; it stays as it was until the last block is written.

    There must be no other writer.
    """
    url = address(url)
    mass, focal_sets = read(url)
    if isinstance(mass, np.ndarray):
        raise StoreError(f"{url} is a NumPy archive, which cannot grow. Save it as a zarr store.")
    append_rows(join(url, "mass"), _checked_in_turn(blocks, mass.shape[0], focal_sets.names))


def _checked_in_turn(
    blocks: Iterable[NDArray[Any]], first: int, names: tuple[str, ...]
) -> Iterator[NDArray[Any]]:
    for block in blocks:
        yield _checked(block, first, names)
        first += len(block)


def _read_npz(url: str) -> tuple[NDArray[Any] | None, dict[str, Any]]:
    try:
        with fsspec.open(url, "rb") as file, np.load(file, allow_pickle=False) as archive:
            text = str(archive["attributes"]) if "attributes" in archive else "{}"
            return archive["mass"] if "mass" in archive else None, json.loads(text)
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise StoreError(
            f"{url} is not a whole NumPy archive of a credal partition ({error}). Was it written "
            "to the end?"
        ) from error


def _read_zarr(url: str) -> tuple[Any, dict[str, Any]]:
    group = open_group(url, "credal partition")
    return group.get("mass"), dict(group.attrs)


def _focal_sets(url: str, attributes: dict[str, Any]) -> FocalSets:
    """The focal sets, when the attributes are those of a whole partition of this version."""
    check_encoding(url, attributes, KIND, VERSION)
    if attributes.get("complete") is not True:
        raise StoreError(f"{url} is half written: the run that wrote it did not finish.")
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

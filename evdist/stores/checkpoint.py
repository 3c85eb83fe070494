"""Checkpoints: masses and the state of a fit, kept so that a kill at any moment loses no more
than the sweeps since the last one.

```
NAME/
  manifest.json    {"evdist": "checkpoint", "version": 1, "slot", "n", "f", "problem", "state",
                   "seal"}
  slot-XXXXXXXX/   (n,f) float32 zarr v3 array, masses in POSITIONS, chunks of whole rows
```
Every save fills a slot of its own; the manifest, replaced at one stroke, then points to it. Until
then the old one counts. The slot before it is removed when the next save begins, so who reads the
last checkpoint is not disturbed. Names of slots are drawn at random: a writer that was given up
but still runs cannot reach a later save.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.stores.encoding import (
    StoreError,
    checked,
    chunk_bounds,
    chunk_of,
    chunk_rows,
    compressor,
    differences,
    reading,
    seal,
    sealed_json,
    zarr_at,
)
from evdist.stores.paths import (
    Url,
    address,
    children,
    join,
    read_bytes,
    remove,
    replace_bytes,
    sync,
)

KIND, VERSION = "checkpoint", 1
_SEALED = ("evdist", "version", "slot", "n", "f", "problem", "state")
_CURE = "Remove it and start again."
_SLOT = re.compile(r"slot-[0-9a-f]{8}")


@dataclass(frozen=True)
class Slot:
    """A save under way: name, shape and rows per chunk of the masses, and the manifest to come."""

    name: str
    n: int
    f: int
    rows: int
    problem: dict[str, Any]
    state: dict[str, Any]

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """(lo, hi) of every chunk of rows, each for one writer."""
        return chunk_bounds(self.n, self.rows)


class Checkpoint:
    """The checkpoint of one fit, at a path or fsspec URL of its own.

    ``problem`` names what must be the same for a fit to go on: {"d0": 2.5, "pairs": fingerprint,
    ...}, values that JSON can write. ``state`` is what the solver needs beside the masses; its
    floats come back with the same bits.
    """

    def __init__(self, url: Url):
        self.url = address(url)

    def save(
        self, mass: NDArray[np.float32], state: Mapping[str, Any], problem: Mapping[str, Any]
    ) -> None:
        """Store masses, (n, f) in positions, and state; the last checkpoint counts until then."""
        slot = self.begin(mass.shape, state, problem)
        for lo, hi in slot.chunks:
            self.write(slot, lo, mass[lo:hi])
        self.commit(slot)

    def load(self, problem: Mapping[str, Any]) -> tuple[NDArray[np.float32], dict[str, Any]] | None:
        """Masses (n, f) and state of the last checkpoint; None when there is none.

        That of another problem is refused, with what differs.
        """
        manifest = self._manifest(problem)
        if manifest is None:
            return None
        shape, url = (manifest["n"], manifest["f"]), self._path(manifest["slot"])
        try:
            array = zarr.open_array(**zarr_at(url), mode="r")
        except (OSError, TypeError, ValueError, KeyError) as error:
            raise StoreError(f"{self.url} is damaged: {url} is gone. {_CURE}") from error
        with reading(url, _CURE):
            mass = np.asarray(array[:])
        if mass.shape != shape or mass.dtype != np.float32 or np.isnan(mass).any():
            raise StoreError(f"{self.url} is damaged: masses are lost or were changed. {_CURE}")
        return mass, manifest["state"]

    # ------------------------------------------------------------------ several writers
    def begin(
        self, shape: tuple[int, ...], state: Mapping[str, Any], problem: Mapping[str, Any]
    ) -> Slot:
        """Make room for masses of a shape (n, f). The slot may be sent to other processes."""
        n, f = shape
        state, problem = as_json(state), as_json(problem)
        manifest = self._manifest(problem)
        keep = None if manifest is None else manifest["slot"]
        for name in children(self.url):
            if _SLOT.fullmatch(name) and name != keep:
                remove(self._path(name))
        slot = Slot(f"slot-{secrets.token_hex(4)}", n, f, chunk_rows(n, 4 * f), problem, state)
        zarr.create_array(
            **zarr_at(self._path(slot.name)),
            shape=(n, f),
            chunks=(slot.rows, f),
            dtype=np.float32,
            fill_value=np.nan,
            compressors=checked(compressor()),
        )
        return slot

    def write(self, slot: Slot, lo: int, rows: NDArray[np.float32]) -> None:
        """Store one whole chunk of masses, the rows from `lo` on."""
        chunk = chunk_of(lo, len(rows), slot.n, slot.rows)
        if not np.isfinite(rows).all():
            row = lo + int(np.argwhere(~np.isfinite(rows))[0, 0])
            raise StoreError(f"Masses must be finite, those of position {row} are not.")
        zarr.open_array(**zarr_at(self._path(slot.name)), mode="r+")[chunk] = rows

    def commit(self, slot: Slot) -> None:
        """Make the slot the checkpoint, at one stroke; refused while a chunk is missing."""
        array = zarr.open_array(**zarr_at(self._path(slot.name)), mode="r")
        there, wanted = array.nchunks_initialized, len(slot.chunks)
        if there != wanted:
            raise StoreError(
                f"{self.url} has {there} of {wanted} chunks of masses. Write them all, then commit."
            )
        sync(self._path(slot.name))
        manifest = seal(
            {
                "evdist": KIND,
                "version": VERSION,
                "slot": slot.name,
                "n": slot.n,
                "f": slot.f,
                "problem": slot.problem,
                "state": slot.state,
            }
        )
        replace_bytes(self._path("manifest.json"), json.dumps(manifest).encode())

    # ------------------------------------------------------------------ the manifest
    def _path(self, name: str) -> str:
        return join(self.url, name)

    def _manifest(self, problem: Mapping[str, Any]) -> dict[str, Any] | None:
        return manifest_of_fit(self.url, KIND, VERSION, _SEALED, problem)


def manifest_of_fit(
    url: str, kind: str, version: int, sealed: tuple[str, ...], problem: Mapping[str, Any]
) -> dict[str, Any] | None:
    """What the manifest says, when it is whole and of this problem; None without one."""
    path = join(url, "manifest.json")
    content = read_bytes(path)
    if content is None:
        return None
    manifest = sealed_json(path, content, kind, version, sealed, _CURE)
    other = differences(manifest["problem"], as_json(problem))
    if other:
        raise StoreError(
            f"{url} is the {kind} of another fit: {other}. Remove it, or keep this fit's {kind} "
            "elsewhere."
        )
    return manifest


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they will be read back, so that they can be compared."""
    return json.loads(json.dumps(dict(values), allow_nan=False))

"""What all stores of evdist share: codecs, a kind and a version, a seal, and how one is refused.

Every store carries ``evdist`` (its kind) and ``version``. Attributes that must not change once
written are sealed: their fingerprint stands beside them. Chunks end with a checksum. So a store
that was cut off, damaged or edited by hand is told from a whole one.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tokenize import TokenError
from typing import Any, Literal

import zarr

from evdist.registry import load
from evdist.stores.fingerprints import fingerprint
from evdist.stores.paths import exists, join, storage_options

#: Bytes in a chunk before compression: large enough for object storage, small beside the memory.
CHUNK_BYTES = 1 << 22

#: What decoders of other libraries raise on bytes that are not what they should be.
UNREADABLE = (
    *(ValueError, TypeError, AttributeError, LookupError, RuntimeError, ArithmeticError),
    *(AssertionError, EOFError, SyntaxError, struct.error, zlib.error, TokenError),
)


class StoreError(ValueError):
    """What is stored is not what is asked for: other data, another version, half written."""


class StoreNotFoundError(StoreError, FileNotFoundError):
    """Nothing is stored at the address."""


class StoreExistsError(StoreError, FileExistsError):
    """Something else is stored at the address already."""


def compressor() -> Any:
    """The best trade of size and speed for masses and dissimilarities."""
    codecs = load("zarr.codecs")  # zarr waits for its first use
    return codecs.BloscCodec(cname="lz4", shuffle=codecs.BloscShuffle.shuffle)


def checked(*codecs: Any) -> list[Any]:
    """The codecs, then a checksum: a chunk that was cut off or changed is refused when read."""
    return [*codecs, load("zarr.codecs").Crc32cCodec()]


# ------------------------------------------------------------------ chunks of whole rows
def chunk_rows(n: int, row_bytes: int) -> int:
    """Rows of a chunk of about CHUNK_BYTES, at least 1 and at most n."""
    return max(1, min(CHUNK_BYTES // max(row_bytes, 1), n))


def chunk_bounds(n: int, rows: int) -> list[tuple[int, int]]:
    """(lo, hi) of every chunk."""
    return [(lo, min(lo + rows, n)) for lo in range(0, n, rows)]


def chunk_of(lo: int, count: int, n: int, rows: int) -> slice:
    """Rows lo..lo+count-1 when they are one whole chunk: two writers of one would lose data."""
    hi = min(lo + rows, n)
    if lo % rows or not 0 <= lo < n or count != hi - lo:
        raise StoreError(
            f"Rows must be written one whole chunk at a time ({rows} rows from a multiple of "
            f"{rows} on, of {n}), got {count} rows from {lo} on. Take the bounds from `chunks`."
        )
    return slice(lo, hi)


# ------------------------------------------------------------------ opening
def zarr_at(url: str, version: int = 3) -> dict[str, Any]:
    """Arguments that name a place to zarr's functions `open_...` and `create_...`."""
    return {"store": url, "zarr_format": version, "storage_options": storage_options(url)}


def open_group(url: str, what: str, mode: Literal["r", "r+"] = "r") -> zarr.Group:
    """The zarr group at an address."""
    if not exists(join(url, "zarr.json")) and not exists(url):  # one request where it is there
        raise StoreNotFoundError(f"There is no {what} at {url}.")
    try:
        return zarr.open_group(**zarr_at(url), mode=mode)
    except (OSError, *UNREADABLE) as error:
        raise StoreError(f"{url} is not a zarr v3 group, so not a {what}.") from error


def check_encoding(url: str, attributes: Mapping[str, Any], kind: str, *versions: int) -> None:
    """Refuse a store of another kind, or of none of these versions."""
    found = attributes.get("evdist")
    if found != kind:
        got = f"evdist {found!r}" if found else "something that evdist did not write"
        raise StoreError(f"{url} must hold evdist {kind!r}, got {got}.")
    if attributes.get("version") not in versions:
        known = f"version{'s' if len(versions) > 1 else ''} {' and '.join(map(str, versions))}"
        raise StoreError(
            f"{url} has version {attributes.get('version')!r}, this evdist reads {known}. Read it "
            "with the evdist that wrote it."
        )


@contextmanager
def reading(url: str, cure: str) -> Iterator[None]:
    """Say which store it was, and the cure, when a chunk cannot be decoded."""
    try:
        yield
    except StoreError:
        raise
    except UNREADABLE as error:
        raise StoreError(f"{url} is damaged: {error} {cure}") from error


@contextmanager
def as_written(url: str, cure: str) -> Iterator[None]:
    """Say which store it was, and the cure, when a part is missing or not as it must be."""
    try:
        yield
    except StoreError:
        raise
    except UNREADABLE as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        raise StoreError(f"{url} is not as it was written: {what}. {cure}") from error


# ------------------------------------------------------------------ sealed attributes
def seal(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes and, under "seal", their fingerprint."""
    return {**attributes, "seal": fingerprint(dict(attributes))}


def check_seal(url: str, attributes: Mapping[str, Any], names: tuple[str, ...], cure: str) -> None:
    """Refuse attributes `names` that are not all there, or not as they were sealed."""
    sealed = {name: attributes[name] for name in names if name in attributes}
    if len(sealed) < len(names) or attributes.get("seal") != fingerprint(sealed):
        raise StoreError(f"The attributes of {url} were changed after it was written. {cure}")


def sealed_json(
    path: str, content: bytes, kind: str, version: int, names: tuple[str, ...], cure: str
) -> dict[str, Any]:
    """What a JSON file says, when it is of this kind and version and as it was sealed."""
    with reading(path, cure):
        found = json.loads(content)
    if not isinstance(found, dict):
        found = {}
    check_encoding(path, found, kind, version)
    check_seal(path, found, names, cure)
    return found


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What differs, for a sentence: "seed 1 instead of 2, another source"; "" when nothing does.

    Values too long to be read, fingerprints above all, are named only.
    """
    parts = []
    for name in [*wanted, *(name for name in found if name not in wanted)]:
        old, new = found.get(name), wanted.get(name)
        if old != new:
            short = len(f"{old!r}{new!r}") <= 64
            parts.append(f"{name} {old!r} instead of {new!r}" if short else f"another {name}")
    return ", ".join(parts)

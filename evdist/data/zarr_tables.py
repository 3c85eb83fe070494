"""zarr arrays from elsewhere: looked at before they are opened.

A store names the codecs that decode its chunks, and some of them (pickle, and whatever a package
registers) run code that stands in the store. So only formats of plain numbers and codecs of a list
are opened, and what an array claims to hold must have some proportion to what lies there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import zarr

from evdist.stores.encoding import UNREADABLE, StoreError, zarr_at
from evdist.stores.paths import exists, join, read_bytes, size

#: Codecs that compute on bytes and numbers, and do nothing else.
_CODECS = frozenset(
    {
        *("bytes", "blosc", "gzip", "zstd", "crc32c", "transpose", "sharding_indexed"),
        *("lz4", "zlib", "bz2", "lzma", "shuffle", "delta", "fixedscaleoffset", "bitround"),
        *("quantize", "crc32", "adler32", "fletcher32", "astype", "packbits", "endian"),
    }
)
_NUMBERS = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    }
)
#: Numbers do not compress further than this; a claim below so many bytes is not looked at.
_MOST_TIMES, _SMALL = 5000, 1 << 26
#: Objects are counted in 32 bits.
_MOST_ROWS = 2**32 - 1


def open_array(url: str) -> zarr.Array[Any]:
    """The array at an address, zarr version 2 or 3; a ValueError says why it is not opened."""
    version: Literal[2, 3] = 3
    found = _json(join(url, "zarr.json"))
    if found is None:
        version, found = 2, _json(join(url, ".zarray"))
    if found is None:
        if exists(join(url, ".zgroup")):
            raise ValueError(f"{url} is a zarr group; name the array in it, e.g. {url}/X.")
        if not exists(url):
            raise FileNotFoundError(f"There is no file {url}.")
        raise ValueError(f"{url} is not a zarr array: it has neither zarr.json nor .zarray.")
    if version == 3 and found.get("node_type") == "group":
        raise ValueError(f"{url} is a zarr group; name the array in it, e.g. {url}/X.")
    _check_type(url, found.get("data_type") if version == 3 else found.get("dtype"), version)
    for codec in _codecs(found, version):
        if codec.removeprefix("numcodecs.") not in _CODECS:
            raise ValueError(
                f"{url} is not opened: its codec {codec!r} is not one of those for plain numbers. "
                "Write it again without that codec."
            )
    try:
        node = zarr.open_array(**zarr_at(url, version), mode="r")
    except UNREADABLE as error:
        raise ValueError(f"Cannot read {url}: its description is damaged ({error}).") from error
    _check_claim(url, node)
    return node


def _json(path: str) -> dict[str, Any] | None:
    content = read_bytes(path)
    if content is None:
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Cannot read {path}: {error}. Is it whole?") from error
    if not isinstance(found, dict):
        raise ValueError(f"Cannot read {path}: it must hold the description of an array.")
    return found


def _check_type(url: str, kind: Any, version: int) -> None:
    known = isinstance(kind, str) and kind in _NUMBERS
    if version == 2:  # such as "<f8"
        known = isinstance(kind, str) and kind[:1] in "<>|=" and kind[1:2] in ("f", "i", "u", "b")
    if not known:
        raise ValueError(f"{url} must hold numbers, got values of type {str(kind)[:60]!r}.")


def _codecs(found: Mapping[str, Any], version: int) -> Iterator[str]:
    """Names of all codecs, those inside of shards too."""
    if version == 2:
        named = [found.get("compressor"), *(found.get("filters") or [])]
        yield from (str(one.get("id")) for one in named if isinstance(one, dict))
        return
    waiting = list(found.get("codecs") or [])
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict):
            yield str(one)
            continue
        yield str(one.get("name"))
        inner = one.get("configuration")
        if isinstance(inner, dict):
            waiting += [*(inner.get("codecs") or []), *(inner.get("index_codecs") or [])]


def _check_claim(url: str, node: zarr.Array[Any]) -> None:
    if node.shape and node.shape[0] > _MOST_ROWS:
        raise StoreError(f"{url} claims {node.shape[0]:,} rows; at most {_MOST_ROWS:,} are read.")
    claimed = node.nbytes
    if claimed > _SMALL and claimed > _MOST_TIMES * (there := size(url)):
        raise StoreError(
            f"{url} claims {node.shape[0]:,} rows, {claimed / 1e9:,.1f} GB, but only {there:,} "
            "bytes lie there. Is it whole? Write it again with all its chunks."
        )

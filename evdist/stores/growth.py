"""Rows added to a finished zarr array, at one stroke.

The new rows are written beyond the last one, where no reader looks, block by block. Only then is
the array's own small description (zarr.json) replaced by one with more rows, which is the moment
they count. Whatever stops the work before leaves the array as it was: a chunk that old and new
rows share is itself replaced whole, with the same old rows in it. What was left beyond the end is
overwritten by the next attempt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import zarr
from numpy.typing import NDArray

from evdist.stores.encoding import StoreError, reading, zarr_at
from evdist.stores.paths import Url, address, join, read_bytes, replace_bytes, sync


def append_rows(url: Url, blocks: Iterable[NDArray[Any]]) -> int:
    """Add blocks of rows to the (n, ...) array at `url`; its new number of rows.

    There must be no other writer. Blocks of any size will do; each is let go before the next is
    asked for.
    """
    url = address(url)
    description = join(url, "zarr.json")
    layout = _layout(url, description)
    place = zarr.open_array(**zarr_at(url), mode="r+").store_path
    n, *row = layout["shape"]
    for block in blocks:
        if list(block.shape[1:]) != row:
            raise StoreError(
                f"{url} holds rows of shape {tuple(row)}, got some of shape {block.shape[1:]}."
            )
        layout["shape"] = [n + len(block), *row]
        # The array as it will be: nothing of this is written but the block's own chunks.
        longer = zarr.Array.from_dict(place, layout)
        with reading(url, "Restore it from a copy."):
            longer[n : n + len(block)] = block
        n += len(block)
    sync(url)
    replace_bytes(description, json.dumps(layout, indent=2).encode())
    return n


def _layout(url: str, description: str) -> dict[str, Any]:
    content = read_bytes(description)
    layout = json.loads(content) if content is not None else {}
    if not isinstance(layout, dict) or layout.get("node_type") != "array":
        raise StoreError(f"{url} is not a zarr v3 array: there is nothing to add rows to.")
    return layout

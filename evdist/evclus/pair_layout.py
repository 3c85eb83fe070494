"""How a pair store is laid out: attributes, arrays, codecs, and which are refused.

```
pairs.zarr/      zarr v3 group; attributes {"evdist": "pairs", "version": 1, "n", "k", "colours",
                 "offsets", "shifts", "near", "mixed", "metric", "seed", "source", "layout", "seal",
                 "complete"}
  order          (n,)  uint32   position -> object, the random layout
  partner        (n,k) uint32   chunks (rows, k)
  dissimilarity  (n,k) float32  chunks (rows, k), raw: d0 can change without sampling again
  degree         (n,)  uint32   chunks (rows,), partners of each row
```
Rows and partners are POSITIONS of the random layout, not objects: row p is object order[p]. Unused
places at the end of a row hold the row's own position and dissimilarity 0.

``source`` is the fingerprint of the data, ``layout`` that of ``order``. The degrees of a chunk are
written last, so they tell which chunks are there; ``complete`` becomes true when all are.

partner is stored column by column: consecutive rows have consecutive partners, so with lz4 and
shuffle 80 MB become 0.6 MB (n = 200,000, k = 100), against 11.7 MB row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.kernels.graph import PairGraph
from evdist.registry import load
from evdist.stores.encoding import (
    StoreError,
    StoreExistsError,
    check_encoding,
    check_seal,
    checked,
    compressor,
    differences,
    open_group,
    seal,
)
from evdist.stores.fingerprints import fingerprint

KIND, VERSION = "pairs", 1
_GRAPH = ("n", "k", "colours", "offsets", "shifts")
SEALED = ("evdist", "version", *_GRAPH, "metric", "seed", "source", "layout")
#: Where some partners are near: how many, and the seed of the others' order.
NEAR = ("near", "mixed")
CURE = "Remove it and sample again."
#: Fills what is not written. No partner and no degree can be this.
UNWRITTEN = np.iinfo(np.uint32).max


def describe(
    order: NDArray[np.uint32], graph: PairGraph, metric: str, seed: int, source: str
) -> dict[str, Any]:
    """The attributes that never change."""
    _check_order(order, graph.n)
    return {
        "evdist": KIND,
        "version": VERSION,
        "n": graph.n,
        "k": graph.k,
        "colours": graph.colours,
        "offsets": [int(o) for o in graph.offsets],
        "shifts": [int(r) for r in graph.shifts],
        "metric": metric,
        "seed": int(seed),
        "source": source,
        "layout": fingerprint(order),
        **({"near": graph.near, "mixed": graph.seed} if graph.near else {}),
    }


def check_attributes(url: str, attributes: dict[str, Any]) -> None:
    """Refuse what is no pair store of this version, or was edited."""
    check_encoding(url, attributes, KIND, VERSION)
    check_seal(url, attributes, (*SEALED, *(NEAR if "near" in attributes else ())), CURE)


def array(url: str, group: zarr.Group, name: str, shape: tuple[int, ...], dtype: type) -> Any:
    """An array of the store, refused when it is not there or not as it must be."""
    found = group.get(name)
    if not isinstance(found, zarr.Array) or found.shape != shape or found.dtype != dtype:
        raise StoreError(
            f"{url} must hold an array {name!r} of shape {shape} and {np.dtype(dtype)}, got "
            f"{found}. {CURE}"
        )
    return found


def _check_order(order: NDArray[np.uint32], n: int) -> None:
    seen = np.zeros(n, bool)
    if order.shape == (n,) and order.max() < n:
        seen[order] = True
    if not seen.all():
        raise ValueError(
            f"order must hold each of the objects 0..{n - 1} once, got an array of shape "
            f"{order.shape}."
        )


def refuse_others(url: str, wanted: dict[str, Any]) -> None:
    """Refuse to write where something else is."""
    found = dict(open_group(url, "pair store").attrs)
    check_attributes(url, found)
    if found["seal"] != seal(wanted)["seal"]:
        what = differences({name: found.get(name) for name in wanted}, wanted)
        raise StoreExistsError(
            f"{url} holds other pairs: {what}. Remove it, or sample to another place."
        )


def create_arrays(group: zarr.Group, n: int, k: int, rows: int) -> None:
    """The arrays that are not there yet; a kill may have left some of them."""
    if "partner" in group:
        rows = group["partner"].chunks[0]  # type: ignore[union-attr]
    rows = min(rows, n)
    columns = load("zarr.codecs").TransposeCodec(order=(1, 0))
    for name, shape, chunk, dtype, fill, filters in [
        ("partner", (n, k), (rows, k), np.uint32, UNWRITTEN, [columns]),
        ("dissimilarity", (n, k), (rows, k), np.float32, np.nan, None),
        ("degree", (n,), (rows,), np.uint32, UNWRITTEN, None),
        ("order", (n,), (min(1 << 20, n),), np.uint32, UNWRITTEN, None),
    ]:
        if name not in group:
            group.create_array(
                name,
                shape=shape,
                chunks=chunk,
                dtype=dtype,
                fill_value=fill,
                filters=filters,
                compressors=checked(compressor()),
            )

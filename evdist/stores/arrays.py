"""A few small arrays that belong together, stored as one sealed zarr group.

```
NAME/      zarr v3 group; attributes {"evdist": kind, "version", ..., "arrays", "seal", "complete"}
  name...  one array each, a single chunk
```
``arrays`` holds the fingerprint of every array, so a value that was lost or changed is found; all
attributes but ``complete``, which is written last, are sealed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.stores.encoding import (
    StoreError,
    StoreExistsError,
    check_encoding,
    check_seal,
    checked,
    compressor,
    open_group,
    reading,
    seal,
    zarr_at,
)
from evdist.stores.fingerprints import fingerprint
from evdist.stores.paths import Url, address, exists


def write_arrays(
    url: Url,
    kind: str,
    version: int,
    attributes: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> str:
    """Store arrays and what JSON can write in a new group, and return its seal."""
    url = address(url)
    if exists(url):
        raise StoreExistsError(f"{url} exists already. Remove it, or save under another name.")
    prints = {name: fingerprint(array) for name, array in arrays.items()}
    sealed = seal({"evdist": kind, "version": version, **attributes, "arrays": prints})
    group = zarr.create_group(**zarr_at(url), attributes={**sealed, "complete": False})
    for name, array in arrays.items():
        target = group.create_array(
            name,
            shape=array.shape,
            chunks=tuple(max(side, 1) for side in array.shape),
            dtype=array.dtype,
            compressors=checked(compressor()),
        )
        target[:] = array
    group.attrs["complete"] = True
    return sealed["seal"]


def read_arrays(
    url: Url, kind: str, version: int, *, what: str, cure: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Attributes, the seal among them, and all arrays, in memory.

    Parameters
    ----------
    what : str
        The store in words, for the sentence that says there is none.
    cure : str
        What to do about one that is damaged: a sentence.
    """
    url = address(url)
    group = open_group(url, what)
    attributes: dict[str, Any] = dict(group.attrs)
    check_encoding(url, attributes, kind, version)
    check_seal(url, attributes, tuple(a for a in attributes if a not in ("seal", "complete")), cure)
    if attributes.get("complete") is not True:
        raise StoreError(f"{url} is half written: the run that wrote it did not finish.")
    prints = attributes.get("arrays")
    if not isinstance(prints, dict):
        raise StoreError(f"{url} does not say which arrays it holds. {cure}")
    return attributes, {name: _array(url, group, name, prints[name], cure) for name in prints}


def _array(url: str, group: zarr.Group, name: str, wanted: Any, cure: str) -> NDArray[Any]:
    found = group.get(name)
    with reading(url, cure):
        values = np.asarray(found[:]) if isinstance(found, zarr.Array) else np.empty(0)
    if fingerprint(values) != wanted:
        raise StoreError(f"{url} is damaged: {name!r} is lost or was changed. {cure}")
    return values

"""Names of objects: what joins an answer to the table that it came from.

Ids are one value per object: whole numbers, text, or whatever the index of a data frame holds.
Without ids an object is known by its row number, from 0. In stores ids are whole numbers or text.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def ids_of(X: Any) -> NDArray[Any] | None:
    """The index of a pandas frame or series, (n,); None where it only counts the rows from 0."""
    pandas = sys.modules.get("pandas")  # which a frame of it has loaded
    if pandas is None or not isinstance(X, pandas.DataFrame | pandas.Series):
        return None
    index = X.index
    if isinstance(index, pandas.RangeIndex) and index.start == 0 and index.step == 1:
        return None
    return _frozen(index.to_numpy())


def checked_ids(ids: Any, n: int) -> NDArray[Any] | None:
    """Ids as an array of n values; None stays None."""
    if ids is None:
        return None
    if not isinstance(ids, np.ndarray):
        values = list(ids)
        ids = np.asarray(values)
        if ids.ndim != 1:  # tuples, as those of an index with levels
            ids = np.empty(len(values), dtype=object)
            ids[:] = values
    if ids.shape != (n,):
        raise ValueError(f"ids must name each of the {n} objects, got shape {ids.shape}.")
    return _frozen(ids)


def storable(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids as stores keep them: int64 where they are whole numbers, else text."""
    if ids.dtype.kind in "iu":
        if ids.dtype.kind == "u" and ids.size and ids.max() > np.iinfo(np.int64).max:
            return ids.astype(str).astype(object)
        return ids.astype(np.int64)
    return np.array([_text(value) for value in ids.tolist()], dtype=object)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def joined_ids(old: NDArray[Any] | None, new: Any, n_new: int) -> NDArray[Any] | None:
    """Ids of old and new objects together: both have them, or the old ones have none."""
    if old is None:
        return None
    if new is None:
        raise ValueError(
            "The objects that are there have ids, the new ones have none. Give them by the index "
            "of a data frame, or in a job by data.id."
        )
    fresh = checked_ids(new, n_new)
    assert fresh is not None
    if old.dtype.kind in "iu" and fresh.dtype.kind in "iu":
        return _frozen(np.concatenate([old, fresh]))
    both = np.empty(len(old) + len(fresh), dtype=object)
    both[: len(old)], both[len(old) :] = old.tolist(), fresh.tolist()
    return _frozen(both)


def row_of(ids: NDArray[Any] | None, wanted: Any, n: int) -> int:
    """Row of the object with that id; without ids, of that row number."""
    if ids is None:
        if isinstance(wanted, int | np.integer) and 0 <= wanted < n:
            return int(wanted)
        raise KeyError(f"Objects have no ids; rows are 0..{n - 1}, got {wanted!r}.")
    found = [row for row, value in enumerate(ids.tolist()) if value == wanted]
    if not found:
        raise KeyError(f"No object has the id {wanted!r}.")
    if len(found) > 1:
        raise KeyError(f"{len(found)} objects have the id {wanted!r}: rows {found[:5]}.")
    return found[0]


def _frozen(ids: NDArray[Any]) -> NDArray[Any]:
    ids = ids.view()
    ids.setflags(write=False)
    return ids

"""Fingerprints: whether two runs have the same data and settings, without keeping either."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

# Not pandas.util.hash_array: 64 bits per value would change every fingerprint, and stores and
# checkpoints that exist would be refused.

#: Bytes of an array hashed at a time: what is read at once from one that lies on disk.
BLOCK_BYTES = 1 << 24


def fingerprint(*parts: Any) -> str:
    """SHA-256 of arrays and plain values, the same on every machine and in every run.

    Parameters
    ----------
    *parts : arrays, or anything JSON can write
        An array (NumPy, zarr, memory map: anything with ``shape``, ``dtype`` and slices of rows)
        counts with its dtype, shape and bytes, and is read in blocks of rows, whatever its own
        chunks are. Of other values the JSON text counts, dictionaries in the order of their keys.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for part in parts:
        if hasattr(part, "shape") and part.shape:
            _add_array(digest, part)
        else:
            _add(digest, b"json", json.dumps(part, sort_keys=True, default=_plain).encode())
    return digest.hexdigest()


def _add(digest: Any, kind: bytes, content: bytes) -> None:
    # The length goes first, so that no two lists of parts give the same bytes.
    digest.update(kind + len(content).to_bytes(8, "little") + content)


def _add_array(digest: Any, array: Any) -> None:
    dtype = np.dtype(array.dtype).newbyteorder("<")
    if dtype.hasobject:
        raise TypeError(
            f"An array of {array.dtype} has no bytes of its own to take a fingerprint of. "
            "Convert it to numbers or to fixed-width text first."
        )
    _add(digest, b"array", json.dumps([dtype.str, list(array.shape)]).encode())
    row_bytes = dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    rows = max(1, BLOCK_BYTES // max(row_bytes, 1))
    for lo in range(0, array.shape[0], rows):
        block = np.ascontiguousarray(array[lo : lo + rows], dtype=dtype)
        digest.update(block.view(np.uint8).data if block.size else b"")


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.item() if value.ndim == 0 else value.tolist()
    raise TypeError(
        f"A fingerprint is taken of arrays and of values that JSON can write, got "
        f"{type(value).__name__}."
    )

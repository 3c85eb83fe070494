"""Tables read in consecutive pieces of rows: how large a piece is, and one that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.stores.encoding import UNREADABLE, StoreError
from evdist.stores.transient import is_transient

#: Numbers read at a time where a table is not wanted whole: 64 MB as float64.
PIECE_SIZE = 1 << 23
#: Rows at a time at most, a power of two.
PIECE_ROWS = 1 << 16


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Say which file it was that is not there, cut off, or not what its name says."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {name}.") from error
    except StoreError:
        raise  # told already
    except (OSError, *UNREADABLE) as error:
        if isinstance(error, OSError) and (error.filename is not None or is_transient(error)):
            raise  # the file system's, not a decoder's
        said = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ValueError(
            f"Cannot read {name}: {said}. Is it whole, and does its ending match its format?"
        ) from error


def array_pieces(array: Any) -> Iterator[NDArray[Any]]:
    """Consecutive pieces of rows of anything with ``shape`` and slices of rows; at least one."""
    rows = rows_at_once(array.shape[1] if len(array.shape) > 1 else 1)
    # A compressed chunk is read whole whatever is asked of it: read it once.
    chunk = (getattr(array, "chunks", None) or (rows,))[0]
    step = max(rows // chunk, 1) * chunk
    for lo in range(0, max(array.shape[0], 1), step):
        yield np.asarray(array[lo : lo + step])


def dask_pieces(X: Any) -> Iterator[NDArray[Any]]:
    """Consecutive pieces of rows of a Dask array or frame, computed one at a time."""
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True)
    bounds = np.cumsum([0, *X.chunks[0]])
    for a, b in pairwise(bounds):
        yield np.asarray(X[a:b].compute())


def rows_at_once(width: int) -> int:
    """How many rows of `width` numbers to take at a time: a power of two."""
    rows = max(PIECE_SIZE // max(width, 1), 1)
    return min(1 << (rows.bit_length() - 1), PIECE_ROWS)


def regrouped(
    pieces: Iterator[tuple[NDArray[Any] | None, ...]], rows: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """The same rows in pieces of exactly `rows`, the last one shorter.

    A piece is a tuple of arrays with one entry per row; all but the first may be None throughout.
    Without `rows` there are as many as :func:`rows_at_once` says of the first array.
    """
    waiting: list[tuple[NDArray[Any] | None, ...]] = []
    count = 0
    for piece in pieces:
        table = piece[0]
        assert table is not None
        size = rows or rows_at_once(table.shape[1] if table.ndim > 1 else 1)
        at = 0
        while at < len(table):
            part = slice(at, at + size - count)
            waiting.append(tuple(None if a is None else a[part] for a in piece))
            taken = len(table[part])
            at, count = at + taken, count + taken
            if count == size:
                yield _joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[tuple[NDArray[Any] | None, ...]]) -> tuple[NDArray[Any] | None, ...]:
    return tuple(
        None if arrays[0] is None else np.concatenate([a for a in arrays if a is not None])
        for arrays in zip(*parts, strict=True)
    )

"""What a user may pass as X, read into memory whole or in blocks; and checks that name rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from evdist.data.pieces import array_pieces, dask_pieces, regrouped, rows_at_once
from evdist.data.tables import as_frame, frames, is_frame, read_table, table_pieces
from evdist.partition.rows import is_dask


def load(X: Any, *, numeric: bool = False) -> Any:
    """Paths and lazy arrays become arrays in memory; everything else passes through.

    With `numeric`, text is refused, with the row, the column and the cure.
    """
    if isinstance(X, str | Path):
        return read_table(X)
    if is_dask(X):
        if numeric and hasattr(X, "head"):  # a frame: its first row shows which columns are text
            frames().refuse_text(X.head(1, npartitions=-1), "X")
        return np.concatenate([np.asarray(part) for part in dask_pieces(X)])
    if _is_stored(X):
        return np.asarray(X[:])
    X = as_frame(X)
    if numeric and is_frame(X):
        frames().refuse_text(X, "X")
    elif numeric:
        refuse_text(X)
    return X


def objects(X: Any, *, elements: bool = False) -> Any:
    """Objects for a callable metric: a table (n, d), or (n,) elements of any kind.

    A list of texts, a Series, and a list of series of unequal length are elements; a list of rows
    of one length is a table, unless `elements` are asked for.
    """
    if is_frame(X) or (hasattr(X, "ndim") and X.ndim > 1):
        return X
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    values = list(X)
    if values and all(isinstance(value, str) for value in values):
        return np.asarray(values)
    lengths = {np.shape(value) for value in values if not isinstance(value, str | dict | set)}
    rows = len(lengths) == 1 and all(np.ndim(value) == 1 for value in values)
    if rows and not elements:
        return np.asarray(values)  # a table written as a list of rows
    out = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):  # at once, NumPy would take them apart
        out[place] = value
    return out


def _is_stored(X: Any) -> bool:
    return hasattr(X, "shape") and hasattr(X, "chunks") and not isinstance(X, np.ndarray)


def row_blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """X in blocks of rows, with the number of their first row: what :func:`load` gives, in parts.

    Paths and lazy arrays are read as far as they are needed. How many rows a block has depends on
    the width of X alone.
    """
    if isinstance(X, str | Path):
        yield from _of_equal_size(table_pieces(X))
    elif is_dask(X):
        yield from _of_equal_size(dask_pieces(X))
    elif _is_stored(X):
        yield from _of_equal_size(array_pieces(X))
    elif sp.issparse(X):
        yield 0, X
    else:
        X = X if hasattr(X, "shape") else np.asarray(X)
        rows = rows_at_once(X.shape[1] if len(X.shape) > 1 else 1)
        table = getattr(X, "iloc", X)
        for lo in range(0, max(len(X), 1), rows):
            yield lo, table[lo : lo + rows]


def _of_equal_size(pieces: Iterator[NDArray[Any]]) -> Iterator[tuple[int, NDArray[Any]]]:
    """The same rows in blocks that do not tell how the table was cut; at least one."""
    lo = 0
    for (block,) in regrouped((piece,) for piece in pieces):
        yield lo, block
        lo += len(block)
    if not lo:
        yield 0, np.empty((0, 1))


def refuse_text(X: Any) -> None:
    """Text and missing values in plain lists and arrays of objects; rows of different lengths."""
    _refuse_texts(X)
    if isinstance(X, np.ndarray):
        if X.dtype.kind not in "OUS" or X.ndim != 2:
            return
    elif not isinstance(X, list | tuple):
        return
    width = None
    for i, row in enumerate(X):
        if not isinstance(row, list | tuple | np.ndarray):
            return  # one dimension, or what scikit-learn has words for
        if width is not None and len(row) != width:
            raise ValueError(
                f"All rows of X must have the same number of values, but row {i} has {len(row)} "
                f"and row 0 has {width}. Fill in what is missing or leave that row out."
            )
        width = len(row)
        for j, value in enumerate(row):
            if value is None or (isinstance(value, str | bytes) and not _reads_as_number(value)):
                what = (
                    "missing (None)" if value is None else f"{str(value)!r}, which is not a number"
                )
                cure = (
                    "Fill in the value or leave that row out."
                    if value is None
                    else "Leave that column out or encode it as numbers."
                )
                raise ValueError(f"X must hold numbers, but row {i}, column {j} is {what}. {cure}")


def _refuse_texts(X: Any) -> None:
    """Texts in the place of rows: what to do with them."""
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or not len(X):
        return
    first = next(iter(X), None)
    if isinstance(first, str) and not _reads_as_number(first):
        raise ValueError(
            f"X must be a table of numbers, (n, d), got {len(X):,} texts, such as {first[:40]!r}. "
            "Give the vectors of a language model or TF-IDF, or a metric of two texts, a function."
        )


def _reads_as_number(value: str | bytes) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


#: Values as large as this cannot be squared and summed.
TOO_LARGE = 1e150


def refuse_bad_values(X: NDArray[Any], first: int = 0) -> None:
    """NaN, infinity and what has no square, with the row, the column and the cure.

    `first` is the number of row 0.
    """
    limit = TOO_LARGE if X.dtype.kind != "f" else min(TOO_LARGE, float(np.finfo(X.dtype).max))
    for lo in range(0, len(X), 65_536):
        bad = ~(np.abs(X[lo : lo + 65_536]) < limit)  # NaN is not smaller
        if bad.any():
            row, column = np.argwhere(bad)[0]
            value = X[lo + row, column]
            what = "NaN or infinity" if not np.isfinite(value) else "numbers too large to square"
            raise ValueError(
                f"X must not contain {what}, but row {first + lo + row}, column {column} is "
                f"{value}. {_CURE_OF_VALUES[bool(np.isfinite(value))]}"
            )


_CURE_OF_VALUES = {
    False: "Fill in the value or leave that row out.",
    True: "Correct the value, or leave that row out.",
}

"""What a user may pass as X, turned into a source of dissimilarities; and checks that name rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from evdist.data.pieces import array_pieces, regrouped, rows_at_once
from evdist.data.sources import (
    AttributeSource,
    CallableSource,
    MatrixSource,
    PairList,
    Source,
    known_metric,
    pair_list,
)
from evdist.data.tables import as_frame, frames, is_frame, read_table, table_pieces
from evdist.partition.rows import is_dask

__all__ = ["is_pair_list", "load", "make_source", "refuse_bad_values", "refuse_text"]
__all__ += ["row_blocks"]

#: Objects are counted in 32 bits.
_MAX_OBJECTS = 2**32


def load(X: Any) -> Any:
    """Paths and lazy arrays become arrays in memory; everything else passes through."""
    if isinstance(X, str | Path):
        return read_table(X)
    if is_dask(X):
        return np.concatenate([np.asarray(part) for part in _row_blocks(X)])
    if _is_stored(X):
        return np.asarray(X[:])
    return as_frame(X)


def _is_stored(X: Any) -> bool:
    return hasattr(X, "shape") and hasattr(X, "chunks") and not isinstance(X, np.ndarray)


def _row_blocks(X: Any) -> Iterator[NDArray[Any]]:
    """Blocks of rows of a Dask array or frame, computed one at a time."""
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True)
    bounds = np.cumsum([0, *X.chunks[0]])
    for a, b in pairwise(bounds):
        yield np.asarray(X[a:b].compute())


def row_blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """X in blocks of rows, with the number of their first row: what :func:`load` gives, in parts.

    Paths and lazy arrays are read as far as they are needed. How many rows a block has depends on
    the width of X alone.
    """
    if isinstance(X, str | Path):
        yield from _of_equal_size(table_pieces(X))
    elif is_dask(X):
        yield from _of_equal_size(_row_blocks(X))
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


def is_pair_list(X: Any, metric: Any) -> bool:
    """A sparse matrix, or three columns i, j, d with metric="pairs"."""
    return sp.issparse(X) or metric == "pairs"


def make_source(X: Any, metric: Any, n_threads: int = 1) -> Source | PairList:
    """The source of dissimilarities that X and `metric` describe."""
    if sp.issparse(X):
        return _sparse_pairs(X)
    if isinstance(metric, str) and metric == "pairs":
        return _listed_pairs(X)
    if isinstance(metric, str) and metric == "precomputed":
        return MatrixSource.of(np.asarray(X, dtype=float))
    if callable(metric):
        return CallableSource(np.asarray(X), metric)
    return AttributeSource.of(X, known_metric(metric), n_threads)


def _sparse_pairs(X: Any) -> PairList:
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"A sparse X is taken for dissimilarities of pairs and must be square, got {X.shape}. "
            "For attributes pass X.toarray()."
        )
    coo = X.tocoo()
    return pair_list(coo.row, coo.col, coo.data, X.shape[0])


def _listed_pairs(X: Any) -> PairList:
    table = np.asarray(X, dtype=float)
    if table.ndim != 2 or table.shape[1] != 3:
        raise ValueError(
            f"metric='pairs' needs rows (i, j, dissimilarity), got shape {table.shape}."
        )
    if not len(table):
        raise ValueError("The pair list is empty; it needs rows (i, j, dissimilarity).")
    ids = table[:, :2]
    bad = ~((ids == np.floor(ids)) & (ids >= 0) & (ids < _MAX_OBJECTS)).all(axis=1)
    if bad.any():
        row = int(bad.argmax())
        i, j = ids[row].tolist()
        raise ValueError(
            f"Row {row} of the pair list names objects {i:g} and {j:g}; objects are numbered "
            "0, 1, 2, ..."
        )
    i, j = ids.astype(np.int64).T
    return pair_list(i, j, table[:, 2], int(ids.max()) + 1)


def refuse_text(X: Any) -> None:
    """Refuse a frame with a column of anything but numbers."""
    if is_frame(X):
        frames().refuse_text(X, "X")


def refuse_bad_values(X: NDArray[Any]) -> None:
    """NaN and infinity, with the row, the column and the cure."""
    for lo in range(0, len(X), 65_536):
        bad = ~np.isfinite(X[lo : lo + 65_536])
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                "X must not contain NaN or infinity, but row "
                f"{lo + row}, column {column} is {X[lo + row, column]}. "
                "Fill in the value or leave that row out."
            )

"""Rows and pairs of objects: which ones, and how to get at them in bounded memory.

Masses may be a NumPy array, a dask array or a zarr array. All are read by contiguous blocks of
rows, so that a partition which does not fit in memory is never loaded whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.partition import CredalPartition
from evdist.partition.rows import block_rows


def as_partition(partition: CredalPartition | NDArray[Any]) -> CredalPartition:
    """A credal partition as it is; (n,) labels as the hard partition they mean.

    As in ``CredalPartition.from_labels`` the integer -1 marks an outlier; labels that are no
    integers, such as names, are numbered in sorted order.
    """
    if isinstance(partition, CredalPartition):
        return partition
    labels = np.asarray(partition)
    if labels.ndim != 1:
        raise ValueError(
            "A partition must be a CredalPartition or a vector of n labels, got an array of "
            f"shape {labels.shape}. Wrap masses as CredalPartition(mass, focal_sets)."
        )
    if labels.dtype.kind not in "iu":
        labels = np.unique(labels, return_inverse=True)[1]
    return CredalPartition.from_labels(labels)


def same_objects(*partitions: CredalPartition) -> int:
    """The number of objects that all partitions share, at least two."""
    sizes = [p.n_objects for p in partitions]
    if len(set(sizes)) != 1:
        raise ValueError(f"The partitions must hold the same objects, got {sizes} objects.")
    if sizes[0] < 2:
        raise ValueError(f"Pairs need at least two objects, got {sizes[0]}.")
    return sizes[0]


def row_blocks(*partitions: CredalPartition) -> Iterator[tuple[NDArray[Any], ...]]:
    """The masses of all partitions, block of rows by block of rows, as (b, f) float64 arrays.

    The blocks depend on the numbers of focal sets alone, so sums over them have the same bits
    however the masses are stored.
    """
    n = same_objects(*partitions)
    rows = block_rows(sum(len(p.focal_sets) for p in partitions))
    # A chunk is read whole whatever is asked of it: read about one at a time, then cut it.
    step = rows * -(-max(_chunk_rows(p.mass) for p in partitions) // rows)
    for start in range(0, n, step):
        pieces = [np.asarray(p.mass[start : start + step], dtype=float) for p in partitions]
        for first in range(0, len(pieces[0]), rows):
            yield tuple(piece[first : first + rows] for piece in pieces)


def _chunk_rows(mass: Any) -> int:
    """Rows of a chunk: (chunks, ...) of dask gives all sizes, that of zarr one; NumPy has none."""
    return int(np.max(mass.chunks[0])) if hasattr(mass, "chunks") else 1


def take_rows(partition: CredalPartition, index: NDArray[Any]) -> NDArray[Any]:
    """Rows of the masses in any order, repeats allowed: (len(index), f) float64."""
    if isinstance(partition.mass, np.ndarray):
        return partition.mass[index].astype(float)
    # One pass over the store costs less than many scattered reads.
    rows = np.empty((len(index), len(partition.focal_sets)))
    order = np.argsort(index, kind="stable")
    wanted, done, start = index[order], 0, 0
    for (block,) in row_blocks(partition):
        stop = int(np.searchsorted(wanted, start + len(block)))
        rows[order[done:stop]] = block[wanted[done:stop] - start]
        done, start = stop, start + len(block)
    return rows


def all_pairs(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """All n(n-1)/2 pairs i < j, row by row: the order of R's ``dist``."""
    return np.triu_indices(n, 1)


def sample_pairs(
    n: int, n_pairs: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Independent draws, with replacement, from the pairs of two different objects."""
    i = rng.integers(n, size=n_pairs)
    return i, (i + rng.integers(1, n, size=n_pairs)) % n

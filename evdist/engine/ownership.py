"""Which worker owns which partitions: so that few partners are owned by others.

Neighbours of a partition in number are its partners, and so are those `columns` away: the
partitions are a grid, b = i columns + j. A run of numbers is a stripe of whole rows of the grid,
with 2 columns partners outside however short it is. Workers that are many get blocks instead: the
columns are cut into bands, and numbers run through one band after the other. A block of m
partitions has about 4 root m partners outside.

What all workers receive together can only grow when partitions are shared out among more of them,
so what one receives falls as 1 / workers at best: where all partners are owned by others, 4 m.

Symbols
-------
P, W    partitions, workers
m       partitions of a worker, P / W
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

#: Of a worker's partitions, those that one colour may have more than the other: a half-sweep takes
#: as long as the worker with the most.
_UNEVEN = 1 / 16
#: Numbers of bands that are tried.
_TRIED = 12


def shared_out(
    parts: int,
    threads: Sequence[int],
    neighbours: Callable[[int], Sequence[int]] | None = None,
    columns: int = 1,
) -> list[list[int]]:
    """Partitions of each worker, in proportion to its threads, as many even as odd ones.

    Without `neighbours`, or where blocks bring nothing, runs of numbers.
    """
    cuts = np.round(np.cumsum([0, *threads]) / sum(threads) * (parts // 2)).astype(int) * 2
    runs = _cut(list(range(parts)), cuts)
    if neighbours is None or columns == 1:
        return runs
    best, least = runs, received(runs, neighbours)
    square = len(threads) ** 0.5  # so many bands make square blocks of a square grid
    tried = set(np.linspace(square / 2, 2 * square, _TRIED).round().astype(int).tolist())
    for bands in sorted(tried & set(range(2, columns))):
        found = _cut(_in_bands(parts, columns, bands), cuts)
        outside = received(found, neighbours)
        if outside < least and _is_even(found):
            best, least = found, outside
    return [sorted(own) for own in best]


def received(owned: Sequence[Sequence[int]], neighbours: Callable[[int], Sequence[int]]) -> int:
    """Partitions of others that a worker needs the masses of, at most."""
    return max(len({q for b in own for q in neighbours(b)} - set(own)) for own in owned)


def _in_bands(parts: int, columns: int, bands: int) -> list[int]:
    """All partitions, band by band of the grid's columns, row by row in each."""
    b = np.arange(parts)
    cuts = np.round(np.linspace(0, columns, bands + 1)).astype(int)
    band = np.searchsorted(cuts, b % columns, side="right")
    return b[np.argsort(band, kind="stable")].tolist()


def _cut(order: list[int], cuts: NDArray[np.int64]) -> list[list[int]]:
    return [order[a:b] for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]


def _is_even(owned: Sequence[Sequence[int]]) -> bool:
    return all(abs(len(own) - 2 * sum(b % 2 for b in own)) <= _UNEVEN * len(own) for own in owned)

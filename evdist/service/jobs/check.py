"""Whether data can be clustered: one pass that names the row, the column, the value and the cure.

Nothing is dropped or filled in: what cannot be used is refused, what is odd is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evdist.data.dataset import Dataset
from evdist.data.scale import dwarfing
from evdist.kernels.threads import thread_count

#: Columns named in one sentence.
_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """What one pass told: warnings in sentences, and mean and spread of each column."""

    warnings: list[str]
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]


def check_data(
    data: Dataset,
    *,
    least: int,
    scaled: bool,
    tell: Callable[[int], None] | None = None,
) -> Finding:
    """Refuse NaN, infinity and too few objects; warn of what is constant, double or lopsided.

    Parameters
    ----------
    data : Dataset
    least : int
        Objects needed.
    scaled : bool
        Whether columns will be brought to one scale.
    tell : callable, optional
        Hears how many rows were looked at.
    """
    if data.n < least:
        raise ValueError(
            f"There are {data.n} objects, but {least} are needed for this number of "
            "clusters. Use fewer clusters or more objects."
        )
    low, high = np.full(data.d, np.inf), np.full(data.d, -np.inf)
    mean, square = np.zeros(data.d), np.zeros(data.d)
    marks = np.empty(data.n, np.uint64)
    with _looks(data) as looks, np.errstate(over="ignore", invalid="ignore"):  # told below
        for (first, last), look in zip(data.chunks, looks, strict=True):
            low, high = np.minimum(low, look.low), np.maximum(high, look.high)
            mean, square = _merged(mean, square, first, look)
            marks[first:last] = look.marks
            if tell is not None:
                tell(last)
    huge = np.flatnonzero(~np.isfinite(square))
    if len(huge):
        raise ValueError(
            f"Column {_named(data, huge)} holds numbers too large for their squares "
            f"({low[huge[0]]:g} to {high[huge[0]]:g}). Give it another unit."
        )
    spread = np.sqrt(square / data.n)
    warnings = [*_constant(data, low, high), *_doubles(data, marks)]
    if not scaled:
        warnings += _lopsided(data, spread)
    return Finding(warnings, mean, spread)


def check_values(data: Dataset, tell: Callable[[int], None] | None = None) -> None:
    """Refuse NaN and infinity: all that is asked of new objects, be it a single one."""
    for first, block in data.blocks():
        _refuse_bad(data, block, first)
        if tell is not None:
            tell(first + len(block))


def _refuse_bad(data: Dataset, block: NDArray, first: int) -> None:
    bad = ~np.isfinite(block)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        value = block[row, column]
        what = "missing (NaN)" if np.isnan(value) else "infinite"
        raise ValueError(
            f"Row {first + row}, {_column(data, column)} is {what}: {value}. Fill in the value or "
            "leave that row out; evdist drops nothing by itself."
        )


@dataclass(frozen=True)
class _Look:
    """What some rows tell: of each column the range, the mean and the squared deviations from it,
    of each row a mark."""

    count: int
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    mean: NDArray[np.float64]
    square: NDArray[np.float64]
    marks: NDArray[np.uint64]


@contextmanager
def _looks(data: Dataset) -> Iterator[Iterator[_Look]]:
    """Looks at the chunks in their order, taken on all cores; who leaves early waits for none."""
    pool = ThreadPoolExecutor(thread_count(None))
    try:
        yield pool.map(lambda bounds: _look(data, data.read(*bounds), bounds[0]), data.chunks)
    finally:
        pool.shutdown(cancel_futures=True)


def _look(data: Dataset, block: NDArray, first: int) -> _Look:
    columns = np.ascontiguousarray(block.T, dtype=np.float64)  # sums along a row of memory: faster
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = columns.min(axis=1), columns.max(axis=1)
        if not np.isfinite([low, high]).all():  # both hand on a NaN
            _refuse_bad(data, block, first)
        marks = _marks(columns)
        mean = columns.mean(axis=1)
        columns -= mean[:, None]
        square = np.einsum("ij,ij->i", columns, columns)
    return _Look(len(block), low, high, mean, square, marks)


def _merged(mean: NDArray, square: NDArray, seen: int, look: _Look) -> tuple[NDArray, NDArray]:
    """Means and sums of squared deviations of two groups together (Chan et al. 1979)."""
    delta, total = look.mean - mean, seen + look.count
    square = square + look.square + delta**2 * (seen * look.count / total)
    return mean + delta * (look.count / total), square


def _marks(columns: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A 64-bit number for each row of a table given by its columns: equal rows, equal numbers."""
    mark = np.full(columns.shape[1], 0x9E3779B97F4A7C15, np.uint64)
    for column in columns:
        mark ^= (column + 0.0).view(np.uint64)  # -0.0 is 0.0
        mark *= np.uint64(0xBF58476D1CE4E5B9)
        mark ^= mark >> np.uint64(29)
    return mark


def _column(data: Dataset, column: int) -> str:
    return f"column {data.columns[column]!r}" if data.columns else f"column {column}"


def _named(data: Dataset, columns: NDArray) -> str:
    names = [_column(data, int(c)).removeprefix("column ") for c in columns[:_NAMED]]
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    return ", ".join(names) + more


def _constant(data: Dataset, low: NDArray, high: NDArray) -> list[str]:
    same = np.flatnonzero(low == high)
    if not len(same):
        return []
    if len(same) == data.d:
        raise ValueError(
            f"All columns are constant: every object is the same (row 0 holds {low[0]:g} in "
            f"{_column(data, 0)}). There is nothing to cluster."
        )
    return [
        f"Constant columns are of no use: column {_named(data, same)} (value {low[same[0]]:g}). "
        "Leave them out with data.columns."
    ]


def _doubles(data: Dataset, marks: NDArray[np.uint64]) -> list[str]:
    in_order = np.sort(marks)
    if not (in_order[1:] == in_order[:-1]).any():
        return []
    order = np.argsort(marks, kind="stable")
    same = np.flatnonzero(marks[order][1:] == marks[order][:-1])
    for at in same[:1]:
        i, j = sorted((int(order[at]), int(order[at + 1])))
        return [
            f"{len(same):,} of {data.n:,} objects are copies of others (row {j} is row {i} again). "
            "Every copy counts; if that is not intended, remove the copies or use weights."
        ]
    return []


def _lopsided(data: Dataset, spread: NDArray) -> list[str]:
    large, times = dwarfing(spread)
    if not len(large):
        return []
    return [
        f"Column {_named(data, large)} varies {times:,.0f} times as much as the "
        "others and dominates the distances. Scale the columns with data.scale: standard."
    ]

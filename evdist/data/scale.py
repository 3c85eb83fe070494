"""Columns brought to one scale, and those that dwarf all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: "standard": mean and standard deviation; "robust": median and interquartile range.
KINDS = ("standard", "robust")
#: The widest columns that have this share of the variance of all are said to dwarf the others when
#: the spread of each is this many times the median spread; of few columns, which are mostly
#: coordinates of one kind, so many times.
SHARE, DWARFS = 0.9, 10.0
FEW, FEW_DWARF = 3, 100.0
#: Rows that medians, quartiles and the look at spreads are taken from; more change the third digit.
SAMPLE = 1_000_000
LOOKED_AT = 100_000
#: Columns whose spread is found at a time: 100 MB for so many rows.
_COLUMNS = 64


class ScaleWarning(UserWarning):
    """One column decides alone."""


# Not scikit-learn's scalers: the check of a job's data has the moments already, from parallel
# chunks, a fitted scale is JSON in a manifest, and StandardScaler.partial_fit gives other bits.
@dataclass(frozen=True)
class Scale:
    """(x - centre) / spread, column by column; both (d,)."""

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]

    @classmethod
    def of(cls, centre: NDArray[np.float64], spread: NDArray[np.float64]) -> Scale:
        """A column without spread is left as it is, but for its centre."""
        return cls(centre, np.where(spread > 0, spread, 1.0))

    @classmethod
    def robust(cls, rows: NDArray[Any], deviation: NDArray[np.float64]) -> Scale:
        """Median and interquartile range; half of a column may be one value: then `deviation`."""
        low, centre, high = np.quantile(rows.astype(np.float64), [0.25, 0.5, 0.75], axis=0)
        return cls.of(centre, np.where(high > low, high - low, deviation))

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        """Scaled rows, of the type that they had."""
        return ((X - self.centre) / self.spread).astype(X.dtype, copy=False)

    def to_json(self) -> dict[str, Any]:
        return {"centre": self.centre.tolist(), "spread": self.spread.tolist()}

    @classmethod
    def of_json(cls, values: dict[str, Any] | None) -> Scale | None:
        if values is None:
            return None
        return cls(np.array(values["centre"]), np.array(values["spread"]))


def scale_of(kind: str | None, X: NDArray[Any]) -> Scale | None:
    """The scale of the columns of X, None where none is asked for."""
    if kind is None:
        return None
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"scale must be 'standard', 'robust' or None, got {kind!r}.")
    centre, spread = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    return Scale.of(centre, spread) if kind == "standard" else Scale.robust(some_rows(X), spread)


def some_rows(X: NDArray[Any], most: int = SAMPLE) -> NDArray[Any]:
    """Evenly spaced rows, all of them when there are not more."""
    return X[:: -(-len(X) // most)]


def spreads(X: NDArray[Any]) -> NDArray[np.float64]:
    """The standard deviation of each column, (d,), a few columns at a time.

    NumPy is slow along short rows, so columns are laid out as rows first.
    """
    some = [X[:, j : j + _COLUMNS].T for j in range(0, X.shape[1], _COLUMNS)]
    return np.concatenate([np.ascontiguousarray(x, dtype=np.float64).std(axis=1) for x in some])


def dwarfing(spread: NDArray[np.float64]) -> tuple[NDArray[np.int64], float]:
    """Columns that decide alone, the widest first, and how many median spreads that one has."""
    alive = np.sort(spread[spread > 0])
    if len(alive) < 2:
        return np.empty(0, np.int64), 1.0
    usual = float(alive[(len(alive) - 1) // 2])  # of two the smaller: it is the dwarf
    order = np.argsort(-spread, kind="stable")
    parts = np.cumsum((spread[order] / alive[-1]) ** 2)  # whose sums are finite
    large = order[: 1 + int(np.searchsorted(parts, SHARE * parts[-1]))]
    if spread[large[-1]] <= (DWARFS if len(alive) > FEW else FEW_DWARF) * usual:
        return large[:0], 1.0
    return large, float(spread[large[0]] / usual)

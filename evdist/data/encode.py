"""Tables as people have them, made into numbers: categories, dates, missing values, mixed types.

Each column becomes one or more columns of numbers that weigh alike in a distance:

========  =================================================  ======================================
kind      becomes                                            a missing value
========  =================================================  ======================================
number    (x - centre) / spread                              is the median of the column
date      the same, of days since 1970                       is the median of the column
category  one column for each level, s where it holds, or 0  0 in all of them, as is a new level
========  =================================================  ======================================

With "standard", centre and spread are mean and standard deviation, with "robust" median and
interquartile range. Standardised, two random objects differ by 2 on average in the square of a
number; s is chosen so that they do in a category: s^2 = 1 / (1 - sum_l p_l^2), p the shares of the
levels. s is at most 2, so that a level that is hardly ever met does not decide alone. A missing
category is half as far from every level as two levels are from each other, in squares.

With "gower", numbers are divided by their range and s = 1/2: the city-block distance of two objects
without missing values is then Gower's dissimilarity times the number of columns (Gower 1971).

pandas takes a third of a second to load: this module is loaded on first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

#: Levels of a category at most; a column with more names objects, or holds sentences.
MOST_LEVELS = 100
#: Rows that medians, quartiles and shares are taken from, at most about.
MOST_ROWS = 1_000_000
#: The least 1 - sum p^2 that a category is weighed with.
_LEAST_SPREAD = 0.25

Scale = Literal["standard", "robust", "gower"]


@dataclass(frozen=True)
class Column:
    """How one column becomes numbers; `missing` counts what was missing when it was looked at."""

    name: str
    kind: Literal["number", "date", "category"]
    centre: float = 0.0
    spread: float = 1.0
    fill: float = 0.0
    levels: list[str] = field(default_factory=list)
    weight: float = 1.0
    missing: int = 0

    @property
    def names(self) -> list[str]:
        """Names of the columns that it becomes."""
        if self.kind != "category":
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels]


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become numbers; fitted once, applied to new rows alike."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for column in self.columns for name in column.names]

    def __call__(self, frame: pd.DataFrame, first: int = 0) -> NDArray[np.float64]:
        """The rows of a frame as numbers, (rows, d); they are those from `first` on of a table."""
        parts = []
        for column in self.columns:
            values = frame[column.name]
            if column.kind == "category":
                parts.append(_levels(values, column))
            else:
                number = _numbers(values, column.kind, first)
                number = np.where(np.isnan(number), column.fill, number)
                parts.append(((number - column.centre) / column.spread)[:, None])
        return np.hstack(parts) if parts else np.empty((len(frame), 0))

    def decoded(self, rows: NDArray[Any]) -> list[list[str]]:
        """What encoded rows (rows, d) stand for: the texts of each column; "–" where none holds."""
        texts, at = [], 0
        for column in self.columns:
            part = rows[:, at : at + len(column.names)]
            at += len(column.names)
            if column.kind == "category":
                best = part.argmax(axis=1)
                known = part[np.arange(len(part)), best] > 0
                texts.append(
                    [column.levels[k] if yes else "–" for k, yes in zip(best, known, strict=True)]
                )
                continue
            values = part[:, 0] * column.spread + column.centre
            if column.kind == "date":
                texts.append([str(np.datetime64(round(v), "D")) for v in values.tolist()])
            else:
                texts.append([f"{value:.4g}" for value in values])
        return texts

    def told(self) -> list[str]:
        """Sentences on what was filled in."""
        said = []
        for column in self.columns:
            if column.missing:
                how = "count as no level" if column.kind == "category" else "are set to its median"
                said.append(f"Column {column.name!r}: {column.missing:,} missing values {how}.")
        return said

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(column) for column in self.columns]

    @classmethod
    def of_json(cls, values: list[dict[str, Any]] | None) -> Encoding | None:
        return None if values is None else cls(tuple(Column(**one) for one in values))


def fit_encoding(
    pieces: Iterable[pd.DataFrame], scale: Scale = "standard", categories: Sequence[str] = ()
) -> Encoding:
    """The encoding of a table that comes in pieces of rows.

    Parameters
    ----------
    pieces : iterable of data frames
        Looked at once; of more than a million rows about a million, evenly spread.
    scale : "standard", "robust" or "gower"
    categories : names of columns whose numbers are names, such as postal codes
    """
    frame = _sample(pieces)
    unknown = [name for name in categories if name not in frame.columns]
    if unknown:
        raise ValueError(
            f"There is no column {unknown[0]!r} to take for categories; there are "
            f"{', '.join(map(repr, frame.columns))}."
        )
    return Encoding(
        tuple(_fit(str(name), frame[name], scale, name in categories) for name in frame.columns)
    )


def _sample(pieces: Iterable[pd.DataFrame]) -> pd.DataFrame:
    kept: list[pd.DataFrame] = []
    seen, step = 0, 1
    for piece in pieces:
        kept.append(piece.iloc[(-seen) % step :: step])
        seen += len(piece)
        if sum(map(len, kept)) > MOST_ROWS:
            kept, step = [part.iloc[::2] for part in kept], 2 * step
    if not seen:
        raise ValueError("There are no rows to encode.")
    return pd.concat(kept) if len(kept) > 1 else kept[0]


def _fit(name: str, values: pd.Series, scale: Scale, category: bool) -> Column:
    missing = int(values.isna().sum())
    if missing == len(values):
        raise ValueError(f"Column {name!r} has no values. Leave it out with drop.")
    kind = "category" if category else _kind(values)
    if kind == "category":
        return _fit_category(name, values, scale, missing)
    number = _numbers(values, kind, 0)
    number = number[~np.isnan(number)]
    low, median, high = np.quantile(number, [0.25, 0.5, 0.75])
    if scale == "gower":
        centre, spread = float(number.min()), float(np.ptp(number))
    elif scale == "robust" and high > low:
        centre, spread = float(median), float(high - low)
    else:
        centre, spread = float(number.mean()), float(number.std())
    return Column(name, kind, centre, spread or 1.0, float(median), missing=missing)


def _kind(values: pd.Series) -> Literal["number", "date", "category"]:
    """What a column holds, by its type; of text, what all its values can be read as."""
    types = pd.api.types
    if types.is_bool_dtype(values) or isinstance(values.dtype, pd.CategoricalDtype):
        return "category"
    if types.is_numeric_dtype(values) and not types.is_complex_dtype(values):
        return "number"
    if types.is_datetime64_any_dtype(values):
        return "date"
    known = values.dropna()
    if known.map(lambda value: isinstance(value, bool)).all():
        return "category"
    if pd.to_numeric(known, errors="coerce").notna().all():
        return "number"
    if pd.to_datetime(known.astype(str), errors="coerce", format="ISO8601").notna().all():
        return "date"
    return "category"


def _fit_category(name: str, values: pd.Series, scale: Scale, missing: int) -> Column:
    shares = _text(values).value_counts(normalize=True)
    if len(shares) > MOST_LEVELS:
        raise ValueError(
            f"Column {name!r} has {len(shares):,} different values, such as "
            f"{str(shares.index[0])!r}; a category has at most {MOST_LEVELS}. If it names the "
            "objects, say so with id; else leave it out with drop, or group its values."
        )
    spread = max(1.0 - float((shares**2).sum()), _LEAST_SPREAD)
    weight = 0.5 if scale == "gower" else float(np.sqrt(1.0 / spread))
    levels = sorted(shares.index)
    return Column(name, "category", levels=levels, weight=weight, missing=missing)


def _text(values: pd.Series) -> pd.Series:
    """The known values as text; 3.0 of a column with gaps is the 3 of one without."""
    known = values.dropna()
    if pd.api.types.is_float_dtype(known) and (known == known.round()).all():
        known = known.astype("int64")
    return known.astype(object).map(str)


def _levels(values: pd.Series, column: Column) -> NDArray[np.float64]:
    number = {level: k for k, level in enumerate(column.levels)}
    out = np.zeros((len(values), len(column.levels)))
    known = values.notna().to_numpy()
    place = _text(values).map(number).to_numpy(dtype=float)
    rows = np.flatnonzero(known)[~np.isnan(place)]
    out[rows, place[~np.isnan(place)].astype(int)] = column.weight
    return out


def _numbers(values: pd.Series, kind: str, first: int) -> NDArray[np.float64]:
    """Numbers, or days since 1970; NaN where a value is missing, text is refused."""
    if kind == "date":
        if not pd.api.types.is_datetime64_any_dtype(values):
            text = values.astype(object).where(values.notna(), None)
            when = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
        else:
            when = values
        if getattr(when.dtype, "tz", None) is not None:
            when = when.dt.tz_convert("UTC").dt.tz_localize(None)
        days = (when - pd.Timestamp(0)) / pd.Timedelta(days=1)
        found = days.to_numpy(dtype=float)
    else:
        found = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = np.isnan(found) & values.notna().to_numpy() | np.isinf(found)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"Column {values.name!r} holds a {kind} in other rows, but row {first + row} holds "
            f"{values.iloc[row]!r}. Correct the value, or list the column in categories."
        )
    return found

"""Tables as people have them, made into numbers: categories, dates, missing values, mixed types.

Each column becomes one or more columns of numbers that weigh alike in a distance:

========  =================================================  ======================================
kind      becomes                                            a missing value
========  =================================================  ======================================
number    (x - centre) / spread                              is the median of the column
date      the same, of days since 1970                       is the median of the column
category  one column for each level, 1 where it holds, or 0  0 in all of them, as is a new level
name      none, where they shall be left out, or an error
========  =================================================  ======================================

With "standard", centre and spread are mean and standard deviation, with "robust" median and
interquartile range. Standardised, two random objects differ by 2 on average in the square of a
number, and so do two objects of different levels: a category counts as one column at most, however
many levels it has. To let two random objects differ as much in a category as in a number would
push different levels farther apart than most objects, and every combination of levels is then a
cluster of its own. Levels of less than one object in a hundred become one. A missing category is
half as far from every level as two levels are from each other, in squares.

With "gower", numbers are divided by their range, and 1/2 stands for 1: the city-block distance of
two objects without missing values is then Gower's dissimilarity times the number of columns (Gower
1971).

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
#: A column of text with so many levels names objects too, where hardly a value is there twice.
FEW_NAMES, HARDLY_TWICE = 10, 0.9
#: Levels of a smaller share become one, called OTHERS, where at least half of the objects have
#: another one.
RARE, OTHERS = 0.01, "(others)"
#: Rows that medians, quartiles and shares are taken from, at most about.
MOST_ROWS = 1_000_000

Scale = Literal["standard", "robust", "gower"]


@dataclass(frozen=True)
class Column:
    """How one column becomes numbers; `missing` counts what was missing when it was looked at."""

    name: str
    kind: Literal["number", "date", "category", "name"]
    centre: float = 0.0
    spread: float = 1.0
    fill: float = 0.0
    levels: list[str] = field(default_factory=list)
    weight: float = 1.0
    missing: int = 0
    #: Levels that OTHERS stands for.
    rare: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Names of the columns that it becomes."""
        if self.kind == "name":
            return []
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

    @property
    def used(self) -> list[Column]:
        """The columns that become numbers."""
        return [column for column in self.columns if column.kind != "name"]

    def __call__(self, frame: pd.DataFrame, first: int = 0) -> NDArray[np.float64]:
        """The rows of a frame as numbers, (rows, d); they are those from `first` on of a table."""
        parts = []
        for column in self.used:
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
        for column in self.used:
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

    def original(self, rows: NDArray[Any]) -> pd.DataFrame:
        """Encoded rows (rows, d) in their own units: numbers, dates, levels (None where none)."""
        found, at = {}, 0
        for column in self.used:
            part = rows[:, at : at + len(column.names)]
            at += len(column.names)
            if column.kind == "category":
                best = part.argmax(axis=1)
                level = np.array(column.levels, dtype=object)[best]
                level[part[np.arange(len(part)), best] <= 0] = None
                found[column.name] = pd.Series(level, dtype=object)
                continue
            values = part[:, 0].astype(np.float64) * column.spread + column.centre
            # As many digits as the numbers of the table had: the scale has rounded the last ones.
            size = max(float(np.abs(values).max(initial=0.0)), column.spread)
            digits = 5 if rows.dtype == np.float32 else 10
            values = np.round(values, digits - int(np.ceil(np.log10(size or 1.0))))
            if column.kind == "date":
                found[column.name] = pd.Timestamp(0) + pd.to_timedelta(values, "D").to_series()
                found[column.name] = found[column.name].reset_index(drop=True)
            else:
                found[column.name] = pd.Series(values)
        return pd.DataFrame(found)

    def told(self) -> list[str]:
        """Sentences on what was filled in, made one and left out."""
        said = []
        names = [repr(column.name) for column in self.columns if column.kind == "name"]
        if names:
            said.append(f"Left out, as names of objects: {', '.join(names)}.")
        for column in self.columns:
            if column.rare:
                said.append(f"Column {column.name!r}: {len(column.rare)} rare levels are one.")
            if column.missing and column.kind != "name":
                how = "count as no level" if column.kind == "category" else "are set to its median"
                said.append(f"Column {column.name!r}: {column.missing:,} missing values {how}.")
        return said

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(column) for column in self.columns]

    @classmethod
    def of_json(cls, values: list[dict[str, Any]] | None) -> Encoding | None:
        return None if values is None else cls(tuple(Column(**one) for one in values))


def fit_encoding(
    pieces: Iterable[pd.DataFrame],
    scale: Scale = "standard",
    categories: Sequence[str] = (),
    drop_ids: bool = False,
) -> Encoding:
    """The encoding of a table that comes in pieces of rows.

    Parameters
    ----------
    pieces : iterable of data frames
        Looked at once; of more than a million rows about a million, evenly spread.
    scale : "standard", "robust" or "gower"
    categories : names of columns whose numbers are names, such as postal codes
    drop_ids : whether columns that name objects are left out, or refused
    """
    frame = _sample(pieces)
    unknown = [name for name in categories if name not in frame.columns]
    if unknown:
        raise ValueError(
            f"There is no column {unknown[0]!r} to take for categories; there are "
            f"{', '.join(map(repr, frame.columns))}."
        )
    shares = {
        str(name): _text(frame[name]).value_counts(normalize=True)
        for name in frame.columns
        if name in categories or _kind(frame[name]) == "category"
    }
    named = {
        name: levels
        for name, levels in shares.items()
        if (name not in categories and _names_objects(levels, frame[name]))
        or len(levels) > MOST_LEVELS
    }
    if named and (len(named) == len(frame.columns) or not drop_ids):
        raise ValueError(_refusal(named, alone=len(named) == len(frame.columns)))
    return Encoding(
        tuple(
            Column(name, "name")
            if name in named
            else _fit(name, frame[name], scale, shares.get(name))
            for name in map(str, frame.columns)
        )
    )


def _names_objects(shares: pd.Series, values: pd.Series) -> bool:
    """Whether a column of text names objects: no level of it says anything of another object."""
    many = len(shares) > HARDLY_TWICE * max(int(values.notna().sum()), 1)
    return len(shares) >= FEW_NAMES and many


def _refusal(named: dict[str, pd.Series], alone: bool) -> str:
    """All columns that name objects, in one sentence."""
    what = [
        f"{name!r} has {len(levels):,} different values, such as {str(levels.index[0])!r}"
        for name, levels in named.items()
    ]
    said = f"Column {what[0]}" if len(what) == 1 else f"Columns name objects: {'; '.join(what)}"
    if alone:
        return f"{said}. There is nothing else in the table: names alone cannot be clustered."
    return (
        f"{said}; a category has at most {MOST_LEVELS}, some of them twice. If it names the "
        "objects, say so with id; else leave it out with drop (all such columns with drop_ids, "
        "--drop-ids auto), or group its values."
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


def _fit(name: str, values: pd.Series, scale: Scale, shares: pd.Series | None) -> Column:
    """`shares` are those of the levels of a category."""
    missing = int(values.isna().sum())
    if missing == len(values):
        raise ValueError(f"Column {name!r} has no values. Leave it out with drop.")
    if shares is not None:
        return _fit_category(name, shares, scale, missing)
    kind = _kind(values)
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


def _fit_category(name: str, shares: pd.Series, scale: Scale, missing: int) -> Column:
    levels = sorted(shares.index)
    rare = sorted(shares.index[shares < RARE])
    if len(rare) > 1 and float(shares[rare].sum()) <= 0.5:
        levels = sorted({*levels, OTHERS} - set(rare))
    else:
        rare = []
    weight = 0.5 if scale == "gower" else 1.0
    return Column(name, "category", levels=levels, weight=weight, missing=missing, rare=rare)


def _text(values: pd.Series) -> pd.Series:
    """The known values as text; 3.0 of a column with gaps is the 3 of one without."""
    known = values.dropna()
    if pd.api.types.is_float_dtype(known) and (known == known.round()).all():
        known = known.astype("int64")
    return known.astype(object).map(str)


def _levels(values: pd.Series, column: Column) -> NDArray[np.float64]:
    number = {level: k for k, level in enumerate(column.levels)}
    number |= dict.fromkeys(column.rare, number.get(OTHERS, 0))
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

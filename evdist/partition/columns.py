"""The columns of a table as people read them: numbers, dates and levels in their own units.

What is described is the table as it was given, before any scaling: a column of numbers stays in
kilograms or years, a category keeps the names of its levels. Columns that name objects (all values
different) and columns without values are left out, and named in `Columns.left_out`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evdist.partition.rows import as_table, select_rows

#: A column of text with more levels than this, and than a third of the rows, names objects.
MOST_LEVELS = 30
#: So many different numbers are names: 0 and 1, or the codes 1, 2 and 3.
FEW_NUMBERS = 3

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Column:
    """One column of some rows: numbers and days since 1970 with NaN, or numbers of levels with -1.

    `whole`: all values are whole numbers, or the first days of years.
    """

    name: str
    kind: Literal["number", "date", "category"]
    values: NDArray[Any]
    levels: tuple[str, ...] = ()
    whole: bool = False

    def said(self, value: float) -> str:
        """A value in the units of the column."""
        if self.kind == "category":
            return self.levels[int(value)] if value >= 0 else "missing"
        if not np.isfinite(value):
            return "missing"
        if self.kind == "date":
            return str(np.datetime64(round(value), "D"))[: 4 if self.whole else 10]
        return number(value, self.whole)

    def taken(self, rows: Any) -> Column:
        return Column(self.name, self.kind, self.values[rows], self.levels, self.whole)


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of some rows of a table, and the names of those that say nothing of a cluster."""

    columns: tuple[Column, ...]
    left_out: tuple[str, ...]
    #: Whether the table names its columns.
    named: bool


def number(value: float, whole: bool = False) -> str:
    """A number that a person can read: three digits that count, thousands apart, years as such."""
    if whole and float(value).is_integer():
        return f"{value:.0f}" if abs(value) < 10_000 else f"{value:,.0f}"
    size = abs(value)
    if size >= 1000:
        return f"{value:.0f}" if size < 10_000 else f"{value:,.0f}"
    if size and size < 0.001:
        return f"{value:.2g}"
    digits = 2 if size < 10 else 1 if size < 100 else 0
    if 0 < size < 0.1:
        digits = 3 if size >= 0.01 else 4
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def frame_of(X: Any) -> Any:
    """A polars frame or Arrow table as a pandas frame, lists as an array, anything else as is."""
    kind = f"{type(X).__module__}.{type(X).__name__}"
    if kind in ("pyarrow.lib.Table", "pyarrow.lib.RecordBatch"):
        return X.to_pandas()
    if kind.startswith("polars.") and hasattr(X, "to_arrow"):
        return X.to_arrow().to_pandas()
    return X if isinstance(X, pd.DataFrame) or hasattr(X, "frame") else as_table(X)


def rows_of(X: Any, rows: NDArray[Any]) -> pd.DataFrame:
    """Some rows of a table as a frame; columns without names are called "attribute 0", ..."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    if hasattr(X, "frame"):  # rows that are read when they are asked for
        found: pd.DataFrame = X.frame(rows)
        return found
    values = np.asarray(select_rows(X, rows))
    return pd.DataFrame(values, columns=[f"attribute {j}" for j in range(values.shape[1])])


def read_columns(frame: pd.DataFrame, named: bool = True) -> Columns:
    """What the columns of a frame hold, by their types; of text, by what all values read as."""
    found, out = [], []
    for place, name in enumerate(frame.columns):
        column = _column(str(name), frame.iloc[:, place])
        if column is None:
            out.append(str(name))
        else:
            found.append(column)
    return Columns(tuple(found), tuple(out), named)


def _column(name: str, values: pd.Series) -> Column | None:
    types = pd.api.types
    known = values.dropna()
    if not len(known) or (known.dtype == object and known.map(_unhashable).any()):
        return None
    if types.is_bool_dtype(values) or isinstance(values.dtype, pd.CategoricalDtype):
        return _category(name, values)
    if types.is_datetime64_any_dtype(values):
        return _date(name, values)
    if types.is_numeric_dtype(values) and not types.is_complex_dtype(values):
        return _number(name, values)
    if known.map(lambda value: isinstance(value, bool)).all():
        return _category(name, values)
    if pd.to_numeric(known, errors="coerce").notna().all():
        return _number(name, pd.to_numeric(values, errors="coerce"))
    if pd.to_datetime(known.astype(str), errors="coerce", format="ISO8601").notna().all():
        return _date(name, values)
    return _category(name, values)


def _unhashable(value: Any) -> bool:
    return isinstance(value, list | dict | set | np.ndarray)


def _number(name: str, values: pd.Series) -> Column | None:
    x = values.to_numpy(dtype=float, na_value=np.nan)
    x = np.where(np.isinf(x), np.nan, x)
    known = x[~np.isnan(x)]
    different = np.unique(known)
    if len(different) < 2:
        return None
    whole = bool((different == np.round(different)).all())
    if len(different) <= FEW_NUMBERS:
        codes = np.where(np.isnan(x), -1, np.searchsorted(different, x))
        names = tuple(number(value, whole) for value in different)
        return Column(name, "category", codes.astype(np.int64), names)
    if whole and len(different) == len(x) and _counts(known):
        return None  # numbers of rows
    return Column(name, "number", x, whole=whole)


def _counts(values: Floats) -> bool:
    """Whether values count the rows: each step the same."""
    steps = np.diff(values)
    return len(values) > 10 and bool((steps == steps[0]).all())


def _date(name: str, values: pd.Series) -> Column | None:
    when = pd.to_datetime(values.astype(object).where(values.notna(), None), utc=True)
    days = ((when - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(dtype=float)
    if len(np.unique(days[~np.isnan(days)])) < 2:
        return None
    known = when.dropna()
    years = bool(((known.dt.day_of_year == 1) & (known == known.dt.normalize())).all())
    return Column(name, "date", days, whole=years)


def _category(name: str, values: pd.Series) -> Column | None:
    codes, found = pd.factorize(values.astype(object).where(values.notna(), None), sort=False)
    levels = [" ".join(str(level).split()) for level in found]
    if len(levels) < 2 or len(levels) > max(MOST_LEVELS, len(values) // 3):
        return None
    if len(levels) == len(values) and len(values) > 5:
        return None
    return Column(name, "category", codes.astype(np.int64), tuple(levels))


def texts_of(X: Any, text: Any, n: int) -> tuple[Any, Any]:
    """The table without the column of texts, and the (n,) texts: a name, or a sequence of n."""
    if isinstance(text, str):
        if not isinstance(X, pd.DataFrame) or text not in X.columns:
            raise ValueError(f"text must name a column of the table or be {n} texts, got {text!r}.")
        rest = X.drop(columns=text)
        return (rest if rest.shape[1] else None), X[text].to_numpy(dtype=object)
    values = np.asarray(list(text), dtype=object)
    if values.shape != (n,):
        raise ValueError(f"There must be one text for each of the {n} objects, got {len(values)}.")
    return X, values


def joined(names: Sequence[str], most: int = 6) -> str:
    """Names one after another, the first of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

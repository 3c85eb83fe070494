"""How well the columns of a table tell each cluster from the rest.

Symbols
-------
T     (b, c) how many members of each cluster have a value in each of b bins (quantiles of a number
      or date, levels of a category)
s     (c,) how well a column tells cluster k from the rest, 0 to 1: the Kolmogorov-Smirnov distance
      of numbers and dates, max_x |F_in(x) - F_out(x)|; of a category half of sum_l |p_in - p_out|
A     (c,) the chance that a random member of k has a larger value than a random other object
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.partition.columns import Column, number

#: Bins of a number.
BINS = 64
#: A column that tells less than this is not worth a word.
LEAST = 0.25
#: Chances from which members have high or low values.
HIGH, LOW = 0.68, 0.32
#: Columns whose ranks are this alike say the same twice.
ALIKE = 0.85
#: Rows by which that is judged, at most about.
ALIKE_ROWS = 10_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """A level of a category: its share among the members and among the others."""

    name: str
    share: float
    others: float


@dataclass(frozen=True)
class Attribute:
    """What one column says of a cluster, in its own units.

    `strength`: how well it tells the cluster from the rest, 0 to 1. Of numbers and dates: mean and
    standard deviation of the members and of the others (a date in days), and the quartiles that
    half of the members lie between, as texts. Of categories: the most telling levels.
    """

    name: str
    kind: str
    strength: float
    words: str
    mean: float | None = None
    spread: float | None = None
    others_mean: float | None = None
    others_spread: float | None = None
    low: str = ""
    high: str = ""
    levels: tuple[Level, ...] = ()

    @property
    def line(self) -> str:
        """Members against the others, in one line."""
        if self.kind == "category":
            return ", ".join(
                f"{one.name}{':' if _is_code(one.name) else ''} {_percent(one.share)} "
                f"(others {_percent(one.others)})"
                for one in self.levels
            )
        if self.kind == "date" or self.others_mean is None:
            if self.low == self.high:
                return f"half of them or more {self.low}"
            return f"half of them {self.low} to {self.high}"
        assert self.mean is not None and self.spread is not None
        return (
            f"{_about(self.mean, self.spread)} "
            f"(others {_about(self.others_mean, self.others_spread or 0.0)})"
        )


def _about(mean: float, spread: float) -> str:
    if spread <= 1e-9 * abs(mean):  # rounding alone
        return f"{number(mean)} ± 0"
    return f"{number(mean)} ± {number(spread)}"


@dataclass(frozen=True, eq=False)
class Measured:
    """One column, looked at for all clusters: (c,) strengths and chances of a larger value."""

    column: Column
    strength: Floats
    larger: Floats


def measure(column: Column, group: NDArray[np.int64], sure: NDArray[np.int64], c: int) -> Measured:
    """Tell every cluster from the rest by one column.

    Parameters
    ----------
    column : of m rows
    group : (m,) cluster of each row, -1 for none
    sure : (m,) cluster that a row speaks for, -1 for none: its members proper
    c : int
    """
    code, bins = _binned(column)
    inside, every = _table(code, sure, bins, c), _table(code, group, bins, c)
    outside = every.sum(axis=1, keepdims=True) - every
    p, q = _shares(inside), _shares(outside)
    if column.kind == "category":
        return Measured(column, 0.5 * np.abs(p - q).sum(axis=0), np.full(c, 0.5))
    F, G = np.cumsum(p, axis=0), np.cumsum(q, axis=0)
    larger = (p * (G - 0.5 * q)).sum(axis=0)
    return Measured(column, np.abs(F - G).max(axis=0), larger)


def _binned(column: Column) -> tuple[NDArray[np.int64], int]:
    if column.kind == "category":
        return column.values, len(column.levels)
    x = column.values
    known = x[~np.isnan(x)]
    cuts = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1], method="lower"))
    return np.where(np.isnan(x), -1, np.searchsorted(cuts, x, side="left")), len(cuts) + 1


def _table(code: NDArray[np.int64], group: NDArray[np.int64], bins: int, c: int) -> Floats:
    kept = (code >= 0) & (group >= 0)
    many = np.bincount(code[kept] * c + group[kept], minlength=bins * c)
    return many.reshape(bins, c).astype(np.float64)


def _shares(T: Floats) -> Floats:
    return T / np.maximum(T.sum(axis=0), 1.0)


def by_chance(members: int, others: int, columns: int) -> float:
    """What the strongest of so many columns reaches by chance, once in twenty times.

    The bound of Dvoretzky, Kiefer and Wolfowitz for two samples.
    """
    few = 1.0 / max(members, 1) + 1.0 / max(others, 1)
    return min(float(np.sqrt(0.5 * np.log(40.0 * max(columns, 1)) * few)), 0.95)


def told(
    found: Measured, k: int, inside: NDArray[np.bool_], outside: NDArray[np.bool_]
) -> Attribute:
    """What a column says of cluster k; inside, outside: (m,) its members proper and the others."""
    column, strength = found.column, float(found.strength[k])
    if column.kind == "category":
        levels = _levels(column, inside, outside)
        return Attribute(column.name, "category", strength, _level_words(column.name, levels),
                         levels=levels)  # fmt: skip
    x, rest = (column.values[some] for some in (inside, outside))
    x, rest = x[~np.isnan(x)], rest[~np.isnan(rest)]
    if not len(x):
        return Attribute(column.name, column.kind, 0.0, f"{column.name} missing")
    method: Any = "nearest" if column.whole or column.kind == "date" else "linear"
    low, high = (column.said(float(v)) for v in np.quantile(x, [0.25, 0.75], method=method))
    larger = float(found.larger[k])
    words = (
        ("early", "late", "in between") if column.kind == "date" else ("low", "high", "middling")
    )
    word = words[1] if larger >= HIGH else words[0] if larger <= LOW else words[2]
    near = low if low == high else f"{low} to {high}"
    if low == high and float(np.mean([column.said(float(v)) == low for v in x[:1000]])) > 0.9:
        word = ""  # nearly all have this value
    return Attribute(
        name=column.name,
        kind=column.kind,
        strength=strength,
        words=f"{column.name} {word}, {near}" if word else f"{column.name} {near}",
        mean=float(x.mean()),
        spread=float(x.std()),
        others_mean=float(rest.mean()) if len(rest) else None,
        others_spread=float(rest.std()) if len(rest) else None,
        low=low,
        high=high,
    )


def _levels(
    column: Column, inside: NDArray[np.bool_], outside: NDArray[np.bool_], most: int = 3
) -> tuple[Level, ...]:
    """The levels that members have more often than others, then the frequent ones."""
    many = len(column.levels)
    p, q = (
        _shares(np.bincount(v[v >= 0], minlength=many)[:, None].astype(np.float64))[:, 0]
        for v in (column.values[inside], column.values[outside])
    )
    more = p - q
    order = np.lexsort((-p, -np.abs(more)))[: most if many > 2 else 2]
    # Of two levels one tells the other; and one that neither has much of tells nothing.
    chosen = sorted((j for j in order.tolist() if max(p[j], q[j]) >= 0.05), key=lambda j: -p[j])
    chosen = (chosen or order.tolist())[: most if many > 2 else 1]
    return tuple(Level(column.levels[j], float(p[j]), float(q[j])) for j in chosen)


def _level_words(name: str, levels: tuple[Level, ...]) -> str:
    first = max(levels, key=lambda one: (one.share - one.others, one.share))
    if first.share >= 0.97:
        return f"{name} {'= ' if _is_code(first.name) else ''}{first.name}"
    if first.share >= 0.5 and first.share > first.others:
        return f"{name} mostly {first.name} ({_percent(first.share)})"
    gone = min(levels, key=lambda one: one.share - one.others)
    if gone.share <= 0.03 and gone.others >= 0.3:
        return f"{name} not {gone.name}"
    return f"{name} often {first.name} ({_percent(first.share)}, others {_percent(first.others)})"


def _is_code(level: str) -> bool:
    """Whether a level is a number, which beside a name or a share would be taken for a count."""
    return level.lstrip("-").replace(".", "", 1).isdigit()


def _percent(share: float) -> str:
    if 0 < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %"


def alike(one: Column, two: Column) -> bool:
    """Whether two columns of numbers order the rows alike, or two categories cut them alike."""
    if one.kind == "category" or two.kind == "category":
        if one.kind != two.kind:
            return False
        pairs = np.unique(np.column_stack([one.values, two.values]), axis=0)
        return len(pairs) <= max(len(one.levels), len(two.levels))
    some = slice(None, None, -(-len(one.values) // ALIKE_ROWS) or 1)
    x, y = one.values[some], two.values[some]
    kept = ~np.isnan(x) & ~np.isnan(y)
    x, y = _ranks(x[kept]), _ranks(y[kept])
    if len(x) < 3 or x.std() == 0 or y.std() == 0:
        return False
    return bool(abs(np.corrcoef(x, y)[0, 1]) > ALIKE)


def _ranks(x: Floats) -> Floats:
    _, place, many = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(many) - 0.5 * many)[place]

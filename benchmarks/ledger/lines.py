"""Reads the printed figures: `figures/tables.csv`, and one file of lines for each source.

A line is one figure as a source prints it. Its columns:

* table, row, column: where it stands; `text` is the running text;
* printed: the figure;
* spread: the deviation that is printed with it, where there is one;
* data, part, arguments: what to run (`sets.py`, `clusterers.py`, `others.py`), as `name=value`
  pairs; `draws=3 links=100` are for the ledger: seeds 0 to 2, and links drawn from the classes;
* score: what is measured of the answer (`scores.py`);
* band: how far ours may be from it, on either side, fixed before the run;
* absent: `no data: what was searched`, or `not run: why`; such a line needs no part;
* reason: why ours is worse, written after the run with what was looked at.

`tables.csv` says how many cells each printed table has, and what is no result: settings, seconds of
another machine. A line more or less is an error.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).resolve().parent / "figures"
COLUMNS = (
    "table", "row", "column", "printed", "spread", "data", "part", "arguments", "score", "band",
    "absent", "reason",
)  # fmt: skip
TABLE_COLUMNS = ("source", "table", "title", "cells", "kind", "statistic")
#: Figures are compared; settings say how something was run; seconds are those of a laptop of 2019.
KINDS = ("figures", "settings", "seconds")
STATISTICS = ("median", "mean", "")
VERDICTS = ("agrees", "better", "worse", "data not to be had", "not run")
#: Scores of which more is better, and less; of all others only nearness counts.
MORE, LESS = ("ari",), ("error", "value:loss")
DRAWS = 5


class LedgerError(ValueError):
    """A file of the ledger that cannot be read as it stands."""


@dataclass(frozen=True)
class Table:
    """A table of a source: how many figures it prints, and how ours are summed up over draws."""

    source: str
    table: str
    title: str
    cells: int
    kind: str
    statistic: str


@dataclass(frozen=True)
class Line:
    """A printed figure and what is run for it."""

    source: str
    table: str
    row: str
    column: str
    printed: float
    spread: float | None
    data: str
    part: str
    arguments: Mapping[str, str]
    score: str
    band: float
    absent: str
    reason: str

    @property
    def run(self) -> str:
        """What is run for it, as one text: lines of the same run share its answers."""
        said = " ".join(f"{name}={value}" for name, value in sorted(self.arguments.items()))
        return " ".join(filter(None, (self.part, self.data, said)))

    @property
    def draws(self) -> int:
        return int(self.arguments.get("draws", DRAWS))

    @property
    def where(self) -> str:
        return f"{self.source}, table {self.table}, {self.row}, {self.column}"


def verdict(line: Line, ours: float | None) -> str:
    """One of `VERDICTS`, from the middle of our draws; None where the run is not there."""
    if line.absent:
        return "data not to be had" if line.absent.startswith("no data: ") else "not run"
    if ours is None:
        return "not run"
    apart = ours - line.printed
    # Both are rounded: a difference of the band itself is within it.
    if abs(apart) <= line.band + 1e-9:
        return "agrees"
    if line.score in MORE:
        return "better" if apart > 0 else "worse"
    if line.score in LESS:
        return "better" if apart < 0 else "worse"
    return "worse"


def rows_of(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != tuple(columns):
            raise LedgerError(
                f"{path.name} must have the columns {', '.join(columns)}, but has "
                f"{', '.join(reader.fieldnames or ())}."
            )
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise LedgerError(
                    f"{path.name}, line {reader.line_num}: a line must have {len(columns)} cells; "
                    "put quotes around one that holds a comma."
                )
            rows.append((reader.line_num, {name: (row[name] or "").strip() for name in columns}))
    return rows


def _number(at: str, name: str, text: str, least: float = -float("inf")) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not value >= least:
        floor = "" if least == -float("inf") else f" of at least {least:g}"
        raise LedgerError(f"{at}: {name} must be a number{floor}, but is {text!r}.")
    return value


def _arguments(at: str, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in text.split():
        name, equals, value = pair.partition("=")
        if not equals or not name or not value or name in found:
            raise LedgerError(f"{at}: arguments are name=value, each once, but got {pair!r}.")
        found[name] = value
    return found


def read_tables(path: Path) -> list[Table]:
    tables = []
    for number, row in rows_of(path, TABLE_COLUMNS):
        at = f"{path.name}, line {number}"
        if row["kind"] not in KINDS:
            raise LedgerError(f"{at}: kind must be one of {', '.join(KINDS)}, not {row['kind']!r}.")
        if row["statistic"] not in STATISTICS or (row["kind"] == "figures") != bool(
            row["statistic"]
        ):
            raise LedgerError(
                f"{at}: a table of figures has the statistic median or mean, any other none, but "
                f"got {row['statistic']!r}."
            )
        cells = int(_number(at, "cells", row["cells"], 1))
        tables.append(Table(row["source"], row["table"], row["title"], cells, row["kind"],
                            row["statistic"]))  # fmt: skip
    return tables


def read_lines(path: Path, parts: Sequence[str]) -> list[Line]:
    """The lines of a source, whose name is that of its file."""
    lines = []
    for number, row in rows_of(path, COLUMNS):
        at = f"{path.name}, line {number}"
        absent = row["absent"]
        if absent and not absent.startswith(("no data: ", "not run: ")):
            raise LedgerError(
                f"{at}: absent must begin with 'no data: ' or 'not run: ' and go on with what was "
                f"searched or why, but is {absent!r}."
            )
        if not absent and row["part"] not in parts:
            raise LedgerError(f"{at}: there is no part {row['part']!r}; there are "
                              f"{', '.join(sorted(parts))}.")  # fmt: skip
        if not absent and not row["score"]:
            raise LedgerError(f"{at}: a line that is run needs a score, such as ari.")
        if absent and row["reason"]:
            raise LedgerError(f"{at}: a reason is written after a run, but this line has none.")
        band = _number(at, "band", row["band"], 0.0)
        spread = _number(at, "spread", row["spread"], 0.0) if row["spread"] else None
        printed = _number(at, "printed", row["printed"])
        lines.append(Line(path.stem, row["table"], row["row"], row["column"], printed, spread,
                          row["data"], row["part"], _arguments(at, row["arguments"]), row["score"],
                          band, absent, row["reason"]))  # fmt: skip
    return lines


def read(folder: Path, parts: Sequence[str]) -> tuple[list[Table], list[Line]]:
    """All tables and their lines, as many as are printed and each cell once."""
    tables = read_tables(folder / "tables.csv")
    sources = dict.fromkeys(table.source for table in tables)
    lines = [line for name in sources for line in read_lines(folder / f"{name}.csv", parts)]
    counted = Counter((line.source, line.table) for line in lines)
    for table in tables:
        expected = table.cells if table.kind == "figures" else 0
        found = counted.pop((table.source, table.table), 0)
        if found != expected:
            raise LedgerError(
                f"{table.source}, table {table.table} prints {expected} figures to compare with, "
                f"but {table.source}.csv has {found} lines of it."
            )
    if counted:
        source, table_name = next(iter(counted))
        raise LedgerError(f"{source}.csv has lines of table {table_name}, which tables.csv does "
                          "not list.")  # fmt: skip
    twice = [where for where, times in Counter(line.where for line in lines).items() if times > 1]
    if twice:
        raise LedgerError(f"{twice[0]} stands there twice.")
    return tables, lines


def statistics(tables: Sequence[Table]) -> dict[tuple[str, str], Any]:
    return {(table.source, table.table): table.statistic for table in tables}

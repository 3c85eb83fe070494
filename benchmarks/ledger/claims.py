"""What the sources say in words, asked of the answers.

`figures/claims.csv` has a line for each claim: source, where, the claim as we take it, the name of
a check of `checks.py`, the runs it needs beside those of the figures, and as with figures `absent`
and `reason`. A check is given the answers and says whether the claim holds, and what was found; it
is "not run" where an answer is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from ledger.lines import LedgerError, Line, Table, rows_of

CLAIM_COLUMNS = ("source", "where", "claim", "check", "needs", "absent", "reason")


class Missing(LookupError):
    """An answer that a check needs is not there."""


@dataclass(frozen=True)
class Claim:
    source: str
    where: str
    claim: str
    check: str
    needs: tuple[str, ...]
    absent: str
    reason: str


def read_claims(path: Path, checks: Collection[str]) -> list[Claim]:
    claims = []
    for number, row in rows_of(path, CLAIM_COLUMNS):
        at = f"{path.name}, line {number}"
        absent = row["absent"]
        if absent and not absent.startswith(("no data: ", "not run: ")):
            raise LedgerError(f"{at}: absent must begin with 'no data: ' or 'not run: '.")
        if not absent and row["check"] not in checks:
            raise LedgerError(f"{at}: there is no check {row['check']!r}; there are "
                              f"{', '.join(checks)}.")  # fmt: skip
        needs = tuple(filter(None, row["needs"].split(";")))
        claims.append(Claim(row["source"], row["where"], row["claim"], row["check"], needs, absent,
                            row["reason"]))  # fmt: skip
    return claims


class Found:
    """The middle of our draws, by the cell of a table or by the run."""

    def __init__(
        self,
        tables: Sequence[Table],
        lines: Sequence[Line],
        draws: Mapping[str, Sequence[Mapping[str, float]]],
    ) -> None:
        self.draws = draws
        #: As in the lines: the mean where a table prints a mean, else the median.
        self.middle = {(table.source, table.table): fmean if table.statistic == "mean" else median
                       for table in tables}  # fmt: skip
        self.lines = {(line.source, line.table, line.row, line.column): line for line in lines}

    def of_run(
        self, run: str, score: str, middle: Callable[[list[float]], float] = median
    ) -> float:
        if run not in self.draws:
            raise Missing(run)
        return middle([one[score] for one in self.draws[run]])

    def cell(self, source: str, table: str, row: str, column: str, score: str = "") -> float:
        line = self.lines[source, table, row, column]
        return self.of_run(line.run, score or line.score, self.middle[source, table])

    def table_3(self, name: str, score: str = "ari") -> dict[str, float]:
        """A row of NN-EVCLUS's table 3: every method that the paper has there."""
        row = [line for (source, table, at, _), line in self.lines.items()
               if (source, table, at) == ("nn_evclus", "3", name)]  # fmt: skip
        return {line.column: self.of_run(line.run, score) for line in row}

    def plane(self, table: str, name: str) -> dict[str, tuple[float, float]]:
        """Consistency and nonspecificity of every method in a row."""
        row = [line for (source, at, what, _), line in self.lines.items()
               if (source, at, what) == ("nn_evclus", table, name)]  # fmt: skip
        return {line.column: (self.of_run(line.run, "consistency"),
                              self.of_run(line.run, "nonspecificity"))
                for line in row}  # fmt: skip

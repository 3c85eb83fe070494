"""docs/reproduction.md: how many figures there are, how many agree, then every one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median

from ledger.checks import CHECKS
from ledger.claims import Claim, Found, Missing
from ledger.lines import VERDICTS, Line, Table, verdict

THOUGHTS = Path(__file__).resolve().parent / "thoughts.md"
SOURCES = {
    "nn_evclus": "NN-EVCLUS: neural network-based evidential clustering (2021)",
    "k_cevclus": "k-CEVCLUS: constrained evidential clustering of large dissimilarity data (2018)",
    "bootclus": "Calibrated model-based evidential clustering using bootstrapping (2020)",
    "slides_2017": "Belief functions and clustering, slides (2017)",
    "slides_2021": "Evidential machine learning, slides (2021)",
}
CLAIM_VERDICTS = ("holds", "does not hold", "data not to be had", "not run")
HEAD = """# The sources, reproduced

Made by `python benchmarks/reproduction.py`. Every figure that the five sources print as a result is
one line here, and one line of `benchmarks/ledger/figures/`, where the data, what is run and the
band were written down before the run. A band has two sides: ours may be so far from print above and
below. It is the source's own spread where one is printed (twice the standard error of the
difference of two means), else .03 for an adjusted Rand index (ARI) and a nonspecificity, .05 for a
mass, three objects for a cell of a confusion matrix (five of a drawn test), .05 where the text
gives one digit; every line of the files has its own. *Ours* is the median over the draws, or the
mean where the source prints a mean, and beside it the range over
all draws; none is left out. The parts that are run see neither classes nor printed figures: their
answers are scored afterwards. A reason beside a worse figure was written after the run.

Changed after a first answer was seen: the bands of ionosphere (.012 to .03, three objects to five,
with the change from one split to twenty drawn ones), glass (nine attributes to the ten that the
paper's table has), and the draws of Bootclus in table 3 (five to three, since they are slow).

Not counted: sizes and settings, and the seconds of a laptop of 2019 (tables 4, 7 and 8 of
NN-EVCLUS), which [measurements](measurements.md) has on its own terms."""


@dataclass(frozen=True)
class Results:
    """All that is known: the ledger, and the scores of every run whose draws are all there."""

    tables: Sequence[Table]
    lines: Sequence[Line]
    draws: Mapping[str, Sequence[Mapping[str, float]]]
    seconds: Mapping[str, Sequence[float]]
    claims: Sequence[Claim]

    @cached_property
    def statistics(self) -> dict[tuple[str, str], str]:
        return {(table.source, table.table): table.statistic for table in self.tables}

    def values(self, line: Line) -> list[float]:
        found = [] if line.absent else self.draws.get(line.run, [])
        return [one[line.score] for one in found]

    def ours(self, line: Line) -> float | None:
        values = self.values(line)
        if not values:
            return None
        middle = fmean if self.statistics[line.source, line.table] == "mean" else median
        return middle(values)

    def verdict(self, line: Line) -> str:
        return verdict(line, self.ours(line))

    def claim(self, claim: Claim) -> tuple[str, str]:
        """Verdict and what was found."""
        if claim.absent:
            kind, _, why = claim.absent.partition(": ")
            return ("data not to be had" if kind == "no data" else "not run"), why
        try:
            held, said = CHECKS[claim.check](Found(self.tables, self.lines, self.draws))
        except Missing as missing:
            return "not run", f"needs {missing}"
        return ("holds" if held else "does not hold"), said

    @cached_property
    def said(self) -> list[tuple[Claim, str, str]]:
        return [(claim, *self.claim(claim)) for claim in self.claims]

    @cached_property
    def unexplained(self) -> list[str]:
        """Worse, and no reason beside it."""
        lines = [line.where for line in self.lines
                 if self.verdict(line) == "worse" and not line.reason]  # fmt: skip
        claims = [claim.claim for claim, found, _ in self.said
                  if found == "does not hold" and not claim.reason]  # fmt: skip
        return lines + claims

    def cost(self, line: Line) -> str:
        """What a line that was not run should cost, by the mean of other runs of its part."""
        known = self.seconds.get(line.part, ())
        if not known:
            return "no run of its part is there yet"
        total = fmean(known) * line.draws
        said = f"{total / 60:.0f} min" if total > 90 else f"{total:.0f} s"
        return f"{said} by the mean of other runs of its part"


def summary(results: Results) -> str:
    """Two sentences: the figures by verdict, and the claims."""
    counts = Counter(results.verdict(line) for line in results.lines)
    said = Counter(found for _, found, _ in results.said)
    figures = ", ".join(f"{counts[name]} {name}" for name in VERDICTS)
    figures = figures.replace(" agrees", " agree").replace(" better", " come out better")
    reasons = sum(results.verdict(line) == "worse" and not line.reason for line in results.lines)
    figures = figures.replace(" worse", f" worse ({reasons} of them without a reason)")
    claims = ", ".join(f"{said[name]} {name}" for name in CLAIM_VERDICTS)
    claims = claims.replace(" holds", " hold").replace(" does not hold", " do not hold")
    return (f"**The five sources print {len(results.lines)} figures: {figures}. Of "
            f"{len(results.claims)} claims in words {claims}.**")  # fmt: skip


def _short(value: float) -> str:
    if float(value).is_integer() and abs(value) >= 1:
        return f"{value:.0f}"
    return f"{value:.5f}" if 0 < abs(value) < 0.01 else f"{value:.3f}"


def _row(results: Results, line: Line) -> str:
    values, found = results.values(line), results.verdict(line)
    ours = results.ours(line)
    if ours is None:
        told = line.absent.partition(": ")[2] if line.absent else results.cost(line)
        return f"| {line.row} | {line.column} | {line.printed:g} | | | | {found}: {told} |"
    spread = f"{_short(min(values))} to {_short(max(values))}" if len(values) > 1 else "one run"
    told = f"**{found}**" if found == "worse" else found
    told += f": {line.reason}" if line.reason and found == "worse" else ""
    return (f"| {line.row} | {line.column} | {line.printed:g} | {_short(ours)} | {spread} | "
            f"{line.band:g} | {told} |")  # fmt: skip


def _overview(results: Results, source: str) -> Iterator[str]:
    yield "\n| table | printed | " + " | ".join(VERDICTS) + " |"
    yield "|---|---:|" + "---:|" * len(VERDICTS)
    for table in results.tables:
        if table.source != source:
            continue
        if table.kind != "figures":
            yield (f"| {table.table}: {table.title} | {table.cells} | {table.kind}, not counted "
                   "|||||")  # fmt: skip
            continue
        lines = [one for one in results.lines if (one.source, one.table) == (source, table.table)]
        counts = Counter(results.verdict(line) for line in lines)
        cells = " | ".join(str(counts[name] or "") for name in VERDICTS)
        yield f"| {table.table}: {table.title} | {table.cells} | {cells} |"


def _table(results: Results, table: Table) -> Iterator[str]:
    yield f"\n### {'Text' if table.table == 'text' else f'Table {table.table}'}: {table.title}\n"
    yield f"| | | printed | ours, {table.statistic} | range | band | |"
    yield "|---|---|---:|---:|---:|---:|---|"
    for line in results.lines:
        if (line.source, line.table) == (table.source, table.table):
            yield _row(results, line)


def _claims(results: Results, source: str) -> Iterator[str]:
    said = [one for one in results.said if one[0].source == source]
    if not said:
        return
    yield "\n### In words\n\n| where | claim | | found |\n|---|---|---|---|"
    for claim, found, told in said:
        verdict_said = f"**{found}**" if found == "does not hold" else found
        reason = f" {claim.reason}" if claim.reason and found == "does not hold" else ""
        yield f"| {claim.where} | {claim.claim} | {verdict_said} | {told}.{reason} |"


def _plane(results: Results) -> Iterator[str]:
    """Consistency and nonspecificity: NN-EVCLUS draws them without numbers, figures 23 to 26."""
    rows: dict[str, list[Line]] = {}
    for line in results.lines:
        if line.source == "nn_evclus" and line.table in ("3", "6") and results.values(line):
            rows.setdefault(line.row, []).append(line)
    if not rows:
        return
    yield ("\n### Figures 23 to 26: consistency and nonspecificity\n\nDrawn without numbers: ours, "
           "medians. Up and to the left is better.\n\n| set | method: consistency, nonspecificity "
           "|\n|---|---|")  # fmt: skip
    for name, lines in rows.items():
        cells = []
        for line in lines:
            ci, ns = (median(one[score] for one in results.draws[line.run])
                      for score in ("consistency", "nonspecificity"))  # fmt: skip
            cells.append(f"{line.column} {ci:.2f}, {ns:.2f}")
        yield f"| {name} | {'; '.join(cells)} |"


def page(results: Results) -> str:
    """The whole page."""
    text = [HEAD.replace("\n\n", f"\n\n{summary(results)}\n\n", 1)]
    for source, title in SOURCES.items():
        text += [f"\n## {title}", *_overview(results, source), *_claims(results, source)]
        for table in results.tables:
            if table.source == source and table.kind == "figures":
                text += _table(results, table)
        if source == "nn_evclus":
            text += _plane(results)
    text.append("\n" + THOUGHTS.read_text(encoding="utf-8"))
    return "\n".join(text)

"""What the five sources print beside what comes out here: one command, one page.

    python benchmarks/reproduction.py [--quick] [--only REGEX] [--page docs/reproduction.md]

Runs every benchmark that compares with a table, a figure or an example of a source, and writes
their figures, bounds and verdicts to one page; a miss is an exit code. Takes about an hour on one
core, --quick a quarter of it: fewer seeds, draws and data sets, which the page says.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bounds import RECORD

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Part:
    """A benchmark and the part of a source that it compares with."""

    source: str
    script: str
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = None

    def command(self, quick: bool) -> list[str]:
        chosen = self.quick if quick and self.quick is not None else ()
        return [f"benchmarks/{self.script}", *self.arguments, *chosen]


NN = "NN-EVCLUS: neural network-based evidential clustering (2021)"
LINKS = "k-CEVCLUS: constrained evidential clustering of large dissimilarity data (2018)"
BOOT = "Calibrated model-based evidential clustering using bootstrapping (2020)"
SLIDES = "Belief functions and clustering, slides (2017)"
LEARNING = "Evidential machine learning, slides (2021)"
PARTS = (
    Part(NN, "nnevclus_reference.py"),
    Part(NN, "nnevclus_accuracy.py", quick=("--quick",)),
    Part(NN, "ecm_accuracy.py", ("table",)),
    Part(NN, "family_accuracy.py", quick=("iris", "wine", "seeds")),
    Part(NN, "features.py", ("circles",)),
    Part(LINKS, "evclus_reference.py", quick=("--quick",)),
    Part(LINKS, "evclus_accuracy.py", quick=("--quick",)),
    Part(BOOT, "mixture_reference.py", ("iris", "choice")),
    Part(BOOT, "bootclus_reference.py", quick=("iris", "diabetes")),
    Part(BOOT, "bootclus_coverage.py", quick=("--datasets", "10", "--wrong", "3")),
    Part(SLIDES, "combining.py", ("seeds",)),
    Part(LEARNING, "family_classifiers.py", quick=("ionosphere", "vehicle", "glass")),
    Part(LEARNING, "combining.py", ("fusion",)),
)
#: What a source prints and no data at hand can show.
NOT_OBTAINABLE = (
    "ChickenPieces, Zongker, Gestures, Segment, S4, D31, Mice, Leaves, EEG and face data",
    "the draws of DryBean and GvHD, the links and the belief peaks that a source chose by hand",
)


def measured(part: Part, quick: bool) -> tuple[list[dict[str, Any]], int, float]:
    """The lines of a benchmark, its exit code and the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "lines"
        began = time.perf_counter()
        code = subprocess.run(
            [sys.executable, *part.command(quick)], cwd=HERE.parent, check=False,
            env={**os.environ, RECORD: str(record)},
        ).returncode  # fmt: skip
        seconds = time.perf_counter() - began
        lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    return [json.loads(line) for line in lines], code, seconds


def table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """One table for each title, in Markdown."""
    title = None
    for line in lines:
        if line["title"] != title:
            title = line["title"]
            yield f"\n{title}\n\n| | measured | bound | |\n|---|---:|---:|---|"
        verdict = {True: "reached", False: "**missed**", None: line["why"]}[line["held"]]
        yield f"| {line['what']} | {line['value']} | {line['bound']} | {verdict} |"


class Page:
    """The page, written anew after every part, so that a run that is stopped leaves what it has."""

    def __init__(self, path: Path, options: str):
        self.path, self.options = path, options
        self.text: list[str] = []
        self.verdicts: list[bool | None] = []
        self.failed: list[str] = []
        self._source = ""

    def add(self, part: Part, quick: bool) -> None:
        lines, code, seconds = measured(part, quick)
        command = " ".join(part.command(quick))
        self.verdicts += [line["held"] for line in lines]
        if code not in (0, 1) or not lines:
            self.failed.append(command)
        if part.source != self._source:
            self._source = part.source
            self.text.append(f"\n## {part.source}")
        self.text += [f"\n### `{command}`\n\n{seconds:,.0f} s.", *table(lines)]
        self.path.write_text(self._whole(), encoding="utf-8")

    @property
    def missed(self) -> int:
        return self.verdicts.count(False)

    def summary(self) -> str:
        said = (
            f"{self.verdicts.count(True)} figures reached their bound, {self.missed} missed it, "
            f"{self.verdicts.count(None)} have none (the reason stands beside them). Not "
            f"obtainable: {'; '.join(NOT_OBTAINABLE)}."
        )
        if self.failed:
            said += f" These ended without a figure: {', '.join(self.failed)}."
        return said

    def _whole(self) -> str:
        head = (
            "# The sources, reproduced\n\nMade by `python benchmarks/reproduction.py"
            f"{self.options}`. A bound is what the source prints, less what the docstring of the "
            "benchmark allows; where R's values are known, these.\n\n"
        )
        return head + self.summary() + "\n" + "\n".join(self.text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds, draws and sets")
    parser.add_argument("--only", default="", help="regular expression for the commands")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "reproduction.md")
    given = parser.parse_args()
    options = " --quick" * given.quick + (f" --only {given.only!r}" if given.only else "")
    page = Page(given.page, options)
    for part in PARTS:
        if re.search(given.only, " ".join(part.command(given.quick))):
            page.add(part, given.quick)
    print(f"\n{page.summary()}\n{given.page}")
    return 1 if page.missed or page.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What the five sources print beside what comes out here: one command, one page.

    python benchmarks/reproduction.py [--quick] [--jobs N] [--only REGEX] [--keep FILE] [--page F]

Runs every benchmark that compares with a table, a figure or an example of a source, and writes
their figures, bounds and verdicts to one page. Takes some two hours on one core; --quick half an
hour: fewer seeds, draws and data sets, which the page says. With --jobs N so many benchmarks run at
once, each with its share of the cores.

With --keep the lines of each part are kept in a file: --only then measures some parts anew, and the
page shows all that are there. A part without lines is "not run".

A figure that the sources print is reached, missed, not obtainable (the data cannot be had) or not
run; lines without a bound explain others and are not counted. Exit code 1: a bound was missed
without a known reason, a part failed, or one was not run.
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
from concurrent.futures import ThreadPoolExecutor, as_completed
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
    quick: tuple[str, ...] = ()
    #: What else is left out with `quick`, in words.
    less: str = ""

    @property
    def name(self) -> str:
        return " ".join([self.script, *self.arguments])

    def command(self, quick: bool) -> list[str]:
        return [f"benchmarks/{self.script}", *self.arguments, *(self.quick if quick else ())]


NN = "NN-EVCLUS: neural network-based evidential clustering (2021)"
LINKS = "k-CEVCLUS: constrained evidential clustering of large dissimilarity data (2018)"
BOOT = "Calibrated model-based evidential clustering using bootstrapping (2020)"
SLIDES = "Belief functions and clustering, slides (2017)"
LEARNING = "Evidential machine learning, slides (2021)"
SINCE = "Published since"
QUICK = ("--quick",)
PARTS = (
    Part(NN, "sources_rest.py", ("butterfly", "peaks", "protein")),
    Part(NN, "sources_rest.py", ("bootclus",)),
    Part(NN, "sources_rest.py", ("d31",)),
    Part(NN, "sources_networks.py", ("d31",)),
    Part(NN, "sources_networks.py", ("links",)),
    Part(NN, "nnevclus_reference.py"),
    Part(NN, "nnevclus_accuracy.py", ("table3",), QUICK, "S2 and DryBean"),
    Part(NN, "nnevclus_accuracy.py", ("circles", "protein")),
    Part(NN, "nnevclus_accuracy.py", ("links",), QUICK, "27 of 30 draws of links"),
    Part(NN, "ecm_accuracy.py", ("table",)),
    Part(NN, "family_accuracy.py", (), ("iris", "wine", "seeds"), "ecoli, heart, glass, S2, beans"),
    Part(NN, "features.py", ("circles",)),
    Part(NN, "features.py", ("metrics",)),
    Part(LINKS, "evclus_reference.py", (), QUICK, "17 of 20 seeds, two sizes"),
    Part(LINKS, "evclus_tables.py", ("xi",), ("--draws", "5"), "5 of 10 draws of links"),
    *(
        Part(LINKS, "evclus_tables.py", ("q", "--sets", name), ("--draws", "3"),
             "7 of 10 draws of links")
        for name in ("bananas", "glass", "iris", "ecoli3")
    ),
    Part(LINKS, "evclus_tables.py", ("why",), ("--draws", "5"), "5 of 10 draws of links"),
    Part(LINKS, "evclus_accuracy.py", (), QUICK, "S2, DryBean, letters, most draws of links"),
    Part(BOOT, "mixture_reference.py", ("iris", "choice")),
    Part(BOOT, "bootclus_reference.py", ("iris", "diabetes")),
    Part(BOOT, "bootclus_reference.py", ("gvhd",)),
    Part(BOOT, "sources_rest.py", ("iris", "diabetes")),
    Part(BOOT, "bootclus_coverage.py", ("3",), ("--datasets", "10", "--wrong", "6"),
         "90 of 100 data sets of the true model, 94 of the others"),
    Part(BOOT, "bootclus_coverage.py", ("1", "2", "sampled", "--wrong", "25"),
         ("--datasets", "10", "--wrong", "6", "--sampled", "1"),
         "90 of 100 data sets of the true models, 19 of 25 of the others, 2 of 3 that are sampled"),
    Part(SLIDES, "combining.py", ("seeds",)),
    Part(SLIDES, "ecm_variants.py"),
    Part(LEARNING, "family_classifiers.py", (), ("ionosphere", "vehicle", "glass"), "vowel"),
    Part(LEARNING, "combining.py", ("fusion",)),
    Part(SINCE, "egmm.py"),
)  # fmt: skip
#: Figures that a source prints and no data at hand can show: where, how many, what is missing.
NOT_OBTAINABLE = (
    ("NN-EVCLUS, table 3", 40, "Letters4p1, Segment, S4, Mice, Leaves5p1 are not at hand"),
    ("NN-EVCLUS, table 6", 15, "ChickenPieces, Zongker, Gestures are not at hand"),
    ("NN-EVCLUS, tables 4, 7, 8: CPU seconds", 25, "S4, ChickenPieces, Zongker, Gestures"),
    ("NN-EVCLUS, figures 22 to 30", 0, "points and bars without numbers"),
    ("k-CEVCLUS, figures 3 to 9", 0, "curves without numbers; what the text says of them is "
     "above, of Zongker's it cannot be had"),
    ("Bootclus, table 1", 36, "six objects of a random draw that is not printed"),
    ("Bootclus, figure 19", 1, "which 1,000 objects of GvHD were drawn is not printed"),
)  # fmt: skip

#: Figures that could be compared with and that no benchmark measures.
NOT_RUN: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Result:
    """What a part has measured."""

    command: str
    code: int
    seconds: float
    lines: list[dict[str, Any]]

    @property
    def failed(self) -> bool:
        return self.code not in (0, 1) or not self.lines

    def count(self, held: bool) -> int:
        return sum(line["held"] is held for line in self.lines)

    @property
    def unknown(self) -> int:
        """Bounds missed without a known reason."""
        return sum(line["held"] is False and not line["why"] for line in self.lines)


def measured(part: Part, quick: bool, threads: int | None) -> Result:
    """Run a benchmark, on at most so many threads."""
    names = ("LOKY_MAX_CPU_COUNT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    share = {name: str(threads) for name in names} if threads else {}
    command = part.command(quick)
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "lines"
        began = time.perf_counter()
        code = subprocess.run(
            [sys.executable, *command], cwd=HERE.parent, check=False,
            env={**os.environ, **share, RECORD: str(record)},
        ).returncode  # fmt: skip
        seconds = time.perf_counter() - began
        lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    return Result(" ".join(command), code, seconds, [json.loads(line) for line in lines])


def table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """One table for each title, in Markdown."""
    title = None
    for line in lines:
        if line["title"] != title:
            title = line["title"]
            yield f"\n{title}\n\n| | measured | bound | |\n|---|---:|---:|---|"
        why = line["why"]
        missed = f"**missed**: {why}" if why else "**missed**"
        verdict = {True: "reached", False: missed, None: why}[line["held"]]
        yield f"| {line['what']} | {line['value']} | {line['bound']} | {verdict} |"


def summary(results: dict[str, Result]) -> str:
    """One line: reached, missed, not obtainable, and what was not run."""
    reached = sum(result.count(True) for result in results.values())
    missed = sum(result.count(False) for result in results.values())
    known = missed - sum(result.unknown for result in results.values())
    cannot = sum(count for _, count, _ in NOT_OBTAINABLE)
    said = f"{reached} figures reached, {missed} missed ({known} for a known reason), "
    said += f"{cannot} not obtainable"
    absent = [part.name for part in PARTS if part.name not in results]
    failed = [result.command for result in results.values() if result.failed]
    others = sum(count for _, count in NOT_RUN)
    said += f", {others} figures and {len(absent)} of {len(PARTS)} parts not run."
    return said + (f" These ended without a figure: {', '.join(failed)}." if failed else "")


def page(results: dict[str, Result]) -> str:
    """The whole page."""
    text = [
        "# The sources, reproduced\n\nMade by `python benchmarks/reproduction.py` "
        "(`--only` and `--keep` part by part). A bound is what the source prints, less what the "
        "docstring of the benchmark allows; where R's values are known, these. Lines without a "
        "bound explain others: no source prints them.\n",
        f"**{summary(results)}**",
    ]
    source = ""
    for part in PARTS:
        if part.source != source:
            source = part.source
            text.append(f"\n## {source}")
        result = results.get(part.name)
        if result is None:
            text.append(f"\n### `benchmarks/{part.name}`\n\nNot run.")
            continue
        less = part.less if result.command == " ".join(part.command(True)) else ""
        left = f" Left out, not run: {less}." if less else ""
        text.append(f"\n### `{result.command}`\n\n{result.seconds:,.0f} s.{left}")
        text += table(result.lines)
    if NOT_RUN:
        text.append("\n## Not run\n\n| printed | figures |\n|---|---:|")
        text += [f"| {where} | {count} |" for where, count in NOT_RUN]
    text.append("\n## Not obtainable\n\n| printed | figures | why |\n|---|---:|---|")
    text += [f"| {where} | {count or '-'} | {why} |" for where, count, why in NOT_OBTAINABLE]
    return "\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds, draws and sets")
    parser.add_argument("--jobs", type=int, default=1, help="benchmarks that run at once")
    parser.add_argument("--only", default="", help="regular expression for the parts to measure")
    parser.add_argument("--keep", type=Path, help="file with the lines of all parts so far")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "reproduction.md")
    given = parser.parse_args()
    kept: dict[str, Any] = {}
    if given.keep and given.keep.exists():
        kept = json.loads(given.keep.read_text(encoding="utf-8"))
    results = {name: Result(**values) for name, values in kept.items()}
    threads = max((os.cpu_count() or 1) // given.jobs, 1) if given.jobs > 1 else None
    with ThreadPoolExecutor(given.jobs) as pool:
        jobs = {
            pool.submit(measured, part, given.quick, threads): part.name
            for part in PARTS
            if re.search(given.only, part.name)
        }
        for job in as_completed(jobs):
            results[jobs[job]] = job.result()
            # After every part: a run that is stopped leaves what it has.
            if given.keep:
                stored = {name: vars(result) for name, result in results.items()}
                given.keep.write_text(json.dumps(stored), encoding="utf-8")
            given.page.write_text(page(results), encoding="utf-8")
    given.page.write_text(page(results), encoding="utf-8")
    print(f"\n{summary(results)}\n{given.page}")
    bad = any(result.unknown or result.failed for result in results.values())
    return 1 if bad or len(results) < len(PARTS) else 0


if __name__ == "__main__":
    raise SystemExit(main())

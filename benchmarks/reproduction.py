"""What five sources print beside what comes out here: one ledger, one command, one page.

    python benchmarks/reproduction.py [--only REGEX] [--answers FILE] [--page FILE]

Figures are data (`ledger/figures/`): a line more there is a figure more here. What is run for a
figure is named there too, and so is the band, before the run. A part (`ledger/clusterers.py`,
`ledger/others.py`) is given the data and the number of the draw, never the classes or the printed
figure; its answer is scored here once it is there. Draws are 0, 1, ...: as many as the line says,
all of them, and their median (or mean, where the source prints a mean) is compared.

Each answer is kept in a file of JSON lines as soon as it is there, and is not asked for again: a
run that is stopped goes on where it was. --only takes a regular expression for the runs ("ecm wine
peaks=yes") to do now; "--only ''" does all that are missing, "--only -" none: the page alone.

Exit code 1: a figure or a claim came out worse and no reason stands beside it, or a part failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.checks import CHECKS
from ledger.claims import Claim, read_claims
from ledger.lines import FIGURES, Line, Table, read
from ledger.others import PARTS
from ledger.page import Results, page, summary
from ledger.scores import Scores
from ledger.sets import make
from sklearn.exceptions import ConvergenceWarning

HERE = Path(__file__).resolve().parent
ANSWERS = HERE / "ledger" / "answers.jsonl"
#: Arguments that are the ledger's: how many draws, and what is drawn from the classes.
OURS = ("draws", "links", "labelled")


@dataclass(frozen=True)
class Run:
    """A part with its data and arguments, and the scores that its lines ask for."""

    name: str
    data: str
    part: str
    arguments: dict[str, str]
    draws: int
    scores: frozenset[str]


def runs_of(lines: Sequence[Line], claims: Sequence[Claim] = ()) -> list[Run]:
    """What is to be run, each once: lines of one run share its answers; claims may need more."""
    found: dict[str, Run] = {}
    for line in lines:
        if line.absent:
            continue
        before = found[line.run].scores if line.run in found else frozenset()
        found[line.run] = Run(line.run, line.data, line.part, dict(line.arguments), line.draws,
                              before | {line.score})  # fmt: skip
    for name in (name for claim in claims if not claim.absent for name in claim.needs):
        part, data, *pairs = name.split()
        arguments = dict(pair.split("=", 1) for pair in pairs)
        run = Run(name, data, part, arguments, int(arguments["draws"]), frozenset({"ari"}))
        found.setdefault(name, run)
    return list(found.values())


def answer(run: Run, seed: int) -> dict[str, Any]:
    """One draw: the part answers, and then the answer is scored."""
    drawn = {name: int(run.arguments[name]) for name in OURS[1:] if name in run.arguments}
    given, truth = make(run.data, seed, **drawn)
    how = {name: value for name, value in run.arguments.items() if name not in OURS}
    began = time.perf_counter()
    found = PARTS[run.part](given, seed, **how)
    seconds = time.perf_counter() - began
    scores = Scores(found, truth)
    values = scores.usual() | scores.of(sorted(run.scores))
    rounded = {name: round(value, 6) for name, value in sorted(values.items())}
    return {"run": run.name, "seed": seed, "seconds": round(seconds, 2), "scores": rounded}


def kept(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The answers so far, by run and draw; the last of a draw counts."""
    if not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {(line["run"], line["seed"]): line for line in lines}


def missing(runs: Sequence[Run], answers: dict[tuple[str, int], Any]) -> Iterator[tuple[Run, int]]:
    """Draws without an answer, or whose answer lacks a score that a line asks for."""
    for run in runs:
        for seed in range(run.draws):
            scores = answers.get((run.name, seed), {}).get("scores", {})
            if not run.scores <= set(scores):
                yield run, seed


def carry_out(runs: Sequence[Run], path: Path, only: str) -> list[str]:
    """Do what is missing, keep each answer as it comes; the runs that failed, in words."""
    failed = []
    for run, seed in list(missing(runs, kept(path))):
        if only == "-" or not re.search(only, run.name):
            continue
        try:
            found = answer(run, seed)
        except (ValueError, RuntimeError, ArithmeticError, KeyError) as error:
            failed.append(f"{run.name}, draw {seed}: {type(error).__name__}: {error}")
            print(f"FAILED {failed[-1]}", flush=True)
            continue
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        print(f"{found['seconds']:8.1f} s  {run.name}, draw {seed}", flush=True)
    return failed


def results(
    tables: Sequence[Table],
    lines: Sequence[Line],
    claims: Sequence[Claim],
    answers: dict[tuple[str, int], dict[str, Any]],
) -> Results:
    """Lines and claims with what was found: only runs all of whose draws are there count."""
    draws: dict[str, list[dict[str, float]]] = {}
    seconds: dict[str, list[float]] = {}
    for run in runs_of(lines, claims):
        found = [answers.get((run.name, seed)) for seed in range(run.draws)]
        there = [one for one in found if one and run.scores <= set(one["scores"])]
        seconds.setdefault(run.part, []).extend(one["seconds"] for one in there)
        if len(there) == run.draws:
            draws[run.name] = [one["scores"] for one in there]
    return Results(tables, lines, draws, seconds, claims)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression for the runs to do now")
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="file of the answers so far")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "reproduction.md")
    options = parser.parse_args()
    # Descents that are stopped early, prototypes that meet, features that are long: the answer
    # counts as it is.
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    tables, lines = read(FIGURES, list(PARTS))
    claims = read_claims(FIGURES / "claims.csv", list(CHECKS))
    failed = carry_out(runs_of(lines, claims), options.answers, options.only)
    found = results(tables, lines, claims, kept(options.answers))
    options.page.write_text(page(found), encoding="utf-8")
    print(f"\n{summary(found)}\n{options.page}")
    for what in found.unexplained:
        print(f"worse without a reason: {what}")
    return 1 if failed or found.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())

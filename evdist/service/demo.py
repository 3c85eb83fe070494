"""A first look: cluster a real table as the command would, say what was found, write its report.

``python -m evdist.demo [--out DIR]`` takes a table that the package brings along, so it needs no
network: 344 penguins of three species, measured on three islands, with ids, categories and blanks.

The data: K. Gorman and Palmer Station Antarctica LTER, 2007 to 2009 (Gorman, Williams, Fraser,
PLoS ONE 9(3), e90081, 2014), dedicated to the public domain (CC0). Columns were renamed, some left
out, and each penguin is called by its species and sample number.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from evdist.service.config import JobConfig
from evdist.service.jobs import run
from evdist.stores.paths import replace_bytes

TITLE = "344 penguins of three species"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of ``python -m evdist.demo``."""
    parser = argparse.ArgumentParser(prog="python -m evdist.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the results")
    out: Path = parser.parse_args(argv).out
    out.mkdir(parents=True, exist_ok=True)

    table = out / "penguins.csv"
    replace_bytes(str(table.absolute()), files(__package__).joinpath("penguins.csv").read_bytes())
    config = JobConfig.model_validate(
        {
            "folder": str((out / "job").absolute()),
            "data": {
                "url": str(table.absolute()), "id": "penguin", "label": "species", "encode": True,
            },
            "parameters": {"n_clusters": 3},
            "title": TITLE,
        }
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of blanks: the report tells them
        result = run(config)
    report = out / "report.html"
    report.write_text(Path(result.report).read_text(encoding="utf-8"), encoding="utf-8")

    with table.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    blanks = sum(value == "" for row in rows for value in row)
    found, metrics = result.describe(), result.metrics
    fitted = metrics["seconds"]["sample"] + metrics["seconds"]["fit"]
    print(f"penguins: {len(rows)} of three species, {len(head) - 2} columns, {blanks} blanks")
    print(f"EVCLUS: {metrics['iterations']} sweeps, {fitted:.1f} s")
    print(f"found: {found.title.partition(': ')[2]}")
    for card in found:
        print(f"  {{{card.cluster}}} {card.labelled} penguins: {card.headline}")
    ari = metrics["adjusted_rand_index"]
    print(f"adjusted Rand index against the species, which it was not shown: {ari:.3f}")
    print(f"look at: {report} (open it in a browser)")

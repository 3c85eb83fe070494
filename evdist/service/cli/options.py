"""Options that several commands share, and parameters of the form NAME=VALUE."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from evdist.registry import ALGORITHMS
from evdist.service.cli.late import Late

ConfigError: Any = Late("evdist.service.config:ConfigError")

Out = Annotated[
    str,
    typer.Option("--out", "-o", help="Job folder: a path or any fsspec URL.", show_default=False),
]
_ALGORITHMS = [(entry.name, entry.summary) for entry in ALGORITHMS.values()]
_NAMES = f"One of {', '.join(ALGORITHMS)}; see `evdist algorithms`."
Algorithm = Annotated[
    str,
    typer.Option("--algorithm", "-a", help=_NAMES, autocompletion=lambda: _ALGORITHMS),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="NAME=VALUE", help="A parameter of the algorithm; may be repeated."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON to standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Storage = Annotated[
    str | None,
    typer.Option(
        envvar="EVDIST_STORAGE", help="Where data and jobs are stored; ~/.evdist by default."
    ),
]
ApiUrl = Annotated[
    str | None,
    typer.Option(
        envvar="EVDIST_API_URL",
        help="URL of a Prefect server; without it, jobs run in the background on this machine.",
    ),
]
Deployment = Annotated[
    str | None,
    typer.Option(
        envvar="EVDIST_DEPLOYMENT",
        help="FLOW/DEPLOYMENT on the Prefect server that runs the job; cluster/evdist by default, "
        "cluster/evdist-k8s on Kubernetes.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", help="Job configuration (.json, .yaml, .toml); other options override its keys."
    ),
]
Data = Annotated[str, typer.Argument(help="A .csv, .parquet, .npy or .zarr file, or its URL.")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="A,B", help="Columns to use; may be repeated."),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="A,B", help="Columns to leave out; may be repeated.")
]
Id = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="Column with the ids of the objects."),
]
Label = Annotated[str | None, typer.Option(help="Column of known classes, for scores only.")]
Weight = Annotated[str | None, typer.Option(help="Column of positive weights.")]
Scale = Annotated[
    Literal["standard", "robust", "gower"] | None,
    typer.Option(help="Scale the columns; gower needs --encode."),
]
Encode = Annotated[
    bool,
    typer.Option("--encode", help="Encode categories, dates and missing values as numbers."),
]
Category = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="With --encode: numeric columns that are categories."),
]
DropIds = Annotated[
    Literal["auto"] | None,
    typer.Option(help="With --encode: leave out columns of text that name objects."),
]
Clusters = Annotated[
    str | None,
    typer.Option("--clusters", "-c", metavar="NUMBER", help="Number of clusters, or 'auto'."),
]
Links = Annotated[
    str | None, typer.Option(help="Table with columns i, j, link ('must' or 'cannot').")
]
Seed = Annotated[int | None, typer.Option(help="Random state; 0 by default.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Dask worker processes on this machine.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all cores by default.")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a running Dask scheduler.")]
JobName = Annotated[str, typer.Argument(metavar="JOB", help="Id or folder of a job.")]


def listed(names: list[str] | None) -> list[str] | None:
    """Names given as "a,b", repeatedly or both; a name with a comma stands in double quotes."""
    if names is None:
        return None
    found = [name.strip() for row in csv.reader(names, skipinitialspace=True) for name in row]
    if not all(found):
        raise ConfigError(f"A name of a column is empty in {','.join(names)!r}.")
    return found


def parsed(pairs: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is JSON where it can be read as such, else text."""
    values: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set needs NAME=VALUE, such as --set d0=0.5, got {pair!r}.")
        try:
            values[name] = json.loads(text)
        except (ValueError, RecursionError):
            values[name] = text
    return values


def given(**values: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def number(text: str | None) -> int | str | None:
    """A whole number where it is one, else the word."""
    return int(text) if text is not None and text.isdigit() else text

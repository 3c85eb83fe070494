"""The commands. Each makes a configuration and passes it on; none computes anything itself."""

from __future__ import annotations

import gc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from evdist import __version__
from evdist.service.cli import here, jobs, keeping, look, plan
from evdist.service.cli.out import say


class _Flags:
    """Shows flags without a type: there is no value to give."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)  # type: ignore[misc]
        for one in params:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return params


class _Command(_Flags, TyperCommand):
    pass


class _Group(_Flags, TyperGroup):
    pass


app = typer.Typer(
    name="evdist",
    cls=_Group,
    help="Evidential clustering of large data sets. Each object gets a mass function over sets of "
    "clusters, which distinguishes sure members, objects between clusters and outliers.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong option or configuration, 3 not found, 4 not done "
    "yet, 130 stopped (the same command resumes).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"evdist {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


COMMANDS = (
    *(here.cluster, here.predict, here.append, here.select, here.combine),
    *(look.report, look.describe, look.inspect, look.algorithms),
    *(jobs.submit, jobs.status, jobs.logs, jobs.cancel, jobs.delete, jobs.fetch),
    *(look.demo, look.warm, look.doctor, plan.plan),
)


for command in COMMANDS:
    app.command(cls=_Command)(command)
app.add_typer(keeping.jobs, name="jobs", cls=_Group)
for known in keeping.jobs.registered_commands:
    known.cls = _Command


#: Objects made and not freed between two looks for cycles; Python's own number is 700.
COLLECT_EVERY = 10_000


def main() -> None:
    """Entry point of ``evdist``."""
    # Half a million objects are made while modules load, and stay: the collector would look through
    # them again and again, a few tenths of a second.
    gc.set_threshold(COLLECT_EVERY)
    try:
        app()
    finally:
        # The process ends, and all memory with it: Python would first look through every object
        # for what refers to itself, half a second where pandas and numba are loaded.
        gc.freeze()

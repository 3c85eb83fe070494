"""How the command line speaks: to people, to machines (--json), and by exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from evdist.service.cli.late import Late

config: Any = Late("evdist.service.config")
jobs: Any = Late("evdist.service.jobs.pipeline")

_out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False, soft_wrap=True)


class Exit(IntEnum):
    """Exit codes; 2 is also that of a wrong option."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_THERE = 3
    NOT_DONE = 4
    STOPPED = 130


@contextmanager
def errors(as_json: bool = False) -> Iterator[None]:
    """A user's mistake is one sentence and an exit code, never a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        _fail("Stopped. The same command resumes where it stopped.", Exit.STOPPED, as_json)
    except typer.Exit:
        raise
    except Exception as error:
        told = _told(error)
        if told is None:
            raise  # a bug: its traceback helps to mend it
        _fail(*told, as_json)


def _told(error: Exception) -> tuple[str, Exit] | None:
    """What is said of an error that a user can mend, and the exit code; None for any other."""
    if isinstance(error, jobs.JobCancelled):
        return f"{error} The same command resumes where it stopped.", Exit.STOPPED
    if isinstance(error, config.ConfigError):
        return str(error), Exit.USAGE
    if isinstance(error, (jobs.JobError, OSError, ValueError, ImportError)):
        why = error.__cause__ if isinstance(error, jobs.JobError) else error
        gone = isinstance(why, FileNotFoundError)
        return jobs.sentence(error), Exit.NOT_THERE if gone else Exit.FAILED
    return None


def _fail(said: str, code: Exit, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"error": said, "exit_code": int(code)}) + "\n")
    else:
        _err.print(_shown(f"evdist: {said}"), markup=False)
    raise typer.Exit(int(code))


def _shown(text: str) -> str:
    """The text without what no terminal can show, such as half of a pair of surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()


def say(text: str = "") -> None:
    """A line for people, on the standard output."""
    _out.print(_shown(text), markup=False)


def note(text: str) -> None:
    """A line beside the answer, on the error output."""
    _err.print(_shown(text), markup=False)


def show(values: Any) -> None:
    """The answer for a machine: one JSON document."""
    sys.stdout.write(json.dumps(values, indent=1, default=str) + "\n")


def table(columns: list[str], rows: list[list[Any]]) -> None:
    """A table for people."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*[_shown(str(value)) for value in row])
    _out.print(drawn)


def facts(values: Mapping[str, Any]) -> None:
    """Names and values, one pair a line."""
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        say(
            f"{name:<{width}}  {value:.6g}"
            if isinstance(value, float)
            else f"{name:<{width}}  {value}"
        )

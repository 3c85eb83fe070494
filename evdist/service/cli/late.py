"""What commands take from the rest of evdist, imported when a command runs.

`evdist --help`, a wrong option and the Tab key need the options alone: typer and rich, which take a
tenth of a second, where all that computes and draws takes seconds. `tests/cli/test_cli_start.py`
counts what is loaded.
"""

from __future__ import annotations

from typing import Any

from evdist.registry import load


class Late:
    """Stands for "package.module:name", or for a module; imported at its first use."""

    def __init__(self, place: str):
        self._place = place

    def __call__(self, *values: Any, **named: Any) -> Any:
        return load(self._place)(*values, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(load(self._place), name)

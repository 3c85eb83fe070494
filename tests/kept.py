"""Servers and workers that several files of tests share, ended with the last of these tests.

Two idle Dask workers and their scheduler take 8 % of a core: they must not live as long as the
session.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TypeVar

T = TypeVar("T")

_open = ExitStack()
_values: dict[str, object] = {}


def kept(name: str, start: Callable[[], AbstractContextManager[T]]) -> T:
    """What `start` gives, started when it is first asked for."""
    if name not in _values:
        _values[name] = _open.enter_context(start())
    return _values[name]  # type: ignore[return-value]


def end_all() -> None:
    """End everything, the last first."""
    _values.clear()
    _open.close()

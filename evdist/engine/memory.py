"""What a fit will need, compared with what is free, before it starts: the one place that refuses.

An algorithm lists its parts (`{"kept pairs": bytes, "masses": bytes}`); `check_memory` adds them
up and raises a MemoryError that names the largest ones, what is free and where, and the cure.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psutil

from evdist.engine.workers import smallest_worker


def give_back() -> None:
    """Return what was freed to the system, where the C library keeps it: glibc does."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def available() -> int:
    """Bytes that this process may still take."""
    return int(psutil.virtual_memory().available)


def gigabytes(size: float) -> str:
    """1.5 GB, for messages; 0.8 MB where that would be 0.0 GB."""
    return f"{size / 1e9:.1f} GB" if size >= 5e7 else f"{size / 1e6:.1f} MB"


def check_memory(
    parts: Mapping[str, int],
    cure: str,
    *,
    what: str = "This fit",
    client: Any = None,
    free: int | None = None,
    where: str = "here",
) -> None:
    """Refuse, before any work, what does not fit.

    Parameters
    ----------
    parts : name -> bytes that it takes
    cure : str
        A sentence: what to do instead.
    client : distributed.Client
        Where the work runs on workers: the smallest one decides.
    free : int
        Bytes there are, by default what is available in this process's machine; `where` names the
        place.
    """
    if client is not None:
        free, where = smallest_worker(client)[1], "on the smallest worker"
    free = available() if free is None else free
    need = sum(parts.values())
    if need <= free:
        return
    named = ""
    if len(parts) > 1:
        named = " (" + ", ".join(f"{gigabytes(b)} for {name}" for name, b in parts.items()) + ")"
    raise MemoryError(
        f"{what} needs about {gigabytes(need)}{named}, but {gigabytes(free)} are free {where}. "
        f"{cure}"
    )

"""Workers that are there but do nothing: known by the scheduler's own words, and given a deadline.

A worker that uses 80 % of its memory is paused by Dask and starts no task until it has less; one
whose process or network stands still sends no heartbeats, and is given up by the scheduler after
minutes. Tasks that are pinned to such a worker would be waited for without end.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent import futures
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from distributed import Client


T = TypeVar("T")

#: Seconds between looks at the list of workers while tasks run.
LOOK = 2.0
#: Heartbeats of a worker this many seconds behind those of the liveliest: it is silent.
_SILENT = 20.0


class WorkersLostError(RuntimeError):
    """No worker is left, or workers are lost faster than sweeps are done."""


class WorkerStalledError(WorkersLostError):
    """A worker is there but does nothing: paused for want of memory, or silent."""


def library() -> Any:
    """The library of the client, which a caller with a client has loaded already."""
    return sys.modules["distributed"]


def stall_seconds() -> float:
    """Seconds for which a worker may stand still: EVDIST_STALL_SECONDS, or 60."""
    return float(os.environ.get("EVDIST_STALL_SECONDS", "60"))


def present(client: Client) -> dict[str, dict[str, Any]]:
    """What the scheduler knows of its workers, by address; ConnectionError when it is gone."""
    if client.status != "running":
        raise ConnectionError("The connection to the Dask scheduler is lost.")
    return client.scheduler_info(n_workers=-1)["workers"]


def able(client: Client) -> dict[str, int]:
    """The threads of every worker that can take on work; of all, where none can.

    Times of heartbeats are the scheduler's and are compared with each other only.
    """
    known = present(client)
    latest = max((one["last_seen"] for one in known.values()), default=0.0)
    fit = {
        address: one["nthreads"]
        for address, one in known.items()
        if one["status"] == "running" and latest - one["last_seen"] < _SILENT
    }
    return fit or {address: one["nthreads"] for address, one in known.items()}


class Deadline:
    """Watches the workers that a caller waits for; `look` raises when one has stood still."""

    def __init__(self, client: Client, workers: Iterable[str]):
        self._client, self._workers = client, tuple(workers)
        self._since: dict[str, tuple[Any, float]] = {}

    def look(self) -> None:
        """Compare with the look before; a WorkerStalledError names the worker and the cure."""
        known, now = present(self._client), time.monotonic()
        for address in self._workers:
            if address not in known:
                self._since.pop(address, None)
                continue
            one = known[address]
            # A heartbeat that moves shows life; that of a paused worker is not enough.
            mark = "paused" if one["status"] == "paused" else one["last_seen"]
            if self._since.get(address, (None,))[0] != mark:
                self._since[address] = (mark, now)
            elif now - self._since[address][1] > stall_seconds():
                raise WorkerStalledError(_said(address, one, now - self._since[address][1]))


def finished(
    client: Client, work: Coroutine[Any, Any, T], workers: Iterable[str], lost: Callable[[], Any]
) -> T:
    """The result of a coroutine of the client that needs all of `workers`.

    `lost` is called when one of them has gone, and should end the waiting; a worker that stands
    still is a WorkerStalledError.
    """
    began = time.monotonic()
    loop: Any = client.loop
    running = asyncio.run_coroutine_threadsafe(work, loop.asyncio_loop)
    needed = tuple(workers)
    deadline = Deadline(client, needed)
    while not futures.wait([running], LOOK).done:
        try:
            gone = not set(needed) <= set(present(client))
            deadline.look()
        except BaseException:
            running.cancel()
            raise
        if gone:
            lost()
            running.cancel() if not futures.wait([running], LOOK).done else None
    try:
        return running.result()
    except TimeoutError as error:  # Dask gives up sooner where all are paused, without the cause
        known = present(client)
        for address in needed:
            if address in known and known[address]["status"] == "paused":
                said = _said(address, known[address], time.monotonic() - began)
                raise WorkerStalledError(said) from error
        raise


def _said(address: str, one: dict[str, Any], seconds: float) -> str:
    if one["status"] != "paused":
        return (
            f"Dask worker {address} has given no sign of life for {seconds:.0f} s. Check its "
            "machine and its log, or restart it; the job continues without it."
        )
    used, limit = one.get("metrics", {}).get("memory", 0), one.get("memory_limit") or 0
    share = f"{used / 1e6:,.0f} of {limit / 1e6:,.0f} MB" if limit else f"{used / 1e6:,.0f} MB"
    return (
        f"Dask worker {address} has been paused for {seconds:.0f} s: its memory is full ({share}). "
        "Give the workers more memory (evdist plan says how much), use more of them, or run fewer "
        "jobs at once."
    )

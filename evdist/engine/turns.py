"""Tasks that any worker may run, none of which may fill its memory or wait without end.

A Dask worker starts as many tasks as it has threads, however large these are. One whose memory is
full is paused, then killed; when a task has lost four workers Dask gives it up, and where all
workers are gone the rest of the tasks waits for ever.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from evdist.engine.deadline import WorkersLostError, library, present, stall_seconds
from evdist.engine.memory import give_back

#: Of a worker's memory limit, the part that is planned with. Dask pauses a worker at 0.8.
SHARE = 0.7


def room_here() -> int:
    """Bytes that tasks may take on this worker, as it is now."""
    give_back()
    worker = sys.modules["distributed"].get_worker()
    limit = getattr(worker.memory_manager, "memory_limit", None)
    free = psutil.virtual_memory().available
    if limit:
        free = min(free, int(SHARE * limit) - psutil.Process().memory_info().rss)
    return max(free, 0)


class Turns:
    """Lets tasks in as long as there is room for one more; one is always let in."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken, self._room = 0, 0

    @contextmanager
    def taking(self, size: int, room: Callable[[], int] = room_here) -> Iterator[None]:
        """Wait for `size` bytes, and have them for the block; `room` is asked when all are free."""
        with self._changed:
            while self._taken and self._taken + size > self._room:
                self._changed.wait()
            if not self._taken:
                self._room = room()
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


_TURNS = Turns()


def in_turn(size: int, task: Callable[..., Any], *args: Any) -> Any:
    """`task(*args)` on a worker, once there are `size` bytes for it."""
    with _TURNS.taking(size):
        try:
            return task(*args)
        finally:
            give_back()  # Dask counts as taken what the C library has not returned


def all_done(
    client: Any, jobs: Sequence[Any], tell: Callable[[int, int], None] | None = None
) -> list[Any]:
    """What all jobs return; WorkersLostError, with the cure, where workers die or stand still.

    `tell(done, all)` hears how far they are.
    """
    dask, left = library(), set(jobs)
    with client.as_current():
        while left:
            before = len(left)
            # Not `wait` for the next one, over and over: each call follows all that are left.
            with suppress(TimeoutError):
                for job in dask.as_completed(left.copy(), timeout=stall_seconds()):
                    left.discard(job)
                    if tell is not None:
                        tell(len(jobs) - len(left), len(jobs))
            if len(left) == before:
                _check_alive(client)
    try:
        return client.gather(list(jobs))
    except dask.KilledWorker as error:
        raise WorkersLostError(
            "Workers died several times at the same task, most likely for want of memory. Give "
            "them more (evdist plan says how much), fewer threads, or use more of them."
        ) from error


def _check_alive(client: Any) -> None:
    """An error where no worker can take on a task."""
    known = present(client).values()
    if any(one["status"] == "running" for one in known):
        return
    if not known:
        raise WorkersLostError(
            f"No Dask worker has been there for {stall_seconds():.0f} s. Start some, or see in "
            "their logs why they ended; the same call goes on where this one stopped."
        )
    raise WorkersLostError(
        f"All {len(known)} Dask workers have been paused for {stall_seconds():.0f} s: their memory "
        "is full. Give them more memory (evdist plan says how much), or use more of them; the same "
        "call goes on where this one stopped."
    )

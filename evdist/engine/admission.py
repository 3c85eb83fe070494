"""Jobs on one Dask cluster at the same time: each is let in when the workers have room for it.

The scheduler keeps the book: what every job that was let in may take of each worker, and which
jobs wait, the first first. An entry lasts as long as its client is connected, so that a job that
was killed frees its place. Dask runs one such function at a time, so no two jobs take one place.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evdist.engine.deadline import present
from evdist.engine.progress import Progress, Report

if TYPE_CHECKING:
    from distributed import Client


logger = logging.getLogger("evdist.job")

#: Share of a worker's limit that jobs may fill: at 80 % Dask pauses it.
USABLE = 0.75
#: Bytes of a worker process without any job: the interpreter, its libraries, compiled kernels. It
#: had 407 MB after four jobs at once (benchmarks/chaos.py).
BASE = 400 << 20
#: Seconds between two requests of a job that waits.
_LOOK = 1.0


@contextmanager
def admitted(client: Client | None, size: int, report: Report = None) -> Iterator[None]:
    """Wait until every worker has room for `size` bytes beside other jobs; theirs for the block.

    A job that is alone is always let in: whether it can fit at all is checked elsewhere.
    """
    if client is None:
        yield
        return
    token = uuid.uuid4().hex
    _wait(client, token, size, report)
    try:
        yield
    finally:
        # It ends by itself with the client, which has an attribute less where it closes meanwhile.
        with suppress(OSError, TimeoutError, RuntimeError, AttributeError):
            client.run_on_scheduler(_leave, token)


def _wait(client: Client, token: str, size: int, report: Report) -> None:
    told = ""
    while True:
        present(client)  # an error where the scheduler is gone
        try:
            said = client.run_on_scheduler(_enter, token, client.id, size)
        except (ImportError, AttributeError, ValueError) as error:
            # A scheduler without this package, or one that runs no functions of clients.
            logger.warning("the scheduler cannot keep reservations: %s", error)
            return
        if not said:
            return
        if said != told:
            logger.info("waits for memory: %s", said)
            told = said
        if report is not None:
            report(Progress("wait for memory", 0, 0))
        time.sleep(_LOOK)


# ---------------------------------------------------------------------- on the scheduler
@dataclass
class _Book:
    """Token -> (client, bytes of each worker): jobs that were let in, and jobs that wait."""

    inside: dict[str, tuple[str, int]] = field(default_factory=dict)
    waiting: dict[str, tuple[str, int]] = field(default_factory=dict)

    def without(self, gone: Callable[[str], bool]) -> None:
        for entries in (self.inside, self.waiting):
            for token in [t for t, (client, _) in entries.items() if gone(client)]:
                del entries[token]


def book_of(scheduler: Any) -> _Book:
    found = getattr(scheduler, "evdist_book", None)
    if found is None:
        found = scheduler.evdist_book = _Book()
    # The scheduler is also its own client.
    found.without(lambda client: client not in scheduler.clients)
    return found


def _enter(token: str, client: str, size: int, dask_scheduler: Any = None) -> str:
    """Let a job in, "" then; or a sentence that says what it waits for."""
    book = book_of(dask_scheduler)
    if token in book.inside:
        return ""
    book.waiting.setdefault(token, (client, size))
    ahead = list(book.waiting).index(token)
    said = "" if not book.inside else _wanting(dask_scheduler, book, size)
    if ahead or said:
        return said or f"{ahead} jobs are ahead"
    book.inside[token] = book.waiting.pop(token)
    return ""


def _wanting(scheduler: Any, book: _Book, size: int) -> str:
    held = sum(taken for _, taken in book.inside.values())
    for worker in scheduler.workers.values():
        if worker.status.name == "paused":
            return f"worker {worker.address} is paused: its memory is full"
        free = int(USABLE * worker.memory_limit) - BASE - held if worker.memory_limit else size
        if size > free:
            return (
                f"worker {worker.address} has {max(free, 0) / 1e6:,.0f} MB left beside "
                f"{len(book.inside)} jobs that hold {held / 1e6:,.0f}, {size / 1e6:,.0f} are needed"
            )
    return ""


def _leave(token: str, dask_scheduler: Any = None) -> None:
    book = book_of(dask_scheduler)
    book.inside.pop(token, None)
    book.waiting.pop(token, None)

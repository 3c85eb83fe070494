"""Independent tasks on a Dask cluster, whatever happens to its workers.

Scattered data is gone when its workers are. `run_on_workers` then sends everything out again;
`map_tasks` has the table that all tasks read made by tasks itself, block by block, so that the
scheduler can make it again, and a task whose worker was lost is run anew by another.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from evdist.engine.deadline import (
    LOOK,
    Deadline,
    WorkersLostError,
    able,
    finished,
    library,
    present,
)

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "ATTEMPTS",
    "LOOK",
    "WorkersLostError",
    "library",
    "map_tasks",
    "run_on_workers",
    "scattered",
    "smallest_worker",
    "until_done",
    "wait_for_workers",
]

T = TypeVar("T")

#: How often all is tried.
ATTEMPTS = 10
#: Bytes of the table in one message: Dask warns of larger ones.
_PART_BYTES = 4 << 20


def smallest_worker(client: Client) -> tuple[int, int]:
    """How many workers there are, and the memory limit of the smallest, in bytes."""
    if "distributed" not in sys.modules or not isinstance(client, library().Client):
        raise TypeError(
            f"client must be a distributed.Client, got {type(client).__name__}. For a cluster "
            "pass distributed.Client(cluster)."
        )
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [w["memory_limit"] for w in workers if w.get("memory_limit")]
    return max(len(workers), 1), min(limits, default=2**62)


def wait_for_workers(client: Client, least: int = 1, seconds: float = 60.0) -> dict[str, int]:
    """The threads of every worker, once there are `least` of them; TimeoutError if they stay away.

    Not Dask's own wait: where the client was made from a cluster object, that one replaces the
    object's list of workers; when the removal of a worker that is no longer on the list is then
    heard of, closing the cluster raises KeyError. Some wait here after just such a loss.
    """
    end = time.monotonic() + seconds
    while len(there := able(client)) < least:
        if time.monotonic() > end:
            address = getattr(client.scheduler, "address", "?")
            raise TimeoutError(
                f"After {seconds:g} s the scheduler at {address} has {len(there)} Dask workers, "
                f"{least} are needed. Start them, or check why they do not connect."
            )
        time.sleep(0.1)
    return there


def scattered(client: Client, values: Iterable[Any], workers: Iterable[str]) -> list[Any] | None:
    """Futures of `values`, each held by all of `workers`; None when one of them is lost meanwhile.

    On one machine they go straight to the workers, which takes a third of the time; else by way of
    the scheduler, which can reach workers that the client cannot. Of a worker that left before it
    was asked, the scheduler says KeyError.
    """
    to, what = list(workers), list(values)
    if not set(to) <= set(present(client)):
        return None
    straight = _on_this_machine([getattr(client.scheduler, "address", ""), *to])
    for direct in [True, None] if straight else [None]:
        work = client.scatter(
            what, workers=to, broadcast=True, hash=False, direct=direct, asynchronous=True
        )
        try:
            return list(finished(client, work, to, lambda: None))
        except (library().CancelledError, CancelledError, KeyError):
            present(client)  # an error where it was the scheduler that went
            return None
        except OSError:  # the scheduler is behind a tunnel, or a worker has just ended
            if not direct:
                raise
    return None


def _on_this_machine(addresses: Iterable[str]) -> bool:
    """Whether all are addresses of sockets on loopback."""
    hosts = [urlsplit(address).hostname or "" for address in addresses]
    return all(host == "::1" or host.startswith("127.") for host in hosts)


def run_on_workers(
    client: Client, task: Any, *shared: Any, items: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """`task(*shared, *item)` for every item, anywhere; `shared` is sent to a worker once.

    Scattered data is gone with its worker, and a task that waits for it waits for ever: when a
    worker is lost meanwhile, everything that is not done is sent out again.
    """
    dask = library()

    def attempt() -> list[Any] | None:
        there = set(wait_for_workers(client))
        deadline = Deadline(client, there)
        sent = scattered(client, shared, there)
        if sent is None:
            return None
        jobs = [
            client.submit(task, *sent, *item, pure=False, retries=3, workers=list(there))
            for item in items
        ]
        while True:
            try:
                with client.as_current():
                    dask.wait(jobs, timeout=LOOK)
                return client.gather(jobs)
            except TimeoutError:
                deadline.look()
                if not there <= set(present(client)):
                    client.cancel(jobs, force=True)
                    return None
            except (dask.CancelledError, CancelledError):
                present(client)  # an error where it was the scheduler that went
                return None

    return until_done(attempt, "Workers are lost faster than they can do anything.")


def until_done(
    attempt: Callable[[], T | None], message: str, between: Callable[[], None] | None = None
) -> T:
    """What `attempt` returns once that is not None: the one policy for lost workers.

    An attempt that meets a lost worker returns None; `between` prepares the next one. After
    ATTEMPTS of them `WorkersLostError` is raised with `message`.
    """
    for _ in range(ATTEMPTS):
        result = attempt()
        if result is not None:
            return result
        if between is not None:
            between()
    raise WorkersLostError(message)


def map_tasks(
    client: Client,
    task: Callable[[NDArray[Any], Any], Any],
    table: NDArray[Any],
    items: Iterable[Any],
) -> Iterator[Any]:
    """`task(table, item)` for every item, in the order in which they are done.

    Parameters
    ----------
    client : distributed.Client
    task : callable
        Sent with every item: keep it small. Its table can be written.
    table : (n, ...) array
    """
    rows = max(1, _PART_BYTES // max(table[:1].nbytes, 1))
    parts = [
        client.submit(_part, table[lo : lo + rows], pure=False) for lo in range(0, len(table), rows)
    ]
    whole = client.submit(_join, parts, pure=False)
    jobs = [client.submit(_run, task, whole, item, pure=False, retries=3) for item in items]
    with client.as_current():  # it need not be the process's only one
        done = library().as_completed(jobs)
    for job in done:
        yield job.result()


def _part(table: NDArray[Any]) -> NDArray[Any]:
    return table


def _join(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts)


def _run(task: Callable[[NDArray[Any], Any], Any], table: NDArray[Any], item: Any) -> Any:
    # What came over the network is read-only, which numba compiles for anew.
    return task(np.require(table, requirements="W"), item)

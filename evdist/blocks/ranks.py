"""One rank of torch.distributed on every Dask worker: work that needs its neighbours at each step.

A round is one task per worker. All tasks of a round meet in a process group (gloo, or nccl with
CUDA), work, and leave it. Between rounds nothing is kept on the workers but the rows they were
sent, so that a round can be done again: when a worker dies, the tasks of the others fail or are
cancelled, and the caller is told (`RankLostError`). What a round returned is the restore point.
"""

from __future__ import annotations

import datetime
import socket
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["Group", "RankLostError", "Ranks"]

#: Seconds that ranks wait for each other, when they meet and in every step.
MEETING, PATIENCE = 15.0, 600.0
#: Seconds between looks at the list of workers while a round runs.
_LOOK = 1.0


class RankLostError(RuntimeError):
    """A worker was lost, or no longer answered, while its ranks worked together."""


@dataclass(frozen=True)
class Group:
    """The place of one rank among the others, while a round runs."""

    rank: int
    world: int

    def average(self, values: torch.Tensor) -> None:
        """Replace the values, in place, by their mean over all ranks: the same bits on each."""
        if self.world > 1:
            dist.all_reduce(values)
            values /= self.world


def _free_port() -> int:
    """A port of this machine that nobody uses at the moment."""
    with socket.socket() as trial:
        trial.bind(("", 0))
        return trial.getsockname()[1]


def _work(
    task: Callable[..., Any], backend: str, host: str, port: int, group: Group, *args: Any
) -> Any:
    """Meet the other ranks, work, and leave."""
    # A rank of a round that was given up may still be on its way out of its group.
    until = time.monotonic() + PATIENCE
    while dist.is_initialized() and time.monotonic() < until:
        time.sleep(0.05)
    meeting = datetime.timedelta(seconds=MEETING)
    store = dist.TCPStore(
        host, port, group.world, is_master=group.rank == 0, timeout=meeting, wait_for_workers=False
    )
    # Nothing can call back a rank that waits for one that has died: it must not wait for long.
    store.set(f"rank {group.rank}", "here")
    store.wait([f"rank {rank}" for rank in range(group.world)], meeting)
    dist.init_process_group(
        backend, store=store, rank=group.rank, world_size=group.world,
        timeout=datetime.timedelta(seconds=PATIENCE),
    )  # fmt: skip
    try:
        return task(group, *args)
    finally:
        dist.destroy_process_group()


class Ranks:
    """The workers of a client as ranks 0, 1, ...

    Parameters
    ----------
    client : distributed.Client
        One thread per worker is enough; a worker holds one rank whatever its threads.
    cuda : bool
        Whether the tensors that are averaged lie on CUDA devices.
    """

    def __init__(self, client: Client, cuda: bool):
        self._client = client
        self._backend = "nccl" if cuda else "gloo"
        self.workers = self._present()
        self._sent: list[Future] = []

    @property
    def world(self) -> int:
        return len(self.workers)

    def _present(self) -> list[str]:
        self._client.wait_for_workers(1, timeout=60)
        return sorted(self._client.nthreads())

    def send(self, items: Sequence[Any]) -> None:
        """Give each worker its own item, which its rounds will get."""
        self._sent = [
            self._client.scatter(item, workers=[worker], hash=False)
            for worker, item in zip(self.workers, items, strict=True)
        ]

    def renew(self) -> None:
        """Take the workers that are there now; what was sent to the old ones is forgotten."""
        self.workers, self._sent = self._present(), []

    def round(self, task: Callable[..., Any], *args: Any) -> list[Any]:
        """`task(group, item, *args)` on every worker at once; results by rank."""
        first = self.workers[0]
        host = first.split("://")[-1].rpartition(":")[0].strip("[]")
        # All answer, and have loaded what they need, before they are to meet.
        port, *_ = self._results([self._submit(worker, _free_port) for worker in self.workers])
        jobs = [
            self._submit(
                worker, _work, task, self._backend, host, port, Group(rank, self.world), item, *args
            )
            for rank, (worker, item) in enumerate(zip(self.workers, self._sent, strict=True))
        ]
        return self._results(jobs)

    def _submit(self, worker: str, task: Callable[..., Any], *args: Any) -> Future:
        return self._client.submit(
            task, *args, workers=[worker], allow_other_workers=False, pure=False, retries=0,
            key=f"evdist-{task.__name__.strip('_')}-{uuid.uuid4().hex[:12]}",
        )  # fmt: skip

    def _results(self, jobs: list[Future]) -> list[Any]:
        """Results of all jobs; an error of the work itself is raised as it is."""
        distributed = sys.modules["distributed"]
        waiting = list(jobs)
        while waiting:
            try:
                with self._client.as_current():  # it need not be the process's only one
                    distributed.wait(waiting, timeout=_LOOK, return_when="FIRST_COMPLETED")
            except (TimeoutError, distributed.client.FuturesCancelledError):
                pass  # rows that were sent to a lost worker take the task with them
            waiting = [job for job in jobs if job.status == "pending"]
            failed = [job for job in jobs if job.status not in ("pending", "finished")]
            # Tasks are pinned: that of a lost worker would wait for ever.
            lost = set(self.workers) - set(self._client.nthreads())
            if failed or lost:
                self._give_up(jobs, failed, lost)
        return self._client.gather(jobs)

    def _give_up(self, jobs: list[Future], failed: list[Future], lost: set[str]) -> None:
        errors = [job.exception() for job in failed if job.status == "error"]
        # The others must not wait for a rank that will not come: they end with an error soon.
        self._client.cancel(jobs, force=True)
        for error in errors:
            if not _is_connection(error):
                raise error
        there = set(self._client.nthreads())
        gone = ", ".join(sorted(lost | (set(self.workers) - there))) or "a worker"
        raise RankLostError(f"{gone} was lost.") from next(iter(errors), None)


def _is_connection(error: BaseException) -> bool:
    """Whether a rank failed because another one was gone."""
    distributed = sys.modules["distributed"]
    gone = (dist.DistError, ConnectionError, TimeoutError, distributed.KilledWorker)
    text = str(error).lower()
    heard = any(
        word in text for word in ("gloo", "nccl", "connection", "tcpstore", "timed out", "timeout")
    )
    return isinstance(error, gone) or (isinstance(error, RuntimeError) and heard)

"""One rank of torch.distributed on every Dask worker: work that needs its neighbours at each step.

The work is cut into parts, more or fewer to a rank. A round is one task per worker. All tasks of a
round meet in a process group (gloo, or nccl with CUDA), work, and leave it. Between rounds nothing
is kept on the workers but the parts they were sent, so that a round can be done again: when a
worker dies, the tasks of the others fail or are cancelled, and the round starts again on the
workers that are left. What a round returned is the restore point.

Ranks open connections of their own. Where a firewall stands between the workers, one of them has
all parts: the bits do not depend on how parts are dealt.
"""

from __future__ import annotations

import datetime
import socket
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from evdist.engine.workers import (
    ATTEMPTS,
    LOOK,
    WorkersLostError,
    library,
    scattered,
    until_done,
    wait_for_workers,
)

if TYPE_CHECKING:
    from distributed import Client, Future


#: Seconds that ranks wait for each other, when they meet and in every step.
MEETING, PATIENCE = 15.0, 600.0
#: Seconds for one connection between two workers: the packet that asks for it is sent three times.
_KNOCK = 5.0
#: Port -> socket, of a worker that another one is to reach.
_doors: dict[int, socket.socket] = {}


class RankLostError(RuntimeError):
    """A worker was lost, or no longer answered, during a round."""


@dataclass(frozen=True)
class Group:
    """The place of one rank among the others, while a round runs; `parts` is those of all."""

    rank: int
    world: int
    parts: int

    def gather(self, values: torch.Tensor) -> torch.Tensor:
        """Rows of all parts, (parts, p), from those of this rank's own, in the order of the parts.

        Rows travel as they are. A sum over ranks on the way would depend on how parts are dealt.
        """
        if self.world == 1:
            return values
        sizes = [len(share) for share in shares(self.parts, self.world)]
        rows = values.new_zeros((max(sizes), values.shape[1]))  # all must send as many
        rows[: len(values)] = values
        found = [torch.empty_like(rows) for _ in sizes]
        dist.all_gather(found, rows)
        return torch.cat([part[:size] for part, size in zip(found, sizes, strict=True)])


def shares(parts: int, world: int) -> list[range]:
    """Parts 0, 1, ... dealt to ranks in order, as evenly as can be."""
    ends = [parts * rank // world for rank in range(world + 1)]
    return [range(a, b) for a, b in pairwise(ends)]


def _free_port(task: Callable[..., Any]) -> int:
    """A port of this machine that is free at the moment.

    To receive `task` a worker loads what it needs, which may last longer than ranks wait.
    """
    with socket.socket() as trial:
        trial.bind(("", 0))
        return trial.getsockname()[1]


def _open_door() -> int:
    """Listen on a port that is free; the kernel answers, no thread need wait."""
    door = socket.socket()
    door.bind(("", 0))
    door.listen()
    port = door.getsockname()[1]
    _doors[port] = door
    return port


def _close_door(port: int) -> None:
    _doors.pop(port).close()


def _knock(host: str, port: int) -> bool:
    """Whether this machine reaches that port."""
    try:
        socket.create_connection((host, port), timeout=_KNOCK).close()
    except OSError:
        return False
    return True


def _work(
    task: Callable[..., Any], backend: str, host: str, port: int, group: Group, *args: Any
) -> Any:
    """Meet the other ranks, work, and leave."""
    # A rank of a round that was given up may still be on its way out of its group.
    until = time.monotonic() + PATIENCE
    while dist.is_initialized() and time.monotonic() < until:
        time.sleep(0.05)
    meeting = datetime.timedelta(seconds=MEETING)
    store = dist.TCPStore(  # type: ignore[attr-defined]
        host, port, group.world, is_master=group.rank == 0, timeout=meeting, wait_for_workers=False
    )
    # Nothing can call back a rank that waits for one that has died: it must not wait for long.
    store.set(f"rank {group.rank}", "here")
    store.wait([f"rank {rank}" for rank in range(group.world)], meeting)
    try:
        dist.init_process_group(
            backend, store=store, rank=group.rank, world_size=group.world,
            timeout=datetime.timedelta(seconds=PATIENCE),
        )  # fmt: skip
    except BaseException:
        _leave_failed_meeting()
        raise
    try:
        return task(group, *args)
    finally:
        dist.destroy_process_group()


def _leave_failed_meeting() -> None:
    """Forget a group that was begun: ranks look for each other under its number.

    torch counts the groups of a process since it last left one. A process that did not leave would
    have a number of its own, and the next ranks would wait for it until `PATIENCE` is over.
    """
    if not dist.is_initialized():
        store = dist.HashStore()  # type: ignore[attr-defined]
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    dist.destroy_process_group()


class Ranks:
    """The workers of a client as ranks 0, 1, ..., each with some parts of the work.

    Parameters
    ----------
    client : distributed.Client
        One thread per worker is enough; a worker holds one rank whatever its threads.
    parts : sequence
        Dealt to the workers in order; no more workers than parts are taken.
    cuda : bool
        Whether the tensors that are gathered lie on CUDA devices.
    """

    def __init__(self, client: Client, parts: Sequence[Any], cuda: bool):
        self._client, self._parts = client, parts
        self._backend = "nccl" if cuda else "gloo"
        self._deal()

    @property
    def world(self) -> int:
        return len(self._workers)

    def _deal(self) -> None:
        """Send the parts to the workers that are there now."""
        until_done(self._try_deal, "Workers are lost faster than they can be set up.")

    def _try_deal(self) -> bool | None:
        self._workers = sorted(wait_for_workers(self._client))[: len(self._parts)]
        try:
            self._stay_where_ranks_meet()
        except RankLostError:
            return None
        self._sent = []
        for worker, share in zip(self._workers, shares(len(self._parts), self.world), strict=True):
            # A list by itself would be scattered item by item.
            sent = scattered(self._client, [[self._parts[i] for i in share]], [worker])
            if sent is None:
                return None
            self._sent += sent
        return True

    def _stay_where_ranks_meet(self) -> None:
        """Leave the first worker alone if another one cannot reach it."""
        first, *others = self._workers
        if not others:
            return
        (port,) = self._results([self._submit(first, _open_door)])
        knocks = [self._submit(worker, _knock, _host(first), port) for worker in others]
        apart = [w for w, met in zip(others, self._results(knocks), strict=True) if not met]
        self._results([self._submit(first, _close_door, port)])
        if apart:
            self._workers = [first]
            warnings.warn(
                f"Worker {apart[0]} cannot reach port {port} of {first}: one worker does the work "
                "of all, with the same result. To use them all let workers reach each other on "
                "the ports that their system gives out (mostly 32768 to 60999); in the chart that "
                "is networkPolicy.ranks: true.",
                RuntimeWarning,
                stacklevel=2,
            )

    def round(self, task: Callable[..., Any], *args: Any, start: str) -> list[Any]:
        """`task(group, its parts, *args)` on every worker at once; results by rank.

        When a worker is lost, the parts are dealt to those that are left and the round is done
        again; `start` names what it starts from, for messages.
        """
        for _ in range(ATTEMPTS):
            try:
                return self._round(task, *args)
            except RankLostError as error:
                lost = error
            try:
                self._deal()
            except TimeoutError as error:
                raise WorkersLostError(
                    f"{lost} No worker is left to go on from {start}. Start workers and fit again, "
                    "with the same checkpoint to go on from there."
                ) from error
            warnings.warn(
                f"{lost} Training goes on from {start}, on {self.world} worker(s).",
                RuntimeWarning,
                stacklevel=2,
            )
        raise WorkersLostError(
            f"{lost} Workers are lost faster than epochs are done; what is left is {start}. Fit "
            "again, with the same checkpoint to go on from there."
        ) from lost

    def _round(self, task: Callable[..., Any], *args: Any) -> list[Any]:
        host = _host(self._workers[0])
        # All answer, and have loaded what they need, before they are to meet.
        asked = [self._submit(worker, _free_port, task) for worker in self._workers]
        port, *_ = self._results(asked)
        groups = [Group(rank, self.world, len(self._parts)) for rank in range(self.world)]
        jobs = [
            self._submit(worker, _work, task, self._backend, host, port, group, mine, *args)
            for worker, group, mine in zip(self._workers, groups, self._sent, strict=True)
        ]
        return self._results(jobs)

    def _submit(self, worker: str, task: Callable[..., Any], *args: Any) -> Future[Any]:
        return self._client.submit(
            task, *args, workers=[worker], allow_other_workers=False, pure=False, retries=0,
            key=f"evdist-{task.__name__.strip('_')}-{uuid.uuid4().hex[:12]}",
        )  # fmt: skip

    def _results(self, jobs: list[Future[Any]]) -> list[Any]:
        """Results of all jobs; an error of the work itself is raised as it is."""
        distributed = library()
        waiting = list(jobs)
        while waiting:
            try:
                with self._client.as_current():  # it need not be the process's only one
                    distributed.wait(waiting, timeout=LOOK, return_when="FIRST_COMPLETED")
            except (TimeoutError, distributed.client.FuturesCancelledError):
                pass  # rows that were sent to a lost worker take the task with them
            waiting = [job for job in jobs if job.status == "pending"]
            failed = [job for job in jobs if job.status not in ("pending", "finished")]
            # Tasks are pinned: that of a lost worker would wait for ever.
            lost = set(self._workers) - set(self._client.nthreads())
            if failed or lost:
                self._give_up(jobs, failed, lost)
        return self._client.gather(jobs)

    def _give_up(self, jobs: list[Future[Any]], failed: list[Future[Any]], lost: set[str]) -> None:
        errors = [job.exception() for job in failed if job.status == "error"]
        # The others must not wait for a rank that will not come: they end with an error soon.
        self._client.cancel(jobs, force=True)
        for error in errors:
            if not _is_connection(error):
                raise error
        there = set(self._client.nthreads())
        gone = ", ".join(sorted(lost | (set(self._workers) - there))) or "a worker"
        raise RankLostError(f"{gone} was lost.") from next(iter(errors), None)


def _host(worker: str) -> str:
    """The host of a worker's address, such as tls://10.0.0.1:8788."""
    return worker.split("://")[-1].rpartition(":")[0].strip("[]")


def _is_connection(error: BaseException) -> bool:
    """Whether a rank failed because another one was gone."""
    distributed = library()
    gone = (dist.DistError, ConnectionError, TimeoutError, distributed.KilledWorker)
    text = str(error).lower()
    heard = any(
        word in text for word in ("gloo", "nccl", "connection", "tcpstore", "timed out", "timeout")
    )
    return isinstance(error, gone) or (isinstance(error, RuntimeError) and heard)

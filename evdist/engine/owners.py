"""Sweeps over partitions on a Dask cluster: every worker owns some, nothing else is anywhere.

A worker reads its partitions, and the masses of their partners, from the store. A half-sweep is one
task per worker. What it has moved goes from worker to worker, only to those that need it: one small
task for each pair of workers whose partitions are partners. The client sees one number for each
partition.

When a worker is lost, the others get its partitions, read the last restore point and do the sweeps
since then again: same bits. Workers that join get partitions at the next restore point.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evdist.engine import owner_tasks as tasks
from evdist.engine.cluster import PinnedTasks
from evdist.engine.deadline import able
from evdist.engine.owner_tasks import Done, OwnedProblem
from evdist.engine.ownership import shared_out

if TYPE_CHECKING:
    from distributed import Client, Future

#: Bytes of a message between workers, about.
_MESSAGE = 1 << 25


class OwnersExecutor(PinnedTasks):
    """Runs the sweeps of one problem on the workers of `client`.

    Parameters
    ----------
    client : distributed.Client
    problem : OwnedProblem
    point : where the masses to begin with lie, as `OwnedProblem.owner` takes it
    """

    def __init__(self, client: Client, problem: OwnedProblem, point: Any):
        self.problem = problem
        self._client = client
        self._job = f"evdist-{uuid.uuid4().hex[:12]}"
        self._point = point
        self._since = []
        #: Of the last sweep: rows moved, and bytes that each worker received.
        self.moved = 0
        self.received: dict[str, int] = {}
        self._install()

    # -- placing the work
    def _try_install(self) -> bool | None:
        workers = self._workers()
        equal = self.problem.device_group is not None
        shares = shared_out(
            self.problem.parts, [1 if equal else t for t in workers.values()],
            self.problem.neighbours, self.problem.columns,
        )  # fmt: skip
        self._owners = dict(zip(workers, shares, strict=True))
        self._needs = {
            w: {q for b in own for q in self.problem.neighbours(b)} - set(own)
            for w, own in self._owners.items()
        }
        self._token = f"{self._job}-{uuid.uuid4().hex[:8]}"
        self._number = 0
        #: What the next task of each worker waits for.
        self._after: dict[str, list[Future[Any]]] = {w: [] for w in workers}
        numbers = self._numbers(self.problem)
        if numbers is None or not self._share(self._token):
            return None
        # The problem is small. Not scattered: where a worker dies just then, Dask tries to reach it
        # for ever.
        jobs = [
            self._submit(tasks.install, self._token, self._job, self.problem, self._point, own,
                         numbers[w], worker=w)
            for w, own in self._owners.items()
        ]  # fmt: skip
        return None if self._results(jobs) is None else True

    # -- the sweeps
    def _half_sweep(self, colour: int, skip_below: float) -> dict[str, Future[Done]]:
        """Queue one task for each worker, and the messages that follow from it."""
        steps = {
            w: self._submit(tasks.step, self._token, self._number, colour, skip_below,
                            self._after[w], worker=w)
            for w in self._owners
        }  # fmt: skip
        self._number += 1
        self._after = {w: [done] for w, done in steps.items()}
        size = max(1, _MESSAGE // self.problem.part_bytes)
        for source, own in self._owners.items():
            mine = {b for b in own if b % 2 == colour}
            for target, needed in self._needs.items():
                parts = sorted(mine & needed)
                for at in range(0, len(parts), size):
                    self._send(steps, source, target, parts[at : at + size])
        return steps

    def _send(
        self, steps: dict[str, Future[Done]], source: str, target: str, parts: list[int]
    ) -> None:
        """What a step moved in some partitions, from worker to worker.

        The next step of either must not overtake this. It has a task of its own on either side, so
        that a worker has few messages in memory at a time, and may spill them.
        """
        sent = self._submit(
            tasks.outbox, self._token, self._number, parts, steps[source], worker=source
        )
        taken = self._submit(
            tasks.take, self._token, self._number, sent, steps[target], worker=target
        )
        self._after[source].append(taken)
        self._after[target].append(taken)

    def _sweep_once(self, skip_below: float) -> float | None:
        halves = [self._half_sweep(colour, skip_below) for colour in (0, 1)]
        workers = list(self._owners)
        found = self._results([half[w] for half in halves for w in workers])
        if found is None:
            return None
        self._since.append(skip_below)
        self.moved = sum(done.moved for done in found)
        self.received = dict.fromkeys(workers, 0)
        for w, done in zip(workers * 2, found, strict=True):
            self.received[w] += done.received
        changes = {b: x for done in found for b, x in done.changes.items()}
        return math.fsum(changes[b] for b in sorted(changes))

    def sweep(
        self, skip_below: float = 0.0, next_skip_below: Callable[[float], float] | None = None
    ) -> float:
        """One pass over all rows but those that last brought less than `skip_below`."""
        return self._recovering(lambda: self._sweep_once(skip_below))

    def objective(self) -> tuple[float, float]:
        """(stress, penalty) summed over all pairs, each counted once."""
        found = {b: x for part in self._each(tasks.losses) for b, x in part.items()}
        values = [found[b] for b in sorted(found)]
        return math.fsum(s for s, _ in values) / 2, math.fsum(p for _, p in values) / 2

    def save(self, point: Any) -> None:
        """Write all masses to a store, which is the restore point from now on."""
        self._each(tasks.save, point)
        self._point = point
        self._since = []
        if not set(able(self._client)) <= set(self._owners):
            self._install()  # some have joined, or come back after a loss

    def _each(self, task: Any, *args: Any) -> list[Any]:
        """A task on every worker, after what it was told."""

        def attempt() -> list[Any] | None:
            return self._results(
                [
                    self._submit(task, self._token, self._number, self._after[w], *args, worker=w)
                    for w in self._owners
                ]
            )

        return self._recovering(attempt)

    def result(self) -> None:
        """Nothing: the masses stay with their owners until `save` is called."""

    def close(self) -> None:
        """Free the workers' memory."""
        self._after = {}
        self._forget()

"""Sweeps on a Dask cluster: the same kernels, the same pieces, the same bits as in one process.

Every worker process keeps all masses, and the pairs of its own pieces. A step is one
task per worker; it takes over the rows that the others changed in the step before (their results
are its dependencies), updates its own rows and returns those that moved. So a sweep moves at most
n (f + 1) numbers to each worker, ever fewer as rows come to rest, and the scheduler sees
(steps x workers) tasks; consecutive steps whose few rows are all of one worker are one task. Where
another sweep is sure to follow, its tasks are queued before the sums of the present one are here:
workers wait for each other, but not for the client.

What a worker keeps and does is in `worker_state.py`. When a worker is lost, or a task finds its
state out of step, all workers go back to the last restore point and do the sweeps since then
again: same bits. Workers that join get pieces at the next restore point.

Whether a CPU or a GPU updates the rows is decided by the problem's `state`.
"""

from __future__ import annotations

import math
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent import futures
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evdist.engine import worker_state as tasks
from evdist.engine.deadline import able, finished
from evdist.engine.plan import Plan, whole_cycles
from evdist.engine.worker_state import OutOfStepError, SharedProblem, SkipBelow
from evdist.engine.workers import library, scattered, until_done, wait_for_workers

if TYPE_CHECKING:
    from distributed import Client, Future


T = TypeVar("T")

#: Patches of at most this many workers are dependencies of one task; more are joined first.
_FAN_IN = 16
#: Rows of consecutive steps that one worker updates in one task, where no other has any of them: a
#: message takes longer than so many rows.
_RUN_ROWS = 512
#: Seconds in which a lost worker may come back before the others get its pieces.
PATIENCE = 5.0
#: Seconds in which workers must have freed their memory when a fit is over.
_FORGET = 5.0


class PinnedTasks(ABC):
    """Tasks that must run on their own worker, once, and what to do when it is lost."""

    _client: Client
    _job: str
    #: A `SharedProblem` or an `OwnedProblem`.
    problem: Any
    #: What each worker owns.
    _owners: dict[str, list[int]]
    #: The states on the workers live as long as these do, and these no longer than the client.
    _shares: list[Future[Any]]
    #: `skip_below` of each sweep since the restore point, to do them again.
    _since: list[float]

    @abstractmethod
    def _try_install(self) -> bool | None:
        """Hand every worker what it owns at the restore point; None when one was lost."""

    @abstractmethod
    def _sweep_once(self, skip_below: float) -> float | None:
        """One sweep, which is added to those since the restore point; None when one was lost."""

    def _install(self) -> None:
        until_done(self._try_install, "Workers are lost faster than they can be set up.")

    def _recovering(self, attempt: Callable[[], T | None]) -> T:
        """Call `attempt` until it succeeds, going back to the restore point in between."""
        return until_done(attempt, "Workers are lost faster than sweeps are done.", self._restore)

    def _restore(self) -> None:
        """Go back to the restore point and do the sweeps since then again."""
        again = self._since

        def attempt() -> bool | None:
            with suppress(TimeoutError):
                wait_for_workers(self._client, len(self._owners), PATIENCE)
            self._install()
            self._since = []
            return all(self._sweep_once(skip) is not None for skip in again) or None

        until_done(attempt, "Workers are lost faster than sweeps can be done again.")

    def _workers(self) -> dict[str, int]:
        return dict(sorted(wait_for_workers(self._client).items()))

    def _submit(self, task: Any, *args: Any, worker: str, actor: bool = False) -> Future[Any]:
        return self._client.submit(
            task, *args, workers=[worker], allow_other_workers=False, pure=False, actor=actor,
            key=f"evdist-{task.__name__}-{uuid.uuid4().hex[:12]}",
        )  # fmt: skip

    def _results(self, jobs: list[Future[Any]]) -> list[Any] | None:
        """What all jobs return; None when a worker was lost or its state was out of step."""
        return self._finished(self._client.gather(jobs, asynchronous=True), jobs)

    def _waited_for(self, jobs: list[Future[Any]]) -> Any:
        """The jobs, once all are done; None when a worker was lost."""
        return self._finished(library().client._wait(jobs), jobs)

    def _finished(self, work: Any, jobs: Sequence[Future[Any]] = ()) -> Any:
        """The result of a coroutine of the client; None when a worker was lost meanwhile."""
        dask = library()
        # Tasks are pinned, and those of a lost worker, or what only it had, would not come. Nor is
        # the waiting cut off and begun again: what is fetched may be large.
        lost = partial(self._client.cancel, list(jobs), force=True)  # which ends the fetching
        try:
            return finished(self._client, work, self._owners, lost)
        except (OutOfStepError, dask.KilledWorker, dask.CancelledError, futures.CancelledError):
            return None

    def _numbers(self, problem: Any) -> dict[str, int] | None:
        """The number of each worker in its device group; None when one was lost meanwhile."""
        if self.problem.device_group is None:
            return dict.fromkeys(self._owners, 0)
        found = self._results(
            [self._submit(tasks.device_group, problem, worker=w) for w in self._owners]
        )
        if found is None:
            return None
        seen: Counter[Hashable] = Counter()
        numbers = {}
        for worker, group in zip(self._owners, found, strict=True):
            numbers[worker] = seen[group]
            seen[group] += 1
        return numbers

    def _share(self, token: str) -> bool:
        """Have the workers keep states of this name; False when one was lost."""
        self._shares = [
            self._submit(tasks.Share, token, worker=w, actor=True) for w in self._owners
        ]
        return self._waited_for(self._shares) is not None

    def _forget(self) -> None:
        """Free the workers' memory."""
        self._shares = []
        # At once where the workers answer; they forget by themselves what no client holds. A client
        # that closes itself meanwhile, its scheduler being gone, has an attribute less.
        with suppress(OSError, TimeoutError, RuntimeError, AttributeError):
            self._client.sync(
                self._client._run, tasks.forget, self._job, on_error="ignore",
                callback_timeout=_FORGET,
            )  # fmt: skip


class ClusterExecutor(PinnedTasks):
    """Runs the sweeps of one problem on the workers of `client`; same interface as LocalExecutor.

    Parameters
    ----------
    client : distributed.Client
    problem : SharedProblem
        Shipped to every worker; its pairs are read there, piece by piece.
    mass : (n, f) float32, in positions
    restore_every : int
        Sweeps between restore points: what a lost worker costs at most.
    """

    def __init__(
        self, client: Client, problem: SharedProblem, mass: NDArray[Any], restore_every: int = 5
    ):
        self.problem = problem
        self._client = client
        self._job = f"evdist-{uuid.uuid4().hex[:12]}"
        self._restore_every = whole_cycles(restore_every)
        self._point = np.ascontiguousarray(mass, dtype=np.float32)
        self._since = []
        self._install()

    # -- placing the work
    def _try_install(self) -> bool | None:
        workers = self._workers()
        equal = self.problem.device_group is not None
        pieces = _pieces_of_workers(self.problem, [1 if equal else t for t in workers.values()])
        self._owners = dict(zip(workers, pieces, strict=True))
        self._runs = _runs_of_steps(self.problem.plan, pieces)
        self._token = f"{self._job}-{uuid.uuid4().hex[:8]}"
        self._number = 0
        self._patches: list[Future[Any]] = []
        self._last: dict[str, Future[Any]] = {}
        #: Sums of the next sweep, where it was begun before it was asked for.
        self._ahead: list[Future[Any]] = []
        sent = scattered(self._client, [self.problem, self._point], self._owners)
        if sent is None:
            return None
        problem, mass = sent
        numbers = self._numbers(problem)
        if numbers is None:
            return None
        if not self._share(self._token):
            return None
        jobs = [
            self._submit(tasks.install, self._token, self._job, problem, mass, own, numbers[w],
                         worker=w)
            for w, own in self._owners.items()
        ]  # fmt: skip
        return None if self._results(jobs) is None else True

    # -- the sweeps
    def _begin(self, skip_below: SkipBelow) -> list[Future[Any]]:
        """Queue the steps of a sweep; what tells its sums when they are done."""
        for steps in self._runs:
            patches = self._patches
            results = {
                w: self._submit(tasks.step, self._token, self._number, steps, skip_below, patches,
                                self._last.get(w), worker=w)
                for w in self._owners
            }  # fmt: skip
            self._last = results
            self._patches = self._joined(list(results.values()))
            self._number += 1
        return [self._submit(tasks.sums, last, worker=w) for w, last in self._last.items()]

    def _sweep_once(self, skip_below: float, following: SkipBelow | None = None) -> float | None:
        """Wait for a sweep, begun here or by the call before; the `following` begins meanwhile."""
        sums = self._ahead or self._begin(skip_below)
        self._ahead = [] if following is None else self._begin(following)
        found = self._results(sums)
        if found is None:
            return None
        self._since.append(skip_below)
        return tasks.total_change(m for part in found for m in part)

    def _joined(self, patches: list[Future[Any]]) -> list[Future[Any]]:
        """At most _FAN_IN dependencies for the next step, whatever the number of workers."""
        while len(patches) > _FAN_IN:
            groups = [patches[i : i + _FAN_IN] for i in range(0, len(patches), _FAN_IN)]
            patches = [self._client.submit(tasks.join_patches, g, pure=False) for g in groups]
        return patches

    def sweep(
        self, skip_below: float = 0.0, next_skip_below: Callable[[float], float] | None = None
    ) -> float:
        """One pass over all rows but those that last brought less than `skip_below`.

        Returns the change of the sum over pairs, zero or negative. `next_skip_below` makes that
        of the next sweep from it, where one is sure to follow and nothing is asked before: the
        workers go on with it at once.
        """
        due = len(self._since) + 1 >= self._restore_every
        following = None if due else next_skip_below
        change = self._recovering(lambda: self._sweep_once(skip_below, following))
        if due:
            self._point = self.masses()
            self._since = []
            if not set(able(self._client)) <= set(self._owners):
                self._install()  # some have joined, or come back after a loss
        return change

    def objective(self) -> tuple[float, float]:
        """(stress, penalty) summed over all pairs and links, each counted once."""
        self._refuse_mid_sweep()

        def attempt() -> tuple[float, float] | None:
            jobs = [
                self._submit(tasks.losses, self._token, self._number, self._patches, worker=w)
                for w in self._owners
            ]
            parts = self._results(jobs)
            if parts is None:
                return None
            found = {q: value for part in parts for q, value in part.items()}
            values = [found[q] for q in sorted(found)]
            return math.fsum(s for s, _ in values) / 2, math.fsum(p for _, p in values) / 2

        return self._recovering(attempt)

    def masses(self) -> NDArray[np.float32]:
        """The present masses, (n, f), in positions, each part fetched from another worker."""
        self._refuse_mid_sweep()

        def attempt() -> NDArray[np.float32] | None:
            cuts = np.linspace(0, self.problem.n, len(self._owners) + 1).astype(int).tolist()
            jobs = [
                self._submit(
                    tasks.masses, self._token, self._number, self._patches, lo, hi, worker=w
                )
                for w, lo, hi in zip(self._owners, cuts[:-1], cuts[1:], strict=True)
            ]
            parts = self._results(jobs)
            return None if parts is None else np.concatenate(parts)

        return self._recovering(attempt)

    def result(self) -> NDArray[np.float32]:
        return self.masses()

    def _refuse_mid_sweep(self) -> None:
        if self._ahead:
            raise RuntimeError(
                "The workers are in the next sweep: wait for it, without `next_skip_below`."
            )

    def close(self) -> None:
        """Free the workers' memory."""
        self._patches, self._last, self._ahead = [], {}, []
        self._forget()


def _pieces_of_workers(problem: SharedProblem, threads: Sequence[int]) -> list[list[int]]:
    """Pieces of each worker: of every step a run in proportion to its threads."""
    cuts = np.cumsum([0, *threads]) / sum(threads)
    shared_out: list[list[int]] = [[] for _ in threads]
    seen: set[int] = set()
    for step in problem.plan.steps:
        pieces = [q for q, _ in step if q not in seen]
        seen.update(pieces)
        ends = np.round(cuts * len(pieces)).astype(int).tolist()
        for own, a, b in zip(shared_out, ends[:-1], ends[1:], strict=True):
            own += pieces[a:b]
    return shared_out


def _runs_of_steps(plan: Plan, owned: Sequence[Sequence[int]]) -> list[list[int]]:
    """Steps that are one task each: several, where one worker owns their few rows alone.

    `owned` holds the pieces of each worker. Pairs of all objects make a step of every object; as
    many messages would take minutes for a sweep of a few hundred objects.
    """
    owner = {q: number for number, pieces in enumerate(owned) for q in pieces}
    runs: list[list[int]] = []
    alone, size = None, 0
    for step, pieces in enumerate(plan.steps):
        owners = {owner[q] for q, _ in pieces}
        count = sum(len(rows) for _, rows in plan.rows(step))
        if len(owners) == 1 and owners == alone and size + count <= _RUN_ROWS:
            runs[-1].append(step)
            size += count
        else:
            runs.append([step])
            alone, size = owners, count
    return runs

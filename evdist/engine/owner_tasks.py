"""What a worker process keeps of a fit in partitions, and the tasks that change it.

As in `worker_state.py` the state is changed in place: tasks are pinned to their worker, and count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from evdist.engine.steps import tell_step
from evdist.engine.turns import room_here
from evdist.engine.worker_state import STATES, OutOfStepError, forget, hold


class OwnerState(Protocol):
    """Partitions in one process; `evdist.evclus.partitions.owner.Owner` is one."""

    def step(self, colour: int, skip_below: float) -> dict[int, tuple[float, int]]:
        """Update the own partitions of a colour: what each has brought, and rows that moved."""
        ...

    def moved(self, parts: Sequence[int]) -> Mapping[int, Any]:
        """What the last step moved in some of the own partitions: (rows, masses) of each."""
        ...

    def patch(self, news: Mapping[int, Any]) -> None:
        """Take over what another owner has moved."""
        ...

    def losses(self) -> dict[int, tuple[float, float]]:
        """(stress, penalty) summed over the rows of each own partition."""
        ...

    def save(self, point: Any) -> int:
        """Write the own partitions to a store; how many these are."""
        ...


class OwnedProblem(Protocol):
    """A problem whose partitions workers can own; it is sent to each of them."""

    @property
    def n(self) -> int: ...

    @property
    def parts(self) -> int:
        """Partitions, an even number; those of even number are updated first."""
        ...

    @property
    def part_bytes(self) -> int:
        """Bytes of the news of one partition, at most."""
        ...

    @property
    def columns(self) -> int:
        """How far apart in number those neighbours are that are not the next; 1 for none."""
        ...

    def neighbours(self, partition: int) -> Sequence[int]:
        """Partitions whose masses one needs; if a is one of b's, so is b one of a's."""
        ...

    @property
    def device_group(self) -> Callable[[], Hashable] | None:
        """As `evdist.engine.worker_state.SharedProblem.device_group`."""
        ...

    def owner(
        self,
        parts: Sequence[int],
        point: Any,
        *,
        n_threads: int,
        room: int,
        folder: str | None,
        number: int,
    ) -> OwnerState: ...


class Done(NamedTuple):
    """What a worker tells of a step: what its partitions brought, rows moved, bytes received."""

    changes: dict[int, float]
    moved: int
    received: int


@dataclass
class _Kept:
    owner: OwnerState
    parts: int
    step: int = 0
    #: Bytes that came from other workers since the last step.
    received: int = 0


def install(
    token: str, job: str, problem: OwnedProblem, point: Any, parts: Sequence[int], number: int
) -> int:
    """Read the own partitions and their partners' masses from the store.

    `number` is that of this worker in its device group.
    """
    forget(job, but=token)
    worker = sys.modules["distributed"].get_worker()
    owner = problem.owner(
        parts, point, n_threads=worker.state.nthreads, room=room_here(),
        folder=worker.local_directory, number=number,
    )  # fmt: skip
    hold(token, _Kept(owner, len(parts)))
    return len(parts)


def step(token: str, number: int, colour: int, skip_below: float, after: Any) -> Done:
    """Update the own partitions of a colour; what partners moved was taken over before."""
    kept = _current(token, number)
    found = kept.owner.step(colour, skip_below)
    kept.step += 1
    moved = sum(count for _, count in found.values())
    tell_step(colour + 1, 2, moved, partitions=kept.parts, moved=moved, received=kept.received)
    done = Done({b: change for b, (change, _) in found.items()}, moved, kept.received)
    kept.received = 0
    return done


def outbox(token: str, number: int, parts: Sequence[int], after: Any) -> Mapping[int, Any]:
    """What the last step moved in partitions that another worker needs."""
    return _current(token, number).owner.moved(parts)


def take(token: str, number: int, news: Mapping[int, Any], after: Any) -> None:
    """Take over what another worker has moved."""
    kept = _current(token, number)
    kept.owner.patch(news)
    kept.received += sum(part.nbytes for moved in news.values() for part in moved)


def losses(token: str, number: int, after: Any) -> dict[int, tuple[float, float]]:
    return _current(token, number).owner.losses()


def save(token: str, number: int, after: Any, point: Any) -> int:
    """Write the own partitions to the store."""
    return _current(token, number).owner.save(point)


def _current(token: str, number: int) -> _Kept:
    kept: _Kept | None = STATES.get(token)
    if kept is None or kept.step != number:
        raise OutOfStepError(f"partitions at step {kept and kept.step}, task is for {number}")
    return kept

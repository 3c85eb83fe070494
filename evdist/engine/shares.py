"""What a worker process keeps of a fit on a cluster, and the tasks that change it.

A share is changed in place, so its tasks must run once, in order, on their worker: they are
pinned to it and count their steps.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.engine.steps import tell_step

__all__ = [
    "Moved",
    "OutOfStepError",
    "Rest",
    "Share",
    "Shared",
    "bundle",
    "fall",
    "forget",
    "install",
    "kin",
    "masses",
    "objective",
    "step",
    "sums",
]


class Moved(NamedTuple):
    """What one worker did in a step: the rows that moved, and their masses."""

    worker: str
    rows: NDArray[np.uint32]
    mass: NDArray[np.float32]
    #: After the last step of a sweep, what each of the worker's pieces brought in it.
    changes: dict[int, float]


#: A step as several workers did it.
Patch = list[Moved]
#: The rest of a sweep as a number, or from what the sweep before it has brought.
Rest = float | Callable[[float], float]


class OutOfStepError(RuntimeError):
    """A task met a share that is not where it should be."""


class Share(Protocol):
    """All masses, and what one worker needs to update its own pieces."""

    def update(self, step: int, rest: float) -> tuple[NDArray[np.uint32], NDArray[np.float32], int]:
        """Minimise over the own rows of a step; those that moved, their masses, how many it has."""
        ...

    def patch(self, rows: NDArray[np.uint32], mass: NDArray[np.float32]) -> None:
        """Take over the masses (p, f) of rows (p,) that another worker has updated."""
        ...

    def changes(self) -> dict[int, float]:
        """What the last updates of the rows of each own piece brought."""
        ...

    def objective(self) -> dict[int, tuple[float, float]]:
        """(stress, penalty) summed over the rows of each own piece."""
        ...

    def masses(self, lo: int, hi: int) -> NDArray[np.float32]: ...


class Shared(Protocol):
    """A problem that workers can share; it is sent to each of them."""

    @property
    def kin(self) -> Callable[[], Hashable] | None:
        """Asked on every worker: those who answer the same are numbered, and get equal shares.

        None where no worker needs a number; then shares are in proportion to threads.
        """
        ...

    @property
    def n(self) -> int: ...

    @property
    def plan(self) -> Any:
        """A `Plan`: its pieces are what is shared out."""
        ...

    def share(
        self, mass: NDArray[Any], pieces: Sequence[int], threads: int, number: int
    ) -> Share: ...


@dataclass
class _Held:
    """What one worker process keeps for one fit."""

    worker: str
    share: Share
    steps: int
    step: int = 0
    rest: float = 0.0


#: Fits of this worker process, by token. An out-dated one is dropped when the next is installed.
_HELD: dict[str, _Held] = {}


# ---------------------------------------------------------------------- tasks
def kin(problem: Shared) -> Hashable:
    return problem.kin and problem.kin()


def install(
    token: str, job: str, problem: Shared, mass: NDArray[Any], pieces: Sequence[int], number: int
) -> int:
    """Make the share of this worker: its pieces, and its number among its kin."""
    forget(job)
    # A task that runs on a worker finds the library loaded.
    worker = sys.modules["distributed"].get_worker()
    share = problem.share(mass, pieces, worker.state.nthreads, number)
    _HELD[token] = _Held(worker.address, share, len(problem.plan.steps))
    return len(pieces)


def step(
    token: str, number: int, step: int, rest: Rest, patches: Sequence[Patch], after: Any
) -> Patch:
    """Take over the rows of the last step, then update this worker's rows of this step.

    `rest` is that of the sweep: the first step finds out and keeps it.
    """
    held = _held(token, number)
    _apply(held, patches)
    if step == 0:
        held.rest = rest(fall(m for patch in patches for m in patch)) if callable(rest) else rest
    rows, mass, count = held.share.update(step, held.rest)
    held.step += 1
    changes = held.share.changes() if step + 1 == held.steps else {}
    tell_step(step + 1, held.steps, count)
    return [Moved(held.worker, rows, mass, changes)]


def sums(last: Patch) -> Patch:
    """What the last step of a sweep says of the sweep, without the rows."""
    return [m._replace(rows=m.rows[:0], mass=m.mass[:0]) for m in last]


def fall(moved: Iterable[Moved]) -> float:
    """What a sweep has brought, from all workers' last steps: same bits in whatever order."""
    pieces: dict[int, float] = {}
    for m in moved:
        pieces.update(m.changes)
    return math.fsum(pieces[q] for q in sorted(pieces))


def objective(token: str, number: int, patches: Sequence[Patch]) -> dict[int, tuple[float, float]]:
    """(stress, penalty) of each of the worker's pieces."""
    held = _held(token, number)
    _apply(held, patches)
    return held.share.objective()


def masses(token: str, number: int, patches: Sequence[Patch], lo: int, hi: int) -> NDArray[Any]:
    held = _held(token, number)
    _apply(held, patches)
    return held.share.masses(lo, hi)


def bundle(patches: Sequence[Patch]) -> Patch:
    return [moved for patch in patches for moved in patch]


def _held(token: str, number: int) -> _Held:
    held = _HELD.get(token)
    if held is None or held.step != number:
        raise OutOfStepError(f"share at step {held and held.step}, task is for {number}")
    return held


def _apply(held: _Held, patches: Sequence[Patch]) -> None:
    for patch in patches:
        for moved in patch:
            if moved.worker != held.worker:
                held.share.patch(moved.rows, moved.mass)


def forget(job: str) -> None:
    for token in [t for t in _HELD if t.startswith(job)]:
        del _HELD[token]

"""What a worker process keeps of a fit on a cluster, and the tasks that change it.

A share is changed in place, so its tasks must run once, in order, on their worker: they are
pinned to it and count their steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.blocks.steps import tell_step

__all__ = [
    "OutOfStepError",
    "Share",
    "Shared",
    "bundle",
    "changes",
    "forget",
    "install",
    "kin",
    "masses",
    "objective",
    "step",
]

#: Rows that moved in a step, as (worker, positions, masses) of each worker.
Patch = list[tuple[str, NDArray[np.uint32], NDArray[np.float32]]]


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

        None where nobody needs a number; then shares are in proportion to threads.
        """
        ...

    @property
    def n(self) -> int: ...

    @property
    def plan(self) -> Any:
        """A `Plan`: its pieces are what is shared out."""
        ...

    def share(self, mass: NDArray, pieces: Sequence[int], threads: int, number: int) -> Share: ...


@dataclass
class _Held:
    """What one worker process keeps for one fit."""

    worker: str
    share: Share
    steps: int
    step: int = 0


#: Fits of this worker process, by token. An out-dated one is dropped when the next is installed.
_HELD: dict[str, _Held] = {}


# ---------------------------------------------------------------------- tasks
def kin(problem: Shared) -> Hashable:
    return problem.kin and problem.kin()


def install(
    token: str, job: str, problem: Shared, mass: NDArray, pieces: Sequence[int], number: int
) -> int:
    """Make the share of this worker: its pieces, and its number among its kin."""
    forget(job)
    # A task that runs on a worker finds the library loaded.
    worker = sys.modules["distributed"].get_worker()
    share = problem.share(mass, pieces, worker.state.nthreads, number)
    _HELD[token] = _Held(worker.address, share, len(problem.plan.steps))
    return len(pieces)


def step(
    token: str, number: int, step: int, rest: float, patches: Sequence[Patch], after: Any
) -> Patch:
    """Take over the rows of the last step, then update this worker's rows of this step."""
    held = _held(token, number)
    _apply(held, patches)
    rows, mass, count = held.share.update(step, rest)
    held.step += 1
    tell_step(step + 1, held.steps, count)
    return [(held.worker, rows, mass)]


def changes(token: str, number: int, after: Any) -> dict[int, float]:
    """Change of the objective that each of the worker's pieces brought in the sweep."""
    return _held(token, number).share.changes()


def objective(token: str, number: int, patches: Sequence[Patch]) -> dict[int, tuple[float, float]]:
    """(stress, penalty) of each of the worker's pieces."""
    held = _held(token, number)
    _apply(held, patches)
    return held.share.objective()


def masses(token: str, number: int, patches: Sequence[Patch], lo: int, hi: int) -> NDArray:
    held = _held(token, number)
    _apply(held, patches)
    return held.share.masses(lo, hi)


def bundle(patches: Sequence[Patch]) -> Patch:
    return [piece for patch in patches for piece in patch]


def _held(token: str, number: int) -> _Held:
    held = _HELD.get(token)
    if held is None or held.step != number:
        raise OutOfStepError(f"share at step {held and held.step}, task is for {number}")
    return held


def _apply(held: _Held, patches: Sequence[Patch]) -> None:
    for patch in patches:
        for worker, rows, mass in patch:
            if worker != held.worker:
                held.share.patch(rows, mass)


def forget(job: str) -> None:
    for token in [t for t in _HELD if t.startswith(job)]:
        del _HELD[token]

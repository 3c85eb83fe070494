"""What a worker process keeps of a fit on a cluster, and the tasks that change it.

The state is changed in place, so its tasks must run once, in order, on their worker: they are
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

from evdist.engine.plan import Plan
from evdist.engine.steps import tell_step


class MovedRows(NamedTuple):
    """What one worker did in a step: the rows that moved, and their masses."""

    worker: str
    rows: NDArray[np.uint32]
    mass: NDArray[np.float32]
    #: After the last step of a sweep, what each of the worker's pieces brought in it.
    changes: dict[int, float]


#: A step as several workers did it.
Patch = list[MovedRows]
#: `skip_below` of a sweep as a number, or from what the sweep before it has brought.
SkipBelow = float | Callable[[float], float]


class OutOfStepError(RuntimeError):
    """A task met a state that is not where it should be."""


class RowState(Protocol):
    """All masses of a problem in one process, and what is needed to update its own pieces."""

    def update(self, steps: Sequence[int], skip_below: float) -> None:
        """Minimise over the own rows of some steps, one step after the other.

        A row that last brought less than `skip_below` may be left alone.
        """
        ...

    def moved(self, step: int) -> tuple[NDArray[np.uint32], NDArray[np.float32], int]:
        """The own rows of a step that its last update moved, their masses, how many it has."""
        ...

    def patch(self, rows: NDArray[np.uint32], mass: NDArray[np.float32]) -> None:
        """Take over the masses (p, f) of rows (p,) that another worker has updated."""
        ...

    def changes(self) -> dict[int, float]:
        """What the last updates of the rows of each own piece brought."""
        ...

    def losses(self) -> dict[int, tuple[float, float]]:
        """(stress, penalty) summed over the rows of each own piece."""
        ...

    def masses(self, lo: int, hi: int) -> NDArray[np.float32]:
        """The present masses of positions lo..hi-1."""
        ...

    def result(self) -> Any:
        """All masses, where the backend has them."""
        ...

    def close(self) -> None: ...


class SharedProblem(Protocol):
    """A problem that workers can share; it is sent to each of them."""

    @property
    def device_group(self) -> Callable[[], Hashable] | None:
        """Called on every worker; workers with equal answers see the same GPUs.

        The workers of a group get consecutive numbers, and all workers equally many pieces. None
        where no device is used; then workers get pieces in proportion to their threads.
        """
        ...

    @property
    def n(self) -> int: ...

    @property
    def plan(self) -> Plan:
        """Its pieces are what is shared out."""
        ...

    def state(
        self, mass: NDArray[Any], pieces: Sequence[int], n_threads: int, number: int
    ) -> RowState: ...


@dataclass
class WorkerState:
    """What one worker process keeps for one fit."""

    worker: str
    rows: RowState
    steps: int
    step: int = 0
    skip_below: float = 0.0

    def apply(self, patches: Sequence[Patch]) -> None:
        """Take over what the other workers moved."""
        for patch in patches:
            for moved in patch:
                if moved.worker != self.worker:
                    self.rows.patch(moved.rows, moved.mass)


#: Fits of this worker process, by token. An out-dated one is dropped when the next is installed.
STATES: dict[str, Any] = {}
#: Tokens whose client is there.
_KEPT: set[str] = set()


class Share:
    """Keeps a worker's state for as long as the client that asked for it is connected.

    It lives on the worker as a Dask actor, which is neither spilled nor moved, and which the
    scheduler gives up with the client, however that ends: then the state goes, too.
    """

    def __init__(self, token: str):
        self.token = token
        _KEPT.add(token)

    def __del__(self) -> None:
        _KEPT.discard(self.token)
        STATES.pop(self.token, None)


# ---------------------------------------------------------------------- tasks
def device_group(problem: SharedProblem) -> Hashable:
    return problem.device_group and problem.device_group()


def install(
    token: str,
    job: str,
    problem: SharedProblem,
    mass: NDArray[Any],
    pieces: Sequence[int],
    number: int,
) -> int:
    """Make the state of this worker: its pieces, and its number in its device group."""
    forget(job, but=token)
    # A task that runs on a worker finds the library loaded.
    worker = sys.modules["distributed"].get_worker()
    rows = problem.state(mass, pieces, worker.state.nthreads, number)
    hold(token, WorkerState(worker.address, rows, len(problem.plan.steps)))
    return len(pieces)


def hold(token: str, state: Any) -> None:
    """Keep a state as long as its `Share` is there."""
    STATES[token] = state
    if token not in _KEPT:  # its client went away meanwhile
        del STATES[token]
        raise OutOfStepError("no client asks for this state any more")


def step(
    token: str,
    number: int,
    steps: Sequence[int],
    skip_below: SkipBelow,
    patches: Sequence[Patch],
    after: Any,
) -> Patch:
    """Take over the rows of the last task, then update this worker's rows of some steps.

    `skip_below` is that of the sweep: the first step computes it, and the state keeps it.
    """
    state = _current(token, number)
    state.apply(patches)
    if steps[0] == 0:
        if callable(skip_below):
            skip_below = skip_below(total_change(m for patch in patches for m in patch))
        state.skip_below = skip_below
    state.rows.update(steps, state.skip_below)
    moved = [state.rows.moved(step) for step in steps]
    state.step += 1
    changes = state.rows.changes() if steps[-1] + 1 == state.steps else {}
    tell_step(steps[-1] + 1, state.steps, sum(count for *_, count in moved))
    rows, mass = (np.concatenate([found[i] for found in moved]) for i in (0, 1))
    return [MovedRows(state.worker, rows, mass, changes)]


def sums(last: Patch) -> Patch:
    """What the last step of a sweep says of the sweep, without the rows."""
    return [m._replace(rows=m.rows[:0], mass=m.mass[:0]) for m in last]


def total_change(moved: Iterable[MovedRows]) -> float:
    """What a sweep has brought, from all workers' last steps: same bits in whatever order."""
    pieces: dict[int, float] = {}
    for m in moved:
        pieces.update(m.changes)
    return math.fsum(pieces[q] for q in sorted(pieces))


def losses(token: str, number: int, patches: Sequence[Patch]) -> dict[int, tuple[float, float]]:
    """(stress, penalty) of each of the worker's pieces."""
    state = _current(token, number)
    state.apply(patches)
    return state.rows.losses()


def masses(token: str, number: int, patches: Sequence[Patch], lo: int, hi: int) -> NDArray[Any]:
    state = _current(token, number)
    state.apply(patches)
    return state.rows.masses(lo, hi)


def join_patches(patches: Sequence[Patch]) -> Patch:
    return [moved for patch in patches for moved in patch]


def _current(token: str, number: int) -> WorkerState:
    state = STATES.get(token)
    if state is None or state.step != number:
        raise OutOfStepError(f"state at step {state and state.step}, task is for {number}")
    return state


def forget(job: str, but: str = "") -> None:
    for token in [t for t in STATES if t.startswith(job) and t != but]:
        STATES.pop(token, None)

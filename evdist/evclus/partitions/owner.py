"""One process's partitions: their masses, those of their partners, and the updates of their rows.

A partition is updated in a view of its own, which is made for it and dropped after: a `RowState` of
any backend over the partition's rows and its partners'. What lies between two views is on a shelf,
in memory as far as there is room, else in files. How much room there is does not show in the bits.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evdist.data.sources import AttributeSource
from evdist.engine.plan import PIECE_ROWS
from evdist.evclus.partitions.graph import colour_of, odd_offsets
from evdist.evclus.partitions.problem import PartitionedProblem, ViewPairs
from evdist.evclus.partitions.sizes import Sizes
from evdist.kernels.vector import aligned_zeros, padded_width
from evdist.stores.partitioned import PartitionArray
from evdist.stores.shelf import Shelf

#: Rows that are updated at a time where memory is short.
_FEWEST_ROWS = 32 * PIECE_ROWS


class Moved(NamedTuple):
    """Rows of a partition that a half-sweep has moved, and their masses."""

    rows: NDArray[np.uint32]
    mass: NDArray[np.float32]


def least_room(sizes: Sizes) -> int:
    """Bytes that an owner needs at least, beside the process itself."""
    return sizes.view() + sizes.pairs(min(_FEWEST_ROWS, sizes.rows))


class Owner:
    """Holds partitions and updates their rows.

    Parameters
    ----------
    problem : PartitionedProblem
    parts : numbers of the partitions that are updated here
    n_threads : int
    room : int
        Bytes that may be taken. With little of it, pairs and tables are made again in every
        half-sweep and masses lie in files.
    folder : str or None
        For these files.
    number : int
        Of this process among those that see the same GPUs.
    point : PartitionArray
        Masses to begin with.
    """

    def __init__(
        self,
        problem: PartitionedProblem,
        parts: Sequence[int],
        point: PartitionArray,
        *,
        n_threads: int = 1,
        room: int = 1 << 62,
        folder: str | None = None,
        number: int = 0,
    ):
        self.problem = problem
        self.parts = sorted(parts)
        self._rows = problem.rows.on_worker(n_threads, number)
        self._n_threads = n_threads
        free = room - problem.sizes.view()
        largest = problem.data.shuffle.rows
        # Pairs that a device makes take nothing of the host, and are not kept.
        self._on_device = self._rows.device_group is not None
        fitting = largest if self._on_device else problem.sizes.rows_within(free // 2)
        self._run = min(largest, max(_FEWEST_ROWS, fitting))
        taken = 0 if self._on_device else problem.sizes.pairs(self._run)
        self._shelf = Shelf(max(free - taken, 0), folder)
        self._kept: dict[int, dict[tuple[int, int], Any]] = {}
        self._tables: dict[int, NDArray[np.float32]] = {}
        #: Held while what others moved is taken over: several tasks may do so at once.
        self._lock = threading.Lock()
        for b in self.parts + [q for q in self.others if q not in self.parts]:
            self._shelf.put(("mass", b), point.read(b))
        self._keep_pairs = (
            not self._on_device
            and self._run == largest
            and self._shelf.reserve(len(self.parts) * problem.sizes.pairs(largest))
        )

    @cached_property
    def others(self) -> list[int]:
        """Partitions of other owners whose masses are needed here."""
        needed = {q for b in self.parts for q in self.problem.neighbours(b)}
        return sorted(needed - set(self.parts))

    @cached_property
    def _told(self) -> frozenset[int]:
        """Own partitions that other owners need."""
        own = set(self.parts)
        return frozenset(b for b in own if set(self.problem.neighbours(b)) - own)

    # ------------------------------------------------------------------ between owners
    def moved(self, parts: Sequence[int]) -> dict[int, Moved]:
        """What the last half-sweep moved in some of the own partitions that others need."""
        with self._lock:
            found: dict[int, Any] = {b: self._shelf.get(("moved", b)) for b in parts}
            return {b: Moved(rows, self._mass(b)[rows]) for b, rows in found.items()}

    def patch(self, news: Mapping[int, Moved]) -> None:
        """Take over what another owner has moved."""
        with self._lock:
            for b, moved in news.items():
                if len(moved.rows):
                    mass = self._mass(b).copy()
                    mass[moved.rows] = moved.mass
                    self._shelf.put(("mass", b), mass)

    # ------------------------------------------------------------------ half-sweeps and sums
    def step(self, colour: int, skip_below: float) -> dict[int, tuple[float, int]]:
        """Update the own partitions of a colour: what each has brought, and rows that moved."""
        return {b: self._update(b, skip_below) for b in self.parts if colour_of(b) == colour}

    def _update(self, b: int, skip_below: float) -> tuple[float, int]:
        size = self.problem.data.shuffle.size(b)
        if self._on_device:
            skip_below = 0.0  # a warp waits for its slowest row: none is left out
        gains = self._shelf.get(("gain", b)) if skip_below > 0 else None
        gains = np.zeros(size) if gains is None else gains
        active = -gains >= skip_below
        rows: list[NDArray[np.uint32]] = [np.zeros(0, np.uint32)]
        after = np.zeros(size)
        changes: list[float] = []
        mass = self._mass(b)
        if active.any():
            mass = mass.copy()

            def update(state: Any, lo: int, hi: int) -> None:
                if not self._on_device:
                    state.resume(gains[lo:hi])
                state.update([0], skip_below)
                rows.append(state.moved(0)[0])
                changes.extend(state.changes().values())
                mass[lo:hi] = state.masses(lo, hi)
                if not self._on_device:
                    after[lo:hi] = state.gains()

            self._each_state(b, None if active.all() else active, update)
            self._shelf.put(("mass", b), mass)
        self._shelf.put(("gain", b), after)
        those = np.sort(np.concatenate(rows))
        if b in self._told:
            self._shelf.put(("moved", b), those)
        return math.fsum(changes), len(those)

    def losses(self) -> dict[int, tuple[float, float]]:
        """(stress, penalty) summed over the rows of each own partition."""
        return {b: self._loss(b) for b in self.parts}

    def _loss(self, b: int) -> tuple[float, float]:
        parts: list[tuple[float, float]] = []
        self._each_state(b, None, lambda state, lo, hi: parts.extend(state.losses().values()))
        return math.fsum(s for s, _ in parts), math.fsum(p for _, p in parts)

    # ------------------------------------------------------------------ views
    def _each_state(
        self,
        b: int,
        active: NDArray[np.bool_] | None,
        work: Callable[[Any, int, int], None],
    ) -> None:
        """Call `work(state, lo, hi)` with states that together have all rows of a partition.

        One after another, and none is kept: two would not fit where memory is short.
        """
        problem, view = self.problem, self.problem.view(b)
        kept = self._kept.setdefault(b, {})
        if kept:
            active = None  # what is there need not be left out
        pairs = ViewPairs(
            view, problem.d0, _Once(lambda: self._source(b)), self._n_threads, active,
            self._keep_pairs and active is None, kept,
        )  # fmt: skip
        pieces = view.plan.pieces
        step = max(self._run // PIECE_ROWS, 1)
        runs = [range(at, min(at + step, len(pieces))) for at in range(0, len(pieces), step)]
        states = self._rows.states(
            problem.state_problem(pairs),
            np.concatenate([self._mass(q) for q in (b, *view.partners)]),
            runs,
        )
        with closing(states):
            for own in runs:
                state = next(states)
                work(state, pieces[own[0]][0], pieces[own[-1]][1])
                del state

    def _source(self, b: int) -> AttributeSource:
        """The attributes of a view."""
        view = self.problem.view(b)
        whole = aligned_zeros(view.n, padded_width(self.problem.metric.width))
        for q, lo in zip((b, *view.partners), view.bounds.tolist(), strict=False):
            table = self._table(q)  # one by one: all of them would be there twice
            whole[lo : lo + len(table)] = table
        return AttributeSource(whole, self.problem.metric)

    def _table(self, b: int) -> NDArray[np.float32]:
        found = self._tables.get(b)
        if found is None:
            found = self.problem.table(b)
            # Kept pairs need the attributes once only.
            if not self._keep_pairs and self._shelf.reserve(found.nbytes):
                self._tables[b] = found
        return found

    def _mass(self, b: int) -> NDArray[np.float32]:
        found = self._shelf.get(("mass", b))
        assert found is not None
        return found

    # ------------------------------------------------------------------ the answer
    def save(self, point: PartitionArray) -> int:
        """Write the masses of the own partitions; how many these are."""
        for b in self.parts:
            point.write(b, self._mass(b))
        return len(self.parts)

    def close(self) -> None:
        self._shelf.close()
        self._kept.clear()
        self._tables.clear()


@dataclass(frozen=True)
class OwnedPartitions:
    """A problem as `evdist.engine.owners` shares it out."""

    problem: PartitionedProblem

    @property
    def n(self) -> int:
        return self.problem.n

    @property
    def sparse(self) -> bool:
        return self.problem.sparse

    @property
    def parts(self) -> int:
        return self.problem.parts

    @property
    def part_bytes(self) -> int:
        return self.problem.data.shuffle.rows * 4 * (1 + self.problem.width)

    @property
    def device_group(self) -> Callable[[], Hashable] | None:
        return self.problem.rows.device_group

    @property
    def columns(self) -> int:
        return odd_offsets(self.parts)[-1]

    def neighbours(self, partition: int) -> tuple[int, ...]:
        return self.problem.neighbours(partition)

    def owner(
        self,
        parts: Sequence[int],
        point: PartitionArray,
        *,
        n_threads: int,
        room: int,
        folder: str | None,
        number: int,
    ) -> Owner:
        return Owner(
            self.problem, parts, point, n_threads=n_threads, room=room, folder=folder, number=number
        )


class _Once:
    """Calls a function when it is first asked, and keeps what it gave."""

    def __init__(self, function: Any):
        self._function = function
        self._found: Any = None

    def __call__(self) -> Any:
        if self._found is None:
            self._found = self._function()
        return self._found

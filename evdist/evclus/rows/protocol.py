"""What EVCLUS asks of a backend: the one seam between its stages and numba, torch or CUDA.

A further backend (rows as lists of focal sets, say) is one more implementation of `Rows`; start,
placing, sampling, sweeps and prediction are written once over it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.data.sources import Source
from evdist.engine.loop import Solution
from evdist.engine.worker_state import RowState
from evdist.evclus.groups import Groups
from evdist.evclus.irqp import Stop
from evdist.evclus.landmarks import Placing
from evdist.evclus.problem import Pairs, Problem
from evdist.evclus.sampling import Layout
from evdist.kernels.graph import PairGraph

#: Masses (n, f) where a backend has them: an array, or a tensor on a device.
Masses = Any


class Starter(Protocol):
    """What the start of a fit needs of a backend."""

    def solve(
        self,
        graph: PairGraph,
        problems: Sequence[Problem],
        starts: Sequence[NDArray[np.float32]],
        stop: Stop,
    ) -> list[Solution[NDArray[np.float32]]]:
        """Small problems that differ in their dissimilarities and starts alone, solved at once.

        All have the pairs of `graph`, in memory, and neither weights nor links; a start has
        masses in positions, and so has a solution.
        """
        ...

    def assign(self, placing: Placing) -> Masses:
        """Masses (n, f) of objects against landmarks, each by itself.

        The start of a row is its best single focal set: its answer depends on nothing else.
        """
        ...

    def groups(self, source: Source, n_clusters: int, seed: int, n_threads: int) -> Groups:
        """A preliminary partition, where a fit with many clusters begins."""
        ...

    def labelled(self, groups: Groups) -> Masses:
        """Encoded rows by object with most of their mass on their group."""
        ...


class Rows(Starter, Protocol):
    """All that is done to rows. A `Rows` is small and can be sent to a worker."""

    @property
    def device_group(self) -> Callable[[], Hashable] | None:
        """As `evdist.engine.worker_state.SharedProblem.device_group`."""
        ...

    @property
    def news(self) -> str | None:
        """What callbacks are told before a fit begins."""
        ...

    def on_worker(self, n_threads: int, number: int) -> Rows:
        """The same for a worker with `n_threads` and this number in its device group."""
        ...

    def pairs(self, source: Source, layout: Layout, d0: float) -> Pairs:
        """The kept pairs of a fit in this process: dissimilarities are computed here."""
        ...

    def state(
        self, problem: Problem, mass: Masses, pieces: Sequence[int] | None = None
    ) -> RowState:
        """All masses of a problem, in positions, and the pairs of some pieces or all of them.

        The state updates rows (`update`) and sums their terms (`losses`, `changes`).
        """
        ...

    def states(
        self, problem: Problem, mass: Masses, runs: Sequence[Sequence[int]]
    ) -> Generator[RowState, None, None]:
        """States with the same masses and the pairs of one run of pieces after another.

        One is closed before the next is made. Hand over `mass` without keeping it: it may be freed.
        """
        ...

    def for_sums(self, problem: Problem) -> Problem:
        """The problem with pairs whose blocks have this backend's bits, for sums over all pairs."""
        ...

    def in_positions(self, mass: Masses, order: NDArray[np.uint32]) -> Masses:
        """Masses by object, put in the order of the positions."""
        ...

    def by_object(self, mass: Masses, order: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Masses in positions, put in the order of the objects."""
        ...

    def on_host(self, mass: Masses) -> NDArray[np.float32]: ...

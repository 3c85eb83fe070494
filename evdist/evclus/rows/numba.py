"""Rows on the threads of this process; the compiled kernels release the interpreter lock."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evdist.data.sources import Source
from evdist.engine.loop import Solution
from evdist.engine.plan import PIECE_ROWS
from evdist.evclus.groups import START, Groups, find_groups
from evdist.evclus.irqp import LocalExecutor, Stop, minimise
from evdist.evclus.landmarks import Placing
from evdist.evclus.listed import ListedPairs, is_listed, listed_blocks
from evdist.evclus.problem import MemoryPairs, Problem, conflict_projection
from evdist.evclus.rows.sparse import SparseKernel, assign_sparse
from evdist.evclus.rows.sweep import Block, Links, assign_rows, block_objective, update_rows
from evdist.evclus.sampling import Layout, SourcePairs, row_block, run_blocks, sample_pairs
from evdist.kernels.graph import PairGraph
from evdist.kernels.grid import project_rows, project_some
from evdist.kernels.partner_lists import has_few_lists
from evdist.kernels.sparse_rows import WORDS, labelled
from evdist.kernels.vector import aligned_zeros

_LINK_ARRAYS = ("first", "other", "sign", "Q")
#: Rows of a worker that are made and updated by one call: calls have their price, and so has the
#: room to make many pairs at once.
RUN_ROWS = 1 << 16
#: Below this many rows a step is over before a second thread has woken up.
MIN_ROWS_PER_THREAD = 512
#: Objects placed by one call.
_BLOCK = 16_384


@dataclass(frozen=True)
class NumbaRows:
    """`Rows` on threads."""

    n_threads: int = 1

    #: Workers of a cluster work in proportion to their threads, whatever machine they are on.
    device_group = None
    news = None

    def on_worker(self, n_threads: int, number: int) -> NumbaRows:
        return NumbaRows(n_threads)

    def pairs(self, source: Source, layout: Layout, d0: float) -> MemoryPairs | ListedPairs:
        if has_few_lists(layout.graph):
            made = SourcePairs.in_order(source, layout, d0)
            return ListedPairs.of(made, self.n_threads)
        return sample_pairs(source, layout, d0, self.n_threads)

    def state(
        self, problem: Problem, mass: NDArray, pieces: Sequence[int] | None = None
    ) -> NumbaState:
        return NumbaState(problem, mass, pieces, self.n_threads)

    def states(
        self, problem: Problem, mass: NDArray, runs: Sequence[Sequence[int]]
    ) -> Generator[NumbaState, None, None]:
        whole = NumbaState(problem, mass, [], self.n_threads)
        del mass  # which the state has copied
        for pieces in runs:
            state = whole.with_pieces(pieces)
            try:
                yield state
            finally:
                state.close()
                del state
        whole.close()

    def executor(self, problem: Problem, mass: NDArray) -> LocalExecutor:
        """Sweeps of a problem from masses in positions, in this process."""
        return LocalExecutor(problem, self.state(problem, mass))

    def solve(
        self, graph: PairGraph, problems: Sequence[Problem], starts: Sequence[NDArray], stop: Stop
    ) -> list[Solution[NDArray[np.float32]]]:
        """Each on a thread of its own."""

        def run(problem: Problem, mass: NDArray) -> Solution[NDArray[np.float32]]:
            with NumbaRows().executor(problem, mass) as executor:
                return minimise(executor, 2.0 / problem.pairs.entries, stop)

        with ThreadPoolExecutor(self.n_threads) as pool:
            return list(pool.map(run, problems, starts))

    def assign(self, placing: Placing) -> NDArray[np.float32]:
        landmarks = placing.landmarks
        if landmarks.sparse:
            return self._assign_sparse(placing)
        L, f = landmarks.mass.shape
        P = conflict_projection(landmarks.focal_sets)
        table = aligned_zeros(L, P.shape[2])
        project_rows(landmarks.mass.copy(), P, table, 0, L)
        mass = np.empty((placing.n, f), np.float32)

        def fill(lo: int) -> None:
            hi = min(lo + _BLOCK, placing.n)
            chosen = placing.chosen(lo, hi)
            D = placing.distances(lo, hi, chosen)
            degree = np.full(hi - lo, chosen.shape[1])
            assign_rows(mass, table, row_block(lo, chosen, degree, D, landmarks.d0), lo, hi)

        run_blocks(fill, range(0, placing.n, _BLOCK), self.n_threads)
        if len(placing.known):
            mass[placing.known] = landmarks.mass
        return mass

    def _assign_sparse(self, placing: Placing) -> NDArray[np.float32]:
        landmarks, clusters = placing.landmarks, placing.landmarks.focal_sets.n_clusters
        mass = np.empty((placing.n, WORDS), np.float32)

        def fill(lo: int) -> None:
            hi = min(lo + _BLOCK, placing.n)
            chosen = placing.chosen(lo, hi)
            D = placing.distances(lo, hi, chosen)
            degree = np.full(hi - lo, chosen.shape[1])
            block = row_block(lo, chosen, degree, D, landmarks.d0)
            start = labelled(placing.label(chosen), START)
            mass[lo:hi] = assign_sparse(landmarks.mass, start, block, clusters)

        run_blocks(fill, range(0, placing.n, _BLOCK), self.n_threads)
        if len(placing.known):
            mass[placing.known] = landmarks.mass
        return mass

    def groups(self, source: Source, n_clusters: int, seed: int, n_threads: int) -> Groups:
        return find_groups(source, n_clusters, seed, n_threads)

    def labelled(self, groups: Groups) -> NDArray[np.float32]:
        return labelled(groups.labels, START)

    def for_sums(self, problem: Problem) -> Problem:
        return problem

    def in_positions(self, mass: NDArray, order: NDArray[np.uint32]) -> NDArray[np.float32]:
        return np.asarray(mass, dtype=np.float32)[order]

    def by_object(self, mass: NDArray, order: NDArray[np.uint32]) -> NDArray[np.float32]:
        out = np.empty_like(mass)
        out[order] = mass
        return out

    def on_host(self, mass: NDArray) -> NDArray[np.float32]:
        return mass


class DenseKernel:
    """Masses (n, f), their projections, and their updates."""

    def __init__(self, problem: Problem, mass: NDArray):
        self._problem = problem
        self.mass = np.array(mass, dtype=np.float32, order="C")
        P = problem.projection
        self.table = aligned_zeros(P.shape[0] * problem.n, P.shape[2])
        project_rows(self.mass, P, self.table, 0, problem.n)

    def update(
        self, block: Block, rows: NDArray[np.int64], change: NDArray, skip_below: float
    ) -> None:
        p = self._problem
        update_rows(
            self.mass, self.table, p.projection, block, p.weight, p.all_links, rows, change,
            skip_below,
        )  # fmt: skip

    def losses(self, block: Block, cuts: NDArray[np.int64]) -> NDArray[np.float64]:
        """(stress, penalty) of the rows from each of `cuts` to the next."""
        p = self._problem
        return block_objective(self.mass, self.table, block, p.weight, p.all_links, cuts)

    def masses(self, rows: NDArray | slice) -> NDArray[np.float32]:
        """Of a slice a view."""
        return self.mass[rows]

    def patch(self, rows: NDArray[np.uint32], mass: NDArray[np.float32]) -> None:
        self.mass[rows] = mass
        rows = np.require(rows, requirements="W")
        project_some(self.mass, self._problem.projection, self.table, rows)


class NumbaState:
    """All n mass functions and their projections, and the pairs of some pieces: a `RowState`.

    Pieces that lie one behind the other are updated together, as one run.

    Parameters
    ----------
    problem : Problem
    mass : (n, f) float32, in positions; copied, and put on the grid of the kernels
    pieces : numbers of the pieces that are updated here; None for all of them
    n_threads : int
    kernel : of another state of the same problem and masses, in the place of `mass`
    """

    def __init__(
        self,
        problem: Problem,
        mass: NDArray | None,
        pieces: Sequence[int] | None,
        n_threads: int,
        kernel: SparseKernel | DenseKernel | None = None,
    ):
        # Arrays that came over the network are read-only, which numba compiles for anew.
        weight = np.require(problem.weight, requirements="W")
        self.problem = replace(problem, weight=weight, links=_writeable(problem))
        if kernel is None:
            assert mass is not None
            clusters = problem.focal_sets.n_clusters
            kernel = (
                SparseKernel(mass, weight, clusters, problem.promise)
                if problem.sparse
                else DenseKernel(self.problem, mass)
            )
        self._kernel = kernel
        self._n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        plan = problem.plan
        mine = range(len(plan.pieces)) if pieces is None else sorted(pieces)
        self._pieces = {q: plan.pieces[q] for q in mine}
        whole = pieces is None and isinstance(problem.pairs, MemoryPairs | ListedPairs)
        runs = [(0, problem.n)] if whole else _runs(list(self._pieces.values()))
        self._starts = np.array([lo for lo, _ in runs])
        self._cuts = _cuts(runs, self._pieces.values())
        if is_listed(problem.pairs) and not problem.sparse:
            self._blocks = listed_blocks(problem.pairs, runs)
        else:
            self._blocks = [problem.pairs.block(lo, hi) for lo, hi in runs]
        self._change = [np.zeros(hi - lo) for lo, hi in runs]
        self._sweep = self._one_call() if whole else None

    @cached_property
    def _work(self) -> list[list[tuple[int, NDArray[np.int64]]]]:
        """(run, rows) of every step."""
        plan, own = self.problem.plan, frozenset(self._pieces)
        return [self._by_run(plan.rows(step, own)) for step in range(len(plan.steps))]

    def _by_run(self, rows: list[tuple[int, NDArray]]) -> list[tuple[int, NDArray[np.int64]]]:
        """(run, rows) of a step."""
        every = np.concatenate([np.zeros(0, np.int64), *(r for _, r in rows)])
        run = np.searchsorted(self._starts, every, side="right") - 1
        return [(int(r), every[run == r]) for r in np.unique(run)]

    def _one_call(self) -> NDArray[np.int64] | None:
        """All rows of a sweep in the order of the steps, where one thread updates them."""
        plan = self.problem.plan
        steps = [rows for step in range(len(plan.steps)) for _, rows in plan.rows(step)]
        if self._pool is None or max(map(len, steps)) < 2 * MIN_ROWS_PER_THREAD:
            return np.concatenate(steps)
        return None

    def with_pieces(self, pieces: Sequence[int]) -> NumbaState:
        """A state of other pieces with the same masses, which are not copied."""
        return NumbaState(self.problem, None, pieces, self._n_threads, self._kernel)

    def update(self, steps: Sequence[int], skip_below: float) -> None:
        if self._sweep is not None and len(steps) == len(self.problem.plan.steps):
            self._update_rows(0, self._sweep, skip_below)
            return
        for step in steps:
            for run, rows in self._work[step]:
                if self._pool is None or len(rows) < 2 * MIN_ROWS_PER_THREAD:
                    self._update_rows(run, rows, skip_below)
                    continue
                parts = np.array_split(rows, self._n_threads)
                jobs = [self._pool.submit(self._update_rows, run, p, skip_below) for p in parts]
                for job in jobs:
                    job.result()

    def _update_rows(self, run: int, rows: NDArray[np.int64], skip_below: float) -> None:
        self._kernel.update(self._blocks[run], rows, self._change[run], skip_below)

    def moved(self, step: int) -> tuple[NDArray[np.uint32], NDArray[np.float32], int]:
        work = self._work[step]
        moved = [np.zeros(0, np.int64)]
        moved += [rows[self._change[r][rows - self._blocks[r].row0] < 0.0] for r, rows in work]
        those = np.concatenate(moved)
        visited = sum(len(rows) for _, rows in work)
        return those.astype(np.uint32), self._kernel.masses(those), visited

    def patch(self, rows: NDArray[np.uint32], mass: NDArray[np.float32]) -> None:
        self._kernel.patch(rows, mass)

    def changes(self) -> dict[int, float]:
        found = [np.zeros(0), *map(piece_sums, self._change, self._cuts)]
        return dict(zip(self._pieces, np.concatenate(found).tolist(), strict=True))

    def losses(self) -> dict[int, tuple[float, float]]:
        def of(call: tuple[Block, NDArray[np.int64]]) -> NDArray[np.float64]:
            return self._kernel.losses(*call)

        found = self._pool.map(of, self._calls()) if self._pool else map(of, self._calls())
        sums = np.concatenate([np.zeros((0, 2)), *found]).tolist()
        return {q: (stress, link) for q, (stress, link) in zip(self._pieces, sums, strict=True)}

    def _calls(self) -> Iterator[tuple[Block, NDArray[np.int64]]]:
        """Pieces for one call each, small ones together: the pairs of their run, and their cuts."""
        for block, cuts in zip(self._blocks, self._cuts, strict=True):
            many = max(1, PIECE_ROWS * (len(cuts) - 1) // int(cuts[-1] - cuts[0]))
            for at in range(0, len(cuts) - 1, many):
                yield block, cuts[at : at + many + 1]

    def gains(self) -> NDArray[np.float64]:
        """What each row of the own pieces last changed, in the order of the rows."""
        return np.concatenate([np.zeros(0), *self._change])

    def resume(self, gains: NDArray[np.float64]) -> None:
        """Take over what an earlier state of the same pieces told by `gains`."""
        at = 0
        for change in self._change:
            change[:] = gains[at : at + len(change)]
            at += len(change)

    def masses(self, lo: int, hi: int) -> NDArray[np.float32]:
        """In positions; encoded where the problem is sparse."""
        return self._kernel.masses(slice(lo, hi))

    def result(self) -> NDArray[np.float32]:
        return self._kernel.masses(slice(None))

    def close(self) -> None:
        self._blocks.clear()
        if self._pool is not None:
            self._pool.shutdown()


def _writeable(problem: Problem) -> Links | None:
    """The links of a problem, none of which sparse rows have."""
    if problem.sparse:
        return None
    links = problem.all_links
    return links._replace(
        **{k: np.require(getattr(links, k), requirements="W") for k in _LINK_ARRAYS}
    )


def _cuts(
    runs: list[tuple[int, int]], pieces: Iterable[tuple[int, int]]
) -> list[NDArray[np.int64]]:
    """Of each run the bounds of its pieces, which lie one behind the other."""
    lows = np.array([lo for lo, _ in pieces], np.int64)
    at = np.searchsorted(lows, np.array([lo for lo, _ in runs], np.int64))
    parts = np.split(lows, at[1:])
    # Without runs there is one empty part.
    return [np.append(part, hi) for part, (_, hi) in zip(parts, runs, strict=False)]


def piece_sums(change: NDArray[np.float64], cuts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of each piece, pieces of one size by one call: a full matrix has n of them."""
    size = np.diff(cuts)
    at = np.concatenate([[0], np.flatnonzero(np.diff(size)) + 1, [len(size)]])
    found = [
        change[cuts[a] - cuts[0] : cuts[b] - cuts[0]].reshape(-1, size[a]).sum(axis=1)
        for a, b in pairwise(at)
    ]
    return np.concatenate(found)


def _runs(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Bounds of consecutive pieces together, of RUN_ROWS at most where a piece is not larger."""
    found: list[tuple[int, int]] = []
    for lo, hi in pieces:
        if found and found[-1][1] == lo and hi - found[-1][0] <= RUN_ROWS:
            found[-1] = (found[-1][0], hi)
        else:
            found.append((lo, hi))
    return found

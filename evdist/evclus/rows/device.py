"""Rows on a torch device: on a GPU with the kernels of rows.cu, elsewhere in torch.

What a device solves side by side, such as the starts on the landmarks, are P problems on one graph.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evdist.data.sources import AttributeSource, Source
from evdist.engine import loop
from evdist.engine.loop import Descent, Solution
from evdist.evclus.groups import START, Groups, find_groups
from evdist.evclus.irqp import LocalExecutor, Stop
from evdist.evclus.landmarks import Placing
from evdist.evclus.problem import Problem
from evdist.evclus.rows.arrays import (
    Graph,
    Partners,
    State,
    on_grid,
    project,
    tile_count,
    tiles,
    untile,
)
from evdist.evclus.rows.attributes import gamma_of, gathered, on_device, positions_of, tiles_of
from evdist.evclus.rows.cuda import Kernels, kernels_on
from evdist.evclus.rows.device_groups import groups_on
from evdist.evclus.rows.device_pairs import DevicePairs, by_colour, keep_pieces, spread_out
from evdist.evclus.rows.device_state import DeviceState
from evdist.evclus.rows.list_state import ListState, labelled_rows
from evdist.evclus.rows.memory import Choice, Need, Room, choose
from evdist.evclus.rows.place_lists import place_lists
from evdist.evclus.sampling import Layout, SourcePairs
from evdist.kernels.distances import METRICS, transform
from evdist.kernels.graph import PairGraph
from evdist.kernels.sparse_rows import WORDS

#: Objects placed at a time where their attributes are on the device; else the host compares them.
_ROWS, _HOST_ROWS = 1 << 19, 1 << 14
ON_DEVICE = Choice("device")


@dataclass(frozen=True)
class DeviceRows:
    """`Rows` on a device.

    Attributes
    ----------
    name : str
        "cuda", "cuda:1", ..., or "cpu".
    memory_limit : int or None
        Bytes that a process may take on its device; None for all that are free.
    choice : Choice
        Where the pairs of a fit in this process are kept.
    number : int
        Of this process in its device group.
    """

    name: str
    memory_limit: int | None = None
    choice: Choice = ON_DEVICE
    number: int = 0

    @property
    def device(self) -> torch.device:
        return device_here(self.name, self.number)

    @staticmethod
    def device_group() -> Hashable:
        return visible_devices()

    def on_worker(self, n_threads: int, number: int) -> DeviceRows:
        return replace(self, number=number)

    def prepared(
        self,
        source: Source,
        k: int,
        f: int,
        linked: bool,
        client: Any = None,
        lists: bool = False,
    ) -> DeviceRows:
        """With the choice of a fit with k pairs per object and at most f focal sets.

        `lists` tells whether rows are lists of clusters, of f numbers. On a cluster it is the
        choice of the worker with the least memory free.
        """
        rooms = self._rooms(client)
        rows = -(-source.n // len(rooms))
        need = replace(need_of(source, k, f, rows, linked), lists=lists)
        return replace(self, choice=choose(need, Room.least(rooms)))

    def check_room(
        self,
        shape: tuple[int, int],
        k: int,
        f: int,
        rows: int | None = None,
        client: Any = None,
        lists: bool = False,
    ) -> None:
        """Refuse objects (n, d) whose data and masses do not fit on the device, with the cure.

        `rows`: of how many of them a process keeps pairs; by default its share. `lists` is as in
        `prepared`.
        """
        rooms = self._rooms(client)
        n, d = shape
        rows = -(-n // len(rooms)) if rows is None else rows
        choose(Need(n, k, f, d, rows, lists=lists), Room.least(rooms))

    def _rooms(self, client: Any) -> list[Room]:
        """What there is on the device, or on those of the workers."""
        if client is None:
            return [room_on(self)]
        return list(client.run(room_on, self).values())

    @property
    def news(self) -> str | None:
        return None if self.choice.where == "device" else str(self.choice)

    def pairs(self, source: Source, layout: Layout, d0: float) -> DevicePairs:
        made = SourcePairs(source, layout.graph, layout.order, d0)
        return DevicePairs(made, self.device, self.choice)

    def state(
        self,
        problem: Problem,
        mass: NDArray | Tensor,
        pieces: Sequence[int] | None = None,
    ) -> DeviceState | ListState:
        pairs, plan = problem.pairs, problem.plan
        own = range(len(plan.pieces)) if pieces is None else pieces
        kind = ListState if problem.sparse else DeviceState
        if not isinstance(pairs, SourcePairs):
            # Pairs that a device makes: EVCLUS's own, or the intervals of Bootclus.
            mine = [plan.pieces[q] for q in own]
            return kind(problem, mass, own, *pairs.kept_on(self.device, mine))  # type: ignore[attr-defined]
        rows = sum(b - a for a, b in (plan.pieces[q] for q in own))
        f = WORDS if problem.sparse else problem.f
        need = need_of(pairs.source, pairs.graph.k, f, rows, problem.linked)
        need = replace(need, lists=problem.sparse)
        graph = Graph.of(pairs.graph, self.device)
        places = by_colour(plan, graph.bounds, own)
        kept = keep_pieces(pairs, graph, places, self.device, choose(need, room_on(self)))
        return kind(problem, mass, own, graph, kept)

    def states(
        self, problem: Problem, mass: NDArray | Tensor, runs: Sequence[Sequence[int]]
    ) -> Generator[DeviceState | ListState, None, None]:
        for pieces in runs:
            state = self.state(problem, mass, pieces)
            try:
                yield state
            finally:
                state.close()
                del state

    def executor(self, problem: Problem, mass: NDArray | Tensor) -> LocalExecutor:
        """Sweeps of a problem from masses in positions, in this process."""
        return LocalExecutor(problem, self.state(problem, mass))

    def solve(
        self, graph: PairGraph, problems: Sequence[Problem], starts: Sequence[NDArray], stop: Stop
    ) -> list[Solution[NDArray[np.float32]]]:
        """Side by side: all go on until the last has settled."""
        device, n = self.device, graph.n
        # Problems of one d0 have the same pairs.
        known = {id(p): p for p in problems}
        delta = {
            key: torch.from_numpy(spread_out(graph, p.pairs.block(0, n), n)).to(device).T
            for key, p in known.items()
        }
        mass = torch.as_tensor(np.stack(starts), device=device)
        state = State.of(
            Graph.of(graph, device), torch.stack([delta[id(p)] for p in problems]),
            tiles(on_grid(mass)), problems[0].focal_sets.C,
        )  # fmt: skip
        together = _SideBySide(kernels_on(device, state.f), state, 2.0 / graph.entries, stop)
        found = loop.minimise(together, stop.max_iter)
        objective = np.minimum(together.objective(), found.value[0])
        masses = untile(state.mass, n).cpu().numpy()
        settled = found.value[1] < stop.tol
        return [
            Solution(masses[i], [float(objective[i])], bool(settled[i]))
            for i in range(len(problems))
        ]

    def groups(self, source: Source, n_clusters: int, seed: int, n_threads: int) -> Groups:
        """On the device where there are means; else as on threads."""
        if isinstance(source, AttributeSource) and METRICS[source.name][0] == "squares":
            return groups_on(self.device, source, n_clusters, seed)
        return find_groups(source, n_clusters, seed, n_threads)

    def labelled(self, groups: Groups) -> Tensor:
        return labelled_rows(groups.labels, START, self.device)

    def assign(self, placing: Placing) -> Tensor:
        if placing.landmarks.sparse:
            return place_lists(placing, self.device)
        landmarks, device, n = placing.landmarks, self.device, placing.n
        L, f = landmarks.mass.shape
        known = torch.as_tensor(np.array(landmarks.mass), device=device)
        C = torch.as_tensor(np.asarray(landmarks.focal_sets.C, np.float32), device=device)
        table = project(tiles(on_grid(known)), C)
        partners = Partners.landmarks(placing.shifts, L, device)
        kernels, spread = kernels_on(device, f), int(placing.spread)
        mass = torch.zeros(tile_count(n), f, 32, device=device)
        rows = placing.attributes
        size = _HOST_ROWS if rows is None else _ROWS
        delta = torch.empty(partners.k, min(n, size), device=device)
        if rows is not None:
            assert isinstance(landmarks.source, AttributeSource)
            sums, end, _ = landmarks.source.metric.code
            mine, others = tiles_of(rows, device), tiles_of(landmarks.source.rows, device)
        for lo in range(0, n, size):
            count = min(size, n - lo)
            if rows is None:
                delta[:, :count] = _from_host(placing, lo, lo + count).to(device).T
            else:
                kernels.distances(
                    mine, others, delta, partners, (sums, end), gamma_of(landmarks.d0),
                    lo=lo, first=0, rows=count, place=lo, spread=spread,
                )  # fmt: skip
            kernels.assign(mass, table, delta[:, :count], partners, lo, count, lo, spread)
        at = torch.as_tensor(placing.known, device=device)
        if len(at):
            mass[at >> 5, :, at & 31] = known
        return untile(mass, n)

    def for_sums(self, problem: Problem) -> Problem:
        if not isinstance(problem.pairs, SourcePairs):
            return problem
        # Made once: nothing is kept.
        once = DevicePairs(problem.pairs, self.device, Choice("recomputed", 1))
        return replace(problem, pairs=once)

    def in_positions(
        self, mass: NDArray | Tensor, order: NDArray[np.uint32]
    ) -> NDArray[np.float32] | Tensor:
        if isinstance(mass, np.ndarray):
            return mass[order]
        return mass[on_device(order, mass.device)]

    def by_object(self, mass: NDArray | Tensor, order: NDArray[np.uint32]) -> NDArray[np.float32]:
        if isinstance(mass, np.ndarray):
            out = np.empty_like(mass)
            out[order] = mass
            return out
        return gathered(mass, positions_of(on_device(order, mass.device)))

    def on_host(self, mass: NDArray | Tensor) -> NDArray[np.float32]:
        return mass if isinstance(mass, np.ndarray) else mass.cpu().numpy()


def need_of(source: Source, k: int, f: int, rows: int, linked: bool) -> Need:
    """What a process needs on its device for `rows` of the objects of a source."""
    d = len(source.metric.centre) if isinstance(source, AttributeSource) else 0
    return Need(source.n, k, f, d, rows, linked=linked)


def room_on(rows: DeviceRows) -> Room:
    """What a fit may take on the device of this process."""
    return Room.on(rows.device, rows.memory_limit)


def _from_host(placing: Placing, lo: int, hi: int) -> Tensor:
    """Transformed dissimilarities of objects lo..hi-1 to their landmarks, (rows, k)."""
    D = placing.distances(lo, hi, placing.chosen(lo, hi))
    out = np.empty(D.shape, np.float32)
    transform(np.ascontiguousarray(D).reshape(-1), placing.landmarks.d0, out.reshape(-1))
    return torch.from_numpy(out)


class _SideBySide:
    """P problems as one descent: the value holds their objectives and errors, (P,) each.

    The objective of the descent is the sum of theirs, its error the largest.
    """

    def __init__(self, kernels: Kernels, state: State, scale: float, stop: Stop):
        self._kernels, self._state, self._scale, self._stop = kernels, state, scale, stop

    @property
    def rows(self) -> int:
        return self._state.graph.n * len(self._state.mass)

    def objective(self) -> NDArray[np.float64]:
        """Every pair is kept by both of its rows: half the sum over rows."""
        return self._kernels.objective(self._state).cpu().numpy() * (0.5 * self._scale)

    def init(self) -> Descent[tuple[NDArray, NDArray]]:
        J = self.objective()
        return Descent((J, np.ones(len(J))), (float(J.sum()),))

    def step(self, now: Descent[tuple[NDArray, NDArray]]) -> Descent[tuple[NDArray, NDArray]]:
        state, (before, error) = self._state, now.value
        for colour in range(len(state.graph.colours)):
            self._kernels.update(state, colour)
        change = state.change.sum(1, dtype=torch.float64).cpu().numpy()
        J = np.maximum(before + change * self._scale, 0.0)
        # As `Stop.update`, for each problem.
        relative = np.divide(before - J, before, out=np.zeros_like(J), where=before > 0)
        memory = self._stop.memory
        error = memory * error + (1.0 - memory) * relative
        return now.follow((J, error), float(J.sum()), float(error.max()))

    def done(self, now: Descent[tuple[NDArray, NDArray]]) -> bool:
        return now.error < self._stop.tol

    def steps_left(self, now: Descent[tuple[NDArray, NDArray]]) -> int:
        return self._stop.sweeps_left(now.error)


# ---------------------------------------------------------------------- which device
def visible_devices() -> tuple[str, str | None]:
    """Processes with equal answers see the same GPUs: the machine, and what it lets them see."""
    return socket.gethostname(), os.environ.get("CUDA_VISIBLE_DEVICES")


def device_here(name: str, number: int = 0) -> torch.device:
    """The device of the process with this `number` among those that see the same GPUs.

    "cuda" are all of them, by turns; "cuda:1" is one for all.
    """
    device = torch.device(name)
    if device.type != "cuda":
        return device
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    index = device.index
    if index is None:
        index = (torch.cuda.current_device() + number) % count if count else 0
    if index >= count:
        raise ValueError(
            f"device={name!r} was asked for, but {socket.gethostname()} has {count} GPUs that "
            f"torch {torch.__version__} can use there. Use workers with GPUs, or device='cpu'."
        )
    return torch.device("cuda", index)

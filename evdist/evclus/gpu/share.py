"""One process's share of a fit on a device: all masses, and the pairs of its own rows.

A process alone has all rows. Several, each with a GPU, tell each other after every step which rows
have moved (`evdist.engine.cluster`). A row's program does not see who solves it, and sums are made
piece by piece, so the bits are the same for any number of processes.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from evdist.evclus.gpu.arrays import Graph, State, on_grid, tile_count, tiles, untile
from evdist.evclus.gpu.cuda_rows import rows_on
from evdist.evclus.gpu.kept import Kept, Piece, keep
from evdist.evclus.gpu.links import DeviceLinks
from evdist.evclus.gpu.memory import Need, Room, choose
from evdist.evclus.gpu.pairs import MadePairs
from evdist.evclus.gpu.parts import PartRows

__all__ = ["DeviceProblem", "DeviceShare", "Terms", "by_colour", "device_here", "keep_pieces"]
__all__ += ["visible_devices"]

#: Rows put on the grid at a time.
_ROWS = 1 << 20


class Steps(Protocol):
    """The order of the work, `evdist.engine.plan.Plan`."""

    @property
    def pieces(self) -> Sequence[tuple[int, int]]: ...

    @property
    def steps(self) -> Sequence[Any]: ...

    def rows(
        self, step: int, mine: frozenset[int] | None = None
    ) -> list[tuple[int, np.ndarray]]: ...


def visible_devices() -> tuple[str, str | None]:
    """Whose processes choose among the same GPUs: the machine, and what it lets them see."""
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


@dataclass(frozen=True)
class Terms:
    """What is minimised, beside the kept pairs, and in which order.

    Attributes
    ----------
    projections : (V, f, f) float32
        The conflict matrix C of EVCLUS, or one matrix for each residual of a pair.
    plan : Plan
    weight : (n,) float32, or empty for none
    links : (first, other, sign, Q, penalty) or None, as in `DeviceLinks.of`
    """

    projections: np.ndarray
    plan: Steps
    weight: np.ndarray
    links: tuple | None = None


@dataclass(frozen=True)
class DeviceProblem:
    """A problem that several processes share, each with a device.

    It travels to them; NumPy and torch are all they need to make its pairs.

    Attributes
    ----------
    terms : Terms
    pairs : MadePairs
    device : str
        "cuda", "cuda:1", ..., or "cpu".
    memory_limit : int or None
        Bytes that a process may take on its device; None for all that are free.
    """

    terms: Terms
    pairs: MadePairs
    device: str
    memory_limit: int | None = None

    kin = staticmethod(visible_devices)

    @property
    def n(self) -> int:
        return self.pairs.layout.n

    @property
    def plan(self) -> Steps:
        return self.terms.plan

    def share(
        self, mass: np.ndarray, pieces: Sequence[int], threads: int, number: int
    ) -> DeviceShare:
        """What the worker with this number among its kin needs to update some pieces."""
        device = device_here(self.device, number)
        rows = sum(b - a for a, b in (self.plan.pieces[q] for q in pieces))
        need = Need(
            self.n, self.pairs.layout.k, self.terms.projections.shape[1], self.pairs.d, rows,
            linked=self.terms.links is not None,
        )  # fmt: skip
        choice = choose(need, Room.on(device, self.memory_limit))
        graph = Graph.of(self.pairs.layout, device)
        mine = by_colour(self.plan, graph, pieces)
        kept = keep_pieces(self.pairs, graph, mine, device, choice.where, choice.columns)
        return DeviceShare(self.terms, mass, pieces, graph, kept)


def by_colour(plan: Steps, graph: Graph, pieces: Sequence[int]) -> list[list[Piece]]:
    """Places of some pieces of a plan, for each colour in ascending order."""
    out: list[list[Piece]] = [[] for _ in graph.colours]
    for q in sorted(pieces):
        lo, hi = plan.pieces[q]
        colour = int(np.searchsorted(graph.bounds, lo, side="right")) - 1
        out[colour].append((lo - graph.bounds[colour], hi - graph.bounds[colour]))
    return out


def keep_pieces(
    pairs: MadePairs, graph: Graph, pieces: Sequence[Sequence[Piece]], device: torch.device,
    where: str, columns: int,
) -> Kept:  # fmt: skip
    """Make the dissimilarities of some pieces, and keep them `where` `choose` has said."""
    like = torch.empty(graph.k, 0, device=device)
    return keep(where, pairs.maker(graph, device), pieces, columns, like)


class DeviceShare:
    """All masses on a device, and the dissimilarities of the pieces that are updated there.

    Parameters
    ----------
    terms : Terms
    mass : (n, f) float32, in positions
    pieces : numbers of the own pieces in the plan; those of a colour are consecutive
    graph : Graph
    kept : Kept
        Dissimilarities of these pieces.
    """

    def __init__(
        self, terms: Terms, mass: np.ndarray, pieces: Sequence[int], graph: Graph, kept: Kept
    ):
        self._plan, self._own = terms.plan, sorted(pieces)
        device, weight = graph.colours[0].base.device, None
        if terms.weight.size:
            weight = torch.as_tensor(np.array(terms.weight), device=device)
        self._state = State.of(
            graph, torch.empty(1, graph.k, 0, device=device), _laid_out(mass, device)[None],
            terms.projections, weight,
        )  # fmt: skip
        self._links: DeviceLinks | None = None
        if terms.links is not None:
            first, other, sign, Q, penalty = terms.links
            self._links = DeviceLinks.of(first, other, sign, Q, penalty, device)
            self._state.extra = torch.zeros_like(self._state.mass[0])
        self._mine = by_colour(terms.plan, graph, self._own)
        self._rows = PartRows(rows_on(device, self._state.f), kept, self._mine, self._state)
        self._steps = [self._step(s) for s in range(len(terms.plan.steps))]

    def _step(self, step: int) -> list[tuple[int, Tensor | None, Tensor]]:
        """(colour, places in it or None for all own, its linked rows), for the colours of a step.

        Linked rows are counted among those that have links.
        """
        bounds, device = np.array(self._state.graph.bounds), self._state.mass.device
        if self._links is None:
            return [(step, None, torch.zeros(0, dtype=torch.int64, device=device))]
        own = self._plan.rows(step, frozenset(self._own))
        rows = np.concatenate([np.zeros(0, np.int64), *(r for _, r in own)])
        linked = self._links.rows.cpu().numpy()
        colour = np.searchsorted(bounds, rows, side="right") - 1
        out: list[tuple[int, Tensor | None, Tensor]] = []
        for b in np.unique(colour).tolist():
            mine = rows[colour == b]
            which = np.flatnonzero(np.isin(linked, mine))
            places = torch.as_tensor((mine - bounds[b]).astype(np.int32), device=device)
            whole = len(mine) == sum(hi - lo for lo, hi in self._mine[b])
            out.append((b, None if whole else places, torch.as_tensor(which, device=device)))
        return out

    def advance(self, step: int) -> None:
        """Minimise over the own rows of a step; none rests: neighbours are updated together."""
        state = self._state
        for colour, places, linked in self._steps[step]:
            if self._links is not None and len(linked):
                assert state.extra is not None
                at = self._links.rows[linked]
                half = 0.5 * self._links.gradient(state.mass[0], linked)
                state.extra[at >> 5, :, at & 31] = half.float()
            self._rows.update(state, colour, places)

    def update(self, step: int, rest: float) -> tuple[np.ndarray, np.ndarray, int]:
        """`advance`; the rows that moved, ascending, their masses, and how many were looked at."""
        self.advance(step)
        state, device = self._state, self._state.mass.device
        moved, count = [torch.zeros(0, dtype=torch.int64, device=device)], 0
        for colour, places, _ in self._steps[step]:
            lo, mine = state.graph.bounds[colour], self._mine[colour]
            if places is None:
                if not mine:
                    continue
                rows = torch.arange(lo + mine[0][0], lo + mine[-1][1], device=device)
            else:
                rows = lo + places.long()
            count += len(rows)
            moved.append(rows[state.change[0, rows] < 0])
        at = torch.cat(moved)
        mass = state.mass[0, at >> 5, :, at & 31]
        return at.cpu().numpy().astype(np.uint32), mass.cpu().numpy(), count

    def patch(self, rows: np.ndarray, mass: np.ndarray) -> None:
        """Take over the masses (p, f) of rows (p,) that another process has updated."""
        state = self._state
        at = torch.as_tensor(rows.astype(np.int64), device=state.mass.device)
        new = torch.as_tensor(np.array(mass), device=state.mass.device)
        state.mass[0, at >> 5, :, at & 31] = new
        for v, C in enumerate(state.projections.double()):
            first = v * state.mass.shape[1]
            # Exact on the grid, in any order.
            state.table[0, first + (at >> 5), :, at & 31] = (new.double() @ C).float()

    def changes(self) -> dict[int, float]:
        """What the last updates of the rows of each own piece brought."""
        found = self._rows.piece_changes(self._state)
        return dict(zip(self._own, found.tolist(), strict=True))

    def objective(self) -> dict[int, tuple[float, float]]:
        """(stress, penalty) of each own piece; the penalty of all links stands in piece 0.

        Every pair and every link counts twice, as if with each of its rows.
        """
        found = self._rows.piece_losses(self._state)
        out = {q: (value, 0.0) for q, value in zip(self._own, found.tolist(), strict=True)}
        if self._links is not None and 0 in out:
            out[0] = (out[0][0], 2 * self._links.total(self._state.mass[0]))
        return out

    def masses(self, lo: int, hi: int) -> np.ndarray:
        """The present masses of positions lo .. hi - 1, (rows, f)."""
        part = self._state.mass[0][lo // 32 : -(-hi // 32)]
        rows = untile(part, 32 * len(part))[lo % 32 : lo % 32 + hi - lo]
        return np.ascontiguousarray(rows.cpu().numpy())


def _laid_out(mass: np.ndarray, device: torch.device) -> Tensor:
    """Masses (n, f) in tiles (T, f, 32), on the grid, a block at a time."""
    n, f = mass.shape
    out = torch.zeros(tile_count(n), f, 32, device=device)
    for lo in range(0, n, _ROWS):
        part = np.array(mass[lo : lo + _ROWS], dtype=np.float32)
        found = tiles(on_grid(torch.as_tensor(part, device=device)))
        out[lo // 32 : lo // 32 + len(found)] = found[: len(out) - lo // 32]
    return out

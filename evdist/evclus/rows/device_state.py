"""The rows of one process on a device: all masses, and the pairs of the pieces it updates.

A process alone has all rows. Several, each with a GPU, tell each other after every step which rows
have moved (`evdist.engine.cluster`). A row's program does not depend on the process that solves it,
and sums are made piece by piece, so the bits are the same for any number of processes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from evdist.evclus.problem import Problem
from evdist.evclus.rows.arrays import Graph, State, on_grid, tile_count, tiles, untile
from evdist.evclus.rows.cuda import kernels_on
from evdist.evclus.rows.device_pairs import by_colour
from evdist.evclus.rows.kept import Kept
from evdist.evclus.rows.links import DeviceLinks
from evdist.evclus.rows.parts import PartRows

#: Rows put on the grid at a time.
_ROWS = 1 << 20


class DeviceState:
    """A `RowState` on a device.

    Parameters
    ----------
    problem : Problem
        Its pairs are not looked at.
    mass : (n, f) float32, in positions; an array, or a tensor on any device
    pieces : numbers of the own pieces in the plan; those of a colour are consecutive
    graph : Graph
    kept : Kept
        Dissimilarities of these pieces.
    """

    def __init__(
        self,
        problem: Problem,
        mass: np.ndarray | Tensor,
        pieces: Sequence[int],
        graph: Graph,
        kept: Kept,
    ):
        self._n, self._plan, self._own = problem.n, problem.plan, sorted(pieces)
        device, weight = graph.colours[0].base.device, None
        if problem.weight.size:
            weight = torch.as_tensor(np.array(problem.weight), device=device)
        self._state = State.of(
            graph, torch.empty(1, graph.k, 0, device=device), _laid_out(mass, device)[None],
            problem.projection[:, :, : problem.f], weight,
        )  # fmt: skip
        self._links: DeviceLinks | None = None
        if problem.links is not None and problem.linked:
            self._links = DeviceLinks.of(*problem.links, device)
            self._state.extra = torch.zeros_like(self._state.mass[0])
        self._mine = by_colour(problem.plan, graph.bounds, self._own)
        self._kernels = kernels_on(device, self._state.f)
        self._parts = PartRows(self._kernels, kept, self._mine, self._state)
        self._steps = [self._step(s) for s in range(len(problem.plan.steps))]

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

    def update(self, steps: Sequence[int], skip_below: float) -> None:
        """No row is skipped: a warp waits for its slowest row anyway."""
        state = self._state
        for colour, places, linked in (part for step in steps for part in self._steps[step]):
            if self._links is not None and len(linked):
                assert state.extra is not None
                at = self._links.rows[linked]
                half = 0.5 * self._links.gradient(state.mass[0], linked)
                state.extra[at >> 5, :, at & 31] = half.float()
            for part, chosen in self._parts.chosen(state, colour, places):
                self._kernels.update(part, colour, chosen)

    def moved(self, step: int) -> tuple[np.ndarray, np.ndarray, int]:
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
        state = self._state
        at = torch.as_tensor(rows.astype(np.int64), device=state.mass.device)
        new = torch.as_tensor(np.array(mass), device=state.mass.device)
        state.mass[0, at >> 5, :, at & 31] = new
        for v, C in enumerate(state.projections.double()):
            first = v * state.mass.shape[1]
            # Exact on the grid, in any order.
            state.table[0, first + (at >> 5), :, at & 31] = (new.double() @ C).float()

    def changes(self) -> dict[int, float]:
        found = self._parts.piece_changes(self._state)
        return dict(zip(self._own, found.tolist(), strict=True))

    def losses(self) -> dict[int, tuple[float, float]]:
        """The penalty of all links stands in piece 0.

        Every pair and every link counts twice, as if with each of its rows.
        """
        found = self._parts.piece_losses(self._state)
        out = {q: (value, 0.0) for q, value in zip(self._own, found.tolist(), strict=True)}
        if self._links is not None and 0 in out:
            out[0] = (out[0][0], 2 * self._links.total(self._state.mass[0]))
        return out

    def masses(self, lo: int, hi: int) -> np.ndarray:
        part = self._state.mass[0][lo // 32 : -(-hi // 32)]
        rows = untile(part, 32 * len(part))[lo % 32 : lo % 32 + hi - lo]
        return np.ascontiguousarray(rows.cpu().numpy())

    def result(self) -> Tensor:
        return untile(self._state.mass[0], self._n)

    def close(self) -> None:
        del self._state, self._parts


def _laid_out(mass: np.ndarray | Tensor, device: torch.device) -> Tensor:
    """Masses (n, f) in tiles (T, f, 32), on the grid, a block at a time."""
    n, f = mass.shape
    out = torch.zeros(tile_count(n), f, 32, device=device)
    for lo in range(0, n, _ROWS):
        part = mass[lo : lo + _ROWS]
        if isinstance(part, np.ndarray):
            part = torch.as_tensor(np.array(part, dtype=np.float32))
        found = tiles(on_grid(part.to(device, torch.float32)))
        out[lo // 32 : lo // 32 + len(found)] = found[: len(out) - lo // 32]
    return out

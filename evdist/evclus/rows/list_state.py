"""Lists of clusters in one process on a device: all rows, and the pairs of those it updates.

As `device_state.DeviceState`, for encoded rows (`evdist.kernels.sparse_rows`). A row's program does
not depend on the process that solves it, and sums are made piece by piece, so the bits are the same
for any number of processes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from evdist.evclus.problem import Problem
from evdist.evclus.rows.arrays import Graph
from evdist.evclus.rows.device_pairs import by_colour
from evdist.evclus.rows.kept import Kept, Resident
from evdist.evclus.rows.lists import Lists, list_kernels_on
from evdist.evclus.rows.parts import PartRows
from evdist.kernels.sparse_rows import FIRST_ID, labelled


class ListState:
    """A `RowState` of encoded rows on a device; parameters are those of `DeviceState`."""

    def __init__(
        self,
        problem: Problem,
        mass: np.ndarray | Tensor,
        pieces: Sequence[int],
        graph: Graph,
        kept: Kept,
    ):
        self._own = sorted(pieces)
        device, weight, heaviest = graph.colours[0].base.device, None, 1.0
        if problem.weight.size:
            weight = torch.as_tensor(np.array(problem.weight), device=device)
            heaviest = float(problem.weight.max()) ** 2
        self._state = Lists(
            graph, on_device_rows(mass, device), torch.empty(1, graph.k, 0, device=device),
            torch.zeros(1, graph.n, device=device), problem.focal_sets.n_clusters, weight,
            heaviest, promise=problem.promise,
        )  # fmt: skip
        if isinstance(kept, Resident):
            kept.by_row()
        self._kernels = list_kernels_on(device)
        self._kernels.settle(self._state.mass)
        self._mine = by_colour(problem.plan, graph.bounds, self._own)
        self._parts = PartRows(self._kernels, kept, self._mine, self._state)

    def update(self, steps: Sequence[int], skip_below: float) -> None:
        for colour in steps:
            for part, places in self._parts.chosen(self._state, colour):
                self._kernels.update(part, colour, places, skip_below)

    def moved(self, step: int) -> tuple[np.ndarray, np.ndarray, int]:
        state, mine = self._state, self._mine[step]
        if not mine:
            return np.zeros(0, np.uint32), np.zeros((0, state.f), np.float32), 0
        lo = state.graph.bounds[step]
        first, last = lo + mine[0][0], lo + mine[-1][1]
        at = first + torch.nonzero(state.change[0, first:last] < 0).flatten()
        rows = at.cpu().numpy().astype(np.uint32)
        return rows, state.mass[at].cpu().numpy(), last - first

    def patch(self, rows: np.ndarray, mass: np.ndarray) -> None:
        device = self._state.mass.device
        at = torch.as_tensor(rows.astype(np.int64), device=device)
        self._state.mass[at] = torch.as_tensor(np.array(mass), device=device)

    def changes(self) -> dict[int, float]:
        found = self._parts.piece_changes(self._state)
        return dict(zip(self._own, found.tolist(), strict=True))

    def losses(self) -> dict[int, tuple[float, float]]:
        """Every pair counts twice, as if with each of its rows."""
        found = self._parts.piece_losses(self._state)
        return {q: (value, 0.0) for q, value in zip(self._own, found.tolist(), strict=True)}

    def masses(self, lo: int, hi: int) -> np.ndarray:
        return self._state.mass[lo:hi].cpu().numpy()

    def result(self) -> Tensor:
        return self._state.mass

    def close(self) -> None:
        del self._state, self._parts


def on_device_rows(mass: np.ndarray | Tensor, device: torch.device) -> Tensor:
    """Encoded rows on a device: those that are there are taken over."""
    if isinstance(mass, np.ndarray):
        mass = torch.as_tensor(np.array(mass, dtype=np.float32))
    return mass.to(device)


def labelled_rows(labels: np.ndarray, own: float, device: torch.device) -> Tensor:
    """`sparse_rows.labelled` on a device."""
    one = torch.as_tensor(labelled(np.zeros(1, np.int32), own), device=device)
    rows = one.repeat(len(labels), 1)
    # The number of the first slot is the first half of a word; the second slot is free.
    word = rows.view(torch.int32)[:, FIRST_ID // 2]
    word &= ~0xFFFF
    word |= torch.as_tensor(labels, device=device).int()
    return rows

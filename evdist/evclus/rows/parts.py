"""Rows whose dissimilarities come in parts; sums that do not depend on the parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from evdist.evclus.rows.arrays import State
from evdist.evclus.rows.cuda import MAX_FOCAL_SETS
from evdist.evclus.rows.kept import Kept, Piece
from evdist.evclus.rows.lists import Lists

#: Pieces summed at a time.
_PIECES = 4096


def piece_sums(values: Tensor, pieces: Tensor) -> Tensor:
    """Sums (p,) of values[a:b], float64, for each row (a, b) of `pieces` (p, 2).

    Halves are added, over and over: the bits depend on a piece alone, not on how many there are.
    """
    if not len(pieces):
        return values.new_zeros(0, dtype=torch.float64)
    width = 1 << (int((pieces[:, 1] - pieces[:, 0]).max()) - 1).bit_length()
    places = torch.arange(width, device=values.device)
    sums = []
    for part in pieces.split(_PIECES):
        at = part[:, :1] + places
        there = at < part[:, 1:]
        x = torch.where(there, values[torch.where(there, at, 0)].double(), 0.0)
        while x.shape[1] > 1:
            half = x.shape[1] // 2
            x = x[:, :half] + x[:, half:]
        sums.append(x[:, 0])
    return torch.cat(sums)


class _Losses(Protocol):
    """`Kernels`, or `ListKernels`."""

    def losses(self, state: Any, colour: int, place: int, rows: int) -> Tensor: ...


#: One problem, as dense rows or as lists of clusters.
AnyRows = TypeVar("AnyRows", State, Lists)


class PartRows(Generic[AnyRows]):
    """The parts of `kept` that kernels work on: rows of the pieces of one process, and their sums.

    Parameters
    ----------
    kernels : Kernels or ListKernels
    kept : Kept
    pieces : for each colour, consecutive (a, b): places of the process's own rows in it
    state : State or Lists
        One problem, whose own `delta` is empty.
    """

    def __init__(
        self, kernels: _Losses, kept: Kept, pieces: Sequence[Sequence[Piece]], state: AnyRows
    ):
        self._kernels, self._kept, self._pieces = kernels, kept, pieces
        device, bounds = state.mass.device, state.graph.bounds
        # Batches of matrices are solved by libraries, whose bits may tell how many there are.
        self._one_by_one = device.type != "cuda" or state.f > MAX_FOCAL_SETS
        self._places = torch.arange(
            max(hi - lo for lo, hi in pairwise(bounds)),
            dtype=torch.int32, device=device,
        )  # fmt: skip
        self._at = [torch.tensor(p, device=device).reshape(-1, 2) for p in pieces]
        whole = [lo + at for lo, at in zip(bounds, self._at, strict=False)]
        self._positions = torch.cat(whole) if whole else self._places.new_zeros(0, 2)

    def _cuts(self, colour: int, a: int, b: int) -> list[Piece]:
        """Rows of a tile that are updated in one call."""
        if not self._one_by_one:
            return [(a, b)]
        return [piece for piece in self._pieces[colour] if a <= piece[0] < b]

    def chosen(
        self, state: AnyRows, colour: int, places: Tensor | None = None
    ) -> Iterator[tuple[AnyRows, Tensor | None]]:
        """(part of the state, places or None for all) of the own rows of a colour, or of some."""
        lo, hi = state.graph.bounds[colour : colour + 2]
        for first, delta in self._kept.parts(colour):
            part = replace(state, delta=delta[None], first=lo + first)
            for a, b in self._cuts(colour, first, first + delta.shape[1]):
                if places is None:
                    chosen = None if (a, b) == (0, hi - lo) else self._places[a:b]
                else:
                    chosen = places[(places >= a) & (places < b)]
                    if not len(chosen):
                        continue
                yield part, chosen

    def piece_losses(self, state: AnyRows) -> np.ndarray:
        """Sums over the rows of each own piece of w (kappa - delta)^2, colour by colour, (p,)."""
        found = []
        for colour, pieces in enumerate(self._pieces):
            if not pieces:
                continue
            lo = state.graph.bounds[colour]
            losses = []
            for first, delta in self._kept.parts(colour):
                part = replace(state, delta=delta[None], first=lo + first)
                for a, b in self._cuts(colour, first, first + delta.shape[1]):
                    losses.append(self._kernels.losses(part, colour, a, b - a)[0])
            found.append(piece_sums(torch.cat(losses), self._at[colour] - pieces[0][0]))
        return torch.cat(found).cpu().numpy() if found else np.zeros(0)

    def piece_changes(self, state: AnyRows) -> np.ndarray:
        """What the last updates of the rows of each own piece brought, (p,)."""
        return piece_sums(state.change[0], self._positions).cpu().numpy()

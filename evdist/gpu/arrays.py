"""What the row programs work on, as torch tensors.

Symbols
-------
n, k, f   positions, partners per row, focal sets
P         problems on one graph that are solved side by side: starts, values of d0
T         tiles of 32 positions; a table of w numbers per position is (T, w, 32), so that a warp
          reads 32 neighbouring numbers; the last tile is filled up with zeros, one row at least
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from evdist.kernels.circulant import Circulant

__all__ = ["Graph", "Partners", "State", "on_grid", "project", "tile_count", "tiles", "untile"]

TILE = 32
#: Masses are multiples of 1 / GRID: exact in float32, and so are all their partial sums.
GRID = float(1 << 24)
#: Tiles handled at a time where a pass needs room for float64.
_TILES_AT_A_TIME = 1 << 16


def tile_count(n: int) -> int:
    """T: there is always a row of zeros behind the last position, for partners that are missing."""
    return n // TILE + 1


def tiles(rows: Tensor) -> Tensor:
    """(..., n, w) -> (..., T, w, 32)."""
    *batch, n, w = rows.shape
    count = tile_count(n)
    rows = torch.nn.functional.pad(rows, (0, 0, 0, count * TILE - n))
    return rows.reshape(*batch, count, TILE, w).transpose(-1, -2).contiguous()


def untile(table: Tensor, n: int) -> Tensor:
    """(..., T, w, 32) -> (..., n, w)."""
    *batch, count, w, _ = table.shape
    return table.transpose(-1, -2).reshape(*batch, count * TILE, w)[..., :n, :]


def on_grid(mass: Tensor) -> Tensor:
    """Rows (..., f) >= 0, of sum one but for rounding, as multiples of 1 / GRID of sum one.

    The first of the largest components absorbs what the others lose. float32.
    """
    q = torch.floor(mass.double() * GRID + 0.5)
    big = q.argmax(-1, keepdim=True)
    q.scatter_add_(-1, big, GRID - q.sum(-1, keepdim=True))
    return (q / GRID).float()


def project(mass: Tensor, projection: Tensor) -> Tensor:
    """m C of every position, (P, T, f, 32) -> (P, T, f, 32): exact on the grid.

    In float64, where no setting of torch trades digits for speed.
    """
    C = projection.double()
    flat = mass.reshape(-1, *mass.shape[-2:])
    parts = [C.T @ part.double() for part in flat.split(_TILES_AT_A_TIME)]
    return torch.cat([part.float() for part in parts]).reshape(mass.shape)


@dataclass(frozen=True)
class Partners:
    """Partners of the rows of one colour: row at place t has base_h + (t + shift_h mod size).

    Those beyond lim_h do not exist. All (k,) int32.
    """

    base: Tensor
    lim: Tensor
    shift: Tensor
    size: int

    @property
    def k(self) -> int:
        return len(self.base)

    def positions(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Of rows at `place` (R,): positions (k, R) int64, and which exist (k, R) bool."""
        at = (place + self.shift.long()[:, None]) % self.size
        there = at < self.lim[:, None]
        return torch.where(there, self.base.long()[:, None] + at, 0), there

    @classmethod
    def landmarks(cls, shifts: np.ndarray, count: int, device: torch.device) -> Partners:
        """Landmarks (t + shift) mod count."""
        shift = torch.as_tensor(shifts.astype(np.int32), device=device)
        return cls(torch.zeros_like(shift), torch.full_like(shift, count), shift, count)


@dataclass(frozen=True)
class Graph:
    """A `Circulant` on a device."""

    n: int
    k: int
    entries: int
    bounds: tuple[int, ...]
    colours: tuple[Partners, ...]

    @classmethod
    def of(cls, graph: Circulant, device: torch.device) -> Graph:
        bounds, offsets = graph.bounds, np.array(graph.offsets)
        shift = torch.as_tensor(np.array(graph.shifts, np.int32), device=device)

        def colour(b: int) -> Partners:
            other = (b + offsets) % graph.colours
            base, lim = (
                torch.as_tensor(v[other].astype(np.int32), device=device)
                for v in (bounds, np.diff(bounds))
            )
            return Partners(base, lim, shift, graph.size)

        partners = tuple(colour(b) for b in range(graph.colours))
        return cls(graph.n, graph.k, graph.entries, tuple(bounds.tolist()), partners)


@dataclass
class State:
    """P problems on one graph: fixed dissimilarities, and masses that the sweeps change.

    Attributes
    ----------
    mass, table : (P, T, f, 32) float32
        Masses on the grid, and m C.
    delta : (P, k, n) float32 or float16
    change : (P, n) float32
        What each row last brought.
    projection : (f, f) float32, C
    weight : (n,) float32 or None
    extra : (T, f, 32) float32 or None
        Half the gradient of the links' penalty, for one problem.
    """

    graph: Graph
    mass: Tensor
    table: Tensor
    delta: Tensor
    change: Tensor
    projection: Tensor
    weight: Tensor | None = None
    extra: Tensor | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        delta: Tensor,
        mass: Tensor,
        projection: np.ndarray,
        weight: Tensor | None = None,
    ) -> State:
        """`mass` in tiles (P, T, f, 32), on the grid."""
        C = torch.as_tensor(np.asarray(projection, np.float32), device=mass.device)
        change = torch.zeros(len(mass), graph.n, device=mass.device)
        return cls(graph, mass, project(mass, C), delta, change, C, weight)

    @property
    def f(self) -> int:
        return self.mass.shape[-2]

"""What the row programs work on, as torch tensors.

Symbols
-------
n, k, f   positions, partners per row, focal sets
P         problems on one graph that are solved side by side: starts, values of d0
V         residuals of a pair, each with a matrix that takes the partner's masses to its side
T         tiles of 32 positions; a table of w numbers per position is (T, w, 32), so that a warp
          reads 32 neighbouring numbers; the last tile is filled up with zeros, one row at least
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from evdist.kernels.graph import PairGraph

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


def project(mass: Tensor, projections: Tensor) -> Tensor:
    """m C of every position, (P, T, f, 32) -> (P, V T, f, 32), for C (f, f) or each of (V, f, f).

    Exact on the grid: in float64, where no setting of torch trades digits for speed.
    """
    flat = mass.reshape(-1, *mass.shape[-2:]).split(_TILES_AT_A_TIME)
    tables = []
    for C in projections.double().reshape(-1, *projections.shape[-2:]):
        parts = [(C.T @ part.double()).float() for part in flat]
        tables.append(torch.cat(parts).reshape(mass.shape))
    return tables[0] if len(tables) == 1 else torch.cat(tables, dim=-3)


@dataclass(frozen=True)
class Partners:
    """Partners of the rows of one colour: row at place t has base_h + (t + shift_h mod size).

    Those beyond lim_h do not exist. All (k,) int32. With `near` pairs, the shifts after the first
    `near` are along a random order of the places (size,), whose inverse leads back. Where partners
    are `listed` (k, rows) int32, row t has those of its column, and nothing else is looked at.
    """

    base: Tensor
    lim: Tensor
    shift: Tensor
    size: int
    near: int = 0
    order: Tensor | None = None
    inverse: Tensor | None = None
    listed: Tensor | None = None

    @property
    def k(self) -> int:
        return len(self.base)

    def positions(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Of rows at `place` (R,): positions (k, R) int64, and which exist (k, R) bool."""
        if self.listed is not None:
            at = self.listed[:, place].long()
            return at.clamp(min=0), at >= 0
        shift = self.shift.long()[:, None]
        at = (place + shift) % self.size
        if self.order is not None and self.inverse is not None:
            far = (self.order[place].long() + shift[self.near :]) % self.size
            at[self.near :] = self.inverse[far].long()
        there = at < self.lim[:, None]
        return torch.where(there, self.base.long()[:, None] + at, 0), there

    @classmethod
    def of_list(cls, listed: Tensor) -> Partners:
        """Partners one by one, (k, rows) int32; -1 for none."""
        none = torch.zeros_like(listed[:, :1].flatten())
        return cls(none, none, none, 1, listed=listed)

    @classmethod
    def landmarks(cls, shifts: np.ndarray, count: int, device: torch.device) -> Partners:
        """Landmarks (t + shift) mod count."""
        shift = torch.as_tensor(shifts.astype(np.int32), device=device)
        return cls(torch.zeros_like(shift), torch.full_like(shift, count), shift, count)


@dataclass(frozen=True)
class Graph:
    """A `PairGraph` on a device."""

    n: int
    k: int
    entries: int
    bounds: tuple[int, ...]
    colours: tuple[Partners, ...]

    @classmethod
    def of(cls, graph: PairGraph, device: torch.device) -> Graph:
        bounds, offsets = graph.bounds, np.array(graph.offsets)
        shift = torch.as_tensor(np.array(graph.shifts, np.int32), device=device)
        mixed: tuple[Tensor | None, ...] = (None, None)
        if graph.near:
            mixed = tuple(torch.as_tensor(x.astype(np.int32), device=device) for x in graph.mixed)

        def colour(b: int) -> Partners:
            other = (b + offsets) % graph.colours
            base, lim = (
                torch.as_tensor(v[other].astype(np.int32), device=device)
                for v in (bounds, np.diff(bounds))
            )
            return Partners(base, lim, shift, graph.size, graph.near, *mixed)

        partners = tuple(colour(b) for b in range(graph.colours))
        return cls(graph.n, graph.k, graph.entries, tuple(bounds.tolist()), partners)

    def seen(self, views: int) -> Graph:
        """Each partner as often as a pair has residuals: one after the other in its table."""
        room = TILE * tile_count(self.n)

        def more(p: Partners) -> Partners:
            base = torch.cat([p.base + v * room for v in range(views)])
            return replace(p, base=base, lim=p.lim.repeat(views), shift=p.shift.repeat(views))

        if views == 1:
            return self
        return replace(
            self, k=views * self.k, entries=views * self.entries,
            colours=tuple(more(p) for p in self.colours),
        )  # fmt: skip


@dataclass
class State:
    """P problems on one graph: fixed dissimilarities, and masses that the sweeps change.

    Attributes
    ----------
    graph : Graph
        Partners as `Graph.seen` through the projections: k is V times that of the pairs.
    mass, table : (P, T, f, 32), (P, V T, f, 32) float32
        Masses on the grid, and m C for one C after the other.
    delta : (P, k, m) float32 or float16
        Of m = n positions, or of those from `first` on that are updated next.
    change : (P, n) float32
        What each row last brought.
    projections : (V, f, f) float32
        C for EVCLUS.
    weight : (n,) float32 or None
        With one residual.
    extra : (T, f, 32) float32 or None
        Half the gradient of the links' penalty, for one problem.
    """

    graph: Graph
    mass: Tensor
    table: Tensor
    delta: Tensor
    change: Tensor
    projections: Tensor
    weight: Tensor | None = None
    extra: Tensor | None = None
    first: int = 0

    @classmethod
    def of(
        cls,
        graph: Graph,
        delta: Tensor,
        mass: Tensor,
        projections: np.ndarray,
        weight: Tensor | None = None,
    ) -> State:
        """`mass` in tiles (P, T, f, 32), on the grid; `projections` (f, f) or (V, f, f)."""
        C = torch.as_tensor(np.ascontiguousarray(projections, np.float32), device=mass.device)
        C = C.reshape(-1, *C.shape[-2:])
        change = torch.zeros(len(mass), graph.n, device=mass.device)
        return cls(graph.seen(len(C)), mass, project(mass, C), delta, change, C, weight)

    @property
    def f(self) -> int:
        return self.mass.shape[-2]


@dataclass(frozen=True)
class Posteriors:
    """Posterior probabilities of the objects at some places of every colour under B mixtures.

    Attributes
    ----------
    values : (T, c B, 32) float32
        In tiles: some places from `first` on, in a ring, of one colour after the other.
    live : (positions,) int64
        Bit a % 64: whether component a has any probability in any replicate.
    """

    values: Tensor
    live: Tensor
    c: int
    B: int
    first: int

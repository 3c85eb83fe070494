"""Rows that are lists of (cluster, mass) on a GPU: launches of the kernels in lists.cu.

Symbols
-------
T   (n, WORDS) float32, encoded rows: see `evdist.kernels.sparse_rows`
"""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import c_double, c_int, c_longlong
from dataclasses import dataclass

import torch
from torch import Tensor

from evdist.evclus.rows.arrays import Graph, Partners
from evdist.evclus.rows.cuda import Launcher
from evdist.evclus.rows.nvrtc import THREADS, compiled
from evdist.kernels.sparse_rows import SLOTS, WORDS

#: Columns of a row's program: most rows need few; those that need more are solved again.
NARROW, WIDE = 12, 32
#: Up to this many clusters a warp adds up their gradients in shared memory.
MAX_NEAR_SUMS = 2048
#: Warps of a multiprocessor that are started at most, for rows and for rows with many clusters.
_WARPS, _WIDE_WARPS = 32, 8
#: Keys of the clusters that have columns, as in lists.cu.
_KEYS = 64


@dataclass
class Lists:
    """Encoded rows of one problem on a graph; `parts.PartRows` gives it dissimilarities.

    Attributes
    ----------
    graph : Graph
    mass : (n, WORDS) float32, T
    delta : (1, k, m) float32
        Of the m positions from `first` on that are updated next; best with those of a row side by
        side, as the lanes of its warp read them.
    change : (1, n) float32
        What each row last brought.
    n_clusters : int
    weight : (n,) float32 or None
    heaviest : float
        The largest weight of a pair.
    promise : float
        As in `sparse_sweep.update_sparse`, where all rows are visited.
    """

    graph: Graph
    mass: Tensor
    delta: Tensor
    change: Tensor
    n_clusters: int
    weight: Tensor | None = None
    heaviest: float = 1.0
    first: int = 0
    promise: float = 0.0

    @property
    def f(self) -> int:
        return WORDS


class ListKernels:
    """What a GPU does to lists of clusters.

    Parameters
    ----------
    module : module(macros) gives the kernels compiled with them
    processors : multiprocessors of the GPU
    shared : bytes of shared memory that a block may have
    lanes : threads of a warp; one where the source runs on a CPU
    """

    def __init__(
        self,
        module: Callable[[tuple[str, ...]], Launcher],
        processors: int,
        shared: int,
        lanes: int = 32,
    ):
        self._module, self._processors = module, processors
        self._shared, self._lanes = shared, lanes

    def update(
        self, state: Lists, colour: int, places: Tensor | None = None, skip_below: float = 0.0
    ) -> None:
        """Minimise over rows of a colour, the others fixed: all, or those at `places` (int32).

        With `skip_below`, rows that last brought less are left alone, and rows move among the
        clusters that they name.
        """
        lo, hi = state.graph.bounds[colour : colour + 2]
        self._solve(state, state.graph.colours[colour], places, lo, hi - lo, skip_below)

    def assign(self, state: Lists, partners: Partners, lo: int) -> None:
        """Rows lo, lo + 1, ... minimise their own programs against the rows that are listed."""
        self._solve(state, partners, None, lo, state.delta.shape[2], 0.0)

    def _solve(
        self, state: Lists, partners: Partners, places: Tensor | None, lo: int, rows: int,
        skip_below: float,
    ) -> None:  # fmt: skip
        rows = rows if places is None else len(places)
        if not rows:
            return
        device, c = state.mass.device, state.n_clusters
        far = c > MAX_NEAR_SUMS
        wide = torch.empty(rows, dtype=torch.int32, device=device)
        count = torch.zeros(1, dtype=torch.int32, device=device)
        fix = 2.0 ** math.floor(30 - math.log2(partners.k * state.heaviest))
        rounds = [
            (NARROW, self._warps(rows, _WARPS), places, None, wide),
            (WIDE, self._warps(rows, _WIDE_WARPS), wide, count, None),
        ]
        for width, warps, chosen, number, aside in rounds:
            bytes_ = _room(width, partners.k, 0 if far else c)
            scratch, shared = self._scratch(bytes_, warps, device)
            sums = None
            if far:
                sums = torch.zeros(warps * c, dtype=torch.int32, device=device)
            self._kernels(state, partners, width, far).launch(
                "update", warps * self._lanes, 1,
                [state.mass, state.delta, state.weight, state.change, partners.base, partners.lim,
                 partners.shift, partners.order, partners.inverse, partners.listed, chosen, number,
                 aside, count, scratch, sums, c_longlong(state.first),
                 c_longlong(state.delta.stride(1)), c_longlong(state.delta.stride(2)),
                 c_double(skip_below), c_double(state.promise if skip_below == 0.0 else math.inf),
                 c_double(fix), c_int(lo), c_int(rows),
                 c_int(partners.size), c_int(partners.k), c_int(partners.near),
                 c_int(c), c_int(bytes_), c_int(warps)],
                shared,
            )  # fmt: skip

    def losses(self, state: Lists, colour: int, place: int, rows: int) -> Tensor:
        """(1, rows) float64: sums over the pairs of each row of w (kappa - delta)^2.

        Rows are those of a colour from `place` on.
        """
        graph, partners = state.graph, state.graph.colours[colour]
        out = torch.empty(1, rows, dtype=torch.float64, device=state.mass.device)
        warps, bytes_ = self._warps(rows, 2 * _WARPS), 8 * (2 + SLOTS) + 4 * _KEYS
        scratch, shared = self._scratch(bytes_, warps, out.device)
        self._kernels(state, partners, NARROW, False).launch(
            "losses", warps * self._lanes, 1,
            [state.mass, state.delta, state.weight, out, partners.base, partners.lim,
             partners.shift, partners.order, partners.inverse, partners.listed, scratch,
             c_longlong(state.first),
             c_longlong(state.delta.stride(1)), c_longlong(state.delta.stride(2)),
             c_int(graph.bounds[colour]), c_int(place),
             c_int(rows), c_int(partners.size), c_int(partners.k), c_int(partners.near),
             c_int(bytes_), c_int(warps)],
            shared,
        )  # fmt: skip
        return out

    def settle(self, T: Tensor) -> None:
        """Round the masses of all rows to the grid."""
        if len(T):
            self._module(self._macros(1, NARROW)).launch(
                "settle", len(T), 1, [T, c_longlong(len(T))]
            )

    def _kernels(self, state: Lists, partners: Partners, width: int, far: bool) -> Launcher:
        macros = self._macros(-(-partners.k // self._lanes), width)
        macros += ("WEIGHTED",) if state.weight is not None else ()
        macros += ("LISTED",) if partners.listed is not None else ()
        macros += ("FAR",) if far else ()
        return self._module(macros)

    def _macros(self, per: int, width: int) -> tuple[str, ...]:
        on_cpu = () if self._lanes == 32 else (f"LANES={self._lanes}",)
        return (f"PER={per}", f"W={width}", *on_cpu)

    def _warps(self, rows: int, most: int) -> int:
        return min(rows, self._processors * most)

    def _scratch(self, room: int, warps: int, device: torch.device) -> tuple[Tensor | None, int]:
        """Global memory for rooms of the warps, or bytes of shared memory of a block for them."""
        shared = room * (THREADS // 32)
        if shared <= self._shared:
            return None, shared
        return torch.empty(warps * room, dtype=torch.uint8, device=device), 0


def _room(width: int, k: int, clusters: int) -> int:
    """Bytes of a warp: `Room` of lists.cu, the columns, and a sum for each cluster."""
    own = 8 * width * (width + 1) + 7 * 8 * width + 2 * 4 * width + 4 * _KEYS
    return -(-(own + 4 * width * k + 4 * clusters) // 16) * 16


def list_kernels_on(device: torch.device) -> ListKernels:
    """The kernels for lists of clusters on a GPU."""
    if device.type != "cuda":
        raise ValueError(
            f"Rows that are lists of clusters run on a GPU or on threads, not on {device}: use "
            "device='cpu' for threads."
        )
    number = torch.cuda.current_device() if device.index is None else device.index
    known = torch.cuda.get_device_properties(number)

    def module(macros: tuple[str, ...]) -> Launcher:
        return compiled(macros, number, "lists.cu")

    return ListKernels(
        module, known.multi_processor_count,
        getattr(known, "shared_memory_per_block_optin", 48 << 10),
    )  # fmt: skip

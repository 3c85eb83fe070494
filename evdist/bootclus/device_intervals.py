"""Confidence intervals of kept pairs from bootstrap replicates, on a device.

Reference: Denoeux, Calibrated model-based evidential clustering using bootstrapping, eq. (4) and
algorithm 1.

As on the CPU (`evdist.bootclus.intervals`), where partners lie in a band around a row's own place
the posteriors of a window of places are held at a time, those of all colours.

Symbols
-------
n, k, c, B   objects, partners per object, components of the mixture, replicates
post         posterior probabilities of an object under every replicate, c B numbers
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from evdist.evclus.rows.arrays import TILE, Graph, Posteriors, tile_count
from evdist.evclus.rows.cuda import MAX_REPLICATES, Kernels, kernels_on
from evdist.evclus.rows.torch import TorchKernels
from evdist.kernels.graph import PairGraph

#: Probabilities below half the distance of one to the float32 below it change no sum: zero.
TINY = 2.0**-25
#: Numbers that a block of posteriors needs while it is made.
_ROOM = {"cpu": 1 << 22, "cuda": 1 << 26}
#: Bytes that a window takes where its bands need less.
WINDOW_BYTES = 1 << 30
#: Places that a window holds beyond the bands on either side, at least and at most.
_PLACES = (256, 1 << 16)

#: Place and fraction of the two quantiles among B sorted values, as `kernels.intervals.ranks`.
Quantiles = tuple[int, float, int, float]
#: Posterior probabilities (rows, c, B) float32 of the objects at some positions.
Maker = Callable[[Tensor], Tensor]


def gaussian_posteriors(X: Tensor, U: Tensor, mu: Tensor, a: Tensor) -> Tensor:
    """Posteriors (rows, c, B) of the rows of X (rows, d) under B Gaussian mixtures.

    U (B, c, d, d), mu (B, c, d) and a (B, c), all float64: see `evdist.mixture.kernel`.
    """
    B, c, d = mu.shape
    U, mu, a = U.reshape(-1, d, d), mu.reshape(-1, d), a.reshape(-1)
    out = torch.empty(len(X), c, B, dtype=torch.float32, device=X.device)
    size = max(1, _ROOM[X.device.type] // (2 * B * c * d))
    for lo in range(0, len(X), size):
        difference = X[None, lo : lo + size] - mu[:, None]
        z = difference @ U.mT
        log = a[:, None] - 0.5 * z.square().sum(2)
        found = torch.softmax(log.reshape(B, c, -1), dim=1)
        out[lo : lo + size] = found.permute(2, 1, 0)
    return out


@dataclass(frozen=True)
class _Band:
    """How far partners lie apart in the ring of places, and which windows slide over it."""

    graph: PairGraph
    places: int

    @property
    def reach(self) -> int:
        s = self.graph.size
        return max(min(r, s - r) for r in self.graph.shifts)

    def windows(self) -> Iterator[tuple[int, int, int, int]]:
        """(place, rows, first, width): rows from `place` on find all they need in a window."""
        s, reach = self.graph.size, self.reach
        step = max(_PLACES[0], min(self.places, _PLACES[1]))
        if step + 2 * reach >= s:
            yield 0, s, 0, s
            return
        for place in range(0, s, step):
            rows = min(step, s - place)
            yield place, rows, (place - reach) % s, rows + 2 * reach


def interval_targets(
    graph: PairGraph, posteriors: Maker, shape: tuple[int, int], quantiles: Quantiles,
    *, device: torch.device, room: int = WINDOW_BYTES,
    pieces: Sequence[tuple[int, int]] | None = None,
) -> Tensor:  # fmt: skip
    """Targets of the two residuals of every kept pair, (2 k, n): P^l, then 1 - P^u, eq. (13).

    Parameters
    ----------
    graph : PairGraph
    posteriors : of positions (rows,) int64 on the device
    shape : (c, B)
    room : int, bytes of a window; its bands may need more
    pieces : runs of positions (lo, hi) whose targets are wanted, those of others are not made;
        None for all
    """
    c, B = shape
    there = Graph.of(graph, device)
    kernels: Kernels = kernels_on(device, 2) if B <= MAX_REPLICATES else TorchKernels()
    out = torch.empty(2 * graph.k, graph.n, device=device)
    band = _Band(graph, room // (4 * graph.colours * c * B) - 2 * _Band(graph, 0).reach)
    for place, count, first, width in band.windows():
        wanted = _wanted(there.bounds, place, place + count, pieces)
        if not wanted:
            continue
        held = _window(graph, posteriors, shape, first, width, device)
        for colour, a, b in wanted:
            begins = (colour + np.array(graph.offsets)) % graph.colours * width
            base = torch.as_tensor(begins.astype(np.int32), device=device)
            kernels.intervals(
                held, out, replace(there.colours[colour], base=base), quantiles,
                own=colour * width, lo=there.bounds[colour], place=a, rows=b - a,
            )  # fmt: skip
        del held
    return out


def _wanted(
    bounds: Sequence[int], first: int, last: int, pieces: Sequence[tuple[int, int]] | None
) -> list[tuple[int, int, int]]:
    """(colour, a, b): places a..b-1 of a colour, within first..last-1, that `pieces` hold."""
    found = []
    for lo, hi in pairwise(bounds) if pieces is None else pieces:
        colour = bisect_right(bounds, lo) - 1
        # The last place of some colours is empty: they end earlier.
        a, b = max(lo - bounds[colour], first), min(hi - bounds[colour], last)
        if a < b:
            found.append((colour, a, b))
    return found


def _window(
    graph: PairGraph, posteriors: Maker, shape: tuple[int, int], first: int, width: int,
    device: torch.device,
) -> Posteriors:  # fmt: skip
    """Posteriors at `width` places from `first` on, of all colours one after the other."""
    c, B = shape
    bounds = torch.as_tensor(graph.bounds, device=device)
    place = (first + torch.arange(width, device=device)) % graph.size
    at = (bounds[:-1, None] + place).flatten()
    # Where a colour has no last place another object stands in, which no row asks for.
    at = torch.where((place < bounds.diff()[:, None]).flatten(), at, 0)
    values = torch.zeros(tile_count(len(at)), c * B, TILE, device=device)
    live = torch.zeros(len(at), dtype=torch.int64, device=device)
    size = max(1, _ROOM[device.type] // (8 * TILE * c * B)) * TILE
    for lo in range(0, len(at), size):
        post = posteriors(at[lo : lo + size])
        post = torch.where(post < TINY, 0.0, post)
        alive = (post > 0).any(2)
        for a in range(c):
            live[lo : lo + size] |= alive[:, a].long() << (a % 64)
        fill = -len(post) % TILE
        laid_out = torch.nn.functional.pad(post.reshape(len(post), c * B), (0, 0, 0, fill))
        laid_out = laid_out.reshape(-1, TILE, c * B).transpose(1, 2)
        values[lo // TILE : lo // TILE + len(laid_out)] = laid_out
    return Posteriors(values, live, c, B, first)

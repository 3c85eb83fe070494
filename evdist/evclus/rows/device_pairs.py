"""Kept pairs of a fit on a device: how their dissimilarities are made, which pieces it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evdist.data.sources import AttributeSource
from evdist.engine.plan import Plan
from evdist.evclus.rows.arrays import Graph
from evdist.evclus.rows.attributes import made_from, table_tiles
from evdist.evclus.rows.cuda import kernels_on
from evdist.evclus.rows.kept import Kept, Make, Piece, keep
from evdist.evclus.rows.memory import Choice
from evdist.evclus.rows.sweep import Block
from evdist.evclus.sampling import SourcePairs
from evdist.kernels.graph import PairGraph

#: Rows whose dissimilarities the host computes at a time.
_ROWS = 1 << 14


@dataclass(frozen=True)
class DevicePairs:
    """Kept pairs whose dissimilarities `device` makes, and keeps where `choice` says."""

    made: SourcePairs
    device: torch.device
    choice: Choice

    @property
    def n(self) -> int:
        return self.made.n

    @property
    def entries(self) -> int:
        return self.made.entries

    @cached_property
    def graph(self) -> Graph:
        return Graph.of(self.made.graph, self.device)

    @cached_property
    def kept(self) -> Kept:
        """Of all rows, in the pieces of every plan."""
        plan = Plan.of(self.made.graph.bounds)
        pieces = by_colour(plan, self.graph.bounds, range(len(plan.pieces)))
        return keep_pieces(self.made, self.graph, pieces, self.device, self.choice)

    def kept_on(self, device: torch.device, pieces: Sequence[Piece]) -> tuple[Graph, Kept]:
        """What a state of this device needs, whichever pieces it updates."""
        return self.graph, self.kept

    def block(self, lo: int, hi: int) -> Block:
        return device_block(self.made.graph, self.kept, lo, hi)


def device_block(graph: PairGraph, kept: Kept, lo: int, hi: int, views: int = 1) -> Block:
    """Pairs of positions lo..hi-1 that a device keeps, as the host has them.

    With several `views` a pair has as many residuals: a row's partners stand once for each, with
    n added for every view after the first.
    """
    k, bounds = views * graph.k, graph.bounds.tolist()
    partner, degree = graph.partners(lo, hi)
    delta = np.empty((hi - lo, k), np.float32)
    for colour, (a, b) in enumerate(pairwise(bounds)):
        first, last = max(lo, a), min(hi, b)
        if first < last:
            found = kept.columns(colour, first - a, last - a)
            delta[first - lo : last - lo] = found.float().cpu().numpy().T
    if (degree < graph.k).any():
        # Partners that do not exist stand last here, and between the others on the device.
        missing = ~np.tile(graph.there(lo, hi), (1, views))
        delta = np.take_along_axis(delta, np.argsort(missing, axis=1, kind="stable"), axis=1)
    if views > 1:
        view, which = np.divmod(np.arange(k), np.maximum(degree, 1)[:, None])
        used = view < views
        entry = np.take_along_axis(partner, np.where(used, which, graph.k - 1), axis=1)
        partner = entry + (np.where(used, view, 0) * graph.n).astype(np.uint32)
    first_entry = np.arange(hi - lo, dtype=np.int64) * k
    return Block(lo, first_entry, views * degree, partner.reshape(-1), delta.reshape(-1))


def spread_out(graph: PairGraph, block: Block, hi: int) -> np.ndarray:
    """Dissimilarities of a block's rows, (rows, k), as a device wants them.

    Partners that do not exist stand last in the block, and between the others on the device.
    """
    k, lo = graph.k, block.row0
    if block.degree.min() == k:
        return block.delta.reshape(-1, k)
    rows = np.zeros((hi - lo, k), np.float32)
    used = np.arange(k) < block.degree[:, None]
    entry = block.first[:, None] + np.arange(k)
    rows[graph.there(lo, hi)] = block.delta[entry[used]]
    return rows


def by_colour(plan: Any, bounds: Sequence[int], pieces: Sequence[int]) -> list[list[Piece]]:
    """Places of some pieces of a plan, for each colour in ascending order."""
    out: list[list[Piece]] = [[] for _ in bounds[1:]]
    for q in sorted(pieces):
        lo, hi = plan.pieces[q]
        colour = int(np.searchsorted(bounds, lo, side="right")) - 1
        out[colour].append((lo - bounds[colour], hi - bounds[colour]))
    return out


def keep_pieces(
    pairs: SourcePairs,
    graph: Graph,
    pieces: Sequence[Sequence[Piece]],
    device: torch.device,
    choice: Choice,
) -> Kept:
    """Make the dissimilarities of some pieces, and keep them where `choice` says."""
    like = torch.empty(graph.k, 0, device=device)
    return keep(choice.where, _maker(pairs, graph, device), pieces, choice.columns, like)


def _maker(pairs: SourcePairs, graph: Graph, device: torch.device) -> Make:
    """Attributes are compared on the device; other dissimilarities come from the host."""
    source = pairs.source
    if isinstance(source, AttributeSource):
        sums, end, d = source.metric.code
        table = table_tiles(source.table, d, device, pairs.order)
        return made_from(kernels_on(device, 2), table, graph, (sums, end), pairs.d0)

    def make(colour: int, a: int, b: int, out: Tensor) -> None:
        start = graph.bounds[colour]
        for lo in range(a, b, _ROWS):
            hi = min(lo + _ROWS, b)
            rows = spread_out(pairs.graph, pairs.block(start + lo, start + hi), start + hi)
            out[:, lo - a : hi - a] = torch.from_numpy(rows).to(device).T

    return make

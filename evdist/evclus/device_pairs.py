"""Kept pairs of a fit on GPUs: what their dissimilarities are made from, and where they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch

from evdist.data.sources import AttributeSource
from evdist.evclus.gpu.arrays import Graph
from evdist.evclus.gpu.data import CODES
from evdist.evclus.gpu.kept import Kept, Whole
from evdist.evclus.gpu.memory import Choice
from evdist.evclus.gpu.pairs import BlockPairs, RowPairs
from evdist.evclus.gpu.share import Terms, by_colour, device_here, keep_pieces
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.sampling import Layout
from evdist.evclus.sites import SourcePairs
from evdist.evclus.sweep import Block
from evdist.kernels.circulant import Circulant
from evdist.kernels.graph import PairGraph

__all__ = ["DevicePairs", "MadeOnDevice", "OnDevice", "WorkerPairs", "plain", "row_pairs"]
__all__ += ["terms_of"]


def plain(graph: PairGraph) -> Circulant:
    """The graph as it travels: whoever gets it needs NumPy alone."""
    return Circulant(graph.n, graph.colours, graph.offsets, graph.shifts)


def row_pairs(source: AttributeSource, layout: Layout, d0: float) -> RowPairs:
    d = len(source.metric.centre)
    code = CODES[source.name]
    return RowPairs(plain(layout.graph), source.table, layout.order, d, code, d0)


class OnDevice:
    """Kept pairs whose dissimilarities a device holds or makes: `kept`, by colour."""

    layout: PairGraph
    graph: Graph
    kept: Kept

    @property
    def n(self) -> int:
        return self.layout.n

    @property
    def entries(self) -> int:
        return self.layout.entries

    def block(self, lo: int, hi: int) -> Block:
        k, bounds = self.layout.k, self.layout.bounds.tolist()
        partner, degree = self.layout.partners(lo, hi)
        delta = np.empty((hi - lo, k), np.float32)
        for colour, (a, b) in enumerate(pairwise(bounds)):
            first, last = max(lo, a), min(hi, b)
            if first < last:
                found = self.kept.columns(colour, first - a, last - a)
                delta[first - lo : last - lo] = found.float().cpu().numpy().T
        if (degree < k).any():
            # Partners that do not exist stand last here, and between the others on the device.
            missing = ~self.layout.there(lo, hi)
            delta = np.take_along_axis(delta, np.argsort(missing, axis=1, kind="stable"), axis=1)
        entry = np.arange(hi - lo, dtype=np.int64) * k
        return Block(lo, entry, degree, partner.ravel(), delta.ravel())


@dataclass(frozen=True)
class DevicePairs(OnDevice):
    """Kept pairs whose dissimilarities lie on a device: entry (h, i) is partner h of row i."""

    layout: PairGraph
    delta: torch.Tensor

    @cached_property
    def graph(self) -> Graph:  # type: ignore[override]
        return Graph.of(self.layout, self.delta.device)

    @cached_property
    def kept(self) -> Kept:  # type: ignore[override]
        return Whole(self.delta, self.graph.bounds)


@dataclass(frozen=True)
class MadeOnDevice(OnDevice):
    """Kept pairs whose dissimilarities a device makes, and keeps where `choice` says."""

    layout: PairGraph
    pairs: RowPairs | BlockPairs
    device: str
    choice: Choice

    @cached_property
    def graph(self) -> Graph:  # type: ignore[override]
        return Graph.of(self.layout, device_here(self.device))

    @cached_property
    def kept(self) -> Kept:  # type: ignore[override]
        """Of all rows, in the pieces of every plan."""
        plan = Plan.of(self.layout.bounds)
        return keep_pieces(
            self.pairs, self.graph, by_colour(plan, self.graph, range(len(plan.pieces))),
            device_here(self.device), self.choice.where, self.choice.columns,
        )  # fmt: skip


@dataclass(frozen=True)
class WorkerPairs:
    """Kept pairs that every worker makes for its own rows; here, where no GPU need be, by the CPU.

    `block` is for a look at a few pairs. Its dissimilarities may differ from those of a GPU in the
    last bit; sums that decide anything are made on the workers.
    """

    pairs: SourcePairs
    there: MadeOnDevice

    @property
    def n(self) -> int:
        return self.pairs.n

    @property
    def entries(self) -> int:
        return self.pairs.entries

    def block(self, lo: int, hi: int) -> Block:
        return self.pairs.block(lo, hi)


def terms_of(problem: Problem) -> Terms:
    links, f = problem.links, len(problem.focal_sets)
    C = problem.focal_sets.C[None] if problem.projections is None else problem.projections
    linked = links is not None and links.first.size > 0
    return Terms(
        np.asarray(C[:, :, :f], np.float32), problem.plan, problem.weight,
        tuple(links) if links is not None and linked else None,
    )  # fmt: skip

"""Dissimilarities as NN-EVCLUS takes them: inside subsets, or of the kept pairs of each object.

Reference: Denoeux (2021), NN-EVCLUS, eqs. (6), (15) and figure 6.

Symbols
-------
delta   (b, b) transformed dissimilarities inside a subset of the objects
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from evdist.data.sources import AttributeSource, Source
from evdist.evclus.sampling import draw_layout, sample_pairs
from evdist.kernels.distances import METRICS
from evdist.nnevclus.loss import Kept
from evdist.nnevclus.loss import transformed as transform
from evdist.nnevclus.rows import as_tensor
from evdist.nnevclus.shards import Deltas, Products

__all__ = ["OfSource", "kept", "make_deltas"]


@dataclass(frozen=True)
class OfSource:
    """Dissimilarities of any kind, computed on the CPU."""

    source: Source
    d0: float

    def on(self, device: torch.device) -> OfSource:
        return self

    def __call__(self, rows: Tensor) -> Tensor:
        """delta (b, b) among objects `rows` (b,), on their device."""
        mine = rows.cpu().numpy().astype(np.uint32)
        D = self.source.distances(mine, np.tile(mine, (len(mine), 1)))
        return transform(as_tensor(D, rows.device).square_(), self.d0)


def make_deltas(source: Source, d0: float) -> Deltas:
    """Matrix products for a metric that is a function of the Euclidean distance of some table."""
    if isinstance(source, AttributeSource):
        sums, end = METRICS[source.name]
        if sums == "squares":
            return Products(source.table[:, : source.metric.code[2]], end, d0)
    return OfSource(source, d0)


def kept(source: Source, k: int, d0: float, seed: int, device: torch.device) -> Kept:
    """k symmetric partners of each object, drawn as for EVCLUS; eq. (15)."""
    n = source.n
    layout = draw_layout(n, k, seed)
    pairs = sample_pairs(source, layout, d0)
    order = layout.order.astype(np.int64)
    by_object = np.empty(n, np.int64)
    by_object[order] = np.arange(n)
    width = layout.graph.k
    partner = order[pairs.partner.reshape(n, width)][by_object]
    used = (np.arange(width) < pairs.degree[:, None])[by_object]
    delta = pairs.delta.reshape(n, width)[by_object]
    at = torch.from_numpy(np.ascontiguousarray(partner)).to(device)
    return Kept(at, as_tensor(delta, device), as_tensor(used.astype(np.float32), device))

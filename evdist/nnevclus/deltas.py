"""Dissimilarities that NN-EVCLUS is trained on: inside subsets of objects, or of kept pairs.

Reference: Denoeux (2021), NN-EVCLUS, eqs. (6), (15) and figure 6.

Symbols
-------
delta   (b, b) transformed dissimilarities inside a subset of the objects
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evdist.data.inputs import load
from evdist.data.sources import AttributeSource, PairList, Source, is_pair_list, make_source
from evdist.evclus.sampling import draw_layout, sample_pairs
from evdist.kernels.distances import METRICS
from evdist.nnevclus.loss import KeptPairs, transformed
from evdist.nnevclus.network import as_tensor
from evdist.nnevclus.shards import Deltas, Products


def source_of(X: NDArray, metric: Any, metric_features: Any) -> Source:
    """Dissimilarities of the rows of X, or of the features given instead."""
    Z = features_of(X, metric_features)
    if is_pair_list(Z, metric):
        raise ValueError(
            'NNEVCLUS needs the dissimilarity of any two objects: metric="pairs" is not known.'
        )
    source = make_source(Z, metric)
    assert not isinstance(source, PairList)
    return source


def features_of(X: NDArray, metric_features: Any) -> NDArray:
    """The rows that are compared: those of X, or of the features given instead."""
    if metric_features is None:
        return X
    Z = load(metric_features)
    if Z.shape[0] != len(X):
        raise ValueError(f"metric_features has {Z.shape[0]} rows, X has {len(X)}.")
    return np.asarray(Z, dtype=float)


@dataclass(frozen=True)
class SourceDeltas:
    """Dissimilarities of any kind, computed on the CPU."""

    source: Source
    d0: float

    def on(self, device: torch.device) -> SourceDeltas:
        return self

    def __call__(self, rows: Tensor) -> Tensor:
        """delta (b, b) among objects `rows` (b,), on their device."""
        mine = rows.cpu().numpy().astype(np.uint32)
        D = self.source.distances(mine, np.tile(mine, (len(mine), 1)))
        return transformed(as_tensor(D, rows.device).square_(), self.d0)


def make_deltas(source: Source, d0: float) -> Deltas:
    """Matrix products for a metric that is a function of the Euclidean distance of some table."""
    if isinstance(source, AttributeSource):
        sums, end = METRICS[source.name]
        if sums == "squares":
            return Products(source.table[:, : source.metric.code[2]], end, d0)
    return SourceDeltas(source, d0)


def draw_pairs(source: Source, k: int, d0: float, seed: int, device: torch.device) -> KeptPairs:
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
    return KeptPairs(at, as_tensor(delta, device), as_tensor(used.astype(np.float32), device))

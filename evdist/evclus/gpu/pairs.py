"""Kept pairs of a fit as they travel to a device: what their dissimilarities are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from evdist.evclus.gpu.arrays import Graph
from evdist.evclus.gpu.cuda_rows import rows_on
from evdist.evclus.gpu.data import ReadyRows, made_from, tiles_of
from evdist.evclus.gpu.kept import Make
from evdist.kernels.circulant import Circulant

__all__ = ["BlockPairs", "MadePairs", "RowPairs"]

#: Rows that are asked for at a time.
_ROWS = 1 << 14


class MadePairs(Protocol):
    """Transformed dissimilarities of the pairs of a `Circulant`, which a device can make."""

    @property
    def layout(self) -> Circulant: ...

    @property
    def d(self) -> int:
        """Attributes that lie on the device meanwhile, 0 for none."""
        ...

    def maker(self, graph: Graph, device: torch.device) -> Make: ...


@dataclass(frozen=True)
class RowPairs:
    """Pairs of rows of numbers, compared on the device.

    Attributes
    ----------
    layout : Circulant
    X : (n, >= d) float32
        Ready for the metric, by object; columns beyond d are not looked at.
    order : (n,) position -> object
    d : int
    code : (int, int), one of `evdist.evclus.gpu.data.CODES`
    d0 : float
    """

    layout: Circulant
    X: np.ndarray
    order: np.ndarray
    d: int
    code: tuple[int, int]
    d0: float

    def maker(self, graph: Graph, device: torch.device) -> Make:
        order = torch.as_tensor(self.order.astype(np.int64), device=device)
        table = tiles_of(self.X[:, : self.d], ReadyRows(self.code), order)
        return made_from(rows_on(device, 2), table, graph, self.code, self.d0)


@dataclass(frozen=True)
class BlockPairs:
    """Pairs whose dissimilarities the host knows: those of `pairs.block(lo, hi)`.

    A block has `delta`, and for each row the `first` of its entries there and its `degree`.
    """

    layout: Circulant
    pairs: Any
    d: int = 0

    def maker(self, graph: Graph, device: torch.device) -> Make:
        k = self.layout.k

        def make(colour: int, a: int, b: int, out: Tensor) -> None:
            start = graph.bounds[colour]
            for lo in range(a, b, _ROWS):
                hi = min(lo + _ROWS, b)
                block = self.pairs.block(start + lo, start + hi)
                rows = np.zeros((hi - lo, k), np.float32)
                # Partners that do not exist stand last there, and between the others here.
                used = np.arange(k) < block.degree[:, None]
                entry = block.first[:, None] + np.arange(k)
                rows[self.layout.there(start + lo, start + hi)] = block.delta[entry[used]]
                out[:, lo - a : hi - a] = torch.from_numpy(rows).to(device).T

        return make

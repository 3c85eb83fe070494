"""The intervals and sweeps of Bootclus on a GPU, between a mixture and masses as everywhere.

The mixture and its replicates are fitted on the CPU. Pairs, order and start are those of the same
fit there, so masses are those of the CPU but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evdist.bootclus.device_intervals import WINDOW_BYTES, gaussian_posteriors, interval_targets
from evdist.bootclus.interval_kernel import ranks
from evdist.bootclus.intervals import MIN_BAND, IntervalPairs
from evdist.bootclus.replicates import GaussianReplicates
from evdist.engine.memory import check_memory
from evdist.evclus.problem import Pairs
from evdist.evclus.rows.arrays import Graph
from evdist.evclus.rows.device import DeviceRows
from evdist.evclus.rows.device_pairs import device_block
from evdist.evclus.rows.kept import Kept, Piece, Resident
from evdist.evclus.rows.memory import thread_memory
from evdist.evclus.rows.sweep import Block
from evdist.kernels.graph import MIN_COLOURS, PairGraph


def intervals_of(
    name: str, shape: tuple[int, int], k: int, B: int, c: int, client: Any = None
) -> tuple[DeviceRows, Callable[[IntervalPairs], Pairs]]:
    """The rows of a device, and what makes the intervals of a fit there; `fit_masses` takes both.

    With a client, those of each of its workers. A fit that finds too little memory is refused.
    """
    rows, need = DeviceRows(name), (shape, k, B, c)
    if client is None:
        check_memory_on(rows.device, *need)
        return rows, partial(intervals_on, rows.device)
    client.run(_check_worker, rows, *need)
    return rows, SentIntervals


def _check_worker(rows: DeviceRows, *need: Any) -> None:
    check_memory_on(rows.device, *need)


@dataclass(frozen=True)
class SentIntervals:
    """Kept pairs whose intervals each worker makes on its device, for its own pieces."""

    made: IntervalPairs

    @property
    def n(self) -> int:
        return self.made.n

    @property
    def entries(self) -> int:
        return self.made.entries

    def kept_on(self, device: torch.device, pieces: Sequence[Piece]) -> tuple[Graph, Kept]:
        """The graph on a device, and the intervals of some pieces: runs of positions."""
        there = intervals_on(device, self.made, pieces)
        return there.graph, there.kept

    def block(self, lo: int, hi: int) -> Block:
        """For a look at a few of them, here."""
        return self.made.block(lo, hi)


@dataclass(frozen=True)
class DeviceIntervals:
    """Kept pairs with two residuals, on a device: targets (2 k, n) are P^l, then 1 - P^u."""

    layout: PairGraph
    targets: Tensor

    @property
    def n(self) -> int:
        return self.layout.n

    @property
    def entries(self) -> int:
        return 2 * self.layout.entries

    @cached_property
    def graph(self) -> Graph:
        return Graph.of(self.layout, self.targets.device)

    @cached_property
    def kept(self) -> Resident:
        return Resident.whole(self.targets, self.graph.bounds)

    def kept_on(self, device: torch.device, pieces: Sequence[Piece]) -> tuple[Graph, Kept]:
        return self.graph, self.kept

    def block(self, lo: int, hi: int) -> Block:
        """As those of `IntervalPairs`: a row's partners, then the same with n added."""
        return device_block(self.layout, self.kept, lo, hi, views=2)


def intervals_on(
    device: torch.device, made: IntervalPairs, pieces: Sequence[Piece] | None = None
) -> DeviceIntervals:
    """The intervals of all kept pairs, or of some pieces, made and kept on a device."""
    replicates = made.replicates
    c, B = replicates.n_clusters, replicates.size
    targets = interval_targets(
        made.graph, _posteriors(device, made), (c, B), ranks(B, made.confidence), device=device,
        pieces=pieces,
    )  # fmt: skip
    return DeviceIntervals(made.graph, targets)


def _posteriors(device: torch.device, made: IntervalPairs) -> Callable[[Tensor], Tensor]:
    """Posteriors (rows, c, B) at some positions: of Gaussians there, of other mixtures here."""
    replicates = made.replicates
    if isinstance(replicates, GaussianReplicates):
        factors = [torch.as_tensor(a, device=device) for a in replicates.factors]
        X = torch.as_tensor(np.require(made.X, float, ["C", "W"]), device=device)
        return lambda at: gaussian_posteriors(X[at], *factors)

    def sent(at: Tensor) -> Tensor:
        rows = made.X[at.cpu().numpy()]
        post = np.empty((len(rows), replicates.n_clusters, replicates.size), np.float32)
        replicates.posteriors(rows, post)
        return torch.as_tensor(post, device=device)

    return sent


def check_memory_on(
    name: str | torch.device, shape: tuple[int, int], k: int, B: int, c: int
) -> None:
    """Refuse a fit that cannot fit into the GPU's free memory, with the cure.

    Held at once: two targets of a kept pair; masses on all pairs of clusters three times, with
    two tables, and a few numbers for each object; the data, a window of posteriors, and as much
    again to make them.
    """
    device = torch.device(name)
    if device.type != "cuda":
        return
    n, d = shape
    f = c + c * (c - 1) // 2
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    band = min(n, 8 * max(MIN_BAND, 2 * k) * MIN_COLOURS)
    window = WINDOW_BYTES + max(WINDOW_BYTES, 4 * c * B * band)
    parts = {
        f"{n:,} x {k} kept pairs": 8 * n * k,
        "masses": n * (4 * 5 * f + 24) + thread_memory(f, processors, views=2),
        "data and replicates": 8 * n * d + window + 8 * B * c * d * (d + 1),
    }
    check_memory(
        parts, "Lower n_dissimilarities or n_bootstrap, or fit on the CPU.",
        free=torch.cuda.mem_get_info(device)[0], where="on the GPU",
    )  # fmt: skip

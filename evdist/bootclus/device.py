"""The intervals and sweeps of Bootclus on a GPU, between a mixture and masses as everywhere.

The mixture and its replicates are fitted on the CPU. Pairs, order and start are those of the same
fit there, so masses are those of the CPU but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evdist.belief import FocalSets
from evdist.bootclus.interval_kernel import ranks
from evdist.bootclus.intervals import MIN_BAND, IntervalPairs, Replicates
from evdist.bootclus.replicates import GaussianReplicates
from evdist.bootclus.solver import MassFit, fit_masses
from evdist.evclus.gpu.arrays import Graph, State, on_grid, tiles, untile
from evdist.evclus.gpu.cuda_rows import rows_on
from evdist.evclus.gpu.intervals import WINDOW_BYTES, gaussian_posteriors, interval_targets
from evdist.evclus.gpu.memory import thread_memory
from evdist.evclus.gpu.sweeps import sweep
from evdist.evclus.problem import Problem
from evdist.evclus.sites import LocalSite
from evdist.evclus.sweep import Block
from evdist.kernels.graph import MIN_COLOURS, PairGraph

__all__ = ["DeviceIntervals", "IntervalExecutor", "check_memory_on", "fit_masses_on"]
__all__ += ["intervals_on"]


def fit_masses_on(
    name: str | torch.device,
    X: NDArray,
    replicates: Replicates,
    focal_sets: FocalSets,
    start: NDArray,
    *,
    site: LocalSite,
    **how: Any,
) -> MassFit:
    """`fit_masses`, with the same arguments, and its work on a device; the folder is the site's."""
    there = _IntervalSite(site.n_threads, site.folder, site.checkpoint_every)
    hold = partial(intervals_on, torch.device(name))
    return fit_masses(X, replicates, focal_sets, start, site=there, hold=hold, **how)


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

    def block(self, lo: int, hi: int) -> Block:
        """As those of `IntervalPairs`: a row's partners, then the same with n added."""
        n, k = self.layout.n, self.layout.k
        partner, degree = self.layout.partners(lo, hi)
        column, degree = np.arange(2 * k), degree[:, None]
        second = (column >= degree) & (column < 2 * degree)
        which = np.minimum(np.where(second, column - degree, column), k - 1)
        entry = np.take_along_axis(partner, which, axis=1) + (second * n).astype(np.uint32)
        target = np.ascontiguousarray(self.targets[:, lo:hi].cpu().numpy().T)
        if (degree < k).any():
            # Partners that do not exist stand last here, and between the others on the device.
            missing = ~np.tile(self.layout.there(lo, hi), (1, 2))
            target = np.take_along_axis(target, np.argsort(missing, axis=1, kind="stable"), axis=1)
        first = np.arange(hi - lo, dtype=np.int64) * (2 * k)
        return Block(lo, first, 2 * degree[:, 0], entry.reshape(-1), target.reshape(-1))


class IntervalExecutor:
    """Runs the sweeps of one problem on the device of its intervals."""

    def __init__(self, problem: Problem, mass: NDArray):
        assert isinstance(problem.pairs, DeviceIntervals)
        self.problem = problem
        pairs, device = problem.pairs, problem.pairs.targets.device
        start = torch.as_tensor(np.ascontiguousarray(mass, dtype=np.float32), device=device)
        f = start.shape[1]
        self._rows = rows_on(device, f)
        self._state = State.of(
            Graph.of(pairs.layout, device), pairs.targets[None], tiles(on_grid(start))[None],
            problem.projection[:, :, :f],
        )  # fmt: skip

    def sweep(self, rest: float = 0.0, then: Callable[[float], float] | None = None) -> float:
        """One pass over all rows; none rests here, where neighbours are updated together anyway.

        Returns the change of the sum over pairs, zero or negative.
        """
        return float(sweep(self._rows, self._state)[0])

    def objective(self) -> tuple[float, float]:
        """(sum over pairs of both squares, each pair counted once; no penalty)."""
        return float(self._rows.objective(self._state)[0]) / 2, 0.0

    def masses(self) -> NDArray[np.float32]:
        """The present masses, (n, f), in positions."""
        return np.ascontiguousarray(untile(self._state.mass[0], self.problem.n).cpu().numpy())

    def close(self) -> None:
        del self._state


@dataclass(frozen=True)
class _IntervalSite(LocalSite):
    """This process, with its sweeps on a device."""

    def executor(  # type: ignore[override]
        self, problem: Problem, mass: NDArray
    ) -> IntervalExecutor:
        return IntervalExecutor(problem, mass)


def intervals_on(device: torch.device, made: IntervalPairs) -> DeviceIntervals:
    """The intervals of all kept pairs, made and kept on a device."""
    replicates = made.replicates
    c, B = replicates.n_clusters, replicates.size
    targets = interval_targets(
        made.graph, _posteriors(device, made), (c, B), ranks(B, made.confidence), device=device
    )
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
    pairs, masses = 8 * n * k, n * (4 * 5 * f + 24)
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    masses += thread_memory(f, processors, views=2)
    band = min(n, 8 * max(MIN_BAND, 2 * k) * MIN_COLOURS)
    window = (
        8 * n * d + WINDOW_BYTES + max(WINDOW_BYTES, 4 * c * B * band) + 8 * B * c * d * (d + 1)
    )
    need, free = pairs + masses + window, torch.cuda.mem_get_info(device)[0]
    if need > free:
        raise MemoryError(
            f"This fit needs about {need / 1e9:.1f} GB on the GPU ({pairs / 1e9:.1f} GB for {n:,} "
            f"x {k} kept pairs, {masses / 1e9:.1f} GB for masses, {window / 1e9:.1f} GB for data "
            f"and replicates), but {free / 1e9:.1f} GB are free. Lower n_dissimilarities or "
            "n_bootstrap, or fit on the CPU."
        )

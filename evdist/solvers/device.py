"""EVCLUS on a GPU, under the same stages, checkpoints and constraints as everywhere.

Attributes are sampled, started and swept on the device; other dissimilarities are computed here,
and swept there. Pairs are those of the same fit on the CPU. They stay on the device: a checkpoint
folder holds masses only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from evdist.blocks.problem import MemoryPairs, Problem
from evdist.gpu.arrays import Graph, State, on_grid, tiles, untile
from evdist.gpu.cuda_rows import Rows, rows_on
from evdist.gpu.data import CODES, ReadyRows, sample, tiles_of
from evdist.gpu.fit import (
    LANDMARK_SWEEPS,
    PLACED_AGAINST,
    STARTS,
    check_device_memory,
    some_objects,
)
from evdist.gpu.links import DeviceLinks
from evdist.gpu.start import Landmarks as DeviceLandmarks
from evdist.gpu.start import choose_d0, fit_landmarks, place
from evdist.kernels.graph import PairGraph
from evdist.kernels.sweep import Block
from evdist.solvers.evclus import (
    LANDMARKS_PER_CLUSTER,
    MIN_LANDMARKS,
    MIN_TRIAL,
    TRIAL_PER_CLUSTER,
    Constraints,
    Fit,
    Settings,
    first_focal_sets,
    fit_evclus,
)
from evdist.solvers.irqp import Progress
from evdist.solvers.sampling import Layout, sample_pairs
from evdist.solvers.sites import LocalSite
from evdist.solvers.start import Landmarks
from evdist.sources import AttributeSource, PairList, Source

__all__ = ["DeviceExecutor", "DeviceSite", "find_device", "fit_evclus_on", "place_on"]


def find_device(name: str) -> torch.device | None:
    """The GPU of device="cuda", "cuda:1" or "auto"; None where "auto" finds none."""
    if torch.cuda.is_available():
        device = torch.device("cuda" if name == "auto" else name)
        if (device.index or 0) < torch.cuda.device_count():
            return device
        raise ValueError(
            f"device={name!r} was asked for, but there are {torch.cuda.device_count()} GPUs."
        )
    if name == "auto":
        return None
    raise ValueError(
        f"device={name!r} needs a GPU that torch can use, but torch {torch.__version__} finds none "
        "here. Use device='cpu', or 'auto' to take a GPU only where there is one."
    )


def fit_evclus_on(
    device: torch.device,
    data: Source | PairList,
    settings: Settings,
    *,
    constraints: Constraints,
    weight: NDArray[np.float32] | None,
    site: LocalSite,
    report: Callable[[Progress], None] | None = None,
) -> Fit:
    """`fit_evclus` with its work on a device; threads and folder are those of `site`."""
    if isinstance(data, PairList):
        raise ValueError(
            "A list of pairs has a graph of its own, which the GPU's sweeps cannot follow. Use "
            "device='cpu', or pass the attributes or a square matrix."
        )
    first = first_focal_sets(settings.focal_sets, settings.n_clusters)
    there = DeviceSite(site.n_threads, site.folder, site.checkpoint_every, device)
    curve: list[tuple[float, float]] = []
    if isinstance(data, AttributeSource):
        d = len(data.metric.centre)
        check_device_memory(device, data.n, settings.k, len(first), d)
        settings, curve = _start(device, data, settings)
    fit = fit_evclus(
        data, settings, constraints=constraints, weight=weight, site=there, report=report
    )
    return replace(fit, d0_curve=curve) if curve else fit


def _tensor(array: NDArray) -> torch.Tensor:
    """A view of an array, or of a copy where it is read-only, which torch would warn of."""
    return torch.from_numpy(np.require(array, requirements="W"))


def _rows_of(source: AttributeSource) -> tuple[torch.Tensor, ReadyRows]:
    """The source's rows, ready for its metric, in the memory of the host."""
    d = len(source.metric.centre)
    return _tensor(source.table)[:, :d], ReadyRows(CODES[source.name])


def _some_tiles(
    device: torch.device, source: AttributeSource, objects: NDArray
) -> tuple[torch.Tensor, ReadyRows]:
    X, ready = _rows_of(source)
    where = torch.as_tensor(objects.astype(np.int64), device=device)
    return tiles_of(X, ready, where), ready


def _start(
    device: torch.device, source: AttributeSource, settings: Settings
) -> tuple[Settings, list[tuple[float, float]]]:
    """Settings with the d0 and the masses that the device has found, and the curve of d0."""
    n, c, seed = source.n, settings.n_clusters, settings.seed
    curve: list[tuple[float, float]] = []
    if settings.d0 == "auto":
        few = some_objects(n, max(MIN_TRIAL, TRIAL_PER_CLUSTER * c), seed)
        data, ready = _some_tiles(device, source, few)
        d0, curve = choose_d0(data, len(few), ready.code, c, k=settings.k, seed=seed)
        settings = replace(settings, d0=d0)
    objects = some_objects(n, max(MIN_LANDMARKS, LANDMARKS_PER_CLUSTER * c), seed)
    seeded = isinstance(settings.init, str) and settings.init != "random"
    if not seeded or isinstance(settings.d0, str) or len(objects) == n:
        return settings, curve
    data, ready = _some_tiles(device, source, objects)
    sets = first_focal_sets(settings.focal_sets, c)
    landmarks = fit_landmarks(
        data, len(objects), ready.code, sets, settings.d0, k=settings.k,
        n_starts=STARTS * settings.n_init, init=str(settings.init), tol=settings.stop.tol,
        max_iter=LANDMARK_SWEEPS, seed=seed, everyone=False,
    )  # fmt: skip
    X, _ = _rows_of(source)
    everyone = tiles_of(X, ready, torch.arange(n, device=device))
    k = min(settings.k, PLACED_AGAINST)
    mass = untile(place(landmarks, everyone, n, ready.code, k=k, seed=seed), n).cpu().numpy()
    mass[objects] = landmarks.mass.cpu().numpy()
    return replace(settings, init=mass), curve


@dataclass(frozen=True)
class DevicePairs:
    """Kept pairs whose dissimilarities lie on a device: entry (h, i) is partner h of row i."""

    layout: PairGraph
    delta: torch.Tensor

    @property
    def n(self) -> int:
        return self.layout.n

    @property
    def entries(self) -> int:
        return self.layout.entries

    @cached_property
    def graph(self) -> Graph:
        return Graph.of(self.layout, self.delta.device)

    def block(self, lo: int, hi: int) -> Block:
        partner, degree = self.layout.partners(lo, hi)
        delta = np.ascontiguousarray(self.delta[:, lo:hi].float().cpu().numpy().T)
        if (degree < self.layout.k).any():
            # Partners that do not exist stand last here, and between the others on the device.
            missing = ~_there(self.layout, lo, hi)
            delta = np.take_along_axis(delta, np.argsort(missing, axis=1, kind="stable"), axis=1)
        first = np.arange(hi - lo, dtype=np.int64) * self.layout.k
        return Block(lo, first, degree, partner.ravel(), delta.ravel())


def _there(graph: PairGraph, lo: int, hi: int) -> NDArray[np.bool_]:
    """Which of the k partners of rows lo..hi-1 exist, (rows, k)."""
    rows = np.arange(lo, hi)
    colour = np.searchsorted(graph.bounds, rows, side="right") - 1
    other = (colour[:, None] + np.array(graph.offsets)) % graph.colours
    at = ((rows - graph.bounds[colour])[:, None] + np.array(graph.shifts)) % graph.size
    return at < np.diff(graph.bounds)[other]


def _upload(pairs: MemoryPairs, graph: PairGraph, device: torch.device) -> torch.Tensor:
    """Dissimilarities (k, n) of pairs in memory, each in the place of its partner."""
    there = _there(graph, 0, graph.n)
    rows = pairs.delta.reshape(graph.n, graph.k)
    out = np.zeros_like(rows)
    out[there] = rows[np.arange(graph.k) < pairs.degree[:, None]]
    return torch.as_tensor(np.ascontiguousarray(out.T), device=device)


@dataclass(frozen=True)
class DeviceSite(LocalSite):
    """A GPU of this machine; what is not done there is done on threads."""

    device: torch.device = field(default_factory=lambda: torch.device("cuda"))

    def sample(  # type: ignore[override]
        self, source: Source, layout: Layout, d0: float, seed: int
    ) -> DevicePairs:
        if not isinstance(source, AttributeSource):
            pairs = sample_pairs(source, layout, d0, self.n_threads)
            return DevicePairs(layout.graph, _upload(pairs, layout.graph, self.device))
        X, ready = _rows_of(source)
        order = torch.as_tensor(layout.order.astype(np.int64), device=self.device)
        data = tiles_of(X, ready, order)
        rows = rows_on(self.device, 2)
        graph = Graph.of(layout.graph, self.device)
        delta = sample(rows, data, graph, ready.code, d0, torch.float32)
        return DevicePairs(layout.graph, delta)

    def executor(self, problem: Problem, mass: NDArray) -> DeviceExecutor:  # type: ignore[override]
        return DeviceExecutor(problem, mass)


class DeviceExecutor:
    """Runs the sweeps of one problem on the device of its pairs."""

    def __init__(self, problem: Problem, mass: NDArray):
        assert isinstance(problem.pairs, DevicePairs)
        self.problem = problem
        pairs = problem.pairs
        device = pairs.delta.device
        self._rows: Rows = rows_on(device, len(problem.focal_sets))
        start = torch.as_tensor(np.ascontiguousarray(mass, dtype=np.float32), device=device)
        weight = _tensor(problem.weight).to(device) if problem.weight.size else None
        self._state = State.of(
            pairs.graph,
            pairs.delta[None],
            tiles(on_grid(start))[None],
            problem.focal_sets.C,
            weight,
        )
        self._links: DeviceLinks | None = None
        if problem.links is not None and problem.links.first.size:
            links = problem.links
            self._links = DeviceLinks.of(
                links.first, links.other, links.sign, links.Q, links.penalty, device
            )
            self._state.extra = torch.zeros_like(self._state.mass[0])
        self._steps = [self._step(s) for s in range(len(problem.plan.steps))]

    def _step(self, step: int) -> list[tuple[int, torch.Tensor | None, torch.Tensor]]:
        """(colour, places in it, its linked rows) for each colour that a step has rows of."""
        bounds, device = np.array(self._state.graph.bounds), self._state.mass.device
        nobody = torch.zeros(0, dtype=torch.int64, device=device)
        if self._links is None:
            return [(step, None, nobody)]
        rows = np.concatenate([r for _, r in self.problem.plan.rows(step)])
        linked = self._links.rows.cpu().numpy()
        colour = np.searchsorted(bounds, rows, side="right") - 1
        out: list[tuple[int, torch.Tensor | None, torch.Tensor]] = []
        for b in np.unique(colour).tolist():
            mine = rows[colour == b]
            which = np.flatnonzero(np.isin(linked, mine))
            places = torch.as_tensor((mine - bounds[b]).astype(np.int32), device=device)
            whole = len(mine) == bounds[b + 1] - bounds[b]
            out.append((b, None if whole else places, torch.as_tensor(which, device=device)))
        return out

    def sweep(self, rest: float = 0.0) -> float:
        """One pass over all rows; none rests here, where neighbours are updated together anyway.

        Returns the change of the sum over pairs, zero or negative.
        """
        state = self._state
        for step in self._steps:
            for colour, places, linked in step:
                if self._links is not None and len(linked):
                    assert state.extra is not None
                    at = self._links.rows[linked]
                    half = 0.5 * self._links.gradient(state.mass[0], linked)
                    state.extra[at >> 5, :, at & 31] = half.float()
                self._rows.update(state, colour, places)
        return float(state.change.sum(dtype=torch.float64))

    def objective(self) -> tuple[float, float]:
        """(stress, penalty) summed over all pairs and links, each counted once."""
        stress = float(self._rows.objective(self._state)[0]) / 2
        return stress, 0.0 if self._links is None else self._links.total(self._state.mass[0])

    def masses(self) -> NDArray[np.float32]:
        """The present masses, (n, f), in positions."""
        return np.ascontiguousarray(untile(self._state.mass[0], self.problem.n).cpu().numpy())

    def close(self) -> None:
        del self._state


def place_on(
    device: torch.device, landmarks: Landmarks, X: NDArray, k: int
) -> NDArray[np.float32] | None:
    """Masses of new objects (rows, f), each against the same k landmarks.

    None where the landmarks have no attributes.
    """
    source = landmarks.source
    if not isinstance(source, AttributeSource):
        return None
    known, ready = _some_tiles(device, source, np.arange(source.n))
    mass = _tensor(landmarks.mass).to(device)
    there = DeviceLandmarks(known, mass, landmarks.focal_sets, landmarks.d0)
    rows = _tensor(source.metric.table(X))[:, : len(source.metric.centre)]
    data = tiles_of(rows, ready, torch.arange(len(X), device=device))
    found = place(there, data, len(X), ready.code, k=k, seed=0, spread=False)
    return untile(found, len(X)).cpu().numpy()

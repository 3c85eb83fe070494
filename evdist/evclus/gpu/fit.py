"""EVCLUS from end to end on a device: start, sample, sweep, predict. NumPy and torch alone.

Reference: Li, Li, Denoeux (2018), k-CEVCLUS, algorithm 1. The stages are those of
`evdist.evclus.solver`; the same seed gives the same bits from run to run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from evdist.belief import FocalSets
from evdist.evclus.gpu.arrays import Graph, Partners, State, on_grid, tiles, untile
from evdist.evclus.gpu.cuda_rows import rows_on
from evdist.evclus.gpu.data import DeviceMetric, made_from, tiles_of
from evdist.evclus.gpu.kept import cut, keep
from evdist.evclus.gpu.memory import Need, Room, choose
from evdist.evclus.gpu.parts import PartRows
from evdist.evclus.gpu.start import Landmarks, choose_d0, fit_landmarks, place, positive_quantile
from evdist.evclus.gpu.sweeps import run
from evdist.kernels.circulant import Circulant

__all__ = [
    "DeviceFit",
    "fit_on_device",
    "labels_of",
    "predict_on_device",
    "some_objects",
]

#: The numbers of `evdist.evclus.solver`.
MIN_LANDMARKS, LANDMARKS_PER_CLUSTER = 1000, 60
MIN_TRIAL, TRIAL_PER_CLUSTER = 500, 30
PLACED_AGAINST = 50
STARTS = 10
#: At most for the landmarks; whoever stops a fit early and goes on later starts from the same ones.
LANDMARK_SWEEPS = 200
#: Rows handled at a time where a pass needs room.
_ROWS = 1 << 22


@dataclass(frozen=True)
class DeviceFit:
    """What a fit leaves, on the device.

    Attributes
    ----------
    mass : (n, f) float32, by object
    objective : float
        Mean over kept pairs of (conflict - transformed dissimilarity)^2, in float64.
    history : list of float
        Before the first and after every sweep; it never rises.
    landmarks : Landmarks
        With `metric`, what `predict_on_device` needs.
    kept : {"device", "host", "recomputed"}
        Where the dissimilarities were while the fit swept over them.
    """

    mass: Tensor
    focal_sets: FocalSets
    objective: float
    history: list[float]
    converged: bool
    d0: float
    d0_curve: list[tuple[float, float]]
    landmarks: Landmarks
    metric: DeviceMetric
    kept: str


def fit_on_device(
    X: Tensor | np.ndarray,
    n_clusters: int,
    *,
    n_dissimilarities: int = 100,
    metric: str = "euclidean",
    focal_sets: FocalSets | None = None,
    d0: float | str = "auto",
    init: str | Tensor = "landmarks",
    n_init: int = 1,
    tol: float = 1e-5,
    max_iter: int = 200,
    seed: int = 0,
    weight: Tensor | None = None,
    half: bool = False,
    order: Tensor | np.ndarray | None = None,
    device: str | torch.device = "cuda",
    memory_limit: int | None = None,
    report: Callable[[int, float], None] | None = None,
) -> DeviceFit:
    """Fit EVCLUS on a GPU (or, slowly, on a CPU with torch).

    Parameters
    ----------
    X : (n, d) tensor on the device, or array or tensor in the memory of the host
        One in the host's memory is sent in blocks; the device keeps one float32 copy meanwhile.
    focal_sets : FocalSets, default simple
    d0 : float, "auto", or a quantile such as "q0.9"
    init : "landmarks", "k-means++", "random", or masses (n, f) by object
    weight : (n,) tensor, positive, of mean one
    half : bool
        Keep dissimilarities as float16: half the memory, and an objective off by about 1e-4.
    order : (n,) position -> object; drawn on the device by default
    memory_limit : bytes that the fit may take on the device; by default what is free there
        Where dissimilarities do not fit, they are sent from the host's memory or computed again
        in every sweep: the bits are the same.
    report : called with (sweep, objective) after every sweep
    """
    device = torch.device(device)
    X = torch.as_tensor(X)
    n = len(X)
    sets = FocalSets.simple(n_clusters) if focal_sets is None else focal_sets
    k = min(n_dissimilarities, n - 1)
    need = Need(n, k, len(sets), X.shape[1], n, 2 if half else 4)
    choice = choose(need, Room.on(device, memory_limit))
    ready = DeviceMetric.of(X, metric)
    ready = replace(ready, centre=ready.centre.to(device),
                    whiten=None if ready.whiten is None else ready.whiten.to(device))  # fmt: skip
    d0, curve = _choose_d0(X, ready, n_clusters, d0, k, seed, device)
    objects = some_objects(n, max(MIN_LANDMARKS, LANDMARKS_PER_CLUSTER * n_clusters), seed)
    rng = np.random.default_rng([seed, n, k])
    if order is None:
        order = _draw_order(n, seed, device)
    order = torch.as_tensor(order, device=device)
    graph = Graph.of(Circulant.draw(n, k, rng), device)
    few = tiles_of(X, ready, torch.as_tensor(objects, device=device))
    data = tiles_of(X, ready, order)
    mass, landmarks = _start(
        data, few, objects, order, ready, sets, d0, init=init, n_init=n_init, k=k, tol=tol,
        seed=seed,
    )  # fmt: skip
    pieces = cut(graph.bounds)
    like = torch.empty(graph.k, 0, dtype=torch.float16 if half else torch.float32, device=device)
    make = made_from(rows_on(device, 2), data, graph, ready.code, d0)
    kept = keep(choice.where, make, pieces, choice.columns, like)
    del data, make  # but where they are computed again
    laid_out = None if weight is None else weight.to(device=device, dtype=torch.float32)[order]
    state = State.of(graph, like[None], mass[None], sets.C, laid_out)
    del mass
    rows = PartRows(rows_on(device, len(sets)), kept, pieces, state)
    course = run(rows, state, 1.0 / _total_weight(state), tol, max_iter, report)
    found = _by_object(state, order)
    where = torch.as_tensor(objects, device=device)
    landmarks = replace(landmarks, mass=found[where], focal_sets=sets)
    history = [float(value[0]) for value in course.history]
    return DeviceFit(
        found, sets, history[-1], history, course.converged, d0, curve, landmarks, ready,
        choice.where,
    )  # fmt: skip


def _choose_d0(
    X: Tensor, metric: DeviceMetric, c: int, d0: float | str, k: int, seed: int,
    device: torch.device,
) -> tuple[float, list[tuple[float, float]]]:  # fmt: skip
    if not isinstance(d0, str):
        return float(d0), []
    trial = some_objects(len(X), max(MIN_TRIAL, TRIAL_PER_CLUSTER * c), seed)
    data = tiles_of(X, metric, torch.as_tensor(trial, device=device))
    if d0 == "auto":
        return choose_d0(data, len(trial), metric.code, c, k=k, seed=seed)
    return _quantile(data, len(trial), metric.code, float(d0[1:])), []


def _quantile(data: Tensor, n: int, code: tuple[int, int], q: float) -> float:
    """A quantile of the dissimilarities of a sample, each object against up to 100 others."""
    partners = Partners.landmarks(np.arange(1, min(n, 101)), n, data.device)
    D = torch.empty(partners.k, n, device=data.device)
    rows_on(data.device, 2).distances(
        data, data, D, partners, code, 0.0, lo=0, first=0, rows=n, place=0, spread=1
    )
    return positive_quantile(D.cpu().numpy(), q)


def some_objects(n: int, count: int, seed: int) -> np.ndarray:
    """A random sample of the objects, all of them when there are not more."""
    if count >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 3, n]).choice(n, count, replace=False))


def _draw_order(n: int, seed: int, device: torch.device) -> Tensor:
    """A random layout: position -> object."""
    generator = torch.Generator(device).manual_seed(seed)
    dtype = torch.int32 if n < 2**31 else torch.int64
    return torch.randperm(n, generator=generator, device=device, dtype=dtype)


def _start(
    data: Tensor, few: Tensor, objects: np.ndarray, order: Tensor, metric: DeviceMetric,
    sets: FocalSets, d0: float, *, init: str | Tensor, n_init: int, k: int, tol: float, seed: int,
) -> tuple[Tensor, Landmarks]:  # fmt: skip
    """Initial masses in tiles (T, f, 32), in positions, and the landmarks of the objects."""
    n, f = len(order), len(sets)
    if not isinstance(init, str) or init == "random":
        if isinstance(init, str):
            rng = np.random.default_rng([seed, 5, 0])
            init = torch.as_tensor(rng.dirichlet(np.ones(f), n).astype(np.float32))
        given = torch.as_tensor(init)[order.to(torch.as_tensor(init).device)].to(order.device)
        unknown = torch.zeros(len(objects), f, device=order.device)
        return tiles(on_grid(given)), Landmarks(few, unknown, sets, d0)
    everyone = len(objects) == n
    landmarks = fit_landmarks(
        few, len(objects), metric.code, sets, d0, k=k, n_starts=STARTS * n_init, init=init,
        tol=tol, max_iter=LANDMARK_SWEEPS, seed=seed, everyone=everyone,
    )  # fmt: skip
    if everyone:
        return tiles(on_grid(landmarks.mass[order.long()])), landmarks
    mass = place(landmarks, data, n, metric.code, k=min(k, PLACED_AGAINST), seed=seed)
    position = torch.empty_like(order)
    position[order.long()] = torch.arange(n, dtype=order.dtype, device=order.device)
    at = position[torch.as_tensor(objects, device=order.device)].long()
    mass[at >> 5, :, at & 31] = on_grid(landmarks.mass)
    return mass, landmarks


def _total_weight(state: State) -> float:
    """Sum over kept pairs of their weights."""
    if state.weight is None:
        return state.graph.entries / 2
    total = 0.0
    for colour, partners in enumerate(state.graph.colours):
        lo, hi = state.graph.bounds[colour : colour + 2]
        for a in range(lo, hi, _ROWS):
            place = torch.arange(a, min(a + _ROWS, hi), device=state.mass.device)
            for h in range(partners.k):
                one = replace(partners, base=partners.base[h : h + 1], lim=partners.lim[h : h + 1],
                              shift=partners.shift[h : h + 1])  # fmt: skip
                at, there = one.positions(place - lo)
                pair = state.weight[place] * state.weight[at[0]] * there[0]
                total += float(pair.sum(dtype=torch.float64))
    return total / 2


def _by_object(state: State, order: Tensor) -> Tensor:
    """Masses (n, f) by object."""
    n = len(order)
    out = torch.empty(n, state.f, device=order.device)
    for lo in range(0, n, _ROWS):
        hi = min(lo + _ROWS, n)
        out[order[lo:hi].long()] = untile(state.mass[0][lo // 32 : -(-hi // 32)], hi - lo)
    return out


def labels_of(mass: Tensor, focal_sets: FocalSets) -> Tensor:
    """Cluster of maximum plausibility, (n,); the first of equals."""
    F = torch.as_tensor(focal_sets.matrix.astype(np.float64), device=mass.device)
    return torch.cat([(part.double() @ F).argmax(1) for part in mass.split(_ROWS)])


def predict_on_device(fit: DeviceFit, X: Tensor | np.ndarray, k: int = 100) -> Tensor:
    """Masses (rows, f) of new objects, each placed by itself against the same k landmarks."""
    device = fit.landmarks.data.device
    X = torch.as_tensor(X)
    data = tiles_of(X, fit.metric, torch.arange(len(X), device=device))
    mass = place(fit.landmarks, data, len(X), fit.metric.code, k=k, seed=0, spread=False)
    return untile(mass, len(X))

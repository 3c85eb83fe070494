"""Bootclus and NN-EVCLUS on a GPU: the parts `bootclus` and `nn` of gpu_speed.py.

Only what the GPU does is run: intervals and sweeps of Bootclus, the training of NN-EVCLUS.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from bounds import Bounds
from torch import Tensor

from evdist.belief import FocalSets, mutual_neighbour_pairs
from evdist.bootclus.device import DeviceIntervals
from evdist.bootclus.device_intervals import gaussian_posteriors, interval_targets
from evdist.bootclus.solver import belief_projections
from evdist.data.sources import AttributeSource
from evdist.engine.loop import Solution
from evdist.evclus.d0 import choose_d0
from evdist.evclus.irqp import Stop, minimise
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.rows.device import DeviceRows
from evdist.kernels.graph import PairGraph
from evdist.nnevclus.loss import LossTerms
from evdist.nnevclus.network import Network, layers, weights_of
from evdist.nnevclus.shards import Piece, Products, Shard
from evdist.nnevclus.training import Schedule, Trainer, TrainingTask, TrainState

__all__ = ["bootclus", "nn"]


# ---------------------------------------------------------------------- Bootclus
@dataclass(frozen=True)
class Mixtures:
    """Seven Gaussians in four dimensions, and B mixtures as far from them as samples of size n.

    mu (B, c, d), L (B, c, d, d) Cholesky factors of the covariances, weight (B, c); the first is
    the true one.
    """

    mu: np.ndarray
    L: np.ndarray
    weight: np.ndarray

    @classmethod
    def draw(cls, n: int, B: int, c: int = 7, d: int = 4) -> Mixtures:
        rng = np.random.default_rng(0)
        centres = rng.uniform(-2.5, 2.5, (c, d))
        roots = rng.normal(size=(c, d, d)) * 0.4 + np.eye(d) * 0.8
        L = np.linalg.cholesky(roots @ roots.transpose(0, 2, 1))
        noise = np.sqrt(c / n)
        mu = centres + noise * (L @ rng.normal(size=(B, c, d, 1)))[..., 0]
        factors = L @ (np.eye(d) + noise * np.tril(rng.normal(size=(B, c, d, d))))
        weight = (1 + noise * rng.normal(size=(B, c))) / c
        mu[0], factors[0], weight[0] = centres, L, 1 / c
        return cls(mu, factors, weight / weight.sum(axis=1, keepdims=True))

    def objects(self, n: int, device: torch.device) -> Tensor:
        generator = torch.Generator(device).manual_seed(0)
        y = torch.randint(0, self.mu.shape[1], (n,), generator=generator, device=device)
        Z = torch.randn(
            n, self.mu.shape[2], generator=generator, device=device, dtype=torch.float64
        )
        mu, L = (torch.as_tensor(v[0], device=device) for v in (self.mu, self.L))
        for k in range(len(mu)):
            Z = torch.where((y == k)[:, None], Z @ L[k].T + mu[k], Z)
        return Z

    def factors(self, device: torch.device) -> list[Tensor]:
        """U, mu and a of `gaussian_posteriors`."""
        U = np.linalg.inv(self.L)
        a = np.log(self.weight) - np.log(np.diagonal(self.L, axis1=2, axis2=3)).sum(axis=2)
        return [torch.as_tensor(v, device=device) for v in (U, self.mu, a)]


@dataclass(frozen=True)
class IntervalFit:
    mass: Tensor
    sets: FocalSets
    course: Solution
    made_s: float
    swept_s: float


def _wait(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def fit_intervals(
    X: Tensor, mixtures: Mixtures, sets: FocalSets, k: int, tol: float
) -> IntervalFit:
    """Intervals of level .9 and the sweeps on them, on the device of X."""
    n, device = len(X), X.device
    B, c = mixtures.weight.shape
    factors = mixtures.factors(device)
    graph = PairGraph.band(n, k, max(256, 2 * k), np.random.default_rng(1))
    low, high = 0.05 * (B - 1), 0.95 * (B - 1)
    places = int(low), low - int(low), int(high), high - int(high)
    began = _wait(device)
    targets = interval_targets(
        graph, lambda at: gaussian_posteriors(X[at], *factors), (c, B), places, device=device
    )
    made = _wait(device)
    mass = torch.zeros(n, len(sets) - 1, device=device)
    mass[:, sets.singletons - 1] = gaussian_posteriors(X, *(v[:1] for v in factors))[:, :, 0]
    pairs = DeviceIntervals(graph, targets)
    problem = Problem(sets, pairs, Plan.of(graph.bounds), projections=belief_projections(sets))
    executor = DeviceRows(str(device)).executor(problem, mass)
    course = minimise(executor, 2.0 / graph.entries, Stop(tol, 200))
    swept = _wait(device)
    found = torch.nn.functional.pad(course.value, (1, 0))
    return IntervalFit(found, sets, course, made - began, swept - made)


def _sets(mixtures: Mixtures, X: Tensor) -> FocalSets:
    factors = mixtures.factors(X.device)
    post = gaussian_posteriors(X[:5000], *(v[:1] for v in factors))[:, :, 0].double().cpu().numpy()
    return FocalSets.pairs(post.shape[1], mutual_neighbour_pairs(post, 2), omega=False)


def bootclus(bounds: Bounds) -> None:
    gpu, B, k = torch.device("cuda"), 100, 50
    for n in (10**6, 10**7):
        mixtures = Mixtures.draw(n, B)
        X = mixtures.objects(n, gpu)
        sets = _sets(mixtures, X)
        fit_intervals(X[:20_000], mixtures, sets, k, 1e-5)  # compile
        first = fit_intervals(X, mixtures, sets, k, 1e-5).mass
        torch.cuda.reset_peak_memory_stats()
        fit = fit_intervals(X, mixtures, sets, k, 1e-5)
        history = np.array(fit.course.history)
        exponent = len(str(n)) - 1
        bounds.head(
            f"Bootclus, n = 10^{exponent}, d = 4, c = 7, B = {B}, k = {k}, {len(sets)} focal sets, "
            f"{torch.cuda.get_device_name()}"
        )
        bounds.note("intervals, s", fit.made_s)
        bounds.note("start and sweeps, s", fit.swept_s)
        bounds.note("sweeps", len(history) - 1, digits=0)
        bounds.note("  each, ms", 1e3 * fit.swept_s / (len(history) - 1), digits=1)
        bounds.note("objective, 1e-6", 1e6 * history[-1], digits=4)
        bounds.at_most("largest rise of the objective", float(np.diff(history).max()), 0.0)
        bounds.at_most("bits that differ from run to run", float((first != fit.mass).sum()), 0,
                       digits=0)  # fmt: skip
        bounds.note("peak of device memory, GB", torch.cuda.max_memory_allocated() / 1e9, digits=1)
        del first, fit, X
    _against_float64(bounds, gpu)


def _against_float64(bounds: Bounds, gpu: torch.device) -> None:
    """The same pairs and start on the CPU, by torch in float64."""
    n, k = 9000, 20
    mixtures = Mixtures.draw(n, 100)
    X = mixtures.objects(n, torch.device("cpu"))
    sets = _sets(mixtures, X)
    there = fit_intervals(X.to(gpu), mixtures, sets, k, 1e-8)
    here = fit_intervals(X, mixtures, sets, k, 1e-8)
    J = [fit.course.objective for fit in (here, there)]
    labels = [(fit.mass.cpu().double().numpy() @ sets.matrix).argmax(1) for fit in (here, there)]
    bounds.head(f"n = {n}, k = {k}: against float64 on the CPU, tol = 1e-8")
    bounds.note("objective, 1e-6", 1e6 * J[1], digits=4)
    bounds.at_most("objectives differ by, 1e-5", 1e5 * abs(J[1] / J[0] - 1), 1.0)
    bounds.at_most("labels that differ", float((labels[0] != labels[1]).sum()), 0, digits=0)


# ---------------------------------------------------------------------- NN-EVCLUS
def _mnist(folder: Path) -> np.ndarray:
    with np.load(folder / "mnist.npz") as stored:
        return stored["X"].reshape(len(stored["y"]), -1).astype(np.float32) / 255


def _trained(
    task: TrainingTask, shard: Shard, device: str, threads: int, epochs: int
) -> tuple[float, list[float], float]:
    """Epochs per second (the first not counted), loss of each epoch, loss in the end.

    The steps are made smaller twice, as the estimator does: at the first rate the loss of a network
    hangs on its last steps, and runs that differ by one rounding part by per cents.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    where = torch.device(device)
    start = weights_of(task.network)
    trainer = Trainer(replace(task, network=copy.deepcopy(task.network)), [shard], where)
    trainer.load(TrainState(start))
    losses = [trainer.epoch(0)]
    began = _wait(where)
    for number in range(1, epochs + 1):
        if number in (round(0.6 * epochs), round(0.8 * epochs)):
            trainer.set_rate(1 + (number == round(0.8 * epochs)))
        losses.append(trainer.epoch(number))
    seconds = _wait(where) - began
    final = trainer.evaluate(held=False)
    torch.set_num_threads(before)
    return epochs / seconds, losses, final


def nn(bounds: Bounds, folder: Path, device: str = "cuda", epochs: int = 20) -> None:
    """MNIST by mini-batches of 500, one hidden layer of 100: the settings of nnevclus_speed.py."""
    X = _mnist(folder)
    few = np.sort(np.random.default_rng(0).choice(len(X), 500, replace=False))
    source = AttributeSource.of(X[few], "euclidean")
    [d0, *_], _ = choose_d0(source, 10, k=100, seed=0, rows=DeviceRows(device))
    # As the estimator does: one centre, one scale.
    x = X - X.mean(axis=0)
    x /= np.sqrt(np.mean(x.astype(np.float64) ** 2))
    sets = FocalSets.simple(10)
    network = Network(layers((x.shape[1], 100)), 100, len(sets), False)
    network.draw(np.random.default_rng(0), x)
    schedule = Schedule("rmsprop", 1e-3, 500, 0.0, 0.0, 10, epochs, 0)
    task = TrainingTask(network, LossTerms(sets), schedule, len(x))
    shard = Shard(0, [Piece(x, None, Products(X - X.mean(axis=0), "root", d0))])
    rate, losses, final = _trained(task, shard, device, 1, epochs)
    again = _trained(task, shard, device, 1, epochs)[2]
    rate_cpu, losses_cpu, final_cpu = _trained(task, shard, "cpu", 2, epochs)
    rate_one, *_ = _trained(task, shard, "cpu", 1, 4)
    name = torch.cuda.get_device_name() if device == "cuda" else device
    bounds.head(f"NN-EVCLUS, MNIST {len(x)} x {x.shape[1]}, hidden (100,), {epochs} epochs, {name}")
    bounds.note("epochs per second, GPU", rate, digits=2)
    bounds.note("epochs per second, two CPU cores", rate_cpu, digits=2)
    bounds.note("epochs per second, one CPU core", rate_one, digits=2)
    bounds.at_least("ratio to the faster of both", rate / max(rate_cpu, rate_one), 1.0, digits=1)
    bounds.note("final loss, GPU", final, digits=6)
    bounds.note("final loss, CPU", final_cpu, digits=6)
    bounds.at_most("final losses differ by, %", 100 * abs(final / final_cpu - 1), 1.0)
    curve = np.abs(np.array(losses) / np.array(losses_cpu) - 1)
    bounds.note("  losses of an epoch differ by at most, %", 100 * float(curve.max()))
    bounds.at_most("final losses of two runs on the GPU differ by", abs(final - again), 0.0)

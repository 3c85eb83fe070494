"""NN-EVCLUS from end to end: inputs, dissimilarities, restarts, the network that is kept.

Reference: Denoeux (2021), NN-EVCLUS.

Differs: inputs are centred and divided by one number, so that the mean variance of their columns
is one. It moves no distance against another, and weights start where the data are.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from evdist.belief import FocalSets
from evdist.kernels.nn_model import FlatWeights, Network, layers
from evdist.solvers.evclus import MIN_TRIAL, TRIAL_PER_CLUSTER
from evdist.solvers.irqp import Progress
from evdist.solvers.nnevclus_batch import adaptive_steps, lbfgs
from evdist.solvers.nnevclus_epochs import Alone, Schedule, Shard, Trainer, TrainState, train
from evdist.solvers.nnevclus_rows import (
    Deltas,
    Inputs,
    Known,
    Loss,
    Weights,
    kept,
    one_thread,
)
from evdist.solvers.sampling import random_dissimilarities
from evdist.solvers.start import choose_d0, positive_quantile
from evdist.sources import Source

__all__ = ["Fit", "Problem", "fit_batch", "fit_epochs", "network_masses", "pick_d0"]
__all__ += ["rebuilt", "starts"]

#: Rows that the network works on at a time. Always so many, the last ones filled up: what an
#: object gets must not depend on who stands beside it.
ROWS = 1024
#: Kept dissimilarities of each object when d0 is chosen.
_TRIAL_K = 100

Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Problem:
    """What the network shall learn."""

    x: NDArray[np.float32]
    fx: NDArray[np.float32] | None
    source: Source
    d0: float
    focal_sets: FocalSets
    weights: Weights
    known: Known | None
    device: torch.device

    @property
    def n(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Fit:
    """A trained network: its state_dict, and how it came about."""

    weights: dict[str, NDArray]
    objective: float
    history: list[float]
    converged: bool


def pick_d0(
    source: Source, d0: float | str, n_clusters: int, seed: int, n_threads: int
) -> tuple[float, list[tuple[float, float]]]:
    """A number, a quantile of the dissimilarities, or "auto": chosen on a sample, as for EVCLUS."""
    if not isinstance(d0, str):
        return float(d0), []
    if d0 != "auto":
        return positive_quantile(random_dissimilarities(source, seed), float(d0[1:])), []
    count = max(MIN_TRIAL, TRIAL_PER_CLUSTER * n_clusters)
    if count < source.n:
        rng = np.random.default_rng([seed, 3, source.n])
        some = np.sort(rng.choice(source.n, count, replace=False)).astype(np.uint32)
        source = source.subset(some)
    k = min(_TRIAL_K, source.n - 1)
    return choose_d0(source, n_clusters, k=k, seed=seed, n_threads=n_threads)


def starts(
    hidden: tuple[int, ...], body: nn.Module | None, problem: Problem, n_init: int, seed: int
) -> list[Network]:
    """Networks with drawn weights. A given body keeps its weights in the first start."""
    f, gate = len(problem.focal_sets), problem.fx is not None
    found = []
    for i in range(n_init):
        rng = np.random.default_rng([seed, 23, i])
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**62)))
            if body is None:
                network = Network(layers((problem.x.shape[1], *hidden)), hidden[-1], f, gate)
                network.draw(rng, problem.x)
            else:
                mine = copy.deepcopy(body).to("cpu", torch.float32)
                if i:
                    for part in mine.modules():
                        if hasattr(part, "reset_parameters"):
                            part.reset_parameters()  # type: ignore[operator]
                network = Network(mine, _width(mine, problem.x), f, gate)
        found.append(network)
    return found


def rebuilt(
    weights: dict[str, NDArray], hidden: tuple[int, ...], body: nn.Module | None
) -> Network:
    """The network with these weights, on the CPU."""
    f, h = weights["head.weight"].shape
    with torch.random.fork_rng():  # layers are born with random weights
        if body is None:
            mine: nn.Module = layers((weights["body.0.weight"].shape[1], *hidden))
        else:
            mine = copy.deepcopy(body).to("cpu", torch.float32)
        network = Network(mine, h, f, "beta" in weights)
    network.load_state_dict({name: torch.from_numpy(np.array(v)) for name, v in weights.items()})
    return network.eval()


def _width(body: nn.Module, x: NDArray[np.float32]) -> int:
    """Features that a user's module gives, tried on two rows."""
    rows = x[: min(2, len(x))]
    body.eval()
    with torch.no_grad():
        out = body(torch.from_numpy(np.ascontiguousarray(rows)))
    if not isinstance(out, torch.Tensor) or out.ndim != 2 or len(out) != len(rows):
        shape = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise ValueError(
            f"body must give (rows, features) for inputs {tuple(rows.shape)}, got {shape}. End it "
            "with torch.nn.Flatten()."
        )
    return out.shape[1]


# ---------------------------------------------------------------------- all objects at once
def fit_batch(
    problem: Problem,
    network: Network,
    *,
    k: int | None,
    optimizer: str,
    stop: Schedule,
    report: Report,
    stage: str,
) -> Fit:
    """Minimise eq. (9), or with k kept pairs of each object eq. (15)."""
    n, device = problem.n, problem.device
    watch = _Watch(stop, report, stage, n)
    with one_thread():
        network.to(device)
        flat = FlatWeights(network)
        inputs = Inputs.of(problem.x, problem.fx, device)
        loss = Loss(network, problem.focal_sets, problem.weights, problem.known, device)
        order = np.random.default_rng([stop.seed, 17]).permutation(n)
        held, own = np.split(order, [round(stop.validation * n)])
        own = np.sort(own)
        source = problem.source if not len(held) else problem.source.subset(own.astype(np.uint32))
        deltas = Deltas(problem.source, problem.d0, device)
        pairs = deltas(own) if k is None else kept(source, k, problem.d0, stop.seed, device)
        outside = deltas(held) if len(held) else None
        mine, others = torch.from_numpy(own).to(device), torch.from_numpy(held).to(device)

        def put(theta: NDArray) -> None:
            flat.theta.copy_(torch.from_numpy(theta))

        def fun(theta: NDArray) -> tuple[float, NDArray[np.float64]]:
            put(theta)
            flat.grad.zero_()
            value = loss(inputs.masses(network, mine), pairs)
            value.backward()
            return float(value.detach()), flat.grad.double().cpu().numpy()

        def after(theta: NDArray, value: float) -> bool:
            watched = value
            if outside is not None:
                put(theta)
                network.eval()
                with torch.no_grad():
                    watched = float(loss(inputs.masses(network, others), outside))
                network.train()
            return watch(theta, value, watched)

        network.train()
        theta = flat.theta.double().cpu().numpy()
        watch.begin(theta, fun(theta)[0])
        method = lbfgs if optimizer == "lbfgs" else adaptive_steps
        theta = method(fun, theta, stop.max_iter, after)
        if outside is not None:
            theta = watch.kept
        network.eval()
        value = fun(theta)[0]
        weights = {name: v.cpu().numpy().copy() for name, v in network.state_dict().items()}
    history = [*watch.history[:-1], value]
    # L-BFGS also ends where its line search finds nothing lower, which is the end as well.
    converged = watch.stopped or len(watch.history) - 1 < stop.max_iter
    return Fit(weights, value, history, converged)


class _Watch:
    """Stops when the watched loss has not fallen by `tol` for `patience` iterations."""

    def __init__(self, stop: Schedule, report: Report, stage: str, rows: int):
        self._stop, self._report, self._stage, self._rows = stop, report, stage, rows
        self.history: list[float] = []
        self.stopped = False
        self.kept: NDArray = np.empty(0)
        self._best, self._since = np.inf, 0
        self._began = time.perf_counter()

    def begin(self, theta: NDArray, value: float) -> None:
        self.history = [value]
        self.kept = theta.copy()

    def __call__(self, theta: NDArray, value: float, watched: float) -> bool:
        self.history.append(value)
        if watched < self._best * (1 - self._stop.tol):
            self._best, self._since, self.kept = watched, 0, theta.copy()
        else:
            self._since += 1
        self.stopped = self._since >= self._stop.patience
        tell(self._report, self._stage, self.history, self._stop.max_iter, self._rows, self._began)
        return self.stopped


def tell(
    report: Report, stage: str, history: list[float], most: int, rows: int, began: float
) -> None:
    """One line of news after an iteration."""
    done = len(history) - 1
    seconds = max(time.perf_counter() - began, 1e-9) / done
    change = history[-1] - history[-2]
    report(
        Progress(stage, done, most, history[-1], change, rows / seconds, (most - done) * seconds)
    )


# ---------------------------------------------------------------------- mini-batches
def fit_epochs(
    problem: Problem,
    network: Network,
    *,
    schedule: Schedule,
    report: Report,
    stage: str,
    state: TrainState | None = None,
    keep: Callable[[TrainState], None] = lambda state: None,
    every: int = 1,
) -> Fit:
    """Minimise the loss inside random subsets, in this process.

    `keep` gets the state after every `every` epochs; `state` is one to go on from.
    """
    shard = Shard(problem.x, problem.fx, problem.source, problem.d0)
    trainer = Trainer(
        network, shard, problem.focal_sets, problem.weights, problem.known, schedule,
        problem.device, Alone(),
    )  # fmt: skip
    steps = steps_of_epoch(problem.n, schedule)
    if state is None:
        state = TrainState(trainer.state_dict())
    began, first = time.perf_counter(), state.epoch
    while state.epoch < schedule.max_iter and not state.converged:
        at = len(state.history)
        state = train(trainer, state, every, steps)
        keep(state)
        tell_epochs(report, stage, state, max(at, 1), schedule.max_iter, problem.n, began, first)
    return finish(trainer, state)


def tell_epochs(
    report: Report, stage: str, state: TrainState, at: int, most: int, rows: int, began: float,
    first: int,
) -> None:  # fmt: skip
    """News of the epochs whose losses stand in the history from `at` on."""
    seconds = max(time.perf_counter() - began, 1e-9) / max(state.epoch - first, 1)
    for done in range(at, len(state.history)):
        value, change = state.history[done], state.history[done] - state.history[done - 1]
        left = (most - done) * seconds
        report(Progress(stage, done, most, value, change, rows / seconds, left))


def steps_of_epoch(rows: int, schedule: Schedule) -> int:
    """Subsets of about `batch_size` among the rows that are not held out."""
    own = rows - round(schedule.validation * rows)
    return max(1, round(own / schedule.batch_size))


def finish(trainer: Trainer, state: TrainState) -> Fit:
    """The weights to keep, with their loss computed afresh in fixed subsets of all rows."""
    weights = state.kept or state.weights
    with one_thread():
        trainer.load(TrainState(weights))
        value = trainer.evaluate(held=False)
    return Fit(weights, value, [*state.history[:-1], value], state.converged)


# ---------------------------------------------------------------------- a trained network
def network_masses(
    network: Network, x: NDArray, fx: NDArray | None, device: torch.device
) -> NDArray[np.float32]:
    """Masses of objects with inputs x (n, d), (n, f), in blocks of equal size."""
    found = []
    network.to(device).eval()
    with one_thread(), torch.no_grad():
        for lo in range(0, len(x), ROWS):
            rows = x[lo : lo + ROWS]
            fill = ROWS - len(rows)
            block = Inputs.of(
                np.pad(rows, ((0, fill), (0, 0))),
                None if fx is None else np.pad(fx[lo : lo + ROWS], (0, fill)),
                device,
            )
            found.append(block.masses(network, slice(None)).cpu().numpy()[: len(rows)])
    mass = np.concatenate(found)
    return mass / mass.sum(axis=1, keepdims=True)

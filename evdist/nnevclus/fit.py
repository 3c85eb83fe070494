"""A training of NN-EVCLUS from its start to its end: on all objects at once, or by mini-batches.

Reference: Denoeux (2021), NN-EVCLUS, section 3.2.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from evdist.engine.progress import Progress
from evdist.nnevclus.batch import adaptive_steps, lbfgs
from evdist.nnevclus.deltas import kept, make_deltas
from evdist.nnevclus.epochs import (
    Alone,
    Lesson,
    Schedule,
    Trainer,
    TrainState,
    evaluate,
    train,
    weights_of,
)
from evdist.nnevclus.network import FlatWeights, Network
from evdist.nnevclus.rows import Inputs, Loss, one_thread
from evdist.nnevclus.shards import Shard, deal_rows
from evdist.nnevclus.solver import Problem

__all__ = ["Fit", "Here", "Report", "Site", "fit_batch", "fit_epochs", "make_shards"]

Report = Callable[[Progress], None]


@dataclass(frozen=True)
class Fit:
    """A trained network: its state_dict, and how it came about."""

    weights: dict[str, NDArray]
    objective: float
    history: list[float]
    converged: bool


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
        mine, others = torch.from_numpy(own).to(device), torch.from_numpy(held).to(device)
        deltas = make_deltas(problem.source, problem.d0).on(device)
        pairs = deltas(mine) if k is None else kept(source, k, problem.d0, stop.seed, device)
        outside = deltas(others) if len(held) else None

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
        weights = weights_of(network)
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
        seconds = (time.perf_counter() - self._began) / (len(self.history) - 1)
        _tell(self._report, self._stage, self.history, self._stop.max_iter, self._rows, seconds)
        return self.stopped


# ---------------------------------------------------------------------- mini-batches
class Site(Protocol):
    """Where the shards are, and the work on them is done."""

    def begin(self, lesson: Lesson) -> None:
        """Take up the training of a network."""
        ...

    def epochs(self, state: TrainState, count: int) -> TrainState:
        """Go on for at most so many epochs."""
        ...

    def objective(self, state: TrainState) -> float: ...


class Here:
    """This process."""

    def __init__(self, shards: list[Shard], device: torch.device):
        self._shards, self._device = shards, device

    def begin(self, lesson: Lesson) -> None:
        self._trainer = Trainer(lesson, self._shards, self._device, Alone())

    def epochs(self, state: TrainState, count: int) -> TrainState:
        return train(self._trainer, state, count)

    def objective(self, state: TrainState) -> float:
        return evaluate(self._trainer, state.weights)


def make_shards(problem: Problem, count: int) -> list[Shard]:
    """The objects of the problem, dealt to so many shards."""
    if count == 1:
        return [Shard(0, problem.x, problem.fx, make_deltas(problem.source, problem.d0))]
    return [
        Shard(
            number, problem.x[rows], None if problem.fx is None else problem.fx[rows],
            make_deltas(problem.source.subset(rows.astype(np.uint32)), problem.d0),
        )
        for number, rows in enumerate(deal_rows(problem.n, count))
    ]  # fmt: skip


def fit_epochs(
    problem: Problem,
    network: Network,
    *,
    site: Site,
    shards: int,
    schedule: Schedule,
    report: Report,
    stage: str,
    every: int,
    state: TrainState | None = None,
    keep: Callable[[TrainState], None] = lambda state: None,
) -> Fit:
    """Minimise the mean loss inside random subsets of the shards.

    `keep` gets the state after every `every` epochs; `state` is one to go on from.
    """
    rows = problem.n // shards
    site.begin(Lesson(network, problem.focal_sets, problem.weights, problem.known, schedule, rows))
    if state is None:
        state = TrainState(weights_of(network))
    began, first = time.perf_counter(), state.epoch
    while state.epoch < schedule.max_iter and not state.converged:
        at = max(len(state.history), 1)
        state = site.epochs(state, every)
        keep(state)
        seconds = (time.perf_counter() - began) / (state.epoch - first)
        for done in range(at, len(state.history)):
            _tell(report, stage, state.history[: done + 1], schedule.max_iter, problem.n, seconds)
    last = TrainState(state.kept or state.weights)
    value = site.objective(last)
    return Fit(last.weights, value, [*state.history[:-1], value], state.converged)


def _tell(
    report: Report, stage: str, history: Sequence[float], most: int, rows: int, seconds: float
) -> None:
    """News of the last iteration in the history, when each takes so many seconds."""
    done, change = len(history) - 1, history[-1] - history[-2]
    left, speed = (most - done) * seconds, rows / max(seconds, 1e-9)
    report(Progress(stage, done, most, history[-1], change, speed, left))

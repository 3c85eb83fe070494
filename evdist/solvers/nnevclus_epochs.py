"""Training by mini-batches: all pairs inside the subsets of a random partition of the objects.

Reference: Denoeux (2021), NN-EVCLUS, section 3.2 and figure 6.

One process and many are the same code: each rank has rows of its own, draws its subsets from them,
and the gradients are averaged after every step (`Link`). What an epoch draws depends on the seed,
the number of the epoch and the rank alone, so a run that goes on from a `TrainState` gives the bits
of one that never stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evdist.belief import FocalSets
from evdist.kernels.nn_model import FlatWeights, Network
from evdist.solvers.nnevclus_rows import Deltas, Inputs, Known, Loss, Weights, one_thread
from evdist.sources import Source

__all__ = ["Alone", "Link", "Schedule", "Shard", "TrainState", "Trainer", "train"]

#: RMSprop's memory, as in the paper's experiments.
RHO, EPS = 0.9, 1e-8
#: Objects that the loss of held-out rows, and the last loss, is computed among at a time.
_EVALUATED = 1000


class Link(Protocol):
    """How a rank is connected to the others."""

    @property
    def rank(self) -> int: ...

    @property
    def world(self) -> int: ...

    def average(self, values: Tensor) -> None:
        """Replace the values, in place, by their mean over all ranks."""
        ...


@dataclass(frozen=True)
class Alone:
    """The only rank."""

    rank: int = 0
    world: int = 1

    def average(self, values: Tensor) -> None:
        """The mean of one."""


@dataclass(frozen=True)
class Schedule:
    """How to train: the optimiser, its steps, when to stop.

    When the watched loss has not fallen by `tol` for `patience` epochs, the learning rate is
    divided by DECAY; after DECAYS times the training has converged.
    """

    optimizer: str
    learning_rate: float
    batch_size: int
    validation: float
    tol: float
    patience: int
    max_iter: int
    seed: int

    DECAY = 5.0
    DECAYS = 2


@dataclass(frozen=True)
class TrainState:
    """Where a training stands: all that is needed to go on.

    Attributes
    ----------
    weights : the network's state_dict
    memory : what the optimiser remembers, each as long as the weights; and its step count
    history : mean loss of each epoch, the first before any
    best : lowest watched loss; `kept` the weights that had it, with held-out rows only
    """

    weights: dict[str, NDArray]
    memory: dict[str, NDArray] = field(default_factory=dict)
    epoch: int = 0
    history: tuple[float, ...] = ()
    best: float = float("inf")
    since: int = 0
    decays: int = 0
    kept: dict[str, NDArray] = field(default_factory=dict)
    converged: bool = False


@dataclass(frozen=True)
class Shard:
    """The rows of one rank."""

    x: NDArray
    fx: NDArray | None
    source: Source
    d0: float


@dataclass
class Trainer:
    """One rank's part of a training."""

    network: Network
    shard: Shard
    focal_sets: FocalSets
    weights: Weights
    known: Known | None
    schedule: Schedule
    device: torch.device
    link: Link

    def __post_init__(self) -> None:
        self.network.to(self.device)
        self._flat = FlatWeights(self.network)
        self._inputs = Inputs.of(self.shard.x, self.shard.fx, self.device)
        self._deltas = Deltas(self.shard.source, self.shard.d0, self.device)
        self._loss = Loss(self.network, self.focal_sets, self.weights, self.known, self.device)
        n = len(self.shard.x)
        order = np.random.default_rng([self.schedule.seed, 17, self.link.rank]).permutation(n)
        held = round(self.schedule.validation * n)
        self._held, self._own = np.sort(order[:held]), np.sort(order[held:])

    # -- the state
    def load(self, state: TrainState) -> None:
        given = {name: torch.from_numpy(np.array(v)) for name, v in state.weights.items()}
        self.network.load_state_dict(given)
        rate = self.schedule.learning_rate / Schedule.DECAY**state.decays
        self._optimizer = _optimizer(self.schedule.optimizer, self._flat.theta, rate)
        if state.memory:
            memory = {k: torch.from_numpy(np.array(v)) for k, v in state.memory.items()}
            memory = {
                k: v.reshape(()) if k == "step" else v.to(self.device) for k, v in memory.items()
            }
            self._optimizer.state[self._flat.theta].update(memory)

    def state_dict(self) -> dict[str, NDArray]:
        """Weights and buffers; the buffers of rank 0 hold for all."""
        found = self.network.state_dict()
        return {name: value.cpu().numpy().copy() for name, value in found.items()}

    def memory(self) -> dict[str, NDArray]:
        found = self._optimizer.state[self._flat.theta]
        return {k: v.cpu().numpy().copy() for k, v in found.items() if isinstance(v, Tensor)}

    # -- the work
    def epoch(self, number: int, steps: int) -> float:
        """A pass over the rank's rows in `steps` subsets; the mean loss over steps and ranks."""
        schedule = self.schedule
        seeds = [schedule.seed, number, self.link.rank]
        order = self._own[np.random.default_rng(seeds).permutation(len(self._own))]
        torch.manual_seed(int(np.random.default_rng(seeds).integers(2**62)))
        self.network.train()
        total = torch.zeros((), device=self.device)
        grad = self._flat.grad
        for rows in np.array_split(order, steps):
            grad.zero_()
            at = torch.from_numpy(rows).to(self.device)
            loss = self._loss(self._inputs.masses(self.network, at), self._deltas(rows))
            loss.backward()
            self.link.average(grad)
            self._optimizer.step()
            total += loss.detach()
        self._average_buffers()
        total /= steps
        self.link.average(total)
        return float(total)

    def _average_buffers(self) -> None:
        """Running means and the like are those of all ranks together."""
        for buffer in self.network.buffers():
            if buffer.is_floating_point():
                self.link.average(buffer)

    def evaluate(self, held: bool) -> float:
        """Loss of the present weights on held-out rows, or on all rows, in fixed subsets."""
        rows = self._held if held else np.arange(len(self.shard.x))
        rows = rows[np.random.default_rng([self.schedule.seed, 19]).permutation(len(rows))]
        pieces = np.array_split(rows, max(1, round(len(rows) / _EVALUATED)))
        self.network.eval()
        with torch.no_grad():
            total = torch.zeros((), device=self.device)
            for piece in pieces:
                m = self._inputs.masses(self.network, torch.from_numpy(piece).to(self.device))
                total += self._loss(m, self._deltas(piece)) / len(pieces)
        self.link.average(total)
        return float(total)

    @property
    def has_held_out(self) -> bool:
        return len(self._held) > 0


def train(trainer: Trainer, state: TrainState, epochs: int, steps: int) -> TrainState:
    """Go on for at most so many epochs; the last state has the weights to keep.

    `steps` is the number of subsets of each rank in an epoch, the same for all ranks.
    """
    schedule = trainer.schedule
    with one_thread(), torch.random.fork_rng():
        trainer.load(state)
        if not state.history:
            state = replace(state, history=(trainer.evaluate(held=False),))
        for _ in range(min(epochs, schedule.max_iter - state.epoch)):
            loss = trainer.epoch(state.epoch, steps)
            watched = trainer.evaluate(held=True) if trainer.has_held_out else loss
            state = replace(state, epoch=state.epoch + 1, history=(*state.history, loss))
            state = _watch(trainer, state, watched)
            if state.converged:
                break
        state = replace(state, weights=trainer.state_dict(), memory=trainer.memory())
    return state


def _watch(trainer: Trainer, state: TrainState, watched: float) -> TrainState:
    """Early stopping, smaller steps, or neither."""
    schedule = trainer.schedule
    if watched < state.best * (1 - schedule.tol):
        kept = trainer.state_dict() if trainer.has_held_out else {}
        return replace(state, best=watched, since=0, kept=kept)
    state = replace(state, since=state.since + 1)
    if state.since < schedule.patience:
        return state
    if state.decays == Schedule.DECAYS:
        return replace(state, converged=True)
    state = replace(state, since=0, decays=state.decays + 1)
    for group in trainer._optimizer.param_groups:
        group["lr"] = schedule.learning_rate / Schedule.DECAY**state.decays
    return state


def _optimizer(name: str, theta: Tensor, rate: float) -> torch.optim.Optimizer:
    common: dict[str, Any] = {"lr": rate, "eps": EPS, "foreach": False}
    if name == "adam":
        return torch.optim.Adam([theta], **common)
    return torch.optim.RMSprop([theta], alpha=RHO, **common)

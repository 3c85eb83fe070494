"""Training by mini-batches: all pairs inside the subsets of a random partition of the objects.

Reference: Denoeux (2021), NN-EVCLUS, section 3.2 and figure 6.

One process and many are the same code. In a step every shard gives a gradient, a process its own
shards one after the other; all processes get all gradients (`Link`) and take the same step along
their mean. So the bits do not depend on which process had which shards, and a run that goes on
from a `TrainState` gives the bits of one that never stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evdist.belief import FocalSets
from evdist.nnevclus.network import FlatWeights, Network
from evdist.nnevclus.rows import Known, Loss, Weights, one_thread
from evdist.nnevclus.shards import Shard, Worked

__all__ = ["Alone", "Lesson", "Link", "Schedule", "TrainState", "Trainer", "evaluate", "train"]
__all__ += ["weights_of"]

#: RMSprop's memory, as in the paper's experiments.
RHO, EPS = 0.9, 1e-8


class Link(Protocol):
    """How a process is connected to those that have the other shards."""

    def gather(self, values: Tensor) -> Tensor:
        """Rows of all shards, (S, p), from those of one's own: the same bits everywhere."""
        ...


class Alone:
    """All shards are here."""

    def gather(self, values: Tensor) -> Tensor:
        return values


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

    def held_out(self, rows: int) -> int:
        """Objects of a shard that are held out; `rows` is the size of the smallest shard."""
        return round(self.validation * rows)

    def steps(self, rows: int) -> int:
        """Mini-batches of a shard in an epoch, of two objects at least."""
        own = rows - self.held_out(rows)
        return max(1, min(round(own / self.batch_size), own // 2))


@dataclass(frozen=True)
class Lesson:
    """What all processes of a training have in common.

    Attributes
    ----------
    rows : int
        Objects of the smallest shard: every shard takes as many steps, and holds out as many.
    """

    network: Network
    focal_sets: FocalSets
    weights: Weights
    known: Known | None
    schedule: Schedule
    rows: int


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


def weights_of(network: Network) -> dict[str, NDArray]:
    """Weights and buffers, on the CPU."""
    return {name: value.cpu().numpy().copy() for name, value in network.state_dict().items()}


class Trainer:
    """One process's part of a training: its shards, one after the other, and the common steps."""

    def __init__(self, lesson: Lesson, shards: Sequence[Shard], device: torch.device, link: Link):
        self.schedule, self._link, self._device = lesson.schedule, link, device
        self.network = lesson.network.to(device)
        self._flat = FlatWeights(self.network)
        self._buffers = list(self.network.buffers())
        self._random = _generator(device)
        self._loss = Loss(self.network, lesson.focal_sets, lesson.weights, lesson.known, device)
        self._steps = self.schedule.steps(lesson.rows)
        held = self.schedule.held_out(lesson.rows)
        self.has_held_out = held > 0
        self._shards = [Worked(shard, self.schedule.seed, held, device) for shard in shards]

    # -- the state
    def load(self, state: TrainState) -> None:
        given = {name: torch.from_numpy(np.array(v)) for name, v in state.weights.items()}
        self.network.load_state_dict(given)
        self._optimizer = _optimizer(self.schedule.optimizer, self._flat.theta)
        self.set_rate(state.decays)
        if state.memory:
            memory = {k: torch.from_numpy(np.array(v)) for k, v in state.memory.items()}
            memory = {
                k: v.reshape(()) if k == "step" else v.to(self._device) for k, v in memory.items()
            }
            self._optimizer.state[self._flat.theta].update(memory)

    def set_rate(self, decays: int) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = self.schedule.learning_rate / Schedule.DECAY**decays

    def memory(self) -> dict[str, NDArray]:
        found = self._optimizer.state[self._flat.theta]
        return {k: v.cpu().numpy().copy() for k, v in found.items() if isinstance(v, Tensor)}

    # -- the work
    def epoch(self, number: int) -> float:
        """A pass over all shards; the mean loss over steps and shards."""
        self.network.train()
        total = torch.zeros((), device=self._device)
        drawn = [shard.batches(number, self._steps) for shard in self._shards]
        for batches in zip(*drawn, strict=True):
            total += self._step(batches)
        return float(total / self._steps)

    def _step(self, batches: Sequence[tuple[int, Tensor]]) -> Tensor:
        """A step along the mean gradient of one mini-batch of each shard; their mean loss."""
        grad = self._flat.grad
        before = [buffer.clone() for buffer in self._buffers]
        found = []
        for shard, (seed, rows) in zip(self._shards, batches, strict=True):
            # Random layers of a body, and running means: no shard sees what another left.
            self._random.manual_seed(seed)
            for buffer, value in zip(self._buffers, before, strict=True):
                buffer.copy_(value)
            grad.zero_()
            loss = shard.loss(self._loss, rows)
            loss.backward()
            running = [buffer.reshape(-1) for buffer in self._running()]
            found.append(torch.cat([grad, loss.detach()[None], *running]))
        # The sum has the same shape, and so the same bits, whoever worked on which shard.
        mean = self._link.gather(torch.stack(found)).mean(dim=0)
        p = len(grad)
        grad.copy_(mean[:p])
        self._optimizer.step()
        at = p + 1
        for buffer in self._running():
            buffer.copy_(mean[at : at + buffer.numel()].view(buffer.shape))
            at += buffer.numel()
        return mean[p]

    def _running(self) -> list[Tensor]:
        """Running means and the like. Counts are not among them: they are the same everywhere."""
        return [buffer for buffer in self._buffers if buffer.is_floating_point()]

    def evaluate(self, held: bool) -> float:
        """Mean over shards of the loss on held-out rows, or on all rows, in fixed subsets."""
        self.network.eval()
        with torch.no_grad():
            found = [shard.evaluate(self._loss, held) for shard in self._shards]
            return float(self._link.gather(torch.stack(found)[:, None]).mean())


def train(trainer: Trainer, state: TrainState, epochs: int) -> TrainState:
    """Go on for at most so many epochs; the last state has the weights to keep."""
    schedule = trainer.schedule
    with one_thread(), torch.random.fork_rng():
        trainer.load(state)
        if not state.history:
            state = replace(state, history=(trainer.evaluate(held=False),))
        for _ in range(min(epochs, schedule.max_iter - state.epoch)):
            loss = trainer.epoch(state.epoch)
            watched = trainer.evaluate(held=True) if trainer.has_held_out else loss
            state = replace(state, epoch=state.epoch + 1, history=(*state.history, loss))
            state = _watch(trainer, state, watched)
            if state.converged:
                break
        return replace(state, weights=weights_of(trainer.network), memory=trainer.memory())


def evaluate(trainer: Trainer, weights: dict[str, NDArray]) -> float:
    """The loss of a network with these weights, in fixed subsets of all rows of each shard."""
    with one_thread():
        trainer.load(TrainState(weights))
        return trainer.evaluate(held=False)


def _watch(trainer: Trainer, state: TrainState, watched: float) -> TrainState:
    """Early stopping, smaller steps, or neither."""
    schedule = trainer.schedule
    if watched < state.best * (1 - schedule.tol):
        kept = weights_of(trainer.network) if trainer.has_held_out else {}
        return replace(state, best=watched, since=0, kept=kept)
    state = replace(state, since=state.since + 1)
    if state.since < schedule.patience:
        return state
    if state.decays == Schedule.DECAYS:
        return replace(state, converged=True)
    state = replace(state, since=0, decays=state.decays + 1)
    trainer.set_rate(state.decays)
    return state


def _generator(device: torch.device) -> torch.Generator:
    """The one that random layers draw from; torch.manual_seed takes as long as a step."""
    if device.type == "cuda":
        at = torch.cuda.current_device() if device.index is None else device.index
        return torch.cuda.default_generators[at]
    return torch.default_generator


def _optimizer(name: str, theta: Tensor) -> torch.optim.Optimizer:
    common: dict[str, Any] = {"eps": EPS, "foreach": False}
    if name == "adam":
        return torch.optim.Adam([theta], **common)
    return torch.optim.RMSprop([theta], alpha=RHO, **common)

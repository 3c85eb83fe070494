"""Training by mini-batches: all pairs inside the subsets of a random partition of the objects.

Reference: Denoeux (2021), NN-EVCLUS, section 3.2 and figure 6.

One process and many are the same code. In a step every shard gives a gradient, a process its own
shards one after the other; all processes get all gradients (`gather`) and take the same step along
their mean. So the bits do not depend on which process had which shards, and a run that goes on
from a `TrainState` gives the bits of one that never stopped. This module needs NumPy and torch
only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evdist.nnevclus.loss import Loss, LossTerms
from evdist.nnevclus.network import FlatWeights, Network, one_thread, weights_of
from evdist.nnevclus.shards import Shard, ShardOnDevice

#: RMSprop's memory, as in the paper's experiments.
RHO, EPS = 0.9, 1e-8


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
class TrainingTask:
    """What all processes of a training have in common.

    Attributes
    ----------
    rows : int
        Objects of the smallest shard: every shard takes as many steps, and holds out as many.
    """

    network: Network
    terms: LossTerms
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


class Trainer:
    """One process's part of a training: its shards, one after the other, and the common steps.

    Parameters
    ----------
    task : TrainingTask
    shards : the shards of this process
    device : torch.device
    gather : callable
        Rows of all shards, (S, p), from those of this process: the same bits in every process. By
        default all shards are here.
    """

    def __init__(
        self,
        task: TrainingTask,
        shards: Sequence[Shard],
        device: torch.device,
        gather: Callable[[Tensor], Tensor] = lambda rows: rows,
    ):
        self.schedule, self._gather, self._device = task.schedule, gather, device
        self.network = task.network.to(device)
        self._flat = FlatWeights(self.network)
        self._buffers = list(self.network.buffers())
        self._random = _generator(device)
        self._loss = Loss(self.network, task.terms, device)
        self._steps = self.schedule.steps(task.rows)
        held = self.schedule.held_out(task.rows)
        self._has_held_out = held > 0
        self._shards = [ShardOnDevice(shard, self.schedule.seed, held, device) for shard in shards]

    def train(self, state: TrainState, epochs: int) -> TrainState:
        """Go on for at most so many epochs; the last state has the weights to keep."""
        with one_thread(), torch.random.fork_rng():
            self.load(state)
            if not state.history:
                state = replace(state, history=(self.evaluate(held=False),))
            for _ in range(min(epochs, self.schedule.max_iter - state.epoch)):
                loss = self.epoch(state.epoch)
                watched = self.evaluate(held=True) if self._has_held_out else loss
                state = replace(state, epoch=state.epoch + 1, history=(*state.history, loss))
                state = self._watch(state, watched)
                if state.converged:
                    break
            return replace(state, weights=weights_of(self.network), memory=self._memory())

    def objective(self, state: TrainState) -> float:
        """The loss of the network of a state, in fixed subsets of all rows of each shard."""
        with one_thread():
            self.load(state)
            return self.evaluate(held=False)

    def _watch(self, state: TrainState, watched: float) -> TrainState:
        """Early stopping, smaller steps, or neither.

        Not torch's ReduceLROnPlateau: it multiplies the rate, whose last bit then differs from that
        of a division for rates such as 0.1, and it does not count its decays, which end a training.
        """
        schedule = self.schedule
        if watched < state.best * (1 - schedule.tol):
            kept = weights_of(self.network) if self._has_held_out else {}
            return replace(state, best=watched, since=0, kept=kept)
        state = replace(state, since=state.since + 1)
        if state.since < schedule.patience:
            return state
        if state.decays == Schedule.DECAYS:
            return replace(state, converged=True)
        state = replace(state, since=0, decays=state.decays + 1)
        self.set_rate(state.decays)
        return state

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

    def _memory(self) -> dict[str, NDArray]:
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
        # The sum has the same shape, and so the same bits, whichever process worked on a shard.
        mean = self._gather(torch.stack(found)).mean(dim=0)
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
            return float(self._gather(torch.stack(found)[:, None]).mean())


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

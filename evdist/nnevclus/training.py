"""Training by mini-batches: all pairs inside the subsets of a random partition of the objects.

Reference: Denoeux (2021), NN-EVCLUS, section 3.2 and figure 6.

One process and many are the same code. Every shard takes LOCAL steps by itself, a process its own
shards one after the other; all processes get the weights that all shards have reached (`gather`)
and go on from their mean. So the bits do not depend on which process had which shards, and a run
that goes on from a `TrainState` gives the bits of one that never stopped. This module needs NumPy
and torch only.

Differs: with one shard these are the paper's steps; the mean of several is that of "local SGD"
(Stich, 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evdist.nnevclus.loss import Loss, LossTerms
from evdist.nnevclus.network import FlatWeights, Network, one_thread, weights_of
from evdist.nnevclus.shards import Batch, Shard, ShardOnDevice

#: RMSprop's memory, as in the paper's experiments.
RHO, EPS = 0.9, 1e-8
#: Steps that a shard takes by itself before all take the mean of their weights. Processes talk so
#: much less often; losses are those of a mean of gradients in each step, which would be 1.
LOCAL = 8


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
    #: Times the rate is divided before the first step: a network that was taught needs small ones.
    decays: int = 0

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
        Objects of the smallest piece of a shard: every piece takes as many steps, and holds out as
        many.
    start : Network
        As it was before any training, where its clusters tell which pairs are near.
    """

    network: Network
    terms: LossTerms
    schedule: Schedule
    rows: int
    start: Network | None = None


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
    room : float
        Bytes that pieces of the shards may take; one piece of each is there in any case.
    """

    def __init__(
        self,
        task: TrainingTask,
        shards: Sequence[Shard],
        device: torch.device,
        gather: Callable[[Tensor], Tensor] = lambda rows: rows,
        room: float = float("inf"),
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
        share = room / max(len(shards), 1)
        groups = None
        if task.start is not None:
            groups = partial(self._loss.groups, task.start.to(device))
        self._shards = [
            ShardOnDevice(shard, self.schedule.seed, held, device, share, groups)
            for shard in shards
        ]

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
        for name, value in state.memory.items():
            known = self._remembered()[name]
            known.copy_(torch.from_numpy(np.array(value)).reshape(known.shape))

    def set_rate(self, decays: int) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = self.schedule.learning_rate / Schedule.DECAY**decays

    def _memory(self) -> dict[str, NDArray]:
        return {name: value.cpu().numpy().copy() for name, value in self._remembered().items()}

    # -- the work
    def epoch(self, number: int) -> float:
        """A pass over all shards; the mean loss over steps and shards."""
        self.network.train()
        drawn = [shard.batches(number, self._steps) for shard in self._shards]
        totals = [torch.zeros((), device=self._device) for _ in drawn]
        steps = self._steps * self._shards[0].pieces
        for done in range(0, steps, LOCAL):
            self._stretch(drawn, totals, min(LOCAL, steps - done))
        return float(self._gather(torch.stack(totals)[:, None]).mean() / steps)

    def _stretch(
        self, drawn: Sequence[Iterator[Batch]], totals: Sequence[Tensor], count: int
    ) -> None:
        """So many steps of every shard by itself, all from here; then the mean of where they end.

        The losses of a shard are added to its total.
        """
        everything = [*self._averaged(), *self._counts()]
        before = [value.clone() for value in everything]
        found = []
        for batches, total in zip(drawn, totals, strict=True):
            # No shard sees what another left.
            for value, old in zip(everything, before, strict=True):
                value.copy_(old)
            # No name for a batch: its piece must be gone before the next one is loaded.
            for loss in map(self._step, islice(batches, count)):
                total += loss
            found.append(torch.cat([value.reshape(-1) for value in self._averaged()]))
        # The sum has the same shape, and so the same bits, whichever process worked on a shard.
        mean = self._gather(torch.stack(found)).mean(dim=0)
        at = 0
        for value in self._averaged():
            value.copy_(mean[at : at + value.numel()].view(value.shape))
            at += value.numel()

    def _step(self, batch: Batch) -> Tensor:
        """A step along the gradient of one mini-batch; its loss."""
        self._random.manual_seed(batch.seed)  # for random layers of a body
        self._flat.grad.zero_()
        loss = batch.piece.loss(self._loss, batch.rows)
        loss.backward()
        self._optimizer.step()
        return loss.detach()

    def _averaged(self) -> list[Tensor]:
        """Weights, what the optimiser remembers of each, running means and the like."""
        running = [buffer for buffer in self._buffers if buffer.is_floating_point()]
        memory = [value for name, value in self._remembered().items() if name != "step"]
        return [self._flat.theta, *memory, *running]

    def _counts(self) -> list[Tensor]:
        """Steps and the like: the same in all shards."""
        counts = [buffer for buffer in self._buffers if not buffer.is_floating_point()]
        return [self._remembered()["step"], *counts]

    def _remembered(self) -> dict[str, Tensor]:
        return self._optimizer.state[self._flat.theta]

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
    """One that has not taken a step; its memory is there already, as torch would make it."""
    common: dict[str, Any] = {"eps": EPS, "foreach": False}
    if name == "adam":
        optimizer: torch.optim.Optimizer = torch.optim.Adam([theta], **common)
        remembers = ["exp_avg", "exp_avg_sq"]
    else:
        optimizer = torch.optim.RMSprop([theta], alpha=RHO, **common)
        remembers = ["square_avg"]
    memory = {"step": torch.zeros(())} | {key: torch.zeros_like(theta) for key in remembers}
    optimizer.state[theta].update(memory)
    return optimizer

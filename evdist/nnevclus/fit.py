"""A training of NN-EVCLUS from its start to its end: on all objects at once, or by mini-batches in
this process or on the workers of a cluster.

Reference: Denoeux (2021), NN-EVCLUS, section 3.2.

On workers a round is a few epochs on all of them; the state that it leaves is the restore point.
Every rank starts a round with the same state and takes the same steps, so all end with the same
network, which is checked. When a worker is lost, its shards are dealt to the others and the round
is done again (`evdist.engine.ranks`): the bits stay the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray

from evdist.engine.loop import Solution
from evdist.engine.memory import available
from evdist.engine.progress import Clock, Report
from evdist.engine.ranks import Group, Ranks
from evdist.engine.turns import room_here
from evdist.engine.workers import wait_for_workers
from evdist.nnevclus.batch import fit_batch
from evdist.nnevclus.checks import BATCH, MINI
from evdist.nnevclus.network import Network, weights_of
from evdist.nnevclus.problem import Problem
from evdist.nnevclus.saved import Checkpoints, saved_problem
from evdist.nnevclus.shards import Shard
from evdist.nnevclus.training import LOCAL, Schedule, Trainer, TrainingTask, TrainState
from evdist.stores.fingerprints import fingerprint

#: batch_size="auto" trains on all objects at once up to AT_ONCE of them, else on so many.
AT_ONCE, OBJECTS = 2000, 200
#: Share of the free memory that pieces of shards may take.
_KEPT = 0.5

#: The weights of a trained network (its state_dict), and how they came about.
Fit = Solution[dict[str, NDArray]]


def training_of(
    model: Any, problem: Problem, seed: int, report: Report, client: Any, worker_device: str
) -> Callable[..., Fit]:
    """A function of a network and the name of its stage, as the NNEVCLUS `model` asks for."""
    n = problem.n
    size = _mini_batch(model, n, client)
    optimizer = model.optimizer
    if optimizer == "auto":
        optimizer = "lbfgs" if size is None else "rmsprop"
    known = BATCH if size is None else MINI
    if optimizer not in known:
        what = "all objects at once" if size is None else f"mini-batches of {size}"
        raise ValueError(
            f"Training on {what} takes optimizer {' or '.join(known)}, got {optimizer!r}. "
            "Change optimizer or batch_size."
        )
    schedule = Schedule(
        optimizer, float(model.learning_rate), size or 0, float(model.validation_fraction),
        float(model.tol), int(model.n_iter_no_change), int(model.max_iter), seed,
        _first_decays(problem),
    )  # fmt: skip
    if size is None:
        k = model.n_dissimilarities
        k = None if k is None or k >= n - 1 else int(k)
        return partial(fit_batch, problem, k=k, schedule=schedule, report=report)
    shards = problem.shards(_shard_count(model, problem, schedule, client))
    make_trainer: Callable[[TrainingTask], Trainer | RankTrainer]
    if client is None:
        room = _room(problem.device)
        make_trainer = partial(Trainer, shards=shards, device=problem.device, room=room)
    else:
        ranks = Ranks(client, shards, cuda=worker_device != "cpu")
        make_trainer = partial(RankTrainer, ranks=ranks, device=worker_device)

    def fit(network: Network, stage: str) -> Fit:
        start = None if problem.terms.near is None else copy.deepcopy(network)
        rows = problem.piece_rows(len(shards))
        task = TrainingTask(network, problem.terms, schedule, rows, start)
        saved = None
        if model.checkpoint is not None:
            identity = _identity(problem, network, schedule, len(shards))
            saved = Checkpoints(model.checkpoint, stage, identity)
        clock = partial(Clock, report, stage, schedule.max_iter, rows=n)
        return fit_epochs(task, make_trainer(task), clock, int(model.checkpoint_every), saved)

    return fit


def fit_epochs(
    task: TrainingTask,
    trainer: Trainer | RankTrainer,
    clock: Callable[..., Clock],
    every: int,
    saved: Checkpoints | None,
) -> Fit:
    """Minimise the mean loss inside random subsets of the shards.

    The state is saved after every `every` epochs; a state that was saved is gone on from.
    """
    schedule = task.schedule
    state = None if saved is None else saved.load()
    if state is None:
        state = TrainState(weights_of(task.network), decays=schedule.decays)
    ticks = clock(already=state.epoch)
    while state.epoch < schedule.max_iter and not state.converged:
        first = max(len(state.history), 1)
        state = trainer.train(state, every)
        if saved is not None:
            saved.save(state)
        history = state.history
        for done in range(first, len(history)):
            change = history[done] - history[done - 1]
            ticks.tell(done, history[done], change, timed=state.epoch)
    last = TrainState(state.kept or state.weights)
    history = (*state.history[:-1], trainer.objective(last))
    return Solution(last.weights, list(history), state.converged, ticks.seconds)


class RankTrainer:
    """A `Trainer` on every rank, each with shards of its own; `device` as a worker knows it."""

    def __init__(self, task: TrainingTask, ranks: Ranks, device: str):
        self._task = replace(task, network=task.network.to("cpu"))
        self._ranks, self._device = ranks, device

    def train(self, state: TrainState, epochs: int) -> TrainState:
        found = self._round(_train, state, epochs)
        if len({mark for _, mark in found}) != 1:
            raise RuntimeError("Ranks ended a round with different networks.")
        return found[0][0]

    def objective(self, state: TrainState) -> float:
        return self._round(_objective, state)[0]

    def _round(self, work: Callable, state: TrainState, *args: Any) -> list[Any]:
        start = f"the state after epoch {state.epoch}"
        return self._ranks.round(work, self._task, self._device, state, *args, start=start)


def _train(
    group: Group,
    shards: list[Shard],
    task: TrainingTask,
    device: str,
    state: TrainState,
    epochs: int,
) -> tuple[TrainState, str]:
    """Go on with the training on one rank; the state, and a mark of the network."""
    state = _trainer(group, shards, task, device).train(state, epochs)
    return state, fingerprint(*(state.weights[name] for name in sorted(state.weights)))


def _objective(
    group: Group, shards: list[Shard], task: TrainingTask, device: str, state: TrainState
) -> float:
    return _trainer(group, shards, task, device).objective(state)


def _trainer(group: Group, shards: list[Shard], task: TrainingTask, device: str) -> Trainer:
    at = torch.device(device)
    return Trainer(task, shards, at, group.gather, _room(at, room_here))


def _room(device: torch.device, room: Callable[[], int] = available) -> float:
    """Bytes that pieces of shards may take on a device of this process."""
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else room()
    return _KEPT * free


# ---------------------------------------------------------------------- what a model asks for
def _first_decays(problem: Problem) -> int:
    """Times the rate is divided before a network that was taught takes its first step.

    Where near pairs have a weight, one division would let it forget some of its clusters.
    """
    if not problem.taught:
        return 0
    return 1 if problem.terms.near is None else Schedule.DECAYS


def _mini_batch(model: Any, n: int, client: Any) -> int | None:
    """Objects of a mini-batch, None for all at once."""
    if model.batch_size == "auto":
        at_once = n <= AT_ONCE and client is None and model.n_shards is None
        return None if at_once else min(OBJECTS, n)
    return None if model.batch_size is None else min(int(model.batch_size), n)


def _shard_count(model: Any, problem: Problem, schedule: Schedule, client: Any) -> int:
    """Shards: as given, as the checkpoint has them, or one for each worker."""
    count = model.n_shards
    if count is None and model.checkpoint is not None:
        # A training goes on with the shards it began with, however many workers there are now.
        count = saved_problem(model.checkpoint).get("shards")
    if count is None:
        count = 1 if client is None else len(wait_for_workers(client))
    least = problem.piece_rows(min(int(count), problem.n))
    left = least - schedule.held_out(least)
    if count > problem.n or left < 2:
        left = 0 if count > problem.n else max(left, 0)
        raise ValueError(
            f"{count} shards of {problem.n} objects leave {left} of one for training, and two at "
            "least are needed. Lower n_shards or validation_fraction."
        )
    return int(count)


def _identity(
    problem: Problem, network: Network, schedule: Schedule, shards: int
) -> dict[str, Any]:
    """What a checkpoint must agree with."""
    drawn = network.state_dict()
    terms, known = problem.terms, problem.terms.supervision
    return {
        "data": problem.fingerprint(),
        "dissimilarities": problem.objects.source.fingerprint(),
        "d0": problem.d0,
        "focal sets": fingerprint(list(terms.focal_sets.masks)),
        "start": fingerprint(*(drawn[name].cpu().numpy() for name in sorted(drawn))),
        "weights": [terms.link_weight, terms.label_weight, terms.l2],
        "known": "nothing" if known is None else fingerprint(
            known.x, known.must, known.cannot, known.labelled, known.truth
        ),
        "optimizer": schedule.optimizer,
        "learning rate": schedule.learning_rate,
        "batch size": schedule.batch_size,
        "shards": shards,
        "steps of a shard": 1 if shards == 1 else LOCAL,
        "validation": schedule.validation,
        "seed": schedule.seed,
        **({} if terms.near is None else {"near pairs": list(terms.near)}),
    }  # fmt: skip

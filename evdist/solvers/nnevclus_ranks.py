"""NN-EVCLUS trained by several workers together, each on rows of its own.

A round is a few epochs on all workers; the state that it leaves is the restore point. Every rank
starts a round with the same state and takes the same steps, so all end with the same network,
which is checked.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evdist.belief import FocalSets
from evdist.blocks.ranks import Group, RankLostError, Ranks
from evdist.kernels.nn_model import Network
from evdist.solvers.nnevclus import Fit, Problem, Report, steps_of_epoch, tell_epochs
from evdist.solvers.nnevclus_epochs import Schedule, Shard, Trainer, TrainState, train
from evdist.solvers.nnevclus_rows import Known, Weights, one_thread, pick_device
from evdist.stores.fingerprints import fingerprint

__all__ = ["fit_ranks"]

#: Rounds in a row that may fail.
_ATTEMPTS = 5


@dataclass(frozen=True)
class _Part:
    """What all ranks have in common."""

    network: Network
    focal_sets: FocalSets
    weights: Weights
    known: Known | None
    schedule: Schedule
    device: str

    def trainer(self, group: Group, shard: Shard) -> Trainer:
        return Trainer(
            self.network, shard, self.focal_sets, self.weights, self.known, self.schedule,
            pick_device(self.device), group,
        )  # fmt: skip


# ---------------------------------------------------------------------- tasks
def _epochs(
    group: Group, shard: Shard, part: _Part, state: TrainState, epochs: int, steps: int
) -> tuple[TrainState, str]:
    """Train on; the state, and a mark of the network."""
    state = train(part.trainer(group, shard), state, epochs, steps)
    return state, fingerprint(*(state.weights[name] for name in sorted(state.weights)))


def _objective(group: Group, shard: Shard, part: _Part, state: TrainState) -> float:
    """Mean over ranks of the loss on all their rows."""
    trainer = part.trainer(group, shard)
    with one_thread():
        trainer.load(state)
        return trainer.evaluate(held=False)


# ---------------------------------------------------------------------- driver
def fit_ranks(
    problem: Problem,
    network: Network,
    *,
    client: Any,
    schedule: Schedule,
    report: Report,
    stage: str,
    state: TrainState | None = None,
    keep: Callable[[TrainState], None] = lambda state: None,
    every: int = 5,
) -> Fit:
    """As `fit_epochs`, on the workers of `client`; each step averages over one subset of each.

    When a worker is lost, the others go on from the last round, with a warning.
    """
    ranks = Ranks(client, cuda=problem.device.type == "cuda")
    part = _Part(
        network.to("cpu"), problem.focal_sets, problem.weights, problem.known, schedule,
        str(problem.device),
    )  # fmt: skip
    if state is None:
        weights = {name: v.numpy().copy() for name, v in network.state_dict().items()}
        state = TrainState(weights)
    run = _Rounds(ranks, problem)
    began, first = time.perf_counter(), state.epoch
    while state.epoch < schedule.max_iter and not state.converged:
        at = len(state.history)
        steps = steps_of_epoch(problem.n // ranks.world, schedule)
        found = run(state, _epochs, part, state, every, steps)
        if found is None:
            continue  # fewer workers take other steps
        if len({mark for _, mark in found}) != 1:
            raise RuntimeError("Ranks ended a round with different networks.")
        state = found[0][0]
        keep(state)
        tell_epochs(report, stage, state, max(at, 1), schedule.max_iter, problem.n, began, first)
    last = TrainState(state.kept or state.weights)
    values = None
    while values is None:
        values = run(state, _objective, part, last)
    return Fit(last.weights, values[0], [*state.history[:-1], values[0]], state.converged)


class _Rounds:
    """Rounds of work on the ranks, with the rows sent again where workers have changed."""

    def __init__(self, ranks: Ranks, problem: Problem):
        self._ranks, self._problem = ranks, problem
        self._lost = 0
        self._send()

    def _send(self) -> None:
        problem, world = self._problem, self._ranks.world
        # Rows often come sorted by cluster: each rank gets some of everything.
        order = np.random.default_rng([problem.n, 29]).permutation(problem.n)
        if problem.n < 2 * world:
            raise ValueError(f"{world} workers need at least two objects each, got n={problem.n}.")
        shards = []
        for rows in (np.sort(part) for part in np.array_split(order, world)):
            fx = None if problem.fx is None else problem.fx[rows]
            source = problem.source.subset(rows.astype(np.uint32))
            shards.append(Shard(problem.x[rows], fx, source, problem.d0))
        self._ranks.send(shards)

    def __call__(self, state: TrainState, task: Callable, *args: Any) -> list[Any] | None:
        """Results by rank; None when a worker was lost and the round is to be done again."""
        try:
            found = self._ranks.round(task, *args)
        except RankLostError as error:
            self._lost += 1
            where = f"after epoch {state.epoch}"
            if self._lost > _ATTEMPTS:
                raise RankLostError(
                    f"{error} Workers are lost faster than epochs are done; the last state is "
                    f"{where}. Fit again, with the same checkpoint to go on from there."
                ) from error
            try:
                self._ranks.renew()
            except TimeoutError as nobody:
                raise RankLostError(
                    f"{error} No worker is left {where}. Start workers and fit again, with the "
                    "same checkpoint to go on from there."
                ) from nobody
            self._send()
            warnings.warn(
                f"{error} Training goes on from the state {where}, on {self._ranks.world} "
                "worker(s).",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        self._lost = 0
        return found

"""NN-EVCLUS trained by several workers together, each on shards of its own.

A round is a few epochs on all workers; the state that it leaves is the restore point. Every rank
starts a round with the same state and takes the same steps, so all end with the same network,
which is checked. When a worker is lost, its shards are dealt to the others and the round is done
again: the bits stay the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evdist.engine.ranks import Group, RankLostError, Ranks
from evdist.nnevclus.epochs import Lesson, Trainer, TrainState, evaluate, train
from evdist.nnevclus.rows import pick_device
from evdist.nnevclus.shards import Shard
from evdist.stores.fingerprints import fingerprint

__all__ = ["OnWorkers"]

#: Rounds in a row that may fail.
_ATTEMPTS = 5


# ---------------------------------------------------------------------- tasks
def _epochs(
    group: Group, shards: list[Shard], lesson: Lesson, device: str, state: TrainState, count: int
) -> tuple[TrainState, str]:
    """Train on; the state, and a mark of the network."""
    trainer = Trainer(lesson, shards, pick_device(device), group)
    state = train(trainer, state, count)
    return state, fingerprint(*(state.weights[name] for name in sorted(state.weights)))


def _objective(
    group: Group, shards: list[Shard], lesson: Lesson, device: str, state: TrainState
) -> float:
    return evaluate(Trainer(lesson, shards, pick_device(device), group), state.weights)


# ---------------------------------------------------------------------- driver
class OnWorkers:
    """The workers of a Dask client as the site of a training.

    Parameters
    ----------
    client : distributed.Client
    shards : list of Shard
        Workers beyond their number stay idle.
    device : str
        As each worker understands it.
    """

    def __init__(self, client: Any, shards: list[Shard], device: str):
        self._ranks = Ranks(client, len(shards), cuda=device.startswith("cuda"))
        self._ranks.send(shards)
        self._shards, self._device = shards, device
        self._lost = 0

    def begin(self, lesson: Lesson) -> None:
        self._lesson = replace(lesson, network=lesson.network.to("cpu"))

    def epochs(self, state: TrainState, count: int) -> TrainState:
        found = self._round(state, _epochs, state, count)
        if len({mark for _, mark in found}) != 1:
            raise RuntimeError("Ranks ended a round with different networks.")
        return found[0][0]

    def objective(self, state: TrainState) -> float:
        return self._round(state, _objective, state)[0]

    def _round(self, state: TrainState, task: Callable, *args: Any) -> list[Any]:
        """Results by rank, of a round that no worker was lost in."""
        while True:
            try:
                found = self._ranks.round(task, self._lesson, self._device, *args)
            except RankLostError as error:
                self._deal_again(error, f"after epoch {state.epoch}")
            else:
                self._lost = 0
                return found

    def _deal_again(self, error: RankLostError, where: str) -> None:
        """Give the shards to the workers that are left."""
        self._lost += 1
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
        self._ranks.send(self._shards)
        warnings.warn(
            f"{error} Training goes on from the state {where}, on {self._ranks.world} worker(s).",
            RuntimeWarning,
            stacklevel=2,
        )

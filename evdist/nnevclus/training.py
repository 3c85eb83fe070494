"""Which training NNEVCLUS was asked for: at once or by mini-batches, here or on workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from evdist.engine.ranks import workers_of
from evdist.nnevclus.checks import BATCH, MINI
from evdist.nnevclus.epochs import Schedule
from evdist.nnevclus.fit import Fit, Here, Report, fit_batch, fit_epochs, make_shards
from evdist.nnevclus.ranks import OnWorkers
from evdist.nnevclus.saved import Checkpoints, saved_problem
from evdist.nnevclus.solver import Problem
from evdist.stores.fingerprints import fingerprint

__all__ = ["training"]

#: batch_size="auto" trains on all objects at once up to AT_ONCE of them, else on so many.
AT_ONCE, OBJECTS = 2000, 200


def training(
    model: Any, problem: Problem, seed: int, report: Report, client: Any
) -> Callable[..., Fit]:
    """A function of a network and the name of its stage, as the NNEVCLUS `model` asks for."""
    size = _mini_batch(model, problem.n, client)
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
    )  # fmt: skip
    if size is None:
        k = model.n_dissimilarities
        k = None if k is None or k >= problem.n - 1 else int(k)
        return partial(fit_batch, problem, k=k, optimizer=optimizer, stop=schedule, report=report)
    count = _shard_count(model, problem.n, schedule, client)
    shards = make_shards(problem, count)
    device = problem.device
    site = Here(shards, device) if client is None else OnWorkers(client, shards, str(device))
    train = partial(
        fit_epochs, problem, site=site, shards=count, schedule=schedule, report=report,
        every=int(model.checkpoint_every),
    )  # fmt: skip
    if model.checkpoint is None:
        return train

    def with_checkpoints(network: Any, stage: str) -> Fit:
        identity = _identity(problem, network, schedule, count)
        keep = Checkpoints(model.checkpoint, stage, identity)
        return train(network, stage=stage, state=keep.load(), keep=keep.save)

    return with_checkpoints


def _mini_batch(model: Any, n: int, client: Any) -> int | None:
    """Objects of a mini-batch, None for all at once."""
    if model.batch_size == "auto":
        at_once = n <= AT_ONCE and client is None and model.n_shards is None
        return None if at_once else min(OBJECTS, n)
    return None if model.batch_size is None else min(int(model.batch_size), n)


def _shard_count(model: Any, n: int, schedule: Schedule, client: Any) -> int:
    """Shards: as given, as the checkpoint has them, or one for each worker."""
    count = model.n_shards
    if count is None and model.checkpoint is not None:
        # A training goes on with the shards it began with, whoever is there to work on them.
        count = saved_problem(model.checkpoint).get("shards")
    if count is None:
        count = 1 if client is None else len(workers_of(client))
    least = n // int(count)
    left = least - schedule.held_out(least)
    if left < 2:
        raise ValueError(
            f"{count} shards of {n} objects leave {max(left, 0)} of one for training, and two at "
            "least are needed. Lower n_shards or validation_fraction."
        )
    return int(count)


def _identity(problem: Problem, network: Any, schedule: Schedule, shards: int) -> dict[str, Any]:
    """What a checkpoint must agree with."""
    drawn = network.state_dict()
    known = problem.known
    return {
        "data": fingerprint(problem.x),
        "dissimilarities": problem.source.fingerprint(),
        "d0": problem.d0,
        "focal sets": fingerprint(list(problem.focal_sets.masks)),
        "start": fingerprint(*(drawn[name].cpu().numpy() for name in sorted(drawn))),
        "weights": [problem.weights.links, problem.weights.labels, problem.weights.l2],
        "known": "nothing" if known is None else fingerprint(
            known.x, known.must, known.cannot, known.labelled, known.truth
        ),
        "optimizer": schedule.optimizer,
        "learning rate": schedule.learning_rate,
        "batch size": schedule.batch_size,
        "shards": shards,
        "validation": schedule.validation,
        "seed": schedule.seed,
    }  # fmt: skip

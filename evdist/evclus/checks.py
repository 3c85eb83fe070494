"""The parameters of an EVCLUS, checked before work starts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.sources import PairList
from evdist.estimators.checks import (
    at_most_objects,
    checked_d0,
    focal_family,
    integer,
    non_negative,
    one_of,
    seeded_checkpoint,
)
from evdist.evclus.floor import check_noise_floor
from evdist.evclus.irqp import Stop
from evdist.evclus.solver import Settings, first_focal_sets, widen
from evdist.kernels.sparse_rows import MOST_CLUSTERS
from evdist.kernels.threads import thread_count
from evdist.partition import CredalPartition
from evdist.partition.sparse import SparseMasses

_FAMILIES = ("simple", "pairs", "full", "select")
_INITS = ("auto", "landmarks", "random", "k-means++")
#: n_dissimilarities="auto": all pairs up to so many objects, so many partners beyond.
ALL_PAIRS, USUAL = 400, 100
#: More focal sets are told: with 57 a sweep takes twenty times as long as with 12.
_MANY_SETS = 1500
#: Seconds from which "full" is told, and refused.
_SLOW, _TOO_SLOW = 45.0, 7200.0


def checked_settings(model: Any, data: Any, seed: int, c: int) -> Settings:
    """What an EVCLUS `model` asks for, with this data (anything with `n`) and so many clusters."""
    n = data.n
    k = partners(model.n_dissimilarities, n)
    for name in ("pair_neighbours", "n_init", "max_iter", "checkpoint_every"):
        integer(name, getattr(model, name), 1)
    integer("expand_constraints", model.expand_constraints, 0)
    non_negative("constraint_weight", model.constraint_weight)
    if model.memory_limit is not None:
        integer("memory_limit", model.memory_limit, 1)
    one_of("outliers", model.outliers, ("cluster", "label"))
    model._check_callbacks()
    seeded_checkpoint(model, "pairs")
    at_most_objects(c, n)
    if c > MOST_CLUSTERS:
        raise ValueError(
            f"n_clusters must be at most {MOST_CLUSTERS:,}, got {c:,}. Cluster the objects into "
            "fewer, and the members of each again."
        )
    family = focal_family(model.focal_sets, c, _FAMILIES)
    if family == "full" and model.device == "cpu":
        _tell_of_all_sets(c, n, thread_count(model.n_jobs))
    sets = first_focal_sets(family, c)
    if len(sets) > _MANY_SETS and family != "simple":
        warnings.warn(
            f"{len(sets):,} focal sets: the work on an object grows with the square of their "
            'number. focal_sets="select" has the pairs of neighbouring clusters only.',
            stacklevel=4,
        )
    init = _first_masses(model.init, data, sets)
    return Settings(
        n_clusters=c,
        k=k,
        focal_sets=family,
        d0=checked_d0(model.d0),
        init=init,
        n_init=int(model.n_init),
        stop=_stop(model.tol, int(model.max_iter), data, init),
        constraint_weight=float(model.constraint_weight),
        pair_neighbours=int(model.pair_neighbours),
        seed=seed,
        noise_floor=check_noise_floor(model.noise_floor),
    )


def seconds_with_all_sets(c: int, n: int) -> float:
    """About how long one core fits n objects with all 2^c sets of clusters.

    Measured with 5 to 7 clusters and 200 to 4,000 objects (benchmarks/seconds_less.py --full): most
    of it is the start on at most 1,000 of them. It grows with the power 2.4 of the number of sets.
    """
    return (6.0 + 0.024 * min(n, 1000) + 1e-3 * n) * (2.0**c / 64.0) ** 2.4


def _tell_of_all_sets(c: int, n: int, threads: int) -> None:
    """Say that "full" will take minutes; refuse it where it would take hours."""
    seconds = seconds_with_all_sets(c, n) / threads
    if seconds < _SLOW:
        return
    said = (
        f'focal_sets="full" with {c} clusters means {2**c:,} focal sets: about '
        f"{_duration(seconds)} on {threads} threads, where the work on an object grows with the "
        'square of their number. focal_sets="select" has the pairs of neighbouring clusters only.'
    )
    if seconds > _TOO_SLOW:
        raise ValueError(f"{said} To wait nevertheless: focal_sets=FocalSets.full({c}).")
    warnings.warn(said, stacklevel=5)


def _duration(seconds: float) -> str:
    if seconds < 5400:
        return f"{max(round(seconds / 60), 1)} minutes"
    return f"{seconds / 3600:,.0f} hours"


def _stop(tol: Any, max_iter: int, data: Any, init: str | NDArray | SparseMasses) -> Stop:
    """When to stop: as given, or for "auto" from n and the way to start."""
    if isinstance(tol, str) and tol == "auto":
        drawn = isinstance(init, str) and init == "random"
        # Through the user's own graph of neighbours masses take many sweeps to spread.
        sampled = not isinstance(data, PairList)
        return Stop.auto(data.n, sampled and not drawn, max_iter)
    if isinstance(tol, str):
        raise ValueError(f'tol must be "auto" or a number of at least 0, got {tol!r}.')
    return Stop(non_negative("tol", tol), max_iter)


def partners(n_dissimilarities: Any, n: int) -> int:
    """k: as given, or for "auto" all others where they are few, at most n - 1."""
    if isinstance(n_dissimilarities, str) and n_dissimilarities == "auto":
        return n - 1 if n <= ALL_PAIRS else min(USUAL, n - 1)
    return min(integer("n_dissimilarities", n_dissimilarities, 1), n - 1)


def _first_masses(init: Any, data: Any, sets: FocalSets) -> str | NDArray | SparseMasses:
    """`init`: the name of a way to start, or masses on the focal sets of the fit."""
    listed = isinstance(data, PairList)
    if isinstance(init, str):
        if init not in _INITS:
            raise ValueError(f"init must be masses or one of {_INITS}, got {init!r}.")
        if init == "auto":
            return "random" if listed else "landmarks"
        if listed and init != "random":
            raise ValueError(
                f'init="{init}" needs the dissimilarity of any two objects; for a list of '
                'pairs use "random" or masses.'
            )
        return init
    partition = init
    if not isinstance(partition, CredalPartition):
        partition = CredalPartition(np.asarray(init, dtype=float), sets)
    if partition.n_objects != data.n:
        raise ValueError(f"init has {partition.n_objects} objects, X has {data.n}.")
    given = partition.focal_sets
    if given.n_clusters != sets.n_clusters or not set(given.masks) <= set(sets.masks):
        raise ValueError(
            f"init must have masses on {', '.join(sets.names)}, got {', '.join(given.names)}. "
            "Pass focal_sets=init.focal_sets, or init.project(...) to the ones wanted."
        )
    if isinstance(partition.mass, SparseMasses) and given == sets:
        return partition.mass.in_memory()
    return widen(np.asarray(partition.mass), given, sets)

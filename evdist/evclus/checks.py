"""The parameters of an EVCLUS, checked before work starts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.data.sources import PairList, Source
from evdist.estimators.checks import (
    at_most_objects,
    checked_d0,
    focal_family,
    integer,
    non_negative,
    seeded_checkpoint,
)
from evdist.evclus.irqp import Stop
from evdist.evclus.solver import Settings, first_focal_sets, widen
from evdist.kernels.sparse_rows import MOST_CLUSTERS
from evdist.partition import CredalPartition

__all__ = ["checked_settings"]

_FAMILIES = ("simple", "pairs", "full", "select")
_INITS = ("auto", "landmarks", "random", "k-means++")


def checked_settings(model: Any, data: Source | PairList, seed: int) -> Settings:
    """What an EVCLUS `model` asks for, with this data."""
    n = data.n
    for name in ("n_clusters", "n_dissimilarities", "pair_neighbours", "n_init", "max_iter",
                 "checkpoint_every"):  # fmt: skip
        integer(name, getattr(model, name), 1)
    integer("expand_constraints", model.expand_constraints, 0)
    for name in ("tol", "constraint_weight"):
        non_negative(name, getattr(model, name))
    if model.memory_limit is not None:
        integer("memory_limit", model.memory_limit, 1)
    model._check_callbacks()
    seeded_checkpoint(model, "pairs")
    at_most_objects(model.n_clusters, n)
    if model.n_clusters > MOST_CLUSTERS:
        raise ValueError(
            f"n_clusters must be at most {MOST_CLUSTERS:,}, got {model.n_clusters:,}. Cluster the "
            "objects into fewer, and the members of each again."
        )
    return Settings(
        n_clusters=int(model.n_clusters),
        k=min(int(model.n_dissimilarities), n - 1),
        focal_sets=focal_family(model.focal_sets, model.n_clusters, _FAMILIES),
        d0=checked_d0(model.d0),
        init=_first_masses(model, data),
        n_init=int(model.n_init),
        stop=Stop(float(model.tol), int(model.max_iter)),
        constraint_weight=float(model.constraint_weight),
        pair_neighbours=int(model.pair_neighbours),
        seed=seed,
    )


def _first_masses(model: Any, data: Source | PairList) -> str | NDArray:
    """`init`: the name of a way to start, or masses on the focal sets of the fit."""
    init, listed = model.init, isinstance(data, PairList)
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
    family = focal_family(model.focal_sets, model.n_clusters, _FAMILIES)
    sets = first_focal_sets(family, int(model.n_clusters))
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
    return widen(np.asarray(partition.mass), given, sets)

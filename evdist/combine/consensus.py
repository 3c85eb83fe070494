"""One credal partition out of several (slides, "Combination method").

Each partition is turned into what it says about pairs of objects, the answers are combined pair by
pair, and the credal partition nearest to the combined relation is found. Clusters need no matching
between the partitions, which may come from any algorithm and differ in the number of clusters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster
from sklearn.exceptions import ConvergenceWarning

from evdist.belief.focal import FocalSets
from evdist.combine.graph import PairGraph, all_pairs_graph, coloured_graph
from evdist.combine.nearest import nearest_partition
from evdist.combine.rules import Rule, combine_relations
from evdist.metrics.pairs import as_partition, same_objects
from evdist.metrics.relation import pairwise_mass
from evdist.partition import CredalPartition

#: Sweeps from each start before the best one goes on alone.
TRIAL_SWEEPS = 3
#: From here on k-means works on batches.
BATCH_OBJECTS = 20_000
#: Pairs whose masses are combined at once.
PAIRS_PER_BLOCK = 1 << 18

_FAMILIES: dict[str, Callable[[int], FocalSets]] = {
    "simple": FocalSets.simple,
    "pairs": FocalSets.pairs,
    "full": FocalSets.full,
}


def combine(
    partitions: Sequence[CredalPartition | NDArray[Any]],
    n_clusters: int,
    *,
    rule: Rule = "dempster",
    focal_sets: str | FocalSets = "simple",
    n_pairs: int = 100,
    max_iter: int = 100,
    tol: float = 1e-4,
    random_state: int | None = 0,
) -> CredalPartition:
    """Combine partitions of the same objects into one credal partition.

    Parameters
    ----------
    partitions : sequence of CredalPartition or (n,) labels
        Numbers of clusters and focal sets may differ.
    n_clusters : int
        Clusters of the result.
    rule : {"dempster", "dubois_prade", "average"}
        How the answers about a pair are combined, see :func:`combine_relations`.
    focal_sets : {"simple", "pairs", "full"} or FocalSets
        Focal sets of the result; all singletons must be among them.
    n_pairs : int
        Pairs kept per object. All pairs are kept when these are at most twice as many.
    max_iter, tol : int, float
        Sweeps, and the relative decrease of the criterion below which they stop.
    random_state : int or None, default=0
        Draws the pairs, and the starts by k-means.

    Returns
    -------
    CredalPartition
        Its masses are a local minimum; the best of several starts is kept: k-means on the
        plausibilities of all partitions, and each partition with ``n_clusters`` clusters.

    Notes
    -----
    Memory: the masses of all partitions, and about ``n * n_pairs * 24`` bytes.
    """
    members = [_in_memory(as_partition(p)) for p in partitions]
    if not members:
        raise ValueError("At least one partition is needed to combine, got none.")
    focal = _focal_sets(focal_sets, n_clusters)
    if n_pairs < 1:
        raise ValueError(f"n_pairs must be at least 1, got {n_pairs}.")
    n = same_objects(*members)
    rng = np.random.default_rng(random_state)
    graph = all_pairs_graph(n) if n - 1 <= 2 * n_pairs else coloured_graph(n, n_pairs, rng)
    target = _combined(members, graph, rule)
    best = min(
        (
            nearest_partition(graph, target, start, focal, max_iter=TRIAL_SWEEPS, tol=tol)
            for start in _starts(members, focal, rng)
        ),
        key=lambda found: found.history[-1],
    )
    if not best.converged:
        best = nearest_partition(graph, target, best.mass, focal, max_iter=max_iter, tol=tol)
    if not best.converged:
        warnings.warn(
            f"The combination still fell by more than {tol:g} of its criterion in sweep "
            f"{max_iter}. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return CredalPartition(best.mass, focal)


def _in_memory(partition: CredalPartition) -> CredalPartition:
    """Partners lie anywhere among the rows, so a lazy partition is loaded."""
    if isinstance(partition.mass, np.ndarray):
        return partition
    return CredalPartition(np.asarray(partition.mass[:]), partition.focal_sets)


def _focal_sets(focal_sets: str | FocalSets, n_clusters: int) -> FocalSets:
    if isinstance(focal_sets, str):
        if focal_sets not in _FAMILIES:
            raise ValueError(
                f"focal_sets must be a FocalSets or one of {', '.join(_FAMILIES)}, "
                f"got {focal_sets!r}."
            )
        return _FAMILIES[focal_sets](n_clusters)
    if focal_sets.n_clusters != n_clusters:
        raise ValueError(
            f"focal_sets must be over n_clusters={n_clusters} clusters, got sets over "
            f"{focal_sets.n_clusters}."
        )
    missing = np.flatnonzero(focal_sets.singletons < 0)
    if missing.size:
        raise ValueError(
            f"Every cluster needs its singleton among the focal sets, got none for cluster "
            f"{missing[0]}."
        )
    return focal_sets


def _combined(members: Sequence[CredalPartition], graph: PairGraph, rule: Rule) -> NDArray[Any]:
    """The combined relation r_ij of the kept pairs, (n, k, 4) float32."""
    n, k = graph.partner.shape
    target = np.zeros((n, k, 4), dtype=np.float32)
    size = max(1, PAIRS_PER_BLOCK // k)
    for start in range(0, n, size):
        partner = graph.partner[start : start + size]
        row, slot = np.nonzero(partner >= 0)
        i, j = row + start, partner[row, slot]
        answers = np.stack([pairwise_mass(p, i, j) for p in members])
        target[i, slot] = combine_relations(answers, rule)
    return target


def _starts(
    members: Sequence[CredalPartition], focal: FocalSets, rng: np.random.Generator
) -> list[NDArray[Any]]:
    """Masses to start from, (n, f) each."""
    # Rows of plausibilities are close when all partitions would put two objects together; this
    # holds however the clusters are numbered.
    profile = np.hstack([np.asarray(p.plausibility, dtype=np.float32) for p in members])
    many = len(profile) >= BATCH_OBJECTS
    method = cluster.MiniBatchKMeans if many else cluster.KMeans
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        # Fewer different rows than clusters: some clusters stay empty, as the data say.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = method(focal.n_clusters, n_init=5, random_state=seed).fit(profile).labels_
    starts = [_hard(labels, focal)]
    for p in members:
        if p.n_clusters != focal.n_clusters:
            continue
        # Every set has its place on the new focal sets when the whole frame is one of them.
        whole = focal.omega is not None
        starts.append(p.project(focal).mass if whole else _hard(np.asarray(p.labels()), focal))
    return starts


def _hard(labels: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    mass = np.zeros((len(labels), len(focal)))
    mass[np.arange(len(labels)), focal.singletons[labels]] = 1.0
    return mass

"""Where ECM starts: the best of several seedings on a sample, then all objects; selected pairs.

Reference for the pairs: Denoeux, slides "Belief functions and clustering" (2017), "Carefully
selecting the focal sets". Seeds are those of k-means++ (Arthur, Vassilvitskii 2007).

A start costs the same whatever the number of objects: it is followed to its end on at most SAMPLE
of them, in the Euclidean metric, and only the best one goes on to all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster

from evdist.belief import FocalSets, mutual_neighbour_pairs
from evdist.ecm.blocks import LocalRows
from evdist.ecm.solver import ECMSolver, Model, Rows
from evdist.partition import CredalPartition

#: Objects on which starts are compared.
SAMPLE = 20_000


class Table(Protocol):
    """Rows that are all in memory, or that come when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, some: Any, /) -> Any: ...


def sample_numbers(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of the rows on which starts are compared, rising."""
    return np.sort(rng.choice(n, SAMPLE, replace=False))


def seeded_solvers(
    X: Table,
    w: NDArray[np.float64] | None,
    template: Model,
    *,
    n_init: int,
    seed: int,
    tol: float,
    n_threads: int = 1,
) -> list[ECMSolver]:
    """Fits of a sample from `n_init` draws of k-means++ seeds; `best_of` them is the start.

    `template` has the focal sets and parameters; its prototypes and metric are not read. With at
    most SAMPLE objects the sample is all of them, and the fit is one of all objects.
    """
    rng = np.random.default_rng(seed)
    if len(X) > SAMPLE:
        some = sample_numbers(len(X), rng)
        X, w = X[some], None if w is None else w[some]
    rows_here = np.asarray(X, dtype=float)
    rows = LocalRows(rows_here, w, n_threads)

    def start() -> Model:
        c, state = template.focal_sets.n_clusters, int(rng.integers(2**31 - 1))
        seeds, _ = cluster.kmeans_plusplus(rows_here, c, sample_weight=w, random_state=state)
        return replace(template, prototypes=seeds, metric=None)

    return [ECMSolver(rows, start(), tol) for _ in range(n_init)]


def with_neighbour_pairs(rows: Rows, model: Model, q: int) -> Model:
    """The same prototypes; focal sets also the pairs of clusters among each other's q nearest.

    Slides, "Carefully selecting the focal sets", steps 2 and 3.
    """
    partition = CredalPartition(rows.masses(model), model.focal_sets)
    pairs = mutual_neighbour_pairs(np.asarray(partition.normalised_plausibility), q)
    omega = model.focal_sets.omega is not None
    sets = FocalSets.pairs(model.focal_sets.n_clusters, pairs, omega=omega)
    return replace(model, focal_sets=sets)

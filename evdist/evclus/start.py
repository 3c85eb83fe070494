"""Where a fit starts: a few thousand landmarks solved from several starts, then all others.

A random start of a million objects wastes most of its sweeps on a plateau and gets stuck when
clusters are many. Landmarks are few enough to try several starts, and several values of d0, and
keep the best. Every other object then gets the minimiser of its own row program against k
landmarks: one pass of independent rows. New objects are predicted the same way.

Symbols
-------
L   number of landmarks; c, f clusters and focal sets
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.sources import Source
from evdist.evclus.irqp import USUAL_TOL, Stop
from evdist.evclus.landmarks import Landmarks, Placing
from evdist.evclus.problem import Problem
from evdist.evclus.resolution import all_used, most_plausible
from evdist.evclus.rows.protocol import Masses, Starter
from evdist.evclus.trial import (
    TRIAL_STOP,
    Trial,
    best_of,
    draw_starts,
    random_masses,
    some_objects,
)
from evdist.partition.sparse import SparseMasses

#: Landmarks: enough to know each cluster by dozens of objects, few enough to try many starts.
MIN_LANDMARKS, LANDMARKS_PER_CLUSTER = 1000, 60
#: Landmarks that an object is placed against for the start; the sweeps mend the rest.
PLACED_AGAINST = 50
#: Starts tried on the landmarks for each of `n_init`.
STARTS = 10
#: Where the sweeps over landmarks end at the latest.
LANDMARK_STOP = Stop(1e-6, 200)


def fit_landmarks(
    source: Source,
    objects: NDArray[np.uint32],
    focal_sets: FocalSets,
    d0: Sequence[float],
    *,
    k: int,
    n_starts: int,
    init: str,
    stop: Stop,
    seed: int,
    rows: Starter,
    settled: bool = False,
) -> Landmarks:
    """Solve EVCLUS on some objects from several starts and keep the best.

    Of several `d0` the first at which every cluster is used, or the first of all. When the
    landmarks are all objects, their masses are those of the best start, not yet of the solution,
    unless they shall be `settled`.
    """
    chosen = source.subset(objects) if len(objects) < source.n else source
    trial = Trial.of(chosen, k, seed)
    starts = draw_starts(chosen, focal_sets, n_starts, seed, init)
    tried: list[_AtD0] = []
    for value in d0:
        problem = trial.problem(value, focal_sets)
        found = trial.solve(rows, [problem] * n_starts, starts, TRIAL_STOP)
        best = best_of(found)
        tried.append(_AtD0(value, problem, starts[best], found[best].value))
        labels = most_plausible(found[best].value, focal_sets)
        if all_used(labels, focal_sets.n_clusters):
            break
    else:
        tried = tried[:1]
    kept = tried[-1]
    if chosen is source and not settled:
        # All objects are landmarks: the fit itself will go the way from the best start.
        return Landmarks(source, objects, kept.start, focal_sets, kept.d0)
    (solution,) = rows.solve(trial.layout.graph, [kept.problem], [kept.found], stop)
    mass = np.empty_like(solution.value)
    mass[trial.layout.order] = solution.value
    return Landmarks(chosen, objects, mass, focal_sets, kept.d0)


@dataclass(frozen=True)
class _AtD0:
    """The best of several starts of the landmarks at one d0: by object, and the masses found."""

    d0: float
    problem: Problem
    start: NDArray[np.float32]
    found: NDArray[np.float32]


def place(
    landmarks: Landmarks,
    objects: Source | NDArray,
    *,
    k: int,
    seed: int,
    rows: Starter,
    spread: bool = True,
) -> Masses:
    """Masses of objects, each the minimiser of its own program against k landmarks.

    `objects` are all those of the landmarks' source, or new ones; `spread` is that of `Placing`.
    """
    L = len(landmarks.mass)
    draw = np.random.default_rng([seed, 11, L])
    shifts = np.sort(draw.choice(L, min(k, L), replace=False))
    return rows.assign(Placing(landmarks, objects, shifts, spread))


# ---------------------------------------------------------------------- the start of a fit
@dataclass(frozen=True)
class Settings:
    """Everything that decides the answer, beside the data."""

    n_clusters: int
    k: int
    focal_sets: FocalSets | str
    d0: float | str
    #: The name of a way to start, or masses by object.
    init: str | NDArray | SparseMasses
    n_init: int
    stop: Stop
    constraint_weight: float
    pair_neighbours: int
    seed: int
    #: Whether a fit with many clusters may begin with a preliminary partition.
    groups: bool = True
    #: Whether rows are lists of clusters, for the memory that is told before.
    lists: bool = False
    #: Whether noise floors are taken off distances (`evdist.evclus.floor`), for partitions: data in
    #: memory come without them.
    noise_floor: bool | str = False


def first_masses(
    source: Source,
    focal_sets: FocalSets,
    d0: Sequence[float],
    settings: Settings,
    rows: Starter,
    settled: bool = False,
) -> tuple[list[Masses], Landmarks]:
    """Initial masses by object, and the landmarks that will predict new ones, with their d0.

    `d0` and `settled` are those of :func:`fit_landmarks`.
    """
    count = max(MIN_LANDMARKS, LANDMARKS_PER_CLUSTER * settings.n_clusters)
    objects = some_objects(source.n, count, settings.seed)
    if not isinstance(settings.init, str) or settings.init == "random":
        empty = np.zeros((len(objects), len(focal_sets)), np.float32)
        landmarks = Landmarks(source.subset(objects), objects, empty, focal_sets, d0[0])
        return given_or_random(source.n, focal_sets, settings), landmarks
    # A start need not be settled further than this, however far the fit itself shall go. Landmarks
    # are few: the rule for many objects is not for them.
    stop = Stop(
        max(settings.stop.tol if settings.stop.memory else USUAL_TOL, LANDMARK_STOP.tol),
        min(settings.stop.max_iter, LANDMARK_STOP.max_iter),
    )
    landmarks = fit_landmarks(
        source, objects, focal_sets, d0, k=settings.k, n_starts=STARTS * settings.n_init,
        init=str(settings.init), stop=stop, seed=settings.seed, rows=rows,
        settled=settled,
    )  # fmt: skip
    if len(objects) == source.n:
        return [landmarks.mass], landmarks
    k = min(settings.k, PLACED_AGAINST)
    return [place(landmarks, source, k=k, seed=settings.seed, rows=rows)], landmarks


def given_or_random(n: int, focal_sets: FocalSets, settings: Settings) -> list[NDArray[np.float32]]:
    """Masses by object that the user gave, or one draw for each of `n_init`."""
    if not isinstance(settings.init, str):
        return [np.asarray(settings.init, dtype=np.float32)]
    f = len(focal_sets)
    return [
        random_masses(n, f, np.random.default_rng([settings.seed, 5, i]))
        for i in range(settings.n_init)
    ]

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.data.sources import MatrixSource, Source
from evdist.engine.loop import Solution
from evdist.evclus.groups import SPARSE_FROM, Groups, find_groups, resolution
from evdist.evclus.irqp import USUAL_TOL, Stop
from evdist.evclus.landmarks import Landmarks, Placing
from evdist.evclus.problem import MemoryPairs, Plan, Problem
from evdist.evclus.resolution import (
    along,
    closest,
    misfit,
    most_plausible,
    neighbours,
    reference,
)
from evdist.evclus.rows.protocol import Masses, Starter
from evdist.evclus.sampling import (
    Layout,
    draw_layout,
    random_dissimilarities,
    row_dissimilarities,
)
from evdist.kernels.distances import transform
from evdist.kernels.seeding import draw_seeds

#: d0 = "auto" tries these quantiles of the dissimilarities, and fewer along the neighbour graph,
#: where gaps are so large that small ones never win.
QUANTILES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
QUANTILES_ALONG = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Ways along the graph are found for so many objects at most: with more clusters than that is
#: for, they were never chosen.
MOST_ALONG = 1000
#: Every start gets this far; the best of them is then run to the end.
TRIAL_STOP = Stop(tol=1e-4, max_iter=60)
TRIAL_STARTS = 4
#: Landmarks: enough to know each cluster by dozens of objects, few enough to try many starts.
MIN_LANDMARKS, LANDMARKS_PER_CLUSTER = 1000, 60
#: The search for d0 needs fewer; it holds all dissimilarities among them, so it has a limit.
MIN_TRIAL, TRIAL_PER_CLUSTER, MOST_TRIAL = 500, 30, 5000
#: Landmarks that an object is placed against for the start; the sweeps mend the rest.
PLACED_AGAINST = 50
#: Starts tried on the landmarks for each of `n_init`.
STARTS = 10
#: Where the sweeps over landmarks end at the latest.
LANDMARK_STOP = Stop(1e-6, 200)


def random_masses(n: int, f: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Uniform on the simplex."""
    return rng.dirichlet(np.ones(f), n).astype(np.float32)


def seeded_masses(
    source: Source, focal_sets: FocalSets, rng: np.random.Generator
) -> NDArray[np.float32]:
    """k-means++ seeds by dissimilarity; each object leans to the cluster of its nearest seed."""
    n, c = source.n, focal_sets.n_clusters
    everyone = np.arange(n, dtype=np.uint32)

    def to(seeds: ArrayLike) -> NDArray:
        return source.distances(everyone, np.tile(np.asarray(seeds, np.uint32), (n, 1)))

    near = draw_seeds(to, n, c, rng, candidates=2 + int(np.log(c + 1)))[1]
    mass = np.full((n, len(focal_sets)), 0.3 / len(focal_sets), np.float32)
    mass[everyone, focal_sets.singletons[near.argmin(axis=1)]] += 0.7
    return mass


def draw_starts(
    source: Source, focal_sets: FocalSets, count: int, seed: int, init: str
) -> list[NDArray[np.float32]]:
    """Initial masses by object: k-means++ seeds and random ones by turns, or one kind only."""

    def start(i: int) -> NDArray[np.float32]:
        rng = np.random.default_rng([seed, 7, i])
        seeded = init == "k-means++" or (init != "random" and i % 2 == 0)
        if seeded and (focal_sets.singletons >= 0).all():
            return seeded_masses(source, focal_sets, rng)
        return random_masses(source.n, len(focal_sets), rng)

    return [start(i) for i in range(count)]


@dataclass(frozen=True)
class _Trial:
    """Kept pairs of a small set of objects, for any d0."""

    layout: Layout
    pairs: MemoryPairs  # raw dissimilarities in the place of delta

    @classmethod
    def of(cls, source: Source, k: int, seed: int) -> _Trial:
        layout = draw_layout(source.n, min(k, source.n - 1), seed)
        partner, degree, D = row_dissimilarities(source, layout, 0, source.n)
        first = np.arange(source.n, dtype=np.int64) * layout.graph.k
        return cls(layout, MemoryPairs(first, degree, partner.ravel(), D.ravel()))

    def problem(self, d0: float, focal_sets: FocalSets) -> Problem:
        delta = np.empty_like(self.pairs.delta)
        transform(self.pairs.delta, d0, delta)
        return Problem(focal_sets, replace(self.pairs, delta=delta), Plan.of(self.layout.bounds))

    def spread(self, problem: Problem) -> float:
        """Variance of the transformed dissimilarities of kept pairs."""
        k, delta = self.layout.graph.k, problem.pairs.block(0, problem.n).delta
        return float(np.var(delta.reshape(-1, k)[np.arange(k) < self.pairs.degree[:, None]]))

    def solve(
        self, rows: Starter, problems: Sequence[Problem], starts: Sequence[NDArray], stop: Stop
    ) -> list[Solution[NDArray[np.float32]]]:
        """Each problem from its start (by object)."""
        laid_out = [mass[self.layout.order] for mass in starts]
        return rows.solve(self.layout.graph, problems, laid_out, stop)


def _best(found: Sequence[Solution]) -> int:
    return min(range(len(found)), key=lambda i: found[i].objective)


def choose_d0(
    source: Source, n_clusters: int, *, k: int, seed: int, rows: Starter
) -> tuple[float, list[tuple[float, float]]]:
    """The quantile of the dissimilarities whose partition agrees most.

    With what, and why, says `evdist.evclus.resolution`. Returns d0 and the curve of (quantile,
    agreement).
    """
    focal_sets = FocalSets.simple(n_clusters)
    D = _all_dissimilarities(source)
    graph = neighbours(D)
    own = _Tried.of(source, QUANTILES, focal_sets, k, seed)
    tried = [own]
    if source.n <= MOST_ALONG:
        paths = map(MatrixSource.of, along(D, graph))
        tried += [_Tried.of(path, QUANTILES_ALONG, focal_sets, k, seed) for path in paths]
    found = own.trial.solve(
        rows, [p for one in tried for p in one.problems_from_starts],
        [start for one in tried for start in one.starts * len(one.problems)], TRIAL_STOP,
    )  # fmt: skip
    labels, misfits = [], []
    for one in tried:
        mine, found = found[: one.count], found[one.count :]
        for mass, objective, spread in one.best(mine):
            labels.append(most_plausible(mass, focal_sets))
            misfits.append(misfit(mass, objective, spread, focal_sets, graph))
    own_count = len(QUANTILES)
    partitions = labels[:own_count]
    known = labels[reference(misfits[:own_count], misfits[own_count:], labels)]
    chosen, agreement = closest(partitions, known, focal_sets.n_clusters)
    return own.d0[chosen], list(zip(QUANTILES, agreement, strict=True))


@dataclass(frozen=True)
class _Tried:
    """One kind of dissimilarities of the objects of a trial, with the d0 and starts to try."""

    trial: _Trial
    d0: list[float]
    problems: list[Problem]
    starts: list[NDArray[np.float32]]

    @classmethod
    def of(
        cls, source: Source, quantiles: Sequence[float], focal_sets: FocalSets, k: int, seed: int
    ) -> _Tried:
        trial = _Trial.of(source, k, seed)
        known = random_dissimilarities(source, seed)
        d0 = [positive_quantile(known, q) for q in quantiles]
        problems = [trial.problem(value, focal_sets) for value in d0]
        return cls(trial, d0, problems, draw_starts(source, focal_sets, TRIAL_STARTS, seed, "auto"))

    @property
    def count(self) -> int:
        return len(self.problems) * len(self.starts)

    @property
    def problems_from_starts(self) -> list[Problem]:
        """Each problem once for every start."""
        return [problem for problem in self.problems for _ in self.starts]

    def best(self, found: Sequence[Solution]) -> Iterator[tuple[NDArray, float, float]]:
        """Masses by object, objective and spread of delta of each problem's best start."""
        for i, problem in enumerate(self.problems):
            some = found[i * len(self.starts) : (i + 1) * len(self.starts)]
            best = some[_best(some)]
            mass = np.empty_like(best.value)
            mass[self.trial.layout.order] = best.value
            yield mass, best.objective, self.trial.spread(problem)


def _all_dissimilarities(source: Source) -> NDArray[np.float64]:
    """(m, m), with zeros on the diagonal; symmetric to the last bit."""
    everyone = np.arange(source.n, dtype=np.uint32)
    D = source.distances(everyone, np.tile(everyone, (source.n, 1))).astype(float)
    np.fill_diagonal(D, 0.0)
    return np.maximum(D, D.T)


def positive_quantile(D: NDArray, q: float) -> float:
    """A quantile of the dissimilarities, or the next larger one when that is zero."""
    d0 = float(np.quantile(D, q))
    if d0 > 0:
        return d0
    positive = D[D > 0]
    if not positive.size:
        raise ValueError(
            "All dissimilarities are zero: every object is the same. There is nothing to cluster."
        )
    return float(positive.min())


def fit_landmarks(
    source: Source,
    objects: NDArray[np.uint32],
    focal_sets: FocalSets,
    d0: float,
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

    When these are all objects, their masses are those of the best start, not yet of the solution,
    unless they shall be `settled`.
    """
    chosen = source.subset(objects) if len(objects) < source.n else source
    trial = _Trial.of(chosen, k, seed)
    problem = trial.problem(d0, focal_sets)
    starts = draw_starts(chosen, focal_sets, n_starts, seed, init)
    found = trial.solve(rows, [problem] * n_starts, starts, TRIAL_STOP)
    best = _best(found)
    if chosen is source and not settled:
        # All objects are landmarks: the fit itself will go the way from the best start.
        return Landmarks(source, objects, starts[best], focal_sets, d0)
    (solution,) = rows.solve(trial.layout.graph, [problem], [found[best].value], stop)
    mass = np.empty_like(solution.value)
    mass[trial.layout.order] = solution.value
    return Landmarks(chosen, objects, mass, focal_sets, d0)


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
    init: str | NDArray
    n_init: int
    stop: Stop
    constraint_weight: float
    pair_neighbours: int
    seed: int
    #: Whether a fit with many clusters may begin with a preliminary partition.
    groups: bool = True


def find_d0(
    source: Source, d0: float | str, n_clusters: int, *, k: int, seed: int, rows: Starter
) -> tuple[float, list[tuple[float, float]]]:
    """A number, a quantile of the dissimilarities, or "auto": with the curve that it has tried.

    With many clusters a trial of all quantiles would take longer than the fit; a preliminary
    partition tells where clusters end.
    """
    if d0 == "auto" and n_clusters >= SPARSE_FROM:
        return d0_of_groups(source, find_groups(source, n_clusters, seed), seed), []
    if d0 == "auto":
        small = trial_of(source, n_clusters, seed)
        return choose_d0(small, n_clusters, k=k, seed=seed, rows=rows)
    if isinstance(d0, str):
        d0 = given_d0(d0, random_dissimilarities(source, seed))
    return float(d0), []


def d0_of_groups(source: Source, groups: Groups, seed: int) -> float:
    """d0 from a preliminary partition; the median where its groups have no extent."""
    reach = resolution(source, groups, seed)
    return reach if reach > 0 else given_d0("q0.5", random_dissimilarities(source, seed))


def trial_of(source: Source, n_clusters: int, seed: int) -> Source:
    """The objects on which d0 is chosen: a random sample, all of them when there are not more."""
    count = max(MIN_TRIAL, min(TRIAL_PER_CLUSTER * n_clusters, max(MOST_TRIAL, 2 * n_clusters)))
    trial = some_objects(source.n, count, seed)
    return source.subset(trial) if len(trial) < source.n else source


def given_d0(d0: float | str, known: NDArray) -> float:
    """A number, or a quantile "q0.9" of the dissimilarities; pair lists know no "auto"."""
    if not isinstance(d0, str):
        return float(d0)
    return positive_quantile(known, 0.9 if d0 == "auto" else float(d0[1:]))


def some_objects(n: int, count: int, seed: int) -> NDArray[np.uint32]:
    """A random sample of the objects, all of them when there are not more."""
    if count >= n:
        return np.arange(n, dtype=np.uint32)
    drawn = np.random.default_rng([seed, 3, n]).choice(n, count, replace=False)
    return np.sort(drawn).astype(np.uint32)


def first_masses(
    source: Source,
    focal_sets: FocalSets,
    d0: float,
    settings: Settings,
    rows: Starter,
    settled: bool = False,
) -> tuple[list[Masses], Landmarks]:
    """Initial masses by object, and the landmarks that will predict new ones.

    `settled` is that of :func:`fit_landmarks`.
    """
    count = max(MIN_LANDMARKS, LANDMARKS_PER_CLUSTER * settings.n_clusters)
    objects = some_objects(source.n, count, settings.seed)
    if not isinstance(settings.init, str) or settings.init == "random":
        empty = np.zeros((len(objects), len(focal_sets)), np.float32)
        landmarks = Landmarks(source.subset(objects), objects, empty, focal_sets, d0)
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

"""Small problems that are solved many times: from several starts, with several values of d0.

Symbols
-------
m   objects of a trial; k kept pairs of each; c, f clusters and focal sets
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.data.sources import Source
from evdist.engine.loop import Solution
from evdist.evclus.irqp import Stop
from evdist.evclus.problem import MemoryPairs, Plan, Problem
from evdist.evclus.rows.protocol import Starter
from evdist.evclus.sampling import Layout, draw_layout, row_dissimilarities
from evdist.kernels.distances import transform
from evdist.kernels.seeding import draw_seeds

#: Every start gets this far; the best of them is then run to the end.
TRIAL_STOP = Stop(tol=1e-4, max_iter=60)


def some_objects(n: int, count: int, seed: int) -> NDArray[np.uint32]:
    """A random sample of the objects, all of them when there are not more."""
    if count >= n:
        return np.arange(n, dtype=np.uint32)
    drawn = np.random.default_rng([seed, 3, n]).choice(n, count, replace=False)
    return np.sort(drawn).astype(np.uint32)


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
class Trial:
    """Kept pairs of a small set of objects, for any d0."""

    layout: Layout
    pairs: MemoryPairs  # raw dissimilarities in the place of delta

    @classmethod
    def of(cls, source: Source, k: int, seed: int) -> Trial:
        layout = draw_layout(source.n, min(k, source.n - 1), seed)
        partner, degree, D = row_dissimilarities(source, layout, 0, source.n)
        first = np.arange(source.n, dtype=np.int64) * layout.graph.k
        return cls(layout, MemoryPairs(first, degree, partner.ravel(), D.ravel()))

    def problem(self, d0: float, focal_sets: FocalSets) -> Problem:
        delta = np.empty_like(self.pairs.delta)
        transform(self.pairs.delta, d0, delta)
        return Problem(focal_sets, replace(self.pairs, delta=delta), self._plan)

    @cached_property
    def _plan(self) -> Plan:
        return Plan.of(self.layout.bounds)

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


def best_of(found: Sequence[Solution]) -> int:
    return min(range(len(found)), key=lambda i: found[i].objective)

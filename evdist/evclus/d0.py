"""d0, the dissimilarity at which two objects are almost surely in different clusters.

A number, a quantile of the dissimilarities, or "auto": then several quantiles are tried on a sample
and judged without labels; by what rule says `evdist.evclus.resolution`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evdist.belief import FocalSets
from evdist.data.sources import MatrixSource, Source
from evdist.engine.loop import Solution
from evdist.evclus.groups import SPARSE_FROM, Groups, find_groups, resolution
from evdist.evclus.problem import Problem
from evdist.evclus.resolution import (
    along,
    closest,
    misfit,
    most_plausible,
    neighbours,
    reference,
    settled,
)
from evdist.evclus.rows.protocol import Starter
from evdist.evclus.sampling import random_dissimilarities
from evdist.evclus.trial import TRIAL_STOP, Trial, best_of, draw_starts, some_objects
from evdist.partition import views

#: d0 = "auto" tries these quantiles of the dissimilarities, and fewer along the neighbour graph,
#: where gaps are so large that small ones never win.
QUANTILES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
QUANTILES_ALONG = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Ways along the graph are found for so many objects at most: with more clusters than that is
#: for, they were never chosen.
MOST_ALONG = 1000
#: Starts of each trial.
TRIAL_STARTS = 4
#: d0 from a preliminary partition is at most so many medians of the dissimilarities.
MOST_MEDIANS = 2.0
#: Objects of a trial. It holds all dissimilarities among them, so it has a limit.
MIN_TRIAL, TRIAL_PER_CLUSTER, MOST_TRIAL = 500, 30, 5000


def find_d0(
    source: Source, d0: float | str, n_clusters: int, *, k: int, seed: int, rows: Starter
) -> tuple[list[float], list[tuple[float, float]]]:
    """A number, a quantile of the dissimilarities, or "auto": with the curve that it has tried.

    Where several are as good, all of them, the one to prefer first. With many clusters a trial of
    all quantiles would take longer than the fit; a preliminary partition tells where clusters end.
    """
    if d0 == "auto" and n_clusters >= SPARSE_FROM:
        return [d0_of_groups(source, find_groups(source, n_clusters, seed), seed)], []
    if d0 == "auto":
        small = trial_of(source, n_clusters, seed)
        return choose_d0(small, n_clusters, k=k, seed=seed, rows=rows)
    if isinstance(d0, str):
        d0 = given_d0(d0, random_dissimilarities(source, seed))
    return [float(d0)], []


def d0_of_groups(source: Source, groups: Groups, seed: int) -> float:
    """d0 from a preliminary partition; the median where its groups have no extent.

    At most MOST_MEDIANS medians of all dissimilarities. In many dimensions pairs of one group are
    nearly as long as others, and what lies twice as far (four times, for squares) is beyond the
    largest of all; with two medians half of the pairs have a delta of .53 or more, in any dimension
    and for any metric.
    """
    reach, known = resolution(source, groups, seed), random_dissimilarities(source, seed)
    if reach <= 0:
        return given_d0("q0.5", known)
    median = float(np.median(known))
    return min(reach, MOST_MEDIANS * median) if median > 0 else reach


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


def choose_d0(
    source: Source, n_clusters: int, *, k: int, seed: int, rows: Starter
) -> tuple[list[float], list[tuple[float, float]]]:
    """The quantiles of the dissimilarities whose partitions agree most.

    With what, and why, says `evdist.evclus.resolution`. Returns the values of d0, the one to prefer
    first, and the curve of (quantile, agreement).
    """
    focal_sets = FocalSets.simple(n_clusters)
    D = _all_dissimilarities(source)
    graph = neighbours(D)
    own = _Tried.of(source, QUANTILES, focal_sets, k, seed)
    partitions, misfits, outliers = _judged([own], rows, focal_sets, graph)
    others: list[NDArray[np.int64]] = []
    along_graph: list[float] = []
    if source.n <= MOST_ALONG and not settled(partitions, misfits, n_clusters):
        paths = map(MatrixSource.of, along(D, graph))
        tried = [_Tried.of(path, QUANTILES_ALONG, focal_sets, k, seed) for path in paths]
        others, along_graph, _ = _judged(tried, rows, focal_sets, graph)
    labels = partitions + others
    known = labels[reference(misfits, along_graph, labels)]
    chosen, agreement = closest(partitions, known, n_clusters, outliers)
    return [own.d0[i] for i in chosen], list(zip(QUANTILES, agreement, strict=True))


def _judged(
    tried: Sequence[_Tried], rows: Starter, focal_sets: FocalSets, graph: sparse.csr_array
) -> tuple[list[NDArray[np.int64]], list[float], list[float]]:
    """Labels, misfit and share of outliers of every d0, each from the best of its starts."""
    found = tried[0].trial.solve(
        rows, [p for one in tried for p in one.problems_from_starts],
        [start for one in tried for start in one.starts * len(one.problems)], TRIAL_STOP,
    )  # fmt: skip
    labels, misfits, outliers = [], [], []
    for one in tried:
        mine, found = found[: one.count], found[one.count :]
        for mass, objective, spread in one.best(mine):
            labels.append(most_plausible(mass, focal_sets))
            misfits.append(misfit(mass, objective, spread, focal_sets, graph))
            outliers.append(float(views.outliers(mass, focal_sets).mean()))
    return labels, misfits, outliers


@dataclass(frozen=True)
class _Tried:
    """One kind of dissimilarities of the objects of a trial, with the d0 and starts to try."""

    trial: Trial
    d0: list[float]
    problems: list[Problem]
    starts: list[NDArray[np.float32]]

    @classmethod
    def of(
        cls, source: Source, quantiles: Sequence[float], focal_sets: FocalSets, k: int, seed: int
    ) -> _Tried:
        trial = Trial.of(source, k, seed)
        known = random_dissimilarities(source, seed)
        d0 = positive_quantiles(known, quantiles)
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
            best = some[best_of(some)]
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
    return positive_quantiles(D, [q])[0]


def positive_quantiles(D: NDArray, q: Sequence[float]) -> list[float]:
    """Quantiles of the dissimilarities, each the next larger one where that is zero."""
    D = np.sort(D, axis=None)  # once; and NumPy rounds a list of q in another way than one q
    found = [float(np.quantile(D, one, overwrite_input=True)) for one in q]
    if min(found) > 0:
        return found
    positive = D[D > 0]
    if not positive.size:
        raise ValueError(
            "All dissimilarities are zero: every object is the same. There is nothing to cluster."
        )
    return [value if value > 0 else float(positive.min()) for value in found]

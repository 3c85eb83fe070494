"""Where a fit in partitions starts: d0 and landmarks from a sample, then every partition placed.

The order of the objects is random, so the rows of the first positions are a random sample. One task
reads them and does what `evdist.evclus.begin` does for data in memory; nothing else is sent. With
many clusters these are the means of groups; then the group of each row is stored, from which near
partners follow: if it were found again elsewhere, a row between two groups might be in the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.layout import PartitionedData
from evdist.data.sources import AttributeSource
from evdist.evclus.begin import (
    begins_with_groups,
    has_sparse_rows,
    labelled_masses,
    landmarks_of_groups,
)
from evdist.evclus.d0 import find_d0
from evdist.evclus.floor import less_noise
from evdist.evclus.grouping import Grouping
from evdist.evclus.landmarks import Landmarks
from evdist.evclus.partitions.problem import PartitionedProblem
from evdist.evclus.rows.protocol import Rows
from evdist.evclus.start import (
    PLACED_AGAINST,
    Settings,
    first_masses,
    place,
)
from evdist.evclus.trial import random_masses
from evdist.kernels.distances import Metric
from evdist.stores.partitioned import PartitionArray

#: Rows of the sample at least, and for each cluster: several times the landmarks.
_SAMPLE, _PER_CLUSTER = 1 << 15, 240


@dataclass(frozen=True)
class Start:
    """What all partitions are placed against. `landmarks.objects` are positions."""

    metric: Metric
    d0: float
    d0_curve: list[tuple[float, float]]
    landmarks: Landmarks
    #: With many clusters; then objects start in their group and are not placed.
    grouping: Grouping | None = None


def sample_rows(n: int, n_clusters: int) -> int:
    """Rows that the start is made from."""
    return min(n, max(_SAMPLE, _PER_CLUSTER * n_clusters))


def find_start(
    data: PartitionedData, metric: str, focal_sets: FocalSets, settings: Settings, rows: Rows
) -> Start:
    """The task that draws the sample."""
    X = data.sample(sample_rows(data.n, settings.n_clusters))
    source = _compared(AttributeSource.of(X, metric, 1), settings)
    if begins_with_groups(source.n, focal_sets, settings):
        grouping, groups = Grouping.find(source, settings.n_clusters, settings.seed)
        sparse = has_sparse_rows(focal_sets, settings)
        landmarks = landmarks_of_groups(source, focal_sets, settings, groups, sparse)
        return Start(source.metric, landmarks.d0, [], landmarks, grouping)
    d0, curve = find_d0(
        source, settings.d0, settings.n_clusters, k=settings.k, seed=settings.seed, rows=rows
    )
    # Landmarks that are all objects are solved too: the pairs of the fit are others than those that
    # their best start was chosen on, and may lead it to another minimum.
    _, landmarks = first_masses(source, focal_sets, d0, settings, rows, settled=True)
    return Start(source.metric, landmarks.d0, curve, landmarks)


def _compared(source: AttributeSource, settings: Settings) -> AttributeSource:
    """The sample as it is compared: less its noise floors, where that pays."""
    found = less_noise(
        source, settings.noise_floor, n_clusters=settings.n_clusters, seed=settings.seed
    )
    assert isinstance(found, AttributeSource)
    return found


def place_partition(
    problem: PartitionedProblem,
    start: Start,
    settings: Settings,
    point: PartitionArray,
    partition: int,
) -> None:
    """First masses of one partition, written to a store, and before them what its rows keep.

    That are their groups and the roots of their noise floors, where the fit has these.
    """
    if point.has(partition):
        return
    if problem.floors is not None:
        table = problem.metric.table(problem.data.read(partition))
        problem.floors.write(partition, table[:, [problem.data.d]])
    if start.grouping is None or problem.labels is None:
        point.write(partition, _placed(problem, start, settings, partition))
        return
    labels = start.grouping.labels(problem.table(partition))
    problem.labels.write(partition, labels[:, None])
    point.write(partition, labelled_masses(labels, problem.focal_sets, problem.sparse))


def group_sizes(problem: PartitionedProblem, partition: int) -> NDArray[np.int64]:
    """Rows of each group in a partition, (G,)."""
    return np.diff(problem.by_group(partition).first)


def _placed(
    problem: PartitionedProblem, start: Start, settings: Settings, partition: int
) -> NDArray[np.float32]:
    size = problem.data.shuffle.size(partition)
    if settings.init == "random":
        rng = np.random.default_rng([settings.seed, 5, partition])
        return random_masses(size, problem.width, rng)
    if len(start.landmarks.objects) == problem.n:
        lo, hi = problem.data.shuffle.bounds[partition : partition + 2].tolist()
        return start.landmarks.mass[lo:hi]
    X = problem.data.read(partition)
    k = min(settings.k, PLACED_AGAINST)
    mass = place(start.landmarks, X, k=k, seed=settings.seed, rows=problem.rows)
    return problem.rows.on_host(mass)

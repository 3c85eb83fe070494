"""How a fit begins: d0, the first masses, and the graph of kept pairs.

With few clusters these three know nothing of each other: d0 is searched on a sample, landmarks are
solved and all objects placed against them, partners are uniform. With many clusters all follow from
one preliminary partition (`evdist.evclus.groups`); docs/decisions/many-clusters.md says why.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.sources import Source
from evdist.engine.progress import Progress
from evdist.evclus.confirm import top
from evdist.evclus.d0 import d0_of_groups, find_d0, given_d0
from evdist.evclus.groups import SPARSE_FROM, START, Groups, find_groups, near_share
from evdist.evclus.landmarks import Landmarks
from evdist.evclus.rows.protocol import Masses, Starter
from evdist.evclus.sampling import (
    Layout,
    draw_layout,
    near_layout,
    random_dissimilarities,
    shuffled,
)
from evdist.evclus.start import (
    LANDMARKS_PER_CLUSTER,
    MIN_LANDMARKS,
    Settings,
    first_masses,
)
from evdist.evclus.trial import some_objects
from evdist.kernels.sparse_rows import labelled
from evdist.partition.sparse import SparseMasses


@dataclass(frozen=True)
class Beginning:
    """Masses by object to start from, landmarks for new objects, and the pairs to keep."""

    d0: float
    d0_curve: list[tuple[float, float]]
    starts: list[Masses]
    landmarks: Landmarks
    layout: Layout
    sparse: bool = False
    #: (n,) the cluster in which each object begins, where a fit begins with groups.
    groups: NDArray[np.integer] | None = None


def begins_with_groups(n: int, family: FocalSets, settings: Settings) -> bool:
    """Whether clusters are so many that uniform partners cannot tell the own one.

    Where most pairs are kept anyway there is nothing to choose. With a d0 of the user's, and
    clusters that uniform partners still tell, the fit is that of the papers; so it is from random
    masses. Those that the user gave take the place of the groups' masses, and of nothing else.
    """
    c, k = settings.n_clusters, settings.k
    return (
        settings.groups
        and (settings.d0 == "auto" or c >= SPARSE_FROM)
        and not (isinstance(settings.init, str) and settings.init == "random")
        and near_share(k, c) > 0
        and bool((family.singletons >= 0).all())
        and n >= 4 * (k + 1)
    )


def begin(
    source: Source,
    family: FocalSets,
    settings: Settings,
    starter: Starter,
    n_threads: int,
    tell: Callable[[Progress], object],
    *,
    linked: bool,
    known: Groups | None = None,
) -> Beginning:
    """All that comes before the first sweep but the dissimilarities of the pairs.

    `known` are the groups of the same data and settings, where they have been found before.
    """
    if begins_with_groups(source.n, family, settings):
        tell(Progress("group objects", 0, 0))
        return _from_groups(source, family, settings, starter, n_threads, linked, known)
    # A permutation of many objects takes as long as the start on a device.
    with ThreadPoolExecutor(1) as beside:
        drawn = beside.submit(draw_layout, source.n, settings.k, settings.seed)
        # What takes a while before the first sweep is told, so that a user sees it work.
        tell(Progress("choose d0", 0, 0))
        d0, curve = find_d0(
            source, settings.d0, settings.n_clusters,
            k=settings.k, seed=settings.seed, rows=starter,
        )  # fmt: skip
        tell(Progress("first masses", 0, 0))
        starts, landmarks = first_masses(source, family, d0, settings, starter)
        return Beginning(landmarks.d0, curve, starts, landmarks, drawn.result())


def layout_of(
    source: Source, family: FocalSets, settings: Settings, n_threads: int
) -> tuple[Layout, Groups | None]:
    """The graph that :func:`begin` would give, and the groups that it comes from, if any."""
    if not begins_with_groups(source.n, family, settings):
        return draw_layout(source.n, settings.k, settings.seed), None
    groups = find_groups(source, settings.n_clusters, settings.seed, n_threads)
    return _near(groups, settings), groups


def has_sparse_rows(family: FocalSets, settings: Settings) -> bool:
    """Whether rows are lists of clusters: many clusters, and no sets but single ones and Omega.

    A fit with links, or with pairs of neighbouring clusters to come, keeps dense rows.
    """
    c = settings.n_clusters
    few = c < SPARSE_FROM or settings.focal_sets == "select"
    return not few and family == FocalSets.simple(c)


def _near(groups: Groups, settings: Settings, drawn: Any = None) -> Layout:
    share = near_share(settings.k, settings.n_clusters)
    return near_layout(groups.labels, settings.k, share, settings.seed, drawn)


def _from_groups(
    source: Source,
    family: FocalSets,
    settings: Settings,
    starter: Starter,
    n_threads: int,
    linked: bool,
    known: Groups | None,
) -> Beginning:
    # A permutation of many objects takes as long as the rest on a device.
    with ThreadPoolExecutor(1) as beside:
        drawn = beside.submit(shuffled, source.n, settings.k, settings.seed)
        c, seed = settings.n_clusters, settings.seed
        groups = known or starter.groups(source, c, seed, n_threads)
        layout = beside.submit(lambda: _near(groups, settings, drawn.result()))
        return _begun(source, family, settings, starter, groups, layout, linked)


def _begun(
    source: Source,
    family: FocalSets,
    settings: Settings,
    starter: Starter,
    groups: Groups,
    layout: Future[Layout],
    linked: bool,
) -> Beginning:
    sparse = has_sparse_rows(family, settings) and not linked
    landmarks = landmarks_of_groups(source, family, settings, groups, sparse)
    masses: Masses
    began: NDArray[np.integer] = groups.labels
    if not isinstance(settings.init, str):
        masses, began = _given(settings.init, family, sparse)
    elif sparse:
        masses = starter.labelled(groups)
    else:
        masses = labelled_masses(groups.labels, family)
    return Beginning(landmarks.d0, [], [masses], landmarks, layout.result(), sparse, began)


def _given(
    init: NDArray | SparseMasses, family: FocalSets, sparse: bool
) -> tuple[NDArray[np.float32], NDArray[np.integer]]:
    """Masses that the user gave, as the rows of the fit are, and the clusters they are most on."""
    mass = SparseMasses.of(init).rows if sparse else np.asarray(init, dtype=np.float32)
    return mass, top(mass, family, sparse)[0]


def landmarks_of_groups(
    source: Source, family: FocalSets, settings: Settings, groups: Groups, sparse: bool
) -> Landmarks:
    """Some objects with their first masses, the middles of the groups among them; also d0."""
    d0 = _d0_of(source, groups, settings)
    count = max(MIN_LANDMARKS, LANDMARKS_PER_CLUSTER * settings.n_clusters)
    objects = np.union1d(some_objects(source.n, count, settings.seed), groups.middle)
    objects = objects.astype(np.uint32)
    mass = labelled_masses(groups.labels[objects], family, sparse)
    return Landmarks(source.subset(objects), objects, mass, family, d0, sparse=sparse)


def _d0_of(source: Source, groups: Groups, settings: Settings) -> float:
    if settings.d0 == "auto":
        return d0_of_groups(source, groups, settings.seed)
    if isinstance(settings.d0, str):
        return given_d0(settings.d0, random_dissimilarities(source, settings.seed))
    return float(settings.d0)


def labelled_masses(
    labels: NDArray, family: FocalSets, sparse: bool = False
) -> NDArray[np.float32]:
    """Masses (n, f): START on the own group, the rest on the largest set; encoded if `sparse`."""
    if sparse:
        return labelled(labels, START)
    mass = np.zeros((len(labels), len(family)), np.float32)
    mass[:, int(family.cardinality.argmax())] = 1.0 - START
    mass[np.arange(len(labels)), family.singletons[labels]] += START
    return mass

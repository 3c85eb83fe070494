"""Objects that stand for the clusters: NN-EVCLUS then learns them as labelled ones ("bp").

Reference: Denoeux (2021), NN-EVCLUS, section 4.1, "Algorithms".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets, contour
from evdist.data.sources import Source
from evdist.ecm.belief_peaks import delta_bel
from evdist.estimators.checks import one_of
from evdist.evclus.irqp import Stop
from evdist.evclus.sites import LocalSite
from evdist.evclus.solver import Constraints, Settings, fit_evclus
from evdist.nnevclus.objects import Objects
from evdist.partition.sparse import SparseMasses

#: Centres are looked for among so many objects, drawn at random where there are more.
SAMPLE = 5000


def find_centres(
    centres: Any, x: NDArray, objects: Objects, *, n_clusters: int, d0: float, seed: int,
    n_threads: int,
) -> NDArray[np.int64]:  # fmt: skip
    """The objects that stand for the clusters, (c,); x are the inputs of `objects.X`."""
    c, n = n_clusters, objects.n
    if isinstance(centres, str):
        if one_of("centres", centres, ("peaks", "evclus")) == "peaks":
            return objects.number(peak_centres(x, c, seed))
        return objects.number(evclus_centres(objects.source, c, d0, seed, n_threads))
    found = np.asarray(centres)
    whole = found.dtype.kind in "iu" and found.shape == (c,)
    if not whole or found.min() < 0 or found.max() >= n or len(set(found.tolist())) < c:
        raise ValueError(
            f"centres must be {c} different objects of 0..{n - 1}, one for each cluster, "
            f'or "peaks" or "evclus", got {centres!r}.'
        )
    return found.astype(np.int64)


def sampled(n: int, seed: int, most: int = SAMPLE) -> NDArray[np.int64]:
    """Objects that stand for all n of them, in order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 31, n]).choice(n, most, replace=False))


def peak_centres(x: NDArray, n_clusters: int, seed: int) -> NDArray[np.int64]:
    """The largest belief peaks of the rows of x (n, d): objects, (c,).

    Each object asks as many neighbours as half a cluster of equal size has objects; the paper's
    50 for fourclass are that.
    """
    rows = sampled(len(x), seed)
    K = min(max(5, len(rows) // (2 * n_clusters)), len(rows) - 1)
    return rows[delta_bel(x[rows], K).largest(n_clusters)]


def evclus_centres(
    source: Source, n_clusters: int, d0: float, seed: int, n_threads: int
) -> NDArray[np.int64]:
    """The object of maximum plausibility in each cluster that EVCLUS finds: at most (c,)."""
    rows = sampled(source.n, seed)
    mass = evclus_masses(source, rows, n_clusters, d0, seed, n_threads)
    pl = contour(np.asarray(mass, dtype=float), FocalSets.simple(n_clusters))
    mine = pl.argmax(axis=1)
    best = [
        int(np.flatnonzero(mine == k)[pl[mine == k, k].argmax()])
        for k in range(n_clusters)
        if (mine == k).any()
    ]
    return rows[best]


def evclus_masses(
    source: Source, rows: NDArray[np.int64], n_clusters: int, d0: float, seed: int, n_threads: int
) -> NDArray[np.float32] | SparseMasses:
    """Masses (m, c + 2) that EVCLUS gives to some objects, with simple focal sets."""
    some = source if len(rows) == source.n else source.subset(rows.astype(np.uint32))
    none = np.empty((0, 2), np.int64)
    settings = Settings(
        n_clusters=n_clusters, k=min(100, some.n - 1), focal_sets="simple", d0=d0,
        init="landmarks", n_init=1, stop=Stop(1e-5, 200), constraint_weight=0.0,
        pair_neighbours=1, seed=seed,
    )  # fmt: skip
    fit = fit_evclus(some, settings, constraints=Constraints(none, none), site=LocalSite(n_threads))
    return fit.mass

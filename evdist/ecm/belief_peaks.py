"""Belief peaks: objects that neighbours believe to be cluster centres, far from any better one.

Reference: Su, Denoeux (2019), BPEC: belief-peaks evidential clustering, section III.

======  ==========================================================================  ==========
symbol  meaning                                                                     shape
======  ==========================================================================  ==========
d_ij    distance of object i to its j-th neighbour                                  (n, K)
s_j     q-quantile of the distances of object j to its own neighbours               (n,)
bel_i   degree of belief that object i is a cluster centre                          (n,)
delta   distance to the nearest object of larger belief                             (n,)
======  ==========================================================================  ==========

Differs:

* R's evclust compares beliefs strictly, so that equal objects that share the largest belief all
  get a large delta. Here, of two equal beliefs, that of the earlier object counts as the larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import spatial

from evdist.eknn.search import nearest_others, search

#: Distances held at once when looking for a better object beyond the neighbours.
_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class BeliefPeaks:
    """The delta-Bel graph: a centre has a large belief and is far from any larger one.

    `evdist.plot.delta_bel(peaks.delta, peaks.bel, centres=...)` draws it. All choices below give
    rows of objects in the order of decreasing delta * bel.
    """

    delta: NDArray[np.float64]
    bel: NDArray[np.float64]

    def largest(self, n_clusters: int) -> NDArray[np.intp]:
        """The objects of largest delta * bel, so many of them: (n_clusters,)."""
        n = len(self.bel)
        if not 1 <= n_clusters <= n:
            raise ValueError(f"n_clusters must be from 1 to the {n} objects, got {n_clusters}.")
        return np.argsort(-(self.delta * self.bel), kind="stable")[:n_clusters]

    def above(self, delta: float, bel: float = 0.0) -> NDArray[np.intp]:
        """The objects at or above both thresholds."""
        return self.inside((delta, np.inf), (bel, np.inf))

    def inside(self, delta: tuple[float, float], bel: tuple[float, float]) -> NDArray[np.intp]:
        """The objects in the box delta[0] <= delta <= delta[1], bel[0] <= bel <= bel[1]."""
        for name, (low, high) in (("delta", delta), ("bel", bel)):
            if not low <= high:  # also refuses NaN
                raise ValueError(f"The box needs {name}[0] <= {name}[1], got {(low, high)}.")
        chosen = (delta[0] <= self.delta) & (self.delta <= delta[1])
        chosen &= (bel[0] <= self.bel) & (self.bel <= bel[1])
        if not chosen.any():
            top = self.largest(1)[0]
            raise ValueError(
                f"No object has delta in {tuple(map(float, delta))} and bel in "
                f"{tuple(map(float, bel))}; the largest peak, object {top}, has delta "
                f"{self.delta[top]:.4g} and bel {self.bel[top]:.4g}. Lower the thresholds."
            )
        rows = np.flatnonzero(chosen)
        return rows[np.argsort(-(self.delta * self.bel)[rows], kind="stable")]


def delta_bel(X: ArrayLike, K: int, *, q: float = 0.9, n_jobs: int | None = None) -> BeliefPeaks:
    """Belief that each object is a cluster centre, and its distance to a better one.

    Parameters
    ----------
    X : (n, d) array
        The objects.
    K : int
        Neighbours used as evidence for each object, below n.
    q : float, default=0.9
        The scale of a neighbour is the q-quantile of its distances.
    n_jobs : int or None
        Threads of the neighbour search; the result does not depend on it.
    """
    X = np.ascontiguousarray(X, dtype=float)
    n = len(X)
    if not 1 <= K < n:
        raise ValueError(f"K must be from 1 to n - 1 = {n - 1} neighbours, got {K}.")
    if not 0 < q <= 1:
        raise ValueError(f"q must be above 0 and at most 1, got {q!r}.")
    d, neighbour = nearest_others(search(X, n_jobs=n_jobs), X, K)
    bel = _belief(d, neighbour, np.quantile(d, q, axis=1))
    return BeliefPeaks(_distance_to_better(X, bel, d, neighbour), bel)


def _belief(
    d: NDArray[np.float64], neighbour: NDArray[np.int32], s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """bel_i({C}) = 1 - prod_j (1 - exp(-d_ij^2 / s_j^2) / K).

    Each neighbour gives mass exp(-d_ij^2 / s_j^2) / K to {C}, "i is a centre", the rest to
    {C, not C}; Dempster's rule over the K of them multiplies the rests.
    """
    K = d.shape[1]
    reach = s[neighbour]
    near = np.zeros_like(d)
    np.divide(d, reach, out=near, where=reach > 0)
    # A neighbour among its own copies reaches these alone.
    near[(reach == 0) & (d > 0)] = np.inf
    return 1.0 - np.prod(1.0 - np.exp(-(near**2)) / K, axis=1)


def _distance_to_better(
    X: NDArray[np.float64],
    bel: NDArray[np.float64],
    d: NDArray[np.float64],
    neighbour: NDArray[np.int32],
) -> NDArray[np.float64]:
    """delta_i = min over better j of d_ij; that of the best object is the largest of the others."""
    n = len(d)
    order = np.argsort(-bel, kind="stable")
    rank = np.empty(n, dtype=np.intp)
    rank[order] = np.arange(n)
    # Neighbours come by distance: the first better one is the nearest better one.
    better = rank[neighbour] < rank[:, None]
    first = better.argmax(axis=1)
    delta = d[np.arange(n), first]
    # A peak has no better neighbour; only then all better objects are looked at, in order of rank.
    peaks = np.flatnonzero(~better.any(axis=1))
    peaks = peaks[np.argsort(rank[peaks], kind="stable")]
    ranked = X[order]
    for i in peaks[1:]:
        delta[i] = _nearest(X[i], ranked[: rank[i]])
    best = order[0]
    delta[best] = 0.0
    delta[best] = delta.max()
    return delta


def _nearest(x: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    rows = max(1, _AT_ONCE // max(1, x.size))
    return min(
        float(spatial.distance.cdist(x[None], others[lo : lo + rows]).min())
        for lo in range(0, len(others), rows)
    )

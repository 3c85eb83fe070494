"""Median evidential c-means: ECM on dissimilarities, with objects as prototypes.

Reference: Zhou, Martin, Pan, Liu (2015), Median evidential c-means algorithm and its application to
community detection, Knowledge-Based Systems 74, section 3.

    J(M, v) = sum_i [ sum_j |A_j|^alpha m_ij^beta d_ij^2 + delta^2 m_i0^beta ]

======  ==============================================================================  ========
symbol  meaning                                                                         shape
======  ==============================================================================  ========
D       dissimilarities                                                                 (n, n)
v_k     medoid of cluster k, an object                                                  (c,)
d_ik    D[i, v_k] for a single cluster
rho_ij  sum over pairs of clusters k, l in A_j of |d_ik - d_il|, divided by             (n, f)
        eta times the sum over the same pairs of D[v_k, v_l]
======  ==============================================================================  ========

For a set of clusters

    d_ij^2 = ( gamma mean_{k in A_j} d_ik^2 + rho_ij min_{k in A_j} d_ik^2 ) / (gamma + 1):

an object at like distances from the clusters of a set (rho near 0) is nearer to the set. For given
masses, the medoid of one cluster after the other becomes the object that minimises J, the other
medoids fixed; so no iteration can raise J.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets

__all__ = ["MedianMedoids"]

Floats = NDArray[np.float64]

#: Numbers in a table of distances of objects to candidates.
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class MedianMedoids:
    """One object for each cluster."""

    focal_sets: FocalSets
    medoid: NDArray[np.int64]
    alpha: float
    beta: float
    delta: float
    eta: float
    gamma: float

    def costs(self, D: Floats) -> Floats:
        return self.costs_at(D[:, self.medoid], D[np.ix_(self.medoid, self.medoid)])

    def costs_at(self, single: Floats, between: Floats) -> Floats:
        """b from dissimilarities to the medoids (n, c), and of the medoids (c, c)."""
        b = np.empty((len(single), len(self.focal_sets)))
        b[:, 0] = self.delta**2
        for j, members in enumerate(self.focal_sets.sets):
            if len(members) == 1:
                b[:, j] = single[:, members[0]] ** 2
            elif members:
                columns = [single[:, k] for k in members]
                apart = sum(between[k, m] for k, m in combinations(members, 2))
                b[:, j] = len(members) ** self.alpha * self._set_distance(columns, apart)
        return b

    def _set_distance(self, columns: list[Floats], apart: float | Floats) -> Floats:
        """d_ij^2 of a set from the distances to its clusters, arrays of one shape."""
        mean = sum(d**2 for d in columns) / len(columns)
        least = columns[0]
        for d in columns[1:]:
            least = np.minimum(least, d)
        unlike = sum(abs(d - e) for d, e in combinations(columns, 2))
        # Medoids at one place: objects are at like distances of them.
        scale = self.eta * np.asarray(apart)
        rho = np.divide(unlike, scale, out=np.zeros_like(unlike), where=scale > 0)
        return (self.gamma * mean + rho * least**2) / (self.gamma + 1.0)

    def proposals(self, D: Floats, powers: Floats) -> Iterator[MedianMedoids]:
        """The medoid of each cluster in turn at the object that minimises J for these masses."""
        medoid = self.medoid.copy()
        for k in range(len(medoid)):
            medoid[k] = self._best(D, powers, medoid, k)
        if (medoid != self.medoid).any():
            yield replace(self, medoid=medoid)

    def _best(self, D: Floats, powers: Floats, medoid: NDArray[np.int64], k: int) -> int:
        """The object p that minimises the terms of J with cluster k, were it its medoid."""
        n = len(D)
        total = np.empty(n)
        rows = max(1, _AT_ONCE // n)
        for lo in range(0, n, rows):
            near = D[:, lo : lo + rows]
            cost = np.zeros(near.shape[1])
            for j, members in enumerate(self.focal_sets.sets):
                if k not in members:
                    continue
                if len(members) == 1:
                    cost += powers[:, j] @ near**2
                    continue
                others = [medoid[a] for a in members if a != k]
                columns = [near, *(np.broadcast_to(D[:, [o]], near.shape) for o in others)]
                apart = sum(D[o, lo : lo + rows] for o in others)
                apart = apart + sum(D[a, b] for a, b in combinations(others, 2))
                weight = len(members) ** self.alpha * powers[:, j]
                cost += weight @ self._set_distance(columns, apart)
            total[lo : lo + rows] = cost
        total[np.delete(medoid, k)] = np.inf  # two clusters never share a medoid
        best = int(total.argmin())
        return best if total[best] < total[medoid[k]] else int(medoid[k])

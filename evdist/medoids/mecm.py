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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.ecm.base import ecm_parameters
from evdist.ecm.solver import Floats
from evdist.estimators.checks import non_negative, positive
from evdist.medoids.ecmdd import MedoidClusterer, mean_dissimilarity

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


class MECM(MedoidClusterer):
    """Median evidential c-means: ECM on dissimilarities, with objects as prototypes.

    Zhou, Martin, Pan and Liu (2015), arXiv 1501.01460. The square matrix of dissimilarities must
    fit in memory, and an iteration looks at all of it for every set of clusters.

    Experimental: names and values of the parameters are the article's, but it was not at hand, and
    its formulas for sets of clusters may differ.

    Parameters
    ----------
    n_clusters : int, default=4
        Number of clusters.
    alpha : float, default=1
        Weight |A|^alpha of sets of several clusters: the larger, the more specific the masses.
    beta : float above 1, default=2
        Fuzzifier: near 1, almost all mass is on one set.
    delta : float or "auto", default="auto"
        Distance to the empty set, in the units of the dissimilarities. "auto" is the root mean
        square of those between two objects.
    eta : float above 0, default=1
        The larger, the less unequal distances to its clusters exclude an object from a set.
    gamma : float, default=1
        Weight of the mean squared distance to the clusters of a set.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="pairs"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets.
    metric : str, default="euclidean"
        euclidean, sqeuclidean, cityblock, chebyshev, cosine, correlation or precomputed (n, n).
    init : "k-means++" or (n_clusters,) array of int
        Initial medoids: objects far from each other, or the given ones.
    n_init : int, default=5
        Starts with "k-means++"; the one with the smallest objective is kept.
    tol : float, default=1e-6
        Stop when the relative decrease of the objective is smaller than this.
    max_iter : int, default=200
        Maximum number of iterations.
    random_state : int, RandomState or None, default=None
        Seed of the starts: an int gives the same result every time.
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses of the objects.
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    delta_ : float
        The distance to the empty set that was used.
    medoids_ : (c,) int array
        The object of each cluster.
    objective_ : float
        The objective at the end.
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether `tol` ended the fit, not `max_iter`.
    n_features_in_ : int
        Columns of X; with "precomputed" the number of objects.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import MECM
    >>> X, _ = make_blobs(150, centers=3, random_state=0)
    >>> MECM(n_clusters=3, random_state=0).fit(X).credal_partition_.mass.shape
    (150, 8)
    """

    def _checked(self, X: NDArray[Any]) -> tuple[FocalSets, NDArray[np.int64] | None]:
        positive("eta", self.eta)
        non_negative("gamma", self.gamma)
        return super()._checked(X)

    def _usual(self, D: NDArray[Any]) -> float:
        mean = mean_dissimilarity(D**2)
        return float(np.sqrt(mean)) if mean > 0 else 1.0

    def _start(self, D: NDArray[Any], medoid: NDArray[Any], sets: FocalSets) -> MedianMedoids:
        numbers = ecm_parameters(self.alpha, self.beta, self.delta_)
        return MedianMedoids(sets, medoid, *numbers, float(self.eta), float(self.gamma))

    def _keep(self, found: MedianMedoids, D: NDArray[Any]) -> None:
        self.medoids_ = found.medoid
        self._between = D[np.ix_(found.medoid, found.medoid)]

    def _costs(self, D: NDArray[Any]) -> NDArray[Any]:
        model = self._start(D, self.medoids_, self._sets)
        return model.costs_at(D[:, self.medoids_], self._between)

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"delta": self.delta_}, {
            "rows": self._rows,
            "medoids": self.medoids_,
            "between": self._between,
        }

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.delta_ = float(values.get("delta", self.delta))
        self._rows, self._sets = arrays["rows"], self.credal_partition_.focal_sets
        self.medoids_, self._between = arrays["medoids"], arrays["between"]

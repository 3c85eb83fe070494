"""Evidential c-medoids: clusters of objects known by their dissimilarities.

Reference: Zhou, Martin, Pan, Liu (2016), ECMdd: evidential c-medoids clustering with multiple
prototypes, Pattern Recognition 60, sections 3 and 4.

    J(M, V) = sum_i [ sum_j |A_j|^alpha m_ij^beta d_ij + delta^2 m_i0^beta ]

======  ==============================================================================  ========
symbol  meaning                                                                         shape
======  ==============================================================================  ========
D       dissimilarities                                                                 (n, n)
b_ij    |A_j|^alpha d_ij, what a unit of mass of object i on A_j costs; delta^2 for     (n, f)
        the empty set
v_k     medoid of cluster k (sECMdd), an object                                         (c,)
V       weights of all objects as prototypes of each cluster (wECMdd), rows sum to one  (c, n)
======  ==============================================================================  ========

One medoid (sECMdd). d_ik = D[i, v_k]. The medoid p of a set is the object with dissimilarities to
the clusters' medoids that are small and alike: it minimises sd_k D[p, v_k] + eta mean_k D[p, v_k]
over k in A_j. Then d_ij = (gamma D[i, p] + mean_k D[i, v_k]) / (gamma + 1). For given masses, v_k
becomes the object l with the smallest R_kl = sum_i m_ik^beta D[i, l].

Many weighted medoids (wECMdd). d_ij = sum_l V_jl^psi D[i, l]. For given masses, the weights that
minimise sum_l V_kl^psi R_kl are V_kl ~ R_kl^(-1/(psi-1)). The weights of a set are high where those
of all its clusters are: V_jl ~ (min_k V_kl)^sharpness over k in A_j (sharpness is xi in the paper).

Differs: the updates look at the single clusters alone, so that the terms of sets may rise more than
those of clusters fall. A step that does not lower J is not taken whole: medoids are then tried one
cluster at a time, weights with shorter and shorter steps; where none lowers J, it is the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.ecm.solver import Floats, cheapest
from evdist.engine.loop import Descent, Solver, relative_fall
from evdist.kernels.seeding import draw_seeds

#: Halvings of a step of the weights before it is given up.
_HALVINGS = 10


class Prototypes(Protocol):
    """What represents the clusters: gives costs, and what may replace it for given masses."""

    def costs(self, D: Floats) -> Floats: ...

    def proposals(self, D: Floats, powers: Floats) -> Iterator[Self]: ...

    @property
    def beta(self) -> float: ...


@dataclass(frozen=True)
class Medoids:
    """sECMdd: one object for each cluster, and one for each set of clusters."""

    focal_sets: FocalSets
    medoid: NDArray[np.int64]
    alpha: float
    beta: float
    delta: float
    eta: float
    gamma: float

    def set_medoids(self, D: Floats) -> NDArray[np.int64]:
        """The object of each focal set, (f,); that of the empty set is not read."""
        out = np.zeros(len(self.focal_sets), dtype=np.int64)
        for j, members in enumerate(self.focal_sets.sets):
            if len(members) == 1:
                out[j] = self.medoid[members[0]]
            elif members:
                to = D[:, self.medoid[list(members)]]
                out[j] = (to.std(axis=1) + self.eta * to.mean(axis=1)).argmin()
        return out

    def costs(self, D: Floats) -> Floats:
        return self.costs_at(D[:, self.medoid], D[:, self.set_medoids(D)])

    def costs_at(self, single: Floats, own: Floats) -> Floats:
        """b from dissimilarities to the medoids of clusters (n, c) and of sets (n, f)."""
        b = np.empty((len(single), len(self.focal_sets)))
        b[:, 0] = self.delta**2
        for j, members in enumerate(self.focal_sets.sets):
            if len(members) == 1:
                b[:, j] = single[:, members[0]]
            elif members:
                mean = single[:, list(members)].mean(axis=1)
                d = (self.gamma * own[:, j] + mean) / (self.gamma + 1.0)
                b[:, j] = len(members) ** self.alpha * d
        return b

    def proposals(self, D: Floats, powers: Floats) -> Iterator[Medoids]:
        """All clusters' medoids at once, then one cluster at a time."""
        best = (powers[:, self.focal_sets.singletons].T @ D).argmin(axis=1)
        moved = np.flatnonzero(best != self.medoid)
        if len(moved) == 0:
            return
        if len(np.unique(best)) == len(best):
            yield replace(self, medoid=best)
        for k in moved:
            if best[k] not in np.delete(self.medoid, k):
                one = self.medoid.copy()
                one[k] = best[k]
                yield replace(self, medoid=one)


@dataclass(frozen=True)
class WeightedMedoids:
    """wECMdd: every object is a prototype of every cluster, with a weight."""

    focal_sets: FocalSets
    weights: Floats
    alpha: float
    beta: float
    delta: float
    psi: float
    sharpness: float

    def set_weights(self) -> Floats:
        """Weights of the focal sets, (f, n); those of the empty set are zero."""
        out = np.zeros((len(self.focal_sets), self.weights.shape[1]))
        for j, members in enumerate(self.focal_sets.sets):
            if len(members) == 1:
                out[j] = self.weights[members[0]]
            elif members:
                least = self.weights[list(members)].min(axis=0)
                # In units of the largest: a high power must not underflow everywhere.
                power = (least / least.max()) ** self.sharpness
                out[j] = power / power.sum()
        return out

    def costs(self, D: Floats) -> Floats:
        """b of objects with dissimilarities D (rows, n) to all fitted ones."""
        size = self.focal_sets.cardinality.astype(float)
        b = D @ (self.set_weights() ** self.psi).T * size**self.alpha
        b[:, 0] = self.delta**2
        return b

    def proposals(self, D: Floats, powers: Floats) -> Iterator[WeightedMedoids]:
        """The best weights of the single clusters, then ever shorter steps towards them."""
        best = cheapest(powers[:, self.focal_sets.singletons].T @ D, self.psi)[0]
        for halving in range(_HALVINGS):
            t = 0.5**halving
            yield replace(self, weights=(1.0 - t) * self.weights + t * best)


def seed_medoids(D: Floats, c: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """c different objects far from each other, as k-means++ draws them."""
    return draw_seeds(lambda some: D[:, some], len(D), c, rng, distinct=True)[0]


class MedoidFit(NamedTuple):
    """Prototypes, and the masses (n, f) that minimise J for them."""

    prototypes: Prototypes
    mass: Floats


@dataclass(frozen=True, eq=False)
class MedoidSolver(Solver[MedoidFit]):
    """Takes the first proposal that lowers J, until none does or J falls by less than `tol`."""

    D: Floats
    start: Prototypes
    tol: float

    @property
    def rows(self) -> int:
        return len(self.D)

    def init(self) -> Descent[MedoidFit]:
        found, J = self._at(self.start)
        return Descent(found, (J,))

    def step(self, now: Descent[MedoidFit]) -> Descent[MedoidFit]:
        prototypes, mass = now.value
        for proposal in prototypes.proposals(self.D, mass**prototypes.beta):
            found, J = self._at(proposal)
            if J < now.objective:
                return now.follow(found, J)
        return now.follow(now.value, now.objective)

    def done(self, now: Descent[MedoidFit]) -> bool:
        return relative_fall(now, self.tol)

    def _at(self, prototypes: Prototypes) -> tuple[MedoidFit, float]:
        """The masses for these prototypes, and J."""
        b = prototypes.costs(self.D)
        mass, Z = cheapest(b, prototypes.beta)
        least = b.min(axis=1, keepdims=True)
        return MedoidFit(prototypes, mass), float((least / Z ** (prototypes.beta - 1.0)).sum())

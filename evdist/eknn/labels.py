"""Evidential K-nearest-neighbour classification, with crisp or soft labels.

References: Denoeux (1995), A k-nearest neighbor classification rule based on Dempster-Shafer
theory; Zouhal, Denoeux (1998), An evidence-theoretic k-NN rule with parameter optimization;
Denoeux, slides "Evidential machine learning" (2021), sections "EK-NN classifier" and "Data with
soft labels".

======  ===================================================================  ==========
symbol  meaning                                                              shape
======  ===================================================================  ==========
phi     alpha exp(-gamma_k d^2), evidence of a neighbour of class k          (n, K)
q       commonalities of the labels of the learning set, all sets of classes (n, 2^c)
gamma   learnt by minimising J = sum_ik (Pl_(-i)(k) - y_ik)^2                (c,)
======  ===================================================================  ==========

With soft labels a neighbour's own mass function is discounted by phi, with one gamma for all
classes. Discounting and combining are products of commonalities:
q(A) = prod_j (1 - phi_j (1 - q_j(A))).

Differs: R's evclass minimises J with the pignistic probability; here, as in the slides, with the
plausibility.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from evdist.belief import FocalSets, commonality, mass_from_commonality, normalise
from evdist.eknn.kernel import evidence, loss
from evdist.engine.loop import Solution
from evdist.engine.progress import Clock

#: Numbers in a table of commonalities held at once.
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class CrispLabels:
    """Classes of the learning set, (n,) from 0 to c - 1."""

    y: NDArray[np.int32]
    c: int

    @property
    def n_gamma(self) -> int:
        return self.c

    @property
    def focal_sets(self) -> FocalSets:
        return FocalSets.simple(self.c)

    def first_gamma(self, d2: NDArray[Any], who: NDArray[np.int32]) -> NDArray[np.float64]:
        """One over the mean squared distance to neighbours of each class."""
        near = self.y[who].ravel()
        count = np.bincount(near, minlength=self.c)
        total = np.bincount(near, d2.ravel(), minlength=self.c)
        return _inverse(np.where(count > 0, total / np.maximum(count, 1), d2.mean()), d2)

    def loss(
        self, d2: NDArray[Any], who: NDArray[np.int32], alpha: float, gamma: NDArray[Any]
    ) -> tuple[float, NDArray[np.float64]]:
        slope = np.zeros(self.c)
        return loss(d2, who, self.y, alpha, gamma, slope), slope

    def masses(
        self, d2: NDArray[Any], who: NDArray[np.int32], alpha: float, gamma: NDArray[Any]
    ) -> NDArray[np.float64]:
        u = np.zeros((len(d2), self.c))
        evidence(d2, who, self.y, alpha, gamma, u)
        return masses_from_weights(u)


@dataclass(frozen=True)
class SoftLabels:
    """Mass functions of the learning set, (n, f), and their commonalities on all sets (n, 2^c)."""

    q: NDArray[np.float64]
    plausibility: NDArray[np.float64]

    @classmethod
    def of(cls, mass: NDArray[Any], focal_sets: FocalSets) -> SoftLabels:
        c = focal_sets.n_clusters
        full = FocalSets.full(c)  # set A is column A of the power set, as a binary number
        wide = np.zeros((len(mass), len(full)))
        wide[:, list(focal_sets.masks)] = normalise(np.asarray(mass, dtype=float), focal_sets)
        q = np.asarray(commonality(wide, full))
        return cls(q, q[:, [1 << k for k in range(c)]])

    @property
    def c(self) -> int:
        return self.plausibility.shape[1]

    @property
    def n_gamma(self) -> int:
        return 1

    @property
    def focal_sets(self) -> FocalSets:
        return FocalSets.full(self.c)

    def first_gamma(self, d2: NDArray[Any], who: NDArray[np.int32]) -> NDArray[np.float64]:
        return _inverse(np.array([d2.mean()]), d2)

    def _combined(
        self, d2: NDArray[Any], who: NDArray[np.int32], alpha: float, gamma: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Commonalities after Dempster's rule without normalisation, and d log q / d gamma."""
        phi = alpha * np.exp(-gamma[0] * d2)
        lack = 1.0 - self.q[who]
        factor = 1.0 - phi[:, :, None] * lack
        slope = (d2 * phi)[:, :, None] * lack / factor
        return np.prod(factor, axis=1), slope.sum(axis=1)

    def _blocks(self, d2: NDArray[Any]) -> range:
        rows = max(1, _AT_ONCE // (d2.shape[1] * self.q.shape[1]))
        return range(0, len(d2), rows)

    def loss(
        self, d2: NDArray[Any], who: NDArray[np.int32], alpha: float, gamma: NDArray[Any]
    ) -> tuple[float, NDArray[np.float64]]:
        """1 - m(empty) is the sum over non-empty A of -(-1)^|A| q(A)."""
        size = FocalSets.full(self.c).cardinality
        sign = np.where(size == 0, 0.0, -((-1.0) ** size))
        single = [1 << k for k in range(self.c)]
        total, slope, step = 0.0, 0.0, self._blocks(d2).step
        for lo in self._blocks(d2):
            part = slice(lo, lo + step)
            q, dq = self._combined(d2[part], who[part], alpha, gamma)
            dq *= q
            N, dN = q @ sign, dq @ sign
            pl = q[:, single] / N[:, None]
            dpl = (dq[:, single] - pl * dN[:, None]) / N[:, None]
            error = pl - self.plausibility[part]
            total += float((error * error).sum())
            slope += float(2.0 * (error * dpl).sum())
        return total, np.array([slope])

    def masses(
        self, d2: NDArray[Any], who: NDArray[np.int32], alpha: float, gamma: NDArray[Any]
    ) -> NDArray[np.float64]:
        full = self.focal_sets
        out = np.empty((len(d2), len(full)))
        step = self._blocks(d2).step
        for lo in self._blocks(d2):
            part = slice(lo, lo + step)
            q = self._combined(d2[part], who[part], alpha, gamma)[0]
            mass = np.maximum(np.asarray(mass_from_commonality(q, full)), 0.0)
            mass[:, 0] = 0.0
            out[part] = mass / mass.sum(axis=1, keepdims=True)
        return out


def _inverse(scale: NDArray[Any], d2: NDArray[Any]) -> NDArray[np.float64]:
    # Nothing but copies: any gamma will do.
    whole = float(d2.mean()) or 1.0
    return 1.0 / np.where(scale > 0, scale, whole)


def learn(
    labels: CrispLabels | SoftLabels,
    d2: NDArray[np.float64],
    who: NDArray[np.int32],
    alpha: float,
    *,
    tol: float,
    max_iter: int,
    clock: Clock,
) -> Solution[NDArray[np.float64]]:
    """Minimise the mean of J over log(gamma) by L-BFGS; gamma stays positive by itself."""
    n = len(d2)

    def value(theta: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        gamma = np.exp(theta)
        total, slope = labels.loss(d2, who, alpha, gamma)
        return total / n, slope * gamma / n

    theta = np.log(labels.first_gamma(d2, who))
    history = [value(theta)[0]]

    def heard(intermediate_result: optimize.OptimizeResult) -> None:
        history.append(float(intermediate_result.fun))
        clock.tell(len(history) - 1, history[-1], history[-1] - history[-2])

    found = optimize.minimize(
        value, theta, jac=True, method="L-BFGS-B", callback=heard,
        # Far out the loss no longer depends on gamma, and exp must not overflow.
        bounds=[(t - 30.0, t + 30.0) for t in theta],
        options={"maxiter": max_iter, "ftol": tol, "gtol": 1e-10},
    )  # fmt: skip
    return Solution(np.exp(found.x), history, found.nit < max_iter, clock.seconds)


def masses_from_weights(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """m({k}) = (exp(u_k) - 1) / N, m(Omega) = 1 / N: (n, c + 2), or (n, 2) for one class."""
    n, c = u.shape
    if c == 1:
        return np.tile([0.0, 1.0], (n, 1))
    top = u.max(axis=1, keepdims=True)
    omega = np.exp(-top)
    single = np.exp(u - top) - omega
    mass = np.concatenate([np.zeros((n, 1)), single, omega], axis=1)
    return mass / mass.sum(axis=1, keepdims=True)

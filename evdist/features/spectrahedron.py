"""Concave functions on the matrices B >= 0 of trace 1: the problems of LSI and DML-eig.

References: Xing, Ng, Jordan, Russell (2003), LSI; Ying, Li (2012), DML-eig.

Symbols
-------
z       (q, d) differences of cannot-linked objects, whitened by the scatter of the must-links
B       (d, d) positive semidefinite, trace 1
G       (d, d) gradient of the function at B
u       (q,) weights of the cannot-links, sum 1

Both maximise a concave F(B) = f(z' B z). With B = L L' / tr(L L'), L (d, d), every local maximum
over L is one over B, so that L-BFGS from L = I finds it without a projection. No B can be better
than F(B) by more than the largest eigenvalue of G less tr(G B): the gap that is reported.

Differs: Xing et al. climb along the gradient and project alternately on the constraint and on the
positive semidefinite matrices; Ying and Li take Frank-Wolfe steps, with the largest eigenvector of
G each. The problems are convex: what they tend to is what is found here, in fewer steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Floats = NDArray[np.float64]
#: B -> F and G.
Goal = Callable[[Floats], tuple[float, Floats]]

#: The soft minimum is sharpened by this factor, from the mean distance down to a share of `tol`.
_SHARPER, _SHARPEST = 4.0, 1e-4
#: L loses directions on its way and cannot find them again: this share of I / d is given back.
_GIVEN_BACK = 1e-4
_ROUNDS = 20


@dataclass(frozen=True)
class Found:
    """B, F there, the gap, and how it was found."""

    B: Floats
    value: float
    gap: float
    n_iter: int
    converged: bool


def total_distance(z: Floats) -> Goal:
    """F = sum_t |z_t|_B: as Xing et al., the distances themselves and not their squares."""

    def goal(B: Floats) -> tuple[float, Floats]:
        length = np.sqrt(np.maximum(squares(z, B), np.finfo(float).tiny))
        return float(length.sum()), (z / (2 * length)[:, None]).T @ z

    return goal


def least_distance(z: Floats, mu: float) -> Goal:
    """F = min_t |z_t|_B^2, smoothed: -mu log mean exp(-|z_t|_B^2 / mu), as Ying and Li.

    G is sum_t u_t z_t z_t' with the weights u of the soft minimum.
    """

    def goal(B: Floats) -> tuple[float, Floats]:
        square = squares(z, B)
        log = float(special.logsumexp(-square / mu))
        u = np.exp(-square / mu - log)
        return -mu * (log - np.log(len(z))), (z * u[:, None]).T @ z

    return goal


def squares(z: Floats, B: Floats) -> Floats:
    """|z_t|_B^2, (q,)."""
    return ((z @ B) * z).sum(axis=1)


def maximise(goal: Goal, B: Floats, tol: float, max_iter: int) -> Found:
    """The maximum, from B; converged when the gap is below `tol` of F."""
    d, n_iter = len(B), 0

    def flat(entries: Floats) -> tuple[float, Floats]:
        L = entries.reshape(d, d)
        trace = float((L * L).sum())
        here = L @ L.T / trace
        value, G = goal(here)
        return -value, -2 / trace * (G @ L - float((G * here).sum()) * L).ravel()

    best: Found | None = None
    for _ in range(_ROUNDS):
        L = np.linalg.cholesky((1 - _GIVEN_BACK) * B + _GIVEN_BACK * np.eye(d) / d)
        options = {"maxiter": max_iter - n_iter, "ftol": 1e-6 * tol, "gtol": 0.0}
        found = optimize.minimize(flat, L.ravel(), jac=True, method="L-BFGS-B", options=options)
        L = found.x.reshape(d, d)
        B = L @ L.T / float((L * L).sum())
        n_iter += max(int(found.nit), 1)
        value, G = goal(B)
        gap = float(np.linalg.eigvalsh(G)[-1]) - float((G * B).sum())
        if best is None or value > best.value:
            best = Found(B, value, gap, n_iter, gap <= tol * abs(value))
        if best.converged or n_iter >= max_iter:
            break
    assert best is not None
    return replace(best, n_iter=n_iter)


def farthest_in_sum(z: Floats, tol: float, max_iter: int) -> Found:
    """LSI: B that maximises the sum of the distances |z_t|_B."""
    d = z.shape[1]
    return maximise(total_distance(z), np.eye(d) / d, tol, max_iter)


def farthest_at_least(z: Floats, tol: float, max_iter: int) -> Found:
    """DML-eig: B that maximises the least |z_t|_B^2, from soft minima to hard ones.

    The gap is that of the hard minimum: for any weights u of the cannot-links the largest
    eigenvalue of sum_t u_t z_t z_t' is a bound from above, and the least of them is the maximum
    (the equivalence that gives the article of Ying and Li its name).
    """
    d = z.shape[1]
    B, used = np.eye(d) / d, 0
    mu = size = float((z * z).sum(axis=1).mean()) / d
    best: Found | None = None
    bound = np.inf
    while True:
        soft = maximise(least_distance(z, mu), B, 0.1 * tol, max(max_iter - used, 1))
        used += soft.n_iter
        B = soft.B
        least = float(squares(z, B).min())
        bound = min(bound, float(np.linalg.eigvalsh(least_distance(z, mu)(B)[1])[-1]))
        if best is None or least > best.value:
            best = Found(B, least, 0.0, used, False)
        gap = bound - best.value
        if gap <= tol * best.value or mu < _SHARPEST * tol * size or used >= max_iter:
            return replace(best, gap=gap, n_iter=used, converged=gap <= tol * best.value)
        mu /= _SHARPER

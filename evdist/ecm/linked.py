"""Constrained evidential c-means: ECM with must-links and cannot-links.

Reference: Antoine, Quost, Masson, Denoeux (2012), CECM; Denoeux, slides "Belief functions and
clustering" (2017), "Constrained Evidential c-means". beta is 2.

    J(M, V, S) = (1 - xi) / (f n) J_ECM(M, V, S)
                 + xi / (|ML| + |CL|) [ sum_ML pl_ij(not same) + sum_CL pl_ij(same) ]

with pl_ij(not same) = m_i' E m_j and pl_ij(same) = m_i' (1 - C) m_j (k-CEVCLUS, eqs. (12)-(16)).

Given prototypes and metric, the rows are put one after the other to the minimum of their own cost
(`evdist.ecm.link_kernel`; for rows without links that of ECM); given the masses, prototypes and
metric are those of ECM. Each lowers J. The cost of an iteration is linear in objects and links.

Differs:

* The paper and R's evclust minimise over all masses at once by an interior-point program, which
  is neither exact nor, since the penalty is not convex, certain to find the lowest minimum. R's
  iris example stops at J = .05138 where the same state, followed further, falls to .05044. We
  follow xi from a fiftieth of its value upwards (_PATH): .04955 from R's prototypes.
* The paper divides J_ECM by 2^c n. f, the number of focal sets, is 2^c when all sets are focal
  sets; for smaller families it keeps the meaning of xi.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evdist.constraints.check import Pairs
from evdist.ecm.link_kernel import update_linked
from evdist.ecm.solver import Floats, Model, Sums, cheapest
from evdist.engine.loop import Descent, Solution, Solver, minimise, relative_fall
from evdist.engine.progress import Report

#: Parts of xi that are followed before xi itself, and iterations spent on each.
_PATH, _STEPS = (0.02, 0.06, 0.2, 0.4, 0.7), 10


@dataclass(frozen=True, eq=False)
class LinkedProblem:
    """The objects and what is known of them.

    Parameters
    ----------
    X : (n, d) float64
    must, cannot : (p, 2) int64
    xi : float in [0, 1)
    w : (n,) float64 or None
    """

    X: Floats
    must: Pairs
    cannot: Pairs
    xi: float
    w: Floats | None = None

    @property
    def weight(self) -> Floats:
        return np.ones(len(self.X)) if self.w is None else self.w

    def part(self, share: float) -> LinkedProblem:
        """The same problem with `share` of the weight of the constraints."""
        return replace(self, xi=share * self.xi)

    def scale(self, model: Model) -> float:
        """(1 - xi) / (f n)."""
        return (1.0 - self.xi) / (len(model.focal_sets) * len(self.X))

    def relations(self, model: Model) -> Floats:
        """Weight of a link times E and 1 - C, (2, f, f)."""
        F = model.focal_sets
        links = len(self.must) + len(self.cannot)
        return np.array([F.E, 1.0 - F.C]) * (self.xi / max(links, 1))

    # ------------------------------------------------------------------ costs and masses
    def objective(self, model: Model, M: Floats, b: Floats) -> float:
        """J at these masses; b (n, f) from `costs`."""
        ecm = float((self.weight * (M * M * b).sum(axis=1)).sum()) * self.scale(model)
        ends = (self.must, self.cannot)
        pairs = zip(ends, self.relations(model), strict=True)
        return ecm + sum(float(((M[links[:, 0]] @ R) * M[links[:, 1]]).sum()) for links, R in pairs)

    def costs(self, model: Model) -> Floats:
        """b_ij = |A_j|^alpha d_ij^2, and delta^2 for the empty set; (n, f)."""
        b = np.empty((len(self.X), len(model.focal_sets)))
        b[:, 0] = model.costs.delta2
        Y = self.X - model.centre
        for j in range(1, b.shape[1]):
            Z = Y - model.vbar[j]
            if model.metric is not None:
                Z = Z @ model.factors[j]
            b[:, j] = model.costs.weight[j] * (Z * Z).sum(axis=1)
        return b

    def sums(self, model: Model, M: Floats) -> Sums:
        """What a step of the prototypes and the metric needs; the objective is not in it."""
        g = M * M * self.weight[:, None]
        Y = self.X - model.centre
        W = g.sum(axis=0)
        if model.metric is None:
            U = g @ (model.costs.share[:, None] * model.focal_sets.matrix)
            return Sums(0.0, W, B=U.T @ Y)
        Z = [Y - v for v in model.vbar]
        T = np.array([g[:, j] @ z for j, z in enumerate(Z)])
        Q = np.array([(g[:, [j]] * z).T @ z for j, z in enumerate(Z)])
        return Sums(0.0, W, T=T, Q=Q)


@dataclass(frozen=True, eq=False)
class _Links:
    """Links by object, both ways."""

    objects: NDArray[np.int64]
    first: NDArray[np.int64]
    partner: NDArray[np.int64]
    kind: NDArray[np.int64]

    @classmethod
    def of(cls, problem: LinkedProblem) -> _Links:
        links = np.concatenate([problem.must, problem.cannot])
        kind = np.repeat([0, 1], [len(problem.must), len(problem.cannot)])
        here = np.concatenate([links[:, 0], links[:, 1]])
        order = np.argsort(here, kind="stable")
        objects, counts = np.unique(here, return_counts=True)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        partner = np.concatenate([links[:, 1], links[:, 0]])[order]
        return cls(objects, first, partner, np.tile(kind, 2)[order].astype(np.int64))

    def update(self, problem: LinkedProblem, model: Model, M: Floats, b: Floats) -> Floats:
        """The masses that follow M at the costs b: free rows at once, linked ones in turn."""
        out = cheapest(b, 2.0)[0]
        out[self.objects] = M[self.objects]
        q = problem.scale(model) * problem.weight[:, None] * b
        R = np.ascontiguousarray(problem.relations(model))
        update_linked(out, q, self.objects, self.first, self.partner, self.kind, R)
        return out


class LinkedFit(NamedTuple):
    """A model, and masses (n, f) that belong to it and to the links."""

    model: Model
    mass: Floats


@dataclass(frozen=True, eq=False)
class CECMSolver(Solver[LinkedFit]):
    """Steps of CECM until J falls by less than `tol` of itself; one that raises J is the last."""

    problem: LinkedProblem
    start: LinkedFit
    tol: float

    @property
    def rows(self) -> int:
        return len(self.problem.X)

    @cached_property
    def links(self) -> _Links:
        return _Links.of(self.problem)

    def init(self) -> Descent[LinkedFit]:
        model, M = self.start
        return Descent(self.start, (self.problem.objective(model, M, self.problem.costs(model)),))

    def step(self, now: Descent[LinkedFit]) -> Descent[LinkedFit]:
        model, M = now.value
        found = model.step(self.problem.sums(model, M))
        b = self.problem.costs(found)
        moved = self.links.update(self.problem, found, M, b)
        return now.follow_if_lower(LinkedFit(found, moved), self.problem.objective(found, moved, b))

    def done(self, now: Descent[LinkedFit]) -> bool:
        return relative_fall(now, self.tol)


def fit_cecm(
    problem: LinkedProblem,
    model: Model,
    *,
    tol: float,
    max_iter: int,
    mass: Floats | None = None,
    report: Report = None,
) -> Solution[LinkedFit]:
    """From `model`: along the path of xi, then until J falls by less than `tol` of itself.

    With `mass` (n, f) given, straight from there.
    """
    if mass is not None:
        start = LinkedFit(model, mass)
    else:
        start = LinkedFit(model, cheapest(problem.costs(model), 2.0)[0])
        for share in _PATH if len(problem.must) + len(problem.cannot) else ():
            start = minimise(CECMSolver(problem.part(share), start, tol), _STEPS).value
    return minimise(CECMSolver(problem, start, tol), max_iter, report=report)

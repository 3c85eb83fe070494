"""Relational evidential c-means: ECM on a square matrix of squared dissimilarities.

Reference: Masson, Denoeux (2009), RECM. The prototypes of ECM are weighted means of the objects,
v_k = sum_i Q_ki x_i with weights that sum to one. So distances to them follow from those between
objects, and the objects' coordinates are never needed:

    |x_i - vbar_j|^2 = (D qbar_j)_i - 1/2 qbar_j' D qbar_j.

Symbols
-------
D       (n, n) float64, squared dissimilarities, symmetric, zero on the diagonal
Q       (c, n), weights of the objects in the prototypes; H Q = U replaces H V = B of ECM
U       (c, n), U_ki = w_i sum_{A_j holds k} |A_j|^(alpha-1) m_ij^beta
qbar_j  mean of the rows of Q in A_j
G, K    D Q' (n, c) and Q D Q' (c, c)

Differs: where D is not that of points in any space, distances could be negative and J could rise.
Then the least constant is added to all squared dissimilarities of different objects that makes them
Euclidean (`euclidean_shift`), before the start. The papers and R's evclust leave them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from evdist.belief import FocalSets
from evdist.ecm.solver import Floats, cheapest
from evdist.engine.loop import Descent, Solver, relative_fall
from evdist.kernels.seeding import draw_seeds

#: The smallest eigenvalue is known up to this part of the largest.
_EIGEN = 1e-6


@dataclass(frozen=True, eq=False)
class RelationalModel:
    """Parameters, and what a new object's masses depend on.

    Parameters
    ----------
    focal_sets : FocalSets over c clusters
    Q : (c, n) float64
        Weights of the fitted objects in the prototypes.
    K : (c, c) float64
        Q D Q' of the fitted objects, with the shift.
    alpha, beta, delta : float
    shift : float
        Added to every squared dissimilarity of two different objects.
    """

    focal_sets: FocalSets
    Q: Floats
    K: Floats
    alpha: float
    beta: float
    delta: float
    shift: float = 0.0

    @property
    def members(self) -> Floats:
        F = self.focal_sets
        return F.matrix / np.maximum(F.cardinality, 1)[:, None]

    @property
    def sizes(self) -> Floats:
        return np.maximum(self.focal_sets.cardinality, 1).astype(float)

    def at(self, D: Floats, Q: Floats) -> tuple[RelationalModel, Floats]:
        """The model with these weights, and G of the fitted objects; two products with D."""
        # (1 1' - I) q = 1 - q for weights that sum to one.
        G = D @ Q.T + self.shift * (1.0 - Q.T)
        return replace(self, Q=Q, K=Q @ G), G

    def masses(self, G: Floats) -> tuple[Floats, Floats]:
        """Masses (rows, f) and J_i (rows,) from G = D Q' of these objects; as in ECM."""
        P = self.members
        b = G @ P.T - 0.5 * np.einsum("jk,kl,jl->j", P, self.K, P)
        b = self.sizes**self.alpha * np.maximum(b, 0.0)
        b[:, 0] = self.delta**2
        M, Z = cheapest(b, self.beta)
        return M, b.min(axis=1) * Z[:, 0] ** (1.0 - self.beta)

    def new_masses(self, D: Floats) -> Floats:
        """Masses of new objects; D (rows, n), squared dissimilarities to the fitted ones."""
        return self.masses(D @ self.Q.T + self.shift)[0]

    def weights(self, M: Floats, w: Floats) -> Floats:
        """Q that minimises J for these masses, H Q = U, as a step away from the present Q."""
        F = self.focal_sets.matrix.astype(float)
        share = self.sizes ** (self.alpha - 1.0)
        g = M**self.beta * w[:, None]
        H = F.T @ ((self.sizes ** (self.alpha - 2.0) * g.sum(axis=0))[:, None] * F)
        U = (g @ (share[:, None] * F)).T
        return self.Q + np.linalg.lstsq(H, U - H @ self.Q, rcond=None)[0]


class RelationalFit(NamedTuple):
    """A model, and the masses (n, f) that it gives the fitted objects."""

    model: RelationalModel
    mass: Floats


@dataclass(frozen=True, eq=False)
class RECMSolver(Solver[RelationalFit]):
    """Steps of RECM from the weights of `start` until J falls by less than `tol` of itself."""

    D: Floats
    start: RelationalModel
    tol: float
    w: Floats

    @property
    def rows(self) -> int:
        return len(self.D)

    def init(self) -> Descent[RelationalFit]:
        found, J = self._at(self.start, self.start.Q)
        return Descent(found, (J,))

    def step(self, now: Descent[RelationalFit]) -> Descent[RelationalFit]:
        model, M = now.value
        return now.follow_if_lower(*self._at(model, model.weights(M, self.w)))

    def done(self, now: Descent[RelationalFit]) -> bool:
        return relative_fall(now, self.tol)

    def _at(self, model: RelationalModel, Q: Floats) -> tuple[RelationalFit, float]:
        """The model with these weights, its masses, and J."""
        found, G = model.at(self.D, Q)
        M, J = found.masses(G)
        return RelationalFit(found, M), float(self.w @ J)


def seeded_weights(D: Floats, c: int, rng: np.random.Generator, w: Floats) -> Floats:
    """c objects as prototypes, far from each other, as k-means++ draws them; Q (c, n)."""
    n = len(D)
    seeds, _ = draw_seeds(lambda some: D[some].T, n, c, rng, weights=w, power=1)
    Q = np.zeros((c, n))
    Q[np.arange(c), seeds] = 1.0
    return Q


def euclidean_shift(D: Floats) -> float:
    """The least constant that makes D Euclidean when it is added off the diagonal; 0 if it is.

    -1/2 P D P with P = I - 1 1' / n must have no negative eigenvalue; a shift s raises all but that
    of the constant vector by s / 2.
    """
    n = len(D)
    if n < 3 or not D.any():
        return 0.0

    def product(x: Floats) -> Floats:
        x = x - x.mean()
        y = -0.5 * (D @ x)
        return y - y.mean()

    # A fixed start, so that the same data give the same bits.
    v0 = np.cos(np.arange(n) * 2.399963)
    operator = LinearOperator((n, n), matvec=lambda x: product(x.ravel()), dtype=float)
    top = float(abs(eigsh(operator, k=1, which="LM", v0=v0, tol=1e-2)[0][0]))
    lowered = LinearOperator(
        (n, n), matvec=lambda x: product(x.ravel()) - 2.0 * top * x.ravel(), dtype=float
    )
    least = float(eigsh(lowered, k=1, which="LM", v0=v0, tol=_EIGEN)[0][0]) + 2.0 * top
    return 0.0 if least > -_EIGEN * top else -2.0 * (least - _EIGEN * top)

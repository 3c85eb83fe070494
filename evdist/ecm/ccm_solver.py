"""Credal c-means: a set of clusters is far from objects that are far from any of its clusters.

Reference: Liu, Pan, Dezert, Mercier (2015), Credal c-means clustering method based on belief
functions, Knowledge-Based Systems 74, section 3.

    J(M, V) = sum_i w_i [ sum_j m_ij^beta D_ij^2 + delta^2 m_i0^beta ]
    D_ij^2  = ( sum_{k in A_j} |x_i - v_k|^2 + gamma |x_i - vbar_j|^2 ) / (|A_j| + gamma)

In ECM only the last distance counts, so that the centre of a set may lie on another cluster. As
|x - vbar_j|^2 is mean_k |x - v_k|^2 - s_j with s_j = mean_k |v_k - vbar_j|^2 (k in A_j),

    D_ij^2  = mean_{k in A_j} |x_i - v_k|^2 - s_j gamma / (|A_j| + gamma):

the sums over objects are those of ECM with alpha = 0 and another s_j. For given masses, with
W_j = sum_i w_i m_ij^beta and u_j = W_j / (|A_j| + gamma), dJ/dv_k = 0 reads

    sum_{A_j holds k} u_j v_k + sum_l sum_{A_j holds k, l} u_j gamma / |A_j|^2 v_l = B_k,
    B_k = sum_i w_i x_i sum_{A_j holds k} m_ij^beta / |A_j|,

a linear system H V = B, whose solution is the minimum of J over V: no iteration can raise J.

Differs: the paper lets sets have at most T_c clusters; here that is the choice of focal sets
(T_c = 2: "pairs").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evdist.ecm.solver import Floats, Model, Sums

__all__ = ["CredalModel"]


@dataclass(frozen=True, eq=False)
class CredalModel(Model):
    """As a model of ECM with alpha = 0, sets being as far as their clusters.

    Parameters
    ----------
    gamma : float
        Weight of the distance to the centre of a set, at least 0.
    """

    alpha: float = 0.0
    gamma: float = 1.0

    @cached_property
    def spread(self) -> Floats:
        """s_j gamma / (|A_j| + gamma), (f,)."""
        V = self.prototypes - self.centre
        away = ((V[None] - self.vbar[:, None]) ** 2).sum(axis=2)
        size = np.maximum(self.focal_sets.cardinality, 1)
        return (self.members * away).sum(axis=1) * self.gamma / (size + self.gamma)

    def step(self, sums: Sums, *, move: bool = True) -> Model:
        """The prototypes that minimise J for the masses behind `sums`."""
        if not move:
            return self
        assert sums.B is not None
        F = self.focal_sets.matrix.astype(float)
        size = np.maximum(self.focal_sets.cardinality, 1).astype(float)
        u = sums.W / (size + self.gamma)
        H = np.diag(F.T @ u) + F.T @ ((u * self.gamma / size**2)[:, None] * F)
        V = self.prototypes - self.centre
        # Solved for the step: a prototype that no object determines stays where it is.
        moved = np.linalg.lstsq(H, sums.B - H @ V, rcond=None)[0]
        return replace(self, prototypes=self.prototypes + moved)

"""Gradients of NN-EVCLUS as the paper's appendices write them: pair by pair, in NumPy.

One hidden layer. V (n_H, d + 1) and W (f, n_H + 1) have the bias in column 0; beta (2,). The
shares follow A.12, B and C: m* = (1 - gamma) m + gamma m_0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass
class Appendix:
    x: NDArray
    fx: NDArray
    V: NDArray
    W: NDArray
    beta: NDArray
    F: NDArray

    def __post_init__(self) -> None:
        n = len(self.x)
        self.C = (self.F.astype(float) @ self.F.T == 0).astype(float)
        empty = self.F.sum(axis=1) == 0
        E = (empty[:, None] | empty[None, :]).astype(float)
        S = np.diag((self.F.sum(axis=1) == 1).astype(float))
        self.Q = 1.0 + self.C - E - S  # eq. (19)
        self.x1 = np.column_stack([np.ones(n), self.x])
        self.z = np.maximum(0.0, self.x1 @ self.V.T)  # eq. (10)
        self.z1 = np.column_stack([np.ones(n), self.z])
        mu = self.z1 @ self.W.T  # eq. (11)
        e = np.exp(mu - mu.max(axis=1, keepdims=True))
        self.m = e / e.sum(axis=1, keepdims=True)
        self.a = self.beta[0] + self.beta[1] * self.fx
        self.eta = np.log1p(np.exp(self.a))  # eq. (13)
        self.gamma = self.eta / (1 + self.eta)
        self.star = (1 - self.gamma)[:, None] * self.m
        self.star[:, 0] += self.gamma  # eq. (12)

    # ------------------------------------------------------------------ values
    def pair(self, i: int, j: int, delta: float) -> float:
        """Eq. (14)."""
        return float((self.star[i] @ self.C @ self.star[j] - delta) ** 2)

    def link(self, i: int, j: int) -> float:
        """P_ij of appendix B."""
        return float(self.star[i] @ self.Q @ self.star[j])

    def label(self, i: int, y: int) -> float:
        """P_i of appendix C."""
        truth = np.arange(self.F.shape[1]) == y
        return float(((self.star[i] @ self.F - truth) ** 2).sum())

    # ------------------------------------------------------------------ gradients
    def _chain(self, i: int, to_star: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """From d/dm*_i to d/dV, d/dW, d/dbeta: (A.1), (A.5), (A.8)-(A.13)."""
        m, f = self.m[i], len(self.F)
        to_m = (1 - self.gamma[i]) * to_star
        # (A.5): dm_r/dmu_q = m_r (1 - m_r) if r = q, else -m_r m_q
        jacobian = np.array(
            [[m[r] * (1 - m[r]) if r == q else -m[r] * m[q] for q in range(f)] for r in range(f)]
        )
        Delta = to_m @ jacobian
        dW = np.outer(Delta, self.z1[i])  # (A.1)
        Delta_h = (self.z[i] > 0) * (Delta @ self.W[:, 1:])  # (A.9)
        dV = np.outer(Delta_h, self.x1[i])  # (A.8)
        to_gamma = to_star @ np.where(np.arange(f) == 0, 1 - m, -m)  # (A.12)
        sigmoid = np.exp(self.a[i]) / (1 + np.exp(self.a[i]))
        dbeta0 = to_gamma / (1 + self.eta[i]) ** 2 * sigmoid  # (A.13a)
        return dV, dW, dbeta0 * np.array([1.0, self.fx[i]])  # (A.13b)

    def _both(self, i: int, to_i: NDArray, j: int, to_j: NDArray) -> list[NDArray]:
        return [a + b for a, b in zip(self._chain(i, to_i), self._chain(j, to_j), strict=True)]

    def pair_gradient(self, i: int, j: int, delta: float) -> list[NDArray]:
        """Appendix A."""
        factor = 2 * (self.star[i] @ self.C @ self.star[j] - delta)  # (A.2), (A.3)
        return self._both(i, factor * self.C @ self.star[j], j, factor * self.C @ self.star[i])

    def link_gradient(self, i: int, j: int) -> list[NDArray]:
        """Appendix B."""
        return self._both(i, self.Q @ self.star[j], j, self.Q @ self.star[i])

    def label_gradient(self, i: int, y: int) -> list[NDArray]:
        """Appendix C."""
        truth = np.arange(self.F.shape[1]) == y
        return list(self._chain(i, self.F @ (2 * (self.star[i] @ self.F - truth))))

"""EM for an evidential Gaussian mixture: a component for every nonempty set of clusters.

Reference: Jiao, Denoeux, Liu, Pan (2022), EGMM: an evidential version of the Gaussian mixture model
for clustering, Applied Soft Computing 129.

    p(x)  = sum_j pi_j N(x; mubar_j, Sigma),   mubar_j = mean of mu_k over the clusters k of A_j
    m_ij  = pi_j N(x_i; mubar_j, Sigma) / p(x_i)                                          (E-step)

For given masses the expected log-likelihood is largest at                                (M-step)

    pi_j  = mean_i m_ij
    H M   = B,  H_kl = sum_ij m_ij w_jk w_jl,  B_k = sum_ij m_ij w_jk x_i
    Sigma = (1/n) sum_ij m_ij (x_i - mubar_j)(x_i - mubar_j)'

======  ================================================================  =============
symbol  meaning                                                           shape
======  ================================================================  =============
A_j     nonempty focal sets                                               f - 1
w_jk    1 / |A_j| where A_j holds cluster k, else 0                       (f - 1, c)
pi      proportions of the sets                                           (f - 1,)
M       means mu_k of the clusters                                        (c, d)
Sigma   the covariance of all sets                                        (d, d)
m_ij    masses of object i; none is on the empty set                      (n, f - 1)
======  ================================================================  =============

One Sigma for all sets makes the M-step exact: the means solve a linear system in which Sigma does
not occur. The sums over objects are those of `evdist.mixture.kernel`, with z = L^-1 (x - mubar_j)
and Sigma = L L', so that S_j = sum_i m_ij (x_i - mubar_j) = L sum_i m_ij z and the step of the
means is H^-1 sum_j w_jk S_j.

Differs:

* Where a cluster has lost its objects H is singular; of all solutions that nearest to the last
  means is taken, which is a maximum too.
* A variance of Sigma below FLOOR of the smallest of an attribute is lifted there, as in
  `evdist.mixture`: the maximum among matrices with no smaller variance. The likelihood never falls.
* The article was not at hand in full; the equations are those above, which follow from the mixture
  and its barycentres without a choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.engine.loop import Descent, Solver
from evdist.kernels.threads import thread_count
from evdist.mixture.em import FLOOR, smallest_variance
from evdist.mixture.kernel import accumulate, posteriors

Floats = NDArray[np.float64]

#: Rows of a block, the unit of work of a thread.
_ROWS = 8192


class Sums(NamedTuple):
    """What the objects say of a mixture: sums of m, m z and m z z', and the log-likelihood."""

    R: Floats
    Z: Floats
    ZZ: Floats
    loglik: float


@dataclass(frozen=True, eq=False)
class EvidentialMixture:
    """Proportions of the sets, means of the clusters, one covariance."""

    focal_sets: FocalSets
    proportions: Floats
    means: Floats
    covariance: Floats

    @classmethod
    def of_partition(
        cls, focal_sets: FocalSets, X: Floats, labels: NDArray[np.intp], floor: float
    ) -> EvidentialMixture:
        """Where EM starts: means and covariance of a hard partition, all sets alike."""
        c, f = focal_sets.n_clusters, len(focal_sets) - 1
        size = np.bincount(labels, minlength=c)
        means = np.stack([X[labels == k].mean(axis=0) for k in range(c)])
        away = X - means[labels]
        covariance = _lifted(away.T @ away / size.sum(), floor)
        return cls(focal_sets, np.full(f, 1.0 / f), means, covariance)

    @property
    def shares(self) -> Floats:
        """w_jk, (f - 1, c)."""
        F = self.focal_sets.matrix[1:].astype(float)
        return F / F.sum(axis=1, keepdims=True)

    @property
    def centres(self) -> Floats:
        """mubar_j, (f - 1, d)."""
        return self.shares @ self.means

    @property
    def n_parameters(self) -> int:
        """nu: proportions that sum to 1, means, and a symmetric matrix."""
        (c, d), f = self.means.shape, len(self.proportions)
        return f - 1 + c * d + d * (d + 1) // 2

    @cached_property
    def _density(self) -> tuple[Floats, Floats, Floats]:
        """Whitening, centres and log factors of the components, as the kernels take them."""
        L = np.linalg.cholesky(self.covariance)
        d = len(L)
        U = np.linalg.solve(L, np.eye(d))
        U = np.tril(U)
        with np.errstate(divide="ignore"):  # a set without objects: log 0
            a = np.log(self.proportions) - np.log(np.diag(L)).sum() - 0.5 * d * np.log(2 * np.pi)
        return np.repeat(U[None], len(a), axis=0), self.centres, a

    def masses(self, X: Floats) -> Floats:
        """m_i of all focal sets, (n, f); nothing is on the empty set."""
        U, centres, a = self._density
        P, density = np.empty((len(X), len(a))), np.empty(len(X))
        posteriors(np.ascontiguousarray(X, dtype=float), 0, len(X), U, centres, a, P, density)
        return np.concatenate([np.zeros((len(X), 1)), P], axis=1)

    def step(self, sums: Sums, floor: float) -> EvidentialMixture:
        """The M-step."""
        R, W, L = sums.R, self.shares, np.linalg.cholesky(self.covariance)
        S = sums.Z @ L.T
        H = W.T @ (R[:, None] * W)
        moved = np.linalg.lstsq(H, W.T @ S, rcond=None)[0]
        by = W @ moved  # of the centres
        lower = np.tril(sums.ZZ.sum(axis=0))
        scatter = L @ (lower + np.tril(lower, -1).T) @ L.T
        scatter += by.T @ (R[:, None] * by) - S.T @ by - by.T @ S
        n = R.sum()
        covariance = _lifted(scatter / n, floor)
        return EvidentialMixture(self.focal_sets, R / n, self.means + moved, covariance)


def _lifted(covariance: Floats, floor: float) -> Floats:
    """The same matrix with no variance below `floor` along any axis."""
    values, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
    return (axes * np.maximum(values, floor)) @ axes.T


@dataclass(frozen=True, eq=False)
class Rows:
    """The objects, and the threads that pass over them in blocks; the order of sums is fixed."""

    X: Floats
    pool: ThreadPoolExecutor
    n_threads: int

    @cached_property
    def floor(self) -> float:
        return FLOOR * smallest_variance(self.X, np.ones(len(self.X)))

    def sums(self, mixture: EvidentialMixture) -> Sums:
        """E-step and sums in one pass."""
        U, centres, a = (part[None] for part in mixture._density)
        (g, d), q = centres.shape[1:], -(-len(self.X) // _ROWS)
        R, Z, ZZ = np.zeros((1, q, g)), np.zeros((1, q, g, d)), np.zeros((1, q, g, d, d))
        loglik, ones = np.zeros((1, q)), np.ones((1, len(self.X)))
        items = np.zeros((q, 3), dtype=np.int64)
        items[:, 2] = np.arange(q)

        def run(part: NDArray[np.int64]) -> None:
            accumulate(self.X, ones, part, _ROWS, U, centres, a, R, Z, ZZ, loglik)

        list(self.pool.map(run, np.array_split(items, min(self.n_threads, q))))
        R, Z, ZZ = (sums[0].sum(axis=0) for sums in (R, Z, ZZ))
        return Sums(R, Z, ZZ, float(loglik.sum()))


@contextmanager
def rows_of(X: Floats, n_jobs: int | None) -> Iterator[Rows]:
    """The rows with a pool of threads that ends with the block."""
    n_threads = thread_count(n_jobs)
    with ThreadPoolExecutor(n_threads) as pool:
        yield Rows(np.ascontiguousarray(X, dtype=float), pool, n_threads)


class Expected(NamedTuple):
    """A mixture and what the objects say of it."""

    mixture: EvidentialMixture
    sums: Sums


@dataclass(frozen=True, eq=False)
class EMSolver(Solver[Expected]):
    """EM; the objective is minus the mean log-likelihood."""

    data: Rows
    start: EvidentialMixture
    tol: float

    @property
    def rows(self) -> int:
        return len(self.data.X)

    def init(self) -> Descent[Expected]:
        return Descent(*self._at(self.start))

    def step(self, now: Descent[Expected]) -> Descent[Expected]:
        mixture, sums = now.value
        found, (objective,) = self._at(mixture.step(sums, self.data.floor))
        return now.follow_if_lower(found, objective)

    def done(self, now: Descent[Expected]) -> bool:
        # A difference, not a share: other units add a constant to the objective.
        before, after = now.history[-2:]
        return before - after <= self.tol

    def _at(self, mixture: EvidentialMixture) -> tuple[Expected, tuple[float]]:
        sums = self.data.sums(mixture)
        return Expected(mixture, sums), (-sums.loglik / self.rows,)


def evidential_bic(found: Expected, n: int) -> float:
    """2 L - nu log n, larger is better: twice the article's criterion."""
    return 2 * found.sums.loglik - found.mixture.n_parameters * float(np.log(n))

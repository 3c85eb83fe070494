"""Evidential c-means: masses and prototypes in turn, one pass over the objects per iteration.

Reference: Masson, Denoeux (2008), ECM; Denoeux, slides "Belief functions and clustering" (2017) and
"Evidential machine learning" (2021), "ECM algorithm". Adaptive metric: Antoine, Quost, Masson,
Denoeux (2012), CECM, section 4. The sums over objects are in `evdist.ecm.kernel`.

    J(M, V, S) = sum_i w_i [ sum_j |A_j|^alpha m_ij^beta d_ij^2 + delta^2 m_i0^beta ]
    d_ij^2     = (x_i - vbar_j)' S_j (x_i - vbar_j)

Symbols
-------
F       focal sets A_j; A_0 is the empty set
V       (c, d), prototypes; vbar_j is the mean of those in A_j
S       (c, d, d), one metric per cluster with det S_k = 1, S_j the mean of those in A_j; None: I
W       (f,), W_j = sum_i w_i m_ij^beta
B       (c, d), B_k = sum_i w_i (x_i - centre) sum_{A_j holds k} |A_j|^(alpha-1) m_ij^beta
H       (c, c), H_kl = sum_{A_j holds k and l} |A_j|^(alpha-2) W_j; slides, H V = B

The history is that of min_M J(M, V, S): the masses of a model are those that minimise J, and a step
(M given: V, then S) can only lower it.

Differs: R's evclust returns prototypes one step later than the masses; here the masses belong to
the prototypes that are returned, so that the fitted objects and the same objects as new ones have
the same masses. J and the prototypes after t steps are those of R to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.ecm.kernel import (
    Costs,
    adaptive_masses,
    adaptive_sums,
    euclidean_masses,
    euclidean_sums,
)
from evdist.engine.loop import Descent, Solver, relative_fall

Floats = NDArray[np.float64]

#: A scatter matrix with a smaller ratio of extreme eigenvalues has no inverse to speak of.
_SINGULAR = 1e-12
_NO_WEIGHTS = np.empty(0)


@dataclass(frozen=True, eq=False)
class Sums:
    """What one pass over the objects leaves: all that a step needs to know of them."""

    objective: float
    W: Floats
    #: (c, d) in the Euclidean metric, relative to the model's centre
    B: Floats | None = None
    #: (f, d) and (f, d, d) in the adaptive metric, relative to vbar_j; Q is symmetric
    T: Floats | None = None
    Q: Floats | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """Prototypes, metric and parameters: all that the masses of an object depend on.

    Parameters
    ----------
    focal_sets : FocalSets over c clusters
    prototypes : (c, d) float64
    alpha, beta, delta : float
        Weight of large sets, fuzzifier above 1, distance to the empty set.
    metric : (c, d, d) float64 or None
        S_k of each cluster; None is the Euclidean metric.
    """

    focal_sets: FocalSets
    prototypes: Floats
    alpha: float = 1.0
    beta: float = 2.0
    delta: float = 10.0
    metric: Floats | None = None

    def adaptive(self) -> Model:
        """The same model, its metric free to change from the Euclidean one on."""
        c, d = self.prototypes.shape
        return replace(self, metric=np.repeat(np.eye(d)[None], c, axis=0))

    def __getstate__(self) -> dict[str, Any]:
        """The parameters alone: what is derived from them is made again, not sent."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    # ------------------------------------------------------------------ derived
    @cached_property
    def centre(self) -> Floats:
        """Mean of the prototypes, (d,): sums are taken from here, where numbers are small."""
        return self.prototypes.mean(axis=0)

    @cached_property
    def members(self) -> Floats:
        """(f, c), each row of F divided by the size of its set; zero for the empty set."""
        F = self.focal_sets
        return F.matrix / np.maximum(F.cardinality, 1)[:, None]

    @cached_property
    def vbar(self) -> Floats:
        """Prototypes of the focal sets, relative to the centre; (f, d)."""
        return self.members @ (self.prototypes - self.centre)

    @cached_property
    def spread(self) -> Floats:
        """Mean over A_j of |v_k - vbar_j|^2, (f,)."""
        V = self.prototypes - self.centre
        away = ((V[None] - self.vbar[:, None]) ** 2).sum(axis=2)
        return (self.members * away).sum(axis=1)

    @cached_property
    def set_metric(self) -> Floats:
        """S_j of each focal set, (f, d, d), the identity for the empty set."""
        assert self.metric is not None
        S = np.einsum("jk,kab->jab", self.members, self.metric)
        S[0] = np.eye(S.shape[1])
        return S

    @cached_property
    def factors(self) -> Floats:
        """Lower triangular L_j with L_j L_j' = S_j, (f, d, d)."""
        return np.linalg.cholesky(self.set_metric).astype(float)

    @cached_property
    def costs(self) -> Costs:
        """The terms of the focal sets that do not depend on the objects."""
        F = self.focal_sets
        size = np.maximum(F.cardinality, 1).astype(float)
        share = size ** (self.alpha - 1.0)
        share[0] = 0.0
        first = np.concatenate([[0], np.cumsum(F.cardinality)]).astype(np.int64)
        member = np.array([k for s in F.sets for k in s], dtype=np.int64)
        return Costs(
            first, member, size**self.alpha, share, float(self.delta) ** 2, float(self.beta)
        )

    # ------------------------------------------------------------------ one block of objects
    def sums(self, X: NDArray[Any], w: Floats | None = None) -> Floats:
        """The sums of a block of objects in one vector; vectors of blocks are added up."""
        (f, d), c = self.vbar.shape, len(self.prototypes)
        X, w = _as_compiled(X), _NO_WEIGHTS if w is None else _as_compiled(w)
        if self.metric is None:
            out = np.zeros(1 + f + c * d)
            W, B = out[1 : 1 + f], out[1 + f :].reshape(c, d)
            V = self.prototypes - self.centre
            out[0] = euclidean_sums(X, w, self.centre, V, self.spread, self.costs, W, B)
            return out
        out = np.zeros(1 + f + f * d + f * d * d)
        W, T = out[1 : 1 + f], out[1 + f : 1 + f + f * d].reshape(f, d)
        Q = out[1 + f + f * d :].reshape(f, d, d)
        out[0] = adaptive_sums(X, w, self.centre, self.vbar, self.factors, self.costs, W, T, Q)
        return out

    def read(self, vector: Floats) -> Sums:
        """The total over all blocks by its parts."""
        (f, d), c = self.vbar.shape, len(self.prototypes)
        W, rest = vector[1 : 1 + f], vector[1 + f :]
        if self.metric is None:
            return Sums(float(vector[0]), W, B=rest.reshape(c, d))
        lower = np.tril(rest[f * d :].reshape(f, d, d))
        Q = lower + np.tril(lower, -1).transpose(0, 2, 1)
        return Sums(float(vector[0]), W, T=rest[: f * d].reshape(f, d), Q=Q)

    def masses(self, X: NDArray[Any], dtype: type = np.float32) -> NDArray[Any]:
        """Masses of the objects of a block, (rows, f): slides, "update equations"."""
        X, M = _as_compiled(X), np.empty((len(X), len(self.focal_sets)))
        if self.metric is None:
            V = self.prototypes - self.centre
            euclidean_masses(X, self.centre, V, self.spread, self.costs, M)
        else:
            adaptive_masses(X, self.centre, self.vbar, self.factors, self.costs, M)
        return M.astype(dtype, copy=False)

    # ------------------------------------------------------------------ a step
    def step(self, sums: Sums, *, move: bool = True) -> Model:
        """The model that minimises J for the masses behind `sums`: prototypes, then metric.

        With `move` false the prototypes stay (BPEC).
        """
        V = prototypes_from(self, sums) if move else self.prototypes
        if self.metric is None:
            return replace(self, prototypes=V)
        assert sums.T is not None and sums.Q is not None
        gone = self.members @ (V - self.prototypes)  # vbar new - vbar old, (f, d)
        cross = sums.T[:, :, None] * gone[:, None, :]
        Q = sums.Q - cross - cross.transpose(0, 2, 1)
        Q += sums.W[:, None, None] * gone[:, :, None] * gone[:, None, :]
        return replace(self, prototypes=V, metric=metrics_from(self, Q))


def _as_compiled(block: NDArray[Any]) -> Floats:
    """The block as the kernels were compiled for it; only what is something else is copied."""
    return np.require(block, np.float64, ["C", "W"])


def prototypes_from(model: Model, sums: Sums) -> Floats:
    """V that minimises J for given masses and metric, (c, d): the linear system H V = B.

    Solved for the step away from the present prototypes: where nothing determines a prototype (no
    object has mass on a set that holds it) it stays where it is.
    """
    F = model.focal_sets.matrix.astype(float)
    size = np.maximum(model.focal_sets.cardinality, 1).astype(float)
    H_j = size ** (model.alpha - 2.0) * sums.W
    if sums.B is not None:
        H = F.T @ (H_j[:, None] * F)
        V = model.prototypes - model.centre
        return model.prototypes + np.linalg.lstsq(H, sums.B - H @ V, rcond=None)[0]
    # With a metric the clusters' equations hold S_j: c d unknowns at once.
    assert sums.T is not None
    (c, d), S = model.prototypes.shape, model.set_metric
    H = np.einsum("jk,jl,j,jab->kalb", F, F, H_j, S).reshape(c * d, c * d)
    right = np.einsum("jk,j,jab,jb->ka", F, size ** (model.alpha - 1.0), S, sums.T)
    return model.prototypes + np.linalg.lstsq(H, right.ravel(), rcond=None)[0].reshape(c, d)


def metrics_from(model: Model, Q: Floats) -> Floats:
    """S_k = det(Sigma_k)^(1/d) Sigma_k^-1, (c, d, d), which minimises J among det S_k = 1.

    Sigma_k = sum_{A_j holds k} |A_j|^(alpha-1) Q_j, with Q_j (f, d, d) the scatter about vbar_j:
    Antoine et al. (2012). A cluster that has shrunk to fewer objects than span the space keeps the
    metric that it has.
    """
    assert model.metric is not None
    Sigma = np.einsum("jk,j,jab->kab", model.focal_sets.matrix, model.costs.share, Q)
    values, vectors = np.linalg.eigh(Sigma)
    spans = values[:, 0] > _SINGULAR * values[:, -1]
    values = np.where(spans[:, None], values, 1.0)
    inverse = np.exp(np.log(values).mean(axis=1))[:, None] / values
    S = np.einsum("kab,kb,kcb->kac", vectors, inverse, vectors)
    return np.where(spans[:, None, None], S, model.metric)


def cheapest(b: Floats, beta: float) -> tuple[Floats, Floats]:
    """m_j ~ b_j^(-1/(beta-1)), which minimises sum_j m_j^beta b_j in each row of b (n, f).

    A row whose least cost is 0 has its mass there. Also returns Z (n, 1), the sum of
    (least / b_j)^(1/(beta-1)): the minimum of a row is least Z^(1-beta).
    """
    least = b.min(axis=1, keepdims=True)
    r = np.divide(least, b, out=np.ones_like(b), where=b > least) ** (1.0 / (beta - 1.0))
    Z = r.sum(axis=1, keepdims=True)
    return r / Z, Z


# ---------------------------------------------------------------------- all objects
class Rows(Protocol):
    """The objects in blocks, in this process or on a cluster: `evdist.ecm.blocks`."""

    n: int

    def sums(self, model: Model) -> Sums: ...

    def masses(self, model: Model) -> NDArray[np.float32]: ...


class Fitted(NamedTuple):
    """A model, and the sums over the objects at the masses that it gives them."""

    model: Model
    sums: Sums


@dataclass(frozen=True, eq=False)
class ECMSolver(Solver[Fitted]):
    """Steps of ECM from `start` until J falls by less than `tol` of itself.

    A step that rounding keeps from lowering J is not taken, and is the last. With `move` false the
    prototypes stay (BPEC).
    """

    objects: Rows
    start: Model
    tol: float
    move: bool = True

    @property
    def rows(self) -> int:
        return self.objects.n

    def init(self) -> Descent[Fitted]:
        sums = self.objects.sums(self.start)
        return Descent(Fitted(self.start, sums), (sums.objective,))

    def step(self, now: Descent[Fitted]) -> Descent[Fitted]:
        found = now.value.model.step(now.value.sums, move=self.move)
        sums = self.objects.sums(found)
        return now.follow_if_lower(Fitted(found, sums), sums.objective)

    def done(self, now: Descent[Fitted]) -> bool:
        return relative_fall(now, self.tol)

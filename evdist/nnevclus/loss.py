"""Loss of NN-EVCLUS on a block of objects: its terms, and their sum.

Reference: Denoeux (2021), NN-EVCLUS, eqs. (8), (9), (14), (15), (17)-(21).

Symbols
-------
m       (n, f) masses m*
C, Q    (f, f) conflict matrix; Q = 1 1' + C - E - S of eq. (19)
delta   transformed dissimilarities: (n, n), or (n, k) for kept pairs
r       residuals kappa - delta

A sum over pairs is one operation of autograd with its own gradient: residuals are symmetric, so
dL/dm = 4 r (m C) / (number of ordered pairs), and nothing of size n x n is kept for the way back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from evdist.belief import FocalSets
from evdist.nnevclus.network import Inputs, Network, as_tensor

#: delta is 1 - ALPHA at d0, eq. (6).
LOG_ALPHA = math.log(0.05)
#: Gathered mass values at once: rows of a block of kept pairs.
_AT_ONCE = 1 << 22


def transformed(square: Tensor, d0: float) -> Tensor:
    """phi(d) = 1 - exp(log(0.05) d^2 / d0^2), eq. (6), from squared dissimilarities, in place."""
    return square.mul_(LOG_ALPHA / d0**2).expm1_().neg_()


class _AllPairsSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, m: Tensor, C: Tensor, delta: Tensor) -> Tensor:
        n = len(m)
        scale = 1.0 / (n * (n - 1))
        mC = m @ C
        r = torch.addmm(delta, mC, m.T, beta=-1)  # kappa - delta, eqs. (8), (14)
        r.fill_diagonal_(0.0)
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward((r @ mC).mul_(4 * scale))
        flat = r.view(-1)
        return torch.dot(flat, flat) * scale

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (dm,) = ctx.saved_tensors
        return dm * grad, None, None


def all_pairs(m: Tensor, C: Tensor, delta: Tensor) -> Tensor:
    """Mean over all pairs of (kappa - delta)^2, eq. (9); the diagonal of delta (n, n) is unused."""
    return _AllPairsSum.apply(m, C, delta)


class KeptPairs(NamedTuple):
    """Kept pairs, symmetric: j stands in row i as often as i in row j.

    Attributes
    ----------
    partner : (n, k) int64
    delta, weight : (n, k)
        The weight is 0 in unused places and 1 elsewhere.
    """

    partner: Tensor
    delta: Tensor
    weight: Tensor


class _KeptPairsSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, m: Tensor, C: Tensor, *kept: Tensor) -> Tensor:
        partner, delta, weight = kept
        n, k = partner.shape
        scale = 1.0 / float(weight.sum())
        mC = m @ C
        dm = torch.empty_like(m)
        total = m.new_zeros(())
        rows = max(1, _AT_ONCE // (k * m.shape[1]))
        for lo in range(0, n, rows):
            block = slice(lo, lo + rows)
            other = mC[partner[block]]
            r = torch.bmm(other, m[block, :, None])[..., 0] - delta[block]
            weighted = r * weight[block]
            total += torch.dot(r.reshape(-1), weighted.reshape(-1))
            dm[block] = torch.bmm(weighted[:, None], other)[:, 0]
        ctx.save_for_backward(dm.mul_(4 * scale))
        return total * scale

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (dm,) = ctx.saved_tensors
        return dm * grad, None, None, None, None


def kept_pairs(m: Tensor, C: Tensor, kept: KeptPairs) -> Tensor:
    """Mean over kept pairs of (kappa - delta)^2, eq. (15)."""
    return _KeptPairsSum.apply(m, C, *kept)


def link_penalty(m: Tensor, Q: Tensor, links: Tensor, sign: Tensor) -> Tensor:
    """(P_ML + P_CL) / (2 number of links), eqs. (17) and (19).

    Parameters
    ----------
    links : (p, 2) int64, rows of m
    sign : (p,)
        1 for a must-link, which costs m_i'Q m_j, and -1 for a cannot-link: 2 - m_i'Q m_j.
    """
    cost = ((m[links[:, 0]] @ Q) * m[links[:, 1]]).sum(dim=1)
    return (sign * cost + (1 - sign)).sum() / (2 * len(links))


def label_penalty(m: Tensor, F: Tensor, objects: Tensor, truth: Tensor) -> Tensor:
    """P_s = (1 / n_s) sum over labelled objects and clusters of (pl - y)^2, eq. (21).

    Parameters
    ----------
    F : (f, c), 1 where the cluster belongs to the focal set
    objects : (n_s,) int64, rows of m
    truth : (n_s, c), 1 for the cluster of the object
    """
    difference = m[objects] @ F - truth
    return (difference * difference).sum() / len(objects)


# ---------------------------------------------------------------------- the whole loss
@dataclass(frozen=True)
class Supervision:
    """Links between objects and labels of objects, with the inputs of the objects concerned.

    Attributes
    ----------
    x, fx : (q, d) and (q,)
    must, cannot : (p, 2) int64, rows of x
    labelled : (n_s,) int64, rows of x; truth (n_s,) their clusters
    """

    x: NDArray
    fx: NDArray | None
    must: NDArray[np.int64]
    cannot: NDArray[np.int64]
    labelled: NDArray[np.int64]
    truth: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        inputs: Callable[[NDArray[np.int64]], tuple[NDArray, NDArray | None]],
        must: NDArray[np.int64],
        cannot: NDArray[np.int64],
        known: NDArray[np.int64],
        truth: NDArray[np.int64],
    ) -> Supervision | None:
        """From links, and the clusters `truth` of the objects `known`.

        `inputs` gives x and fx of some objects, by their numbers in rising order.
        """
        links = np.concatenate([must, cannot])
        rows, where = np.unique(np.concatenate([links.ravel(), known]), return_inverse=True)
        if not len(rows):
            return None
        ends = where[: links.size].reshape(-1, 2)
        return cls(*inputs(rows), ends[: len(must)], ends[len(must) :], where[links.size :], truth)


@dataclass(frozen=True)
class LossTerms:
    """What the loss is made of.

    Attributes
    ----------
    link_weight, label_weight, l2 : xi of eq. (17), nu of eq. (20), lambda of section 3.2
    supervision : None without links and labels
    """

    focal_sets: FocalSets
    link_weight: float = 0.0
    label_weight: float = 0.0
    l2: float = 0.0
    supervision: Supervision | None = None


class Loss:
    """The whole loss of a network, for masses of some objects and their dissimilarities."""

    def __init__(self, network: Network, terms: LossTerms, device: torch.device):
        self.network, self._terms = network, terms
        focal_sets, known = terms.focal_sets, terms.supervision
        self._C = as_tensor(focal_sets.C, device)
        self._inputs: Inputs | None = None
        if known is None:
            return
        self._inputs = Inputs.of(known.x, known.fx, device)
        self._Q = as_tensor(focal_sets.C + focal_sets.E, device)
        self._F = as_tensor(focal_sets.matrix, device)
        links = np.concatenate([known.must, known.cannot])
        self._links = torch.from_numpy(links).to(device)
        self._sign = as_tensor(np.repeat([1.0, -1.0], [len(known.must), len(known.cannot)]), device)
        self._labelled = torch.from_numpy(known.labelled).to(device)
        self._truth = as_tensor(np.eye(focal_sets.n_clusters)[known.truth], device)

    def __call__(self, m: Tensor, pairs: Tensor | KeptPairs) -> Tensor:
        """(1 - nu) L + nu P_s + xi P_links + lambda penalty; nu is 0 where nothing is labelled."""
        if isinstance(pairs, KeptPairs):
            loss = kept_pairs(m, self._C, pairs)
        else:
            loss = all_pairs(m, self._C, pairs)
        terms = self._terms
        if self._inputs is not None:
            known = self._inputs.masses(self.network, slice(None))
            if len(self._labelled):
                wrong = label_penalty(known, self._F, self._labelled, self._truth)
                loss = (1 - terms.label_weight) * loss + terms.label_weight * wrong
            if len(self._links):
                broken = link_penalty(known, self._Q, self._links, self._sign)
                loss = loss + terms.link_weight * broken
        if terms.l2:
            loss = loss + terms.l2 * self.network.penalty()
        return loss

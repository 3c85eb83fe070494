"""Loss of NN-EVCLUS on a block of objects: its terms, and their sum.

Reference: Denoeux (2021), NN-EVCLUS, eqs. (8), (9), (14), (15), (17)-(21).

Symbols
-------
m       (n, f) masses m*
C, Q    (f, f) conflict matrix; Q = 1 1' + C - E - S of eq. (19)
delta   transformed dissimilarities: (n, n), or (n, k) for kept pairs
r       residuals kappa - delta
w       weights of pairs, of mean one

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
#: Objects that are put into groups at once.
_GROUPED = 1 << 14


def transformed(square: Tensor, d0: float) -> Tensor:
    """phi(d) = 1 - exp(log(0.05) d^2 / d0^2), eq. (6), from squared dissimilarities, in place."""
    return square.mul_(LOG_ALPHA / d0**2).expm1_().neg_()


class Near(NamedTuple):
    """Pairs inside the groups of a preliminary partition weigh as much as all others together.

    Of c clusters one pair in c lies within a cluster. In a mean over all pairs that is less than
    what a network gains when it merges clusters.

    Attributes
    ----------
    share : float
        Of all pairs, those inside groups: above 0 and below 1.
    """

    share: float

    def weights(self, group: Tensor, of_partner: Tensor) -> Tensor:
        """w (n, k) of the pairs of n objects and their partners: 1/(2 share), 1/(2 (1 - share))."""
        same = group[:, None] == of_partner
        return torch.where(same, 0.5 / self.share, 0.5 / (1 - self.share))


class _AllPairsSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, m: Tensor, C: Tensor, delta: Tensor, w: Tensor | None) -> Tensor:
        n = len(m)
        scale = 1.0 / (n * (n - 1))
        mC = m @ C
        r = torch.addmm(delta, mC, m.T, beta=-1)  # kappa - delta, eqs. (8), (14)
        r.fill_diagonal_(0.0)
        weighted = r if w is None else r * w
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward((weighted @ mC).mul_(4 * scale))
        return torch.dot(r.view(-1), weighted.view(-1)) * scale

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (dm,) = ctx.saved_tensors
        return dm * grad, None, None, None


def all_pairs(m: Tensor, C: Tensor, delta: Tensor, w: Tensor | None = None) -> Tensor:
    """Mean over all pairs of (kappa - delta)^2, eq. (9), times w (n, n) where it is given.

    The diagonal of delta (n, n) is unused.
    """
    return _AllPairsSum.apply(m, C, delta, w)


class KeptPairs(NamedTuple):
    """Kept pairs, symmetric: j stands in row i as often as i in row j.

    Attributes
    ----------
    partner : (n, k) int64
    delta, weight : (n, k)
        The weight is 0 in unused places, elsewhere 1 or that of near pairs.
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
    near : None where all pairs weigh the same
    """

    focal_sets: FocalSets
    link_weight: float = 0.0
    label_weight: float = 0.0
    l2: float = 0.0
    supervision: Supervision | None = None
    near: Near | None = None


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

    def groups(self, network: Network, inputs: Inputs) -> Tensor | None:
        """The clusters that a network puts objects into, (n,), where near pairs have a weight."""
        if self._terms.near is None:
            return None
        F = as_tensor(self._terms.focal_sets.matrix, inputs.x.device)
        network.eval()
        with torch.no_grad():
            blocks = [
                (inputs.masses(network, slice(lo, lo + _GROUPED)) @ F).argmax(dim=1)
                for lo in range(0, len(inputs.x), _GROUPED)
            ]
        return torch.cat(blocks)

    def __call__(self, m: Tensor, pairs: Tensor | KeptPairs, group: Tensor | None = None) -> Tensor:
        """(1 - nu) L + nu P_s + xi P_links + lambda penalty; nu is 0 where nothing is labelled.

        `group` (n,) is what `groups` has given the objects.
        """
        terms = self._terms
        near = terms.near
        if isinstance(pairs, KeptPairs):
            if near is not None and group is not None:
                w = near.weights(group, group[pairs.partner])
                pairs = pairs._replace(weight=pairs.weight * w)
            loss = kept_pairs(m, self._C, pairs)
        else:
            same = None if near is None or group is None else near.weights(group, group)
            loss = all_pairs(m, self._C, pairs, same)
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

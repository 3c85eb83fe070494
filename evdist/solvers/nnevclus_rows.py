"""What NN-EVCLUS is trained on, as tensors on one device: inputs, dissimilarities, what is known.

Reference: Denoeux (2021), NN-EVCLUS, sections 3.2 and 3.3, figure 6.

Symbols
-------
x       (n, d) inputs of the network; fx (n,) outputs of the one-class SVM
delta   (b, b) transformed dissimilarities inside a subset of the objects
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evdist.belief import FocalSets
from evdist.kernels.distances import METRICS
from evdist.kernels.nn_loss import Kept, all_pairs, kept_pairs, label_penalty, link_penalty
from evdist.kernels.nn_loss import transformed as transform
from evdist.kernels.nn_model import Network
from evdist.solvers.sampling import draw_layout, sample_pairs
from evdist.sources import AttributeSource, Source

__all__ = ["Deltas", "Inputs", "Known", "Loss", "Weights", "kept", "one_thread", "pick_device"]


def pick_device(device: str) -> torch.device:
    """ "auto" is the CUDA device where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(
            f'device="{device}" needs a CUDA device and a torch that knows it; there is none. '
            'Pass device="cpu" or "auto".'
        )
    return torch.device(device)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside torch's operations, so that sums have the same bits everywhere.

    The networks are small: a second thread would wait more than it works.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Inputs:
    """Rows of the network's inputs, by object."""

    x: Tensor
    fx: Tensor | None

    @classmethod
    def of(cls, x: NDArray, fx: NDArray | None, device: torch.device) -> Inputs:
        return cls(_tensor(x, device), None if fx is None else _tensor(fx, device))

    def masses(self, network: Network, rows: Tensor | slice) -> Tensor:
        return network(self.x[rows], None if self.fx is None else self.fx[rows])


class Deltas:
    """Transformed dissimilarities inside subsets of the objects, made when they are needed.

    Metrics that are a function of the Euclidean distance of some table are one matrix product on
    the device; the others come from the source, on the CPU.
    """

    def __init__(self, source: Source, d0: float, device: torch.device):
        self._source, self._d0, self._device = source, d0, device
        self._sides: tuple[Tensor, Tensor] | None = None
        self._end = ""
        if isinstance(source, AttributeSource) and METRICS[source.name][0] == "squares":
            self._end = METRICS[source.name][1]
            t = _tensor(source.table[:, : source.metric.code[2]], device)
            # |a - b|^2 = -2 a.b + |a|^2 + |b|^2 as one product of longer rows.
            norm, one = (t * t).sum(dim=1, keepdim=True), torch.ones_like(t[:, :1])
            self._sides = torch.hstack([-2 * t, norm, one]), torch.hstack([t, one, norm])

    def __call__(self, rows: NDArray[np.int64]) -> Tensor:
        """delta (b, b) among objects `rows` (b,)."""
        if self._sides is None:
            others = np.tile(rows.astype(np.uint32), (len(rows), 1))
            D = _tensor(self._source.distances(rows.astype(np.uint32), others), self._device)
            return transform(D.square_(), self._d0)
        at = torch.from_numpy(rows).to(self._device)
        left, right = (side[at] for side in self._sides)
        square = left @ right.T
        if self._end == "half":  # cosine and correlation: d is half the square
            square.mul_(0.5).square_()
        elif self._end == "none":
            square.square_()
        return transform(square, self._d0)


def kept(source: Source, k: int, d0: float, seed: int, device: torch.device) -> Kept:
    """k symmetric partners of each object, drawn as for EVCLUS; eq. (15)."""
    n = source.n
    layout = draw_layout(n, k, seed)
    pairs = sample_pairs(source, layout, d0)
    order = layout.order.astype(np.int64)
    by_object = np.empty(n, np.int64)
    by_object[order] = np.arange(n)
    width = layout.graph.k
    partner = order[pairs.partner.reshape(n, width)][by_object]
    used = (np.arange(width) < pairs.degree[:, None])[by_object]
    delta = pairs.delta.reshape(n, width)[by_object]
    at = torch.from_numpy(np.ascontiguousarray(partner)).to(device)
    return Kept(at, _tensor(delta, device), _tensor(used.astype(np.float32), device))


@dataclass(frozen=True)
class Known:
    """What is known beside X: links between objects, and labels of objects.

    Attributes
    ----------
    x, fx : inputs of the objects concerned, (q, d) and (q,)
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
        x: NDArray,
        fx: NDArray | None,
        must: NDArray[np.int64],
        cannot: NDArray[np.int64],
        labels: NDArray[np.int64] | None,
    ) -> Known | None:
        """From links between and labels of the objects with inputs x (n, d); -1 is no label."""
        known = np.empty(0, np.int64) if labels is None else np.flatnonzero(labels >= 0)
        links = np.concatenate([must, cannot])
        rows, where = np.unique(np.concatenate([links.ravel(), known]), return_inverse=True)
        if not len(rows):
            return None
        ends = where[: links.size].reshape(-1, 2)
        truth = np.empty(0, np.int64) if labels is None else labels[known]
        return cls(
            x[rows], None if fx is None else fx[rows], ends[: len(must)], ends[len(must) :],
            where[links.size :], truth,
        )  # fmt: skip


@dataclass(frozen=True)
class Weights:
    """Of the terms of the loss: xi of eq. (17), nu of eq. (20), lambda of section 3.2."""

    links: float
    labels: float
    l2: float


class Loss:
    """The whole loss of a network, for masses of some objects and their dissimilarities."""

    def __init__(
        self,
        network: Network,
        focal_sets: FocalSets,
        weights: Weights,
        known: Known | None,
        device: torch.device,
    ):
        self._network, self._weights = network, weights
        self.C = _tensor(focal_sets.C, device)
        self._inputs: Inputs | None = None
        if known is None:
            return
        self._inputs = Inputs.of(known.x, known.fx, device)
        self._Q = _tensor(focal_sets.C + focal_sets.E, device)
        self._F = _tensor(focal_sets.matrix, device)
        links = np.concatenate([known.must, known.cannot])
        self._links = torch.from_numpy(links).to(device)
        self._sign = _tensor(np.repeat([1.0, -1.0], [len(known.must), len(known.cannot)]), device)
        self._labelled = torch.from_numpy(known.labelled).to(device)
        self._truth = _tensor(np.eye(focal_sets.n_clusters)[known.truth], device)

    def __call__(self, m: Tensor, pairs: Tensor | Kept) -> Tensor:
        """(1 - nu) L + nu P_s + xi P_links + lambda penalty; nu is 0 where nothing is labelled."""
        mean = kept_pairs(m, self.C, pairs) if isinstance(pairs, Kept) else None
        loss = all_pairs(m, self.C, pairs) if mean is None else mean  # type: ignore[arg-type]
        weights = self._weights
        if self._inputs is not None:
            known = self._inputs.masses(self._network, slice(None))
            if len(self._labelled):
                wrong = label_penalty(known, self._F, self._labelled, self._truth)
                loss = (1 - weights.labels) * loss + weights.labels * wrong
            if len(self._links):
                broken = link_penalty(known, self._Q, self._links, self._sign)
                loss = loss + weights.links * broken
        if weights.l2:
            loss = loss + weights.l2 * self._network.penalty()
        return loss


def _tensor(values: NDArray, device: torch.device) -> Tensor:
    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float32), device=device)

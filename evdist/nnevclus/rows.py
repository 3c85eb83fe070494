"""What NN-EVCLUS is trained on, as tensors on one device: inputs, what is known, and their loss.

Reference: Denoeux (2021), NN-EVCLUS, sections 3.2 and 3.3.

Symbols
-------
x       (n, d) inputs of the network; fx (n,) outputs of the one-class SVM
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
from evdist.nnevclus.loss import Kept, all_pairs, kept_pairs, label_penalty, link_penalty
from evdist.nnevclus.network import Network

__all__ = ["Inputs", "Known", "Loss", "Weights", "as_tensor", "one_thread", "pick_device"]


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
        return cls(as_tensor(x, device), None if fx is None else as_tensor(fx, device))

    def masses(self, network: Network, rows: Tensor | slice) -> Tensor:
        return network(self.x[rows], None if self.fx is None else self.fx[rows])


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
        self.network, self._weights = network, weights
        self.C = as_tensor(focal_sets.C, device)
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

    def __call__(self, m: Tensor, pairs: Tensor | Kept) -> Tensor:
        """(1 - nu) L + nu P_s + xi P_links + lambda penalty; nu is 0 where nothing is labelled."""
        if isinstance(pairs, Kept):
            loss = kept_pairs(m, self.C, pairs)
        else:
            loss = all_pairs(m, self.C, pairs)
        weights = self._weights
        if self._inputs is not None:
            known = self._inputs.masses(self.network, slice(None))
            if len(self._labelled):
                wrong = label_penalty(known, self._F, self._labelled, self._truth)
                loss = (1 - weights.labels) * loss + weights.labels * wrong
            if len(self._links):
                broken = link_penalty(known, self._Q, self._links, self._sign)
                loss = loss + weights.links * broken
        if weights.l2:
            loss = loss + weights.l2 * self.network.penalty()
        return loss


def as_tensor(values: NDArray, device: torch.device) -> Tensor:
    """Values in float32, where the network is."""
    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float32), device=device)

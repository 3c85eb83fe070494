"""What NN-EVCLUS begins with, and what it ends with: the problem, drawn networks, their masses.

Reference: Denoeux (2021), NN-EVCLUS.

Differs: inputs are centred and divided by one number, so that the mean variance of their columns
is one. It moves no distance against another, and weights start where the data are.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from evdist.belief import FocalSets
from evdist.data.sources import Source
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sampling import random_dissimilarities
from evdist.evclus.start import (
    MIN_TRIAL,
    TRIAL_PER_CLUSTER,
    choose_d0,
    positive_quantile,
)
from evdist.nnevclus.network import Network, layers
from evdist.nnevclus.rows import Inputs, Known, Weights, one_thread

__all__ = ["Problem", "network_masses", "pick_d0", "rebuilt", "starts"]

#: Rows that the network works on at a time. Always so many, the last ones filled up: what an
#: object gets must not depend on who stands beside it.
ROWS = 1024
#: Kept dissimilarities of each object when d0 is chosen.
_TRIAL_K = 100


@dataclass(frozen=True)
class Problem:
    """What the network shall learn."""

    x: NDArray[np.float32]
    fx: NDArray[np.float32] | None
    source: Source
    d0: float
    focal_sets: FocalSets
    weights: Weights
    known: Known | None
    device: torch.device

    @property
    def n(self) -> int:
        return len(self.x)


def pick_d0(
    source: Source, d0: float | str, n_clusters: int, seed: int, n_threads: int
) -> tuple[float, list[tuple[float, float]]]:
    """A number, a quantile of the dissimilarities, or "auto": chosen on a sample, as for EVCLUS."""
    if not isinstance(d0, str):
        return float(d0), []
    if d0 != "auto":
        return positive_quantile(random_dissimilarities(source, seed), float(d0[1:])), []
    count = max(MIN_TRIAL, TRIAL_PER_CLUSTER * n_clusters)
    if count < source.n:
        rng = np.random.default_rng([seed, 3, source.n])
        some = np.sort(rng.choice(source.n, count, replace=False)).astype(np.uint32)
        source = source.subset(some)
    k = min(_TRIAL_K, source.n - 1)
    return choose_d0(source, n_clusters, k=k, seed=seed, rows=NumbaRows(n_threads))


def starts(
    hidden: tuple[int, ...], body: nn.Module | None, problem: Problem, n_init: int, seed: int
) -> list[Network]:
    """Networks with drawn weights. A given body keeps its weights in the first start."""
    f, gate = len(problem.focal_sets), problem.fx is not None
    found = []
    for i in range(n_init):
        rng = np.random.default_rng([seed, 23, i])
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**62)))
            if body is None:
                network = Network(layers((problem.x.shape[1], *hidden)), hidden[-1], f, gate)
                network.draw(rng, problem.x)
            else:
                mine = copy.deepcopy(body).to("cpu", torch.float32)
                if i:
                    for part in mine.modules():
                        if hasattr(part, "reset_parameters"):
                            part.reset_parameters()  # type: ignore[operator]
                network = Network(mine, _width(mine, problem.x), f, gate)
        found.append(network)
    return found


def rebuilt(
    weights: dict[str, NDArray], hidden: tuple[int, ...], body: nn.Module | None
) -> Network:
    """The network with these weights, on the CPU."""
    f, h = weights["head.weight"].shape
    with torch.random.fork_rng():  # layers are born with random weights
        if body is None:
            mine: nn.Module = layers((weights["body.0.weight"].shape[1], *hidden))
        else:
            mine = copy.deepcopy(body).to("cpu", torch.float32)
        network = Network(mine, h, f, "beta" in weights)
    network.load_state_dict({name: torch.from_numpy(np.array(v)) for name, v in weights.items()})
    return network.eval()


def _width(body: nn.Module, x: NDArray[np.float32]) -> int:
    """Features that a user's module gives, tried on two rows."""
    rows = x[: min(2, len(x))]
    body.eval()
    with torch.no_grad():
        out = body(torch.from_numpy(np.ascontiguousarray(rows)))
    if not isinstance(out, torch.Tensor) or out.ndim != 2 or len(out) != len(rows):
        shape = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise ValueError(
            f"body must give (rows, features) for inputs {tuple(rows.shape)}, got {shape}. End it "
            "with torch.nn.Flatten()."
        )
    return out.shape[1]


def network_masses(
    network: Network, x: NDArray, fx: NDArray | None, device: torch.device
) -> NDArray[np.float32]:
    """Masses of objects with inputs x (n, d), (n, f), in blocks of equal size."""
    found = []
    network.to(device).eval()
    with one_thread(), torch.no_grad():
        for lo in range(0, len(x), ROWS):
            rows = x[lo : lo + ROWS]
            fill = ROWS - len(rows)
            block = Inputs.of(
                np.pad(rows, ((0, fill), (0, 0))),
                None if fx is None else np.pad(fx[lo : lo + ROWS], (0, fill)),
                device,
            )
            found.append(block.masses(network, slice(None)).cpu().numpy()[: len(rows)])
    mass = np.concatenate(found)
    return mass / mass.sum(axis=1, keepdims=True)

"""The start of a network for many clusters: it first learns the masses that EVCLUS gives a sample.

Trained from random weights, a network merges many clusters: on thirty Gaussians it reaches an
adjusted Rand index of .6, where EVCLUS reaches .997. docs/decisions/many-clusters.md has the
figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize
from torch import Tensor, nn

from evdist.belief import FocalSets
from evdist.engine.progress import Clock, Report
from evdist.evclus.groups import MANY, SPARSE_FROM
from evdist.nnevclus.centres import SAMPLE, evclus_masses, sampled
from evdist.nnevclus.loss import Near, Supervision
from evdist.nnevclus.network import Network, one_thread
from evdist.nnevclus.problem import Problem
from evdist.partition.sparse import SparseMasses

#: Units of one hidden layer, where clusters are few; the paper has 1.5 for each focal set.
UNITS = 20
#: Objects of each cluster in the sample, where it would else have fewer; and objects of it at most,
#: where that leaves two of each cluster.
PER_CLUSTER, MOST = 100, 1 << 17
#: Rows whose largest masses are looked for at once.
_ROWS = 4096
#: Objects of a step, passes over the sample and steps at least; the rate of Adam, and by what it is
#: divided for the last third.
OBJECTS, EPOCHS, STEPS, RATE, DECAY = 256, 15, 1000, 0.01, 5.0


def hidden_widths(hidden: Sequence[int] | str, n_clusters: int) -> Sequence[int]:
    """Units of each layer as given; "auto" is one layer, wider where clusters are many."""
    if not isinstance(hidden, str):
        return hidden
    return (UNITS if n_clusters < MANY else max(UNITS, math.ceil(1.5 * n_clusters)),)


def teach_networks(
    networks: Sequence[Network], problem: Problem, seed: int, n_threads: int, report: Report
) -> Problem:
    """Let networks learn the masses of EVCLUS; the problem that is left.

    With SPARSE_FROM clusters or more, near pairs have half the weight in it. Clusters get the
    numbers of known labels. All on the CPU, whatever trains the networks later.
    """
    terms, x = problem.terms, problem.x
    c, known = terms.focal_sets.n_clusters, terms.supervision
    rows = sampled(len(x), seed, min(max(SAMPLE, PER_CLUSTER * c), max(MOST, 2 * c)))
    mass = evclus_masses(problem.objects.source, rows, c, problem.d0, seed, n_threads)
    target = _Targets(mass, terms.focal_sets)
    for number, network in enumerate(networks):
        stage = "start" if number == 0 else f"start {number + 1}"
        with one_thread(), torch.random.fork_rng():
            rng = np.random.default_rng([seed, 41, number])
            _teach(network, x[rows], target, rng, partial(Clock, report, stage, rows=len(rows)))
            if known is not None and len(known.labelled):
                _number_as_known(network, terms.focal_sets, known)
    near = target.near() if c >= SPARSE_FROM else None
    return replace(problem, terms=replace(terms, near=near), taught=True)


class _Targets:
    """Masses of EVCLUS on the focal sets of a network, some rows at a time."""

    def __init__(self, mass: NDArray[np.float32] | SparseMasses, focal_sets: FocalSets):
        self._mass, self._f = mass, len(focal_sets)
        at = {mask: column for column, mask in enumerate(focal_sets.masks)}
        simple = FocalSets.simple(focal_sets.n_clusters).masks
        self._from = [column for column, mask in enumerate(simple) if mask in at]
        self._to = [at[simple[column]] for column in self._from]

    def near(self) -> Near | None:
        """The share of pairs inside a cluster, as EVCLUS sees them; None where it has only one."""
        mass = self._mass
        # Of maximum plausibility: the mass of Omega is that of all clusters.
        best = [
            np.asarray(mass[lo : lo + _ROWS])[:, 1:-1].argmax(axis=1)
            for lo in range(0, len(mass), _ROWS)
        ]
        size = np.bincount(np.concatenate(best)) / len(mass)
        share = float((size * size).sum())
        return Near(share) if share < 1 else None

    def __call__(self, rows: NDArray[np.int64]) -> Tensor:
        """(b, f); what lies on sets that the network does not know is left out."""
        found = np.zeros((len(rows), self._f), np.float32)
        found[:, self._to] = np.asarray(self._mass[rows], np.float32)[:, self._from]
        return torch.from_numpy(found)


def _teach(
    network: Network, x: NDArray, target: _Targets, rng: np.random.Generator,
    clock: Callable[..., Clock],
) -> None:  # fmt: skip
    """Minimise the cross-entropy of the softmax, eq. (11), against the masses."""
    steps = max(1, round(len(x) / OBJECTS))
    epochs = max(EPOCHS, math.ceil(STEPS / steps))
    ticks = clock(most=epochs)
    network.train()
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, foreach=False)
    inputs = torch.from_numpy(x)
    before = float("nan")
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = RATE if epoch < 2 * epochs / 3 else RATE / DECAY
        total = 0.0
        for rows in np.array_split(rng.permutation(len(x)), steps):
            optimizer.zero_grad()
            mu = network.head(network.body(inputs[torch.from_numpy(rows)]))
            loss = nn.functional.cross_entropy(mu, target(rows), reduction="sum")
            (loss / len(rows)).backward()
            optimizer.step()
            total += float(loss.detach())
        ticks.tell(epoch + 1, total / len(x), total / len(x) - before)
        before = total / len(x)


def _number_as_known(network: Network, focal_sets: FocalSets, known: Supervision) -> None:
    """Give the outputs of singletons the numbers of the labels that their objects have most."""
    c = focal_sets.n_clusters
    masks = list(focal_sets.masks)
    if any(1 << k not in masks for k in range(c)):
        return
    outputs = np.array([masks.index(1 << k) for k in range(c)])
    with torch.no_grad():
        x = torch.from_numpy(np.ascontiguousarray(known.x[known.labelled], np.float32))
        m = torch.softmax(network.head(network.body(x)), dim=1).numpy()[:, outputs]
        agreement = np.zeros((c, c))
        np.add.at(agreement, known.truth, m)
        _, mine = optimize.linear_sum_assignment(agreement, maximize=True)
        for parameter in (network.head.weight, network.head.bias):
            parameter[outputs] = parameter[outputs[mine]].clone()

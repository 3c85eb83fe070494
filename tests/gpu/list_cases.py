"""Lists of clusters on a device and on threads: the same random problem for both."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch

from evdist.belief import FocalSets
from evdist.evclus.problem import MemoryPairs, Plan, Problem
from evdist.evclus.rows.arrays import Graph
from evdist.evclus.rows.device_pairs import spread_out
from evdist.evclus.rows.lists import ListKernels, Lists
from evdist.evclus.sampling import near_layout
from evdist.kernels.graph import draw_graph
from evdist.kernels.sparse_rows import encode

CPU = torch.device("cpu")


def random_lists(
    c: int,
    n: int = 300,
    k: int = 24,
    *,
    near: bool = True,
    weighted: bool = False,
    device: torch.device = CPU,
    seed: int = 0,
    spread: float = 0.1,
    promise: float = 0.0,
) -> tuple[Problem, np.ndarray, Lists]:
    """A problem on threads, encoded rows to start from, and the same on a device.

    Small `spread` gives rows that name few clusters.
    """
    rng = np.random.default_rng(seed)
    label = rng.integers(c, size=n)
    if near:
        # There are never more groups than objects.
        groups = label if c < n else label * 10 // c
        layout = near_layout(groups, k, 0.5, seed)
        graph, label = layout.graph, label[layout.order]
    else:
        graph = draw_graph(n, k, rng)
    partner, degree = graph.partners(0, n)
    disturbance = rng.random(n) * 0.3
    apart = (label[:, None] != label[partner]) - disturbance[:, None] - disturbance[partner]
    delta = np.abs(apart).clip(0, 1).astype(np.float32)
    first = np.arange(n, dtype=np.int64) * graph.k
    pairs = MemoryPairs(first, degree, partner.ravel(), delta.ravel())
    weight = rng.uniform(0.5, 2, n).astype(np.float32) if weighted else np.zeros(0, np.float32)
    plan = Plan.of(graph.bounds)
    problem = Problem(FocalSets.simple(c), pairs, plan, weight, sparse=True, promise=promise)
    mass = rng.dirichlet(np.full(c + 2, spread), n)
    mass[np.arange(n), 1 + label] += 0.5
    start = encode((mass / mass.sum(axis=1, keepdims=True)).astype(np.float32))
    rows = torch.as_tensor(spread_out(graph, pairs.block(0, n), n), device=device)
    state = Lists(
        Graph.of(graph, device), torch.as_tensor(start.copy(), device=device),
        rows.T.contiguous()[None], torch.zeros(1, n, device=device), c,
        torch.as_tensor(weight, device=device) if weighted else None, 4.0 if weighted else 1.0,
        promise=promise,
    )  # fmt: skip
    return problem, start, state


def swept(kernels: ListKernels, state: Lists, skip_below: float = 0.0) -> float:
    """One sweep over all rows; the change that the rows tell."""
    for colour in range(len(state.graph.colours)):
        kernels.update(state, colour, None, skip_below)
    return float(state.change.sum(dtype=torch.float64))


def stress(kernels: ListKernels, state: Lists) -> float:
    """Sum over pairs, each counted once."""
    total = 0.0
    for colour, (lo, hi) in enumerate(pairwise(state.graph.bounds)):
        total += float(kernels.losses(state, colour, 0, hi - lo).sum())
    return total / 2


def copied(state: Lists) -> Lists:
    return replace(state, mass=state.mass.clone(), change=state.change.clone())

"""Small problems with everything in them: weights, links and late rows."""

from __future__ import annotations

import numpy as np

from evdist.belief import FocalSets
from evdist.constraints import random_links
from evdist.data.sources import AttributeSource
from evdist.evclus.late import late_rows
from evdist.evclus.link_table import link_table
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.sampling import draw_layout, sample_pairs


def make_problem(
    n: int, k: int = 8, *, weighted: bool = False, n_links: int = 0, seed: int = 0
) -> tuple[Problem, np.ndarray]:
    """A problem on random attributes, and random masses in positions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + 4 * rng.integers(0, 2, (n, 2))
    layout = draw_layout(n, k, seed)
    sets = FocalSets.full(2)
    pairs = sample_pairs(AttributeSource.of(X, "euclidean"), layout, 3.0)
    plan, links = Plan.of(layout.bounds), None
    if n_links:
        must, cannot = random_links((X[:, 0] > 2).astype(int), n_links, rng)
        position = np.empty(n, np.int64)
        position[layout.order] = np.arange(n)
        plan = Plan.of(
            layout.bounds,
            late_rows(must, cannot, position, layout.bounds, layout.graph.partners_of),
        )
        links = link_table(must, cannot, position, sets, 0.3)
    weight = rng.uniform(0.5, 2, n).astype(np.float32) if weighted else np.zeros(0, np.float32)
    mass = rng.dirichlet(np.ones(len(sets)), n).astype(np.float32)
    return Problem(sets, pairs, plan, weight, links), mass

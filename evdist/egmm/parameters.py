"""Parameters of EGMM in a job configuration."""

from __future__ import annotations

from collections.abc import Sequence

from evdist.estimators.parameters import Parameters, Seed


class EGMMParameters(Parameters):
    n_clusters: int | Sequence[int] = 3
    focal_sets: str = "pairs"
    init: str = "hierarchical"
    n_init: int = 5
    tol: float = 1e-6
    max_iter: int = 1000
    random_state: Seed = 0

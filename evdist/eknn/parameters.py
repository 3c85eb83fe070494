"""Parameters of EKNNclus in a job configuration."""

from __future__ import annotations

from evdist.estimators.parameters import Parameters, Seed


class EKNNclusParameters(Parameters):
    n_neighbors: int | None = None
    q: float = 0.9
    power: float = 2.0
    metric: str = "euclidean"
    init: str | int = "auto"
    symmetric: bool = True
    n_init: int = 1
    max_iter: int = 100
    random_state: Seed = 0

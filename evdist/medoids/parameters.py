"""Parameters of ECMdd and MECM in a job configuration."""

from __future__ import annotations

from evdist.estimators.parameters import Parameters, Seed


class MECMParameters(Parameters):
    n_clusters: int = 4
    alpha: float = 1.0
    beta: float = 2.0
    delta: float | str = "auto"
    eta: float = 1.0
    gamma: float = 1.0
    focal_sets: str = "pairs"
    metric: str = "euclidean"
    init: str = "k-means++"
    n_init: int = 5
    tol: float = 1e-6
    max_iter: int = 200
    random_state: Seed = 0


class ECMddParameters(MECMParameters):
    weighted: bool = False
    alpha: float = 2.0
    psi: float = 2.0
    sharpness: float = 5.0
    metric: str = "sqeuclidean"

"""Parameters of Bootclus in a job configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from evdist.estimators.parameters import Parameters, Seed


class BootclusParameters(Parameters):
    fit_takes: ClassVar = frozenset({"client"})

    n_clusters: int | Sequence[int] = 3
    n_bootstrap: int = 500
    confidence: float = 0.9
    covariance_models: str | Sequence[str] = "auto"
    focal_sets: str = "pairs"
    pair_neighbours: int = 2
    n_dissimilarities: int | str = "auto"
    n_init: int = 5
    tol: float = 1e-5
    max_iter: int = 200
    device: str = "cpu"
    random_state: Seed = 0

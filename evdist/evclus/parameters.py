"""Parameters of EVCLUS in a job configuration."""

from __future__ import annotations

from typing import ClassVar, Literal

from evdist.estimators.parameters import Parameters, Seed


class EVCLUSParameters(Parameters):
    fit_takes: ClassVar = frozenset({"must_link", "sample_weight", "client"})

    n_clusters: int | Literal["auto"] = 4
    n_dissimilarities: int | Literal["auto"] = 100
    metric: str = "auto"
    scale: str | None = None
    noise_floor: bool | Literal["auto"] = "auto"
    focal_sets: str = "simple"
    pair_neighbours: int = 2
    d0: float | str = "auto"
    init: str = "auto"
    n_init: int = 1
    tol: float | Literal["auto"] = "auto"
    max_iter: int = 200
    constraint_weight: float = 0.5
    expand_constraints: int = 0
    random_state: Seed = 0
    outliers: str = "cluster"
    device: str = "cpu"
    memory_limit: int | None = None
    partitions: int | str = "auto"

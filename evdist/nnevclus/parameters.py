"""Parameters of NN-EVCLUS in a job configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from evdist.estimators.parameters import Parameters, Seed


class NNEVCLUSParameters(Parameters):
    fit_takes: ClassVar = frozenset({"must_link", "client"})

    n_clusters: int | Literal["auto"] = 4
    hidden: Sequence[int] | Literal["auto"] = "auto"
    focal_sets: str = "simple"
    metric: str = "euclidean"
    scale: str | None = None
    n_components: int = 5
    d0: float | str = "auto"
    n_dissimilarities: int | None = None
    batch_size: int | str | None = "auto"
    n_shards: int | None = None
    optimizer: str = "auto"
    learning_rate: float = 0.01
    l2_penalty: float = 0.0
    gate: bool = False
    gate_outliers: float = 0.2
    gate_width: float = 0.5
    centres: str | None = None
    constraint_weight: float = 0.5
    label_weight: float = 0.5
    validation_fraction: float = 0.0
    n_iter_no_change: int = 10
    tol: float = 0.001
    max_iter: int = 1000
    n_init: int = 3
    device: str = "auto"
    random_state: Seed = 0

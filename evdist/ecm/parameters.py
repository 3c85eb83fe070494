"""Parameters of ECM and its relatives in a job configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from evdist.estimators.parameters import Parameters, Seed


class _Iterated(Parameters):
    tol: float = 1e-5
    max_iter: int = 200


class _Started(_Iterated):
    focal_sets: str = "simple"
    init: str = "k-means++"
    n_init: int = 5
    random_state: Seed = 0


class ECMParameters(_Started):
    fit_takes: ClassVar = frozenset({"sample_weight", "client"})

    n_clusters: int | Literal["auto"] = 4
    alpha: float = 1.0
    beta: float | str = "auto"
    delta: float | str = "auto"
    pair_neighbours: int = 2
    metric: str = "euclidean"
    scale: str | None = None


class CECMParameters(_Started):
    fit_takes: ClassVar = frozenset({"must_link", "sample_weight"})

    n_clusters: int = 4
    alpha: float = 1.0
    delta: float | str = "auto"
    metric: str = "euclidean"
    constraint_weight: float = 0.5
    expand_constraints: int = 0


class RECMParameters(_Started):
    fit_takes: ClassVar = frozenset({"sample_weight"})

    n_clusters: int = 4
    alpha: float = 1.0
    beta: float = 2.0
    delta: float | str = "auto"
    metric: str = "precomputed"


class CCMParameters(_Started):
    fit_takes: ClassVar = frozenset({"sample_weight", "client"})

    n_clusters: int = 4
    gamma: float = 1.0
    beta: float | str = "auto"
    delta: float | str = "auto"
    focal_sets: str = "pairs"


class BCMParameters(CCMParameters):
    pass


class SECMParameters(_Started):
    fit_takes: ClassVar = frozenset({"sample_weight", "client"})

    n_clusters: int = 4
    image_shape: Sequence[int] | None = None
    radius: int = 1
    spatial_weight: float = 4.0
    alpha: float = 1.0
    beta: float | str = "auto"
    delta: float | str = "auto"
    pair_neighbours: int = 2


class BPECParameters(_Iterated):
    n_clusters: int | None = None
    n_neighbors: int | None = None
    q: float = 0.9
    delta_min: float = 0.0
    delta_max: float | None = None
    bel_min: float = 0.0
    bel_max: float | None = None
    alpha: float = 1.0
    beta: float = 2.0
    delta: float | str = "auto"
    focal_sets: str = "simple"
    pair_neighbours: int = 2
    metric: str = "euclidean"

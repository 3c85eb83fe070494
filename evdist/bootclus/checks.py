"""The parameters of a Bootclus, checked before work starts."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from evdist.belief import FocalSets
from evdist.estimators.checks import (
    at_most_objects,
    focal_family,
    integer,
    non_negative,
    positive,
    seeded_checkpoint,
)

FAMILIES = ("simple", "pairs", "full", "select")
#: Up to this many objects "auto" keeps all pairs; beyond, K_AUTO for each object.
ALL_PAIRS, K_AUTO = 1000, 100


def checked_pairs(model: Any, n: int) -> int:
    """Check all parameters of a Bootclus; returns k, the pairs kept for each object."""
    for name in ("n_bootstrap", "pair_neighbours", "n_init", "max_iter", "checkpoint_every"):
        integer(name, getattr(model, name), 2 if name == "n_bootstrap" else 1)
    non_negative("tol", model.tol)
    positive("confidence", model.confidence, below=1.0)
    model._check_callbacks()
    if model.mixture is None:
        at_most_objects(most_clusters(model), n)
    elif not has_fit_parameter(model.mixture, "sample_weight") or not hasattr(
        model.mixture, "predict_proba"
    ):
        raise TypeError(
            "mixture must have fit(X, sample_weight=...) and predict_proba(X), got "
            f"{type(model.mixture).__name__}. A bootstrap sample is a weight for each object."
        )
    if isinstance(model.focal_sets, FocalSets):
        _has_singletons(model.focal_sets)
    elif model.focal_sets not in FAMILIES:
        focal_family(model.focal_sets, 1, FAMILIES)  # says which there are
    seeded_checkpoint(model, "samples")
    if isinstance(model.n_dissimilarities, str):
        if model.n_dissimilarities != "auto":
            raise ValueError(
                'n_dissimilarities must be an integer of at least 1 or "auto", got '
                f"{model.n_dissimilarities!r}."
            )
        return n - 1 if n <= ALL_PAIRS else K_AUTO
    return min(integer("n_dissimilarities", model.n_dissimilarities, 1), n - 1)


def most_clusters(model: Any) -> int:
    """The largest number of clusters that may come out; 1 where a mixture decides."""
    if model.mixture is not None:
        return 1
    single = isinstance(model.n_clusters, Integral)
    numbers = [model.n_clusters] if single else list(model.n_clusters)
    if not numbers:
        raise ValueError("n_clusters must name at least one number, got an empty sequence.")
    return max(integer("n_clusters", number, 1) for number in numbers)


def _has_singletons(focal_sets: FocalSets) -> None:
    """Beliefs that two objects are together are carried by the single clusters."""
    missing = np.flatnonzero(focal_sets.singletons < 0)
    if missing.size:
        raise ValueError(
            "focal_sets must hold every single cluster, but "
            f"{{{int(missing[0])}}} is not among them. Start from FocalSets.simple."
        )

"""What a fitted Bootclus keeps on disk: mixture, replicates, and rows to place others against."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evdist.bootclus.intervals import Intervals
from evdist.bootclus.replicates import GaussianReplicates
from evdist.bootclus.solver import Placement
from evdist.mixture import GaussianMixture, Parameters


def model_state(model: Any) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """What a fitted Bootclus has beside the attributes of all: values for JSON, and arrays."""
    placement, mixture, kept = model._placement, model.mixture_, model.intervals_
    replicates = placement.replicates
    if not isinstance(replicates, GaussianReplicates):
        raise TypeError(
            f"A model with a mixture of type {type(mixture).__name__} cannot be saved without "
            "pickle. Only Gaussian mixtures can."
        )
    values = {
        "covariance_model": model.covariance_model_, "n_clusters": model.n_clusters_,
        "n_failed": model.n_failed_, "confidence": placement.confidence,
        "mixture": {"loglik": mixture.loglik_, "bic": mixture.bic_, "n_iter": mixture.n_iter_,
                    "converged": mixture.converged_},
        "bics": [mixture.bics_.index.tolist(), mixture.bics_.columns.tolist()],
    }  # fmt: skip
    best = {name: getattr(mixture.parameters_, name) for name in replicates.arrays}
    arrays = {
        "row": placement.X, "mass": placement.mass, "bics": mixture.bics_.to_numpy(),
        "pair": np.stack([kept.i, kept.j]), "bound": np.stack([kept.lower, kept.upper]),
        **{f"mixture_{name}": array for name, array in best.items()},
        **{f"replicate_{name}": array for name, array in replicates.arrays.items()},
    }  # fmt: skip
    if model._sampled is not None:
        arrays["sample"], arrays["sample_mass"] = model._sampled
    return values, arrays


def set_model_state(model: Any, values: dict[str, Any], arrays: dict[str, NDArray]) -> None:
    """Give a Bootclus what :func:`model_state` gave."""

    def group(prefix: str) -> dict[str, NDArray]:
        return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}

    covariances = str(values["covariance_model"])
    model.covariance_model_, model.n_clusters_ = covariances, int(values["n_clusters"])
    model.n_failed_ = int(values["n_failed"])
    model.intervals_ = Intervals(*arrays["pair"], *arrays["bound"])
    model._sampled = (arrays["sample"], arrays["sample_mass"]) if "sample" in arrays else None
    replicates = GaussianReplicates(covariances, **group("replicate_"))
    sets = model.credal_partition_.focal_sets
    model._placement = Placement(
        arrays["row"], arrays["mass"], sets, replicates, float(values["confidence"])
    )
    model.mixture_ = mixture = GaussianMixture(
        model.n_clusters, covariance_models=model.covariance_models, n_init=model.n_init
    )
    mixture.parameters_ = p = Parameters(covariances, **group("mixture_"))
    mixture.covariance_model_, mixture.n_components_ = covariances, p.n_components
    mixture.weights_, mixture.means_, mixture.covariances_ = p.weights, p.means, p.covariances
    known = values["mixture"]
    mixture.loglik_, mixture.bic_ = float(known["loglik"]), float(known["bic"])
    mixture.n_iter_, mixture.converged_ = int(known["n_iter"]), bool(known["converged"])
    numbers, models = values["bics"]
    index = pd.Index(numbers, name="n_components")
    mixture.bics_ = pd.DataFrame(arrays["bics"], index=index, columns=models)
    mixture.failed_, mixture.n_features_in_ = None, p.n_features

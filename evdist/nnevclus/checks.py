"""What NNEVCLUS is given, checked before work starts: parameters and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.estimators.checks import checked_d0, integer, non_negative, one_of, positive

__all__ = ["BATCH", "MINI", "check_labels", "check_parameters"]

#: Optimisers of the two ways to train.
BATCH, MINI = ("lbfgs", "adaptive"), ("rmsprop", "adam")


def check_parameters(model: Any, client: Any) -> None:
    """Refuse parameters of an NNEVCLUS that are wrong by themselves, or with a client."""
    for name in ("n_components", "n_iter_no_change", "max_iter", "n_init", "checkpoint_every"):
        integer(name, getattr(model, name), 1)
    for name in ("n_dissimilarities", "n_shards"):
        if getattr(model, name) is not None:
            integer(name, getattr(model, name), 1)
    for name in ("tol", "l2_penalty", "constraint_weight"):
        non_negative(name, getattr(model, name))
    positive("learning_rate", model.learning_rate)
    positive("gate_outliers", model.gate_outliers, below=1.0)
    positive("gate_width", model.gate_width)
    for name in ("label_weight", "validation_fraction"):
        if non_negative(name, getattr(model, name)) >= 1:
            raise ValueError(f"{name} must be below 1, got {getattr(model, name)!r}.")
    widths = list(model.hidden)
    if not widths:
        raise ValueError("hidden must name at least one layer, such as (20,).")
    for width in widths:
        integer("hidden", width, 1)
    if model.batch_size is not None and model.batch_size != "auto":
        integer("batch_size", model.batch_size, 2)
    one_of("optimizer", model.optimizer, ("auto", *BATCH, *MINI))
    checked_d0(model.d0)
    if model.checkpoint is not None and model.random_state is None:
        raise ValueError(
            "checkpoint needs a random_state, such as random_state=0: without it the same "
            "call draws other weights and cannot go on."
        )
    if model.batch_size is None and (client is not None or model.n_shards is not None):
        what = "Workers train" if client is not None else "Shards are trained"
        raise ValueError(
            f"{what} by mini-batches; batch_size=None trains on all objects at once. "
            'Pass a number or "auto", or no client and no n_shards.'
        )


def check_labels(labels: Any, n: int, n_clusters: int) -> NDArray[np.int64] | None:
    """Labels as integers, (n,); None where there are none."""
    if labels is None:
        return None
    found = np.asarray(labels)
    if found.shape != (n,):
        raise ValueError(f"labels must have shape ({n},), got {found.shape}.")
    bad = (found != np.floor(found)) | (found < -1) | (found >= n_clusters)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"labels must be clusters 0..{n_clusters - 1}, or -1 where unknown, but "
            f"object {row} has {found[row]!r}."
        )
    return found.astype(np.int64)

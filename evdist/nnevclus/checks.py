"""What NNEVCLUS is given, checked before work starts: parameters, labels, centres, features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.data.inputs import is_pair_list, load, make_source
from evdist.data.sources import PairList, Source
from evdist.estimators.checks import checked_d0, integer, non_negative, one_of, positive
from evdist.kernels.threads import thread_count
from evdist.nnevclus.centres import evclus_centres, peak_centres

__all__ = ["BATCH", "MINI", "check_labels", "check_parameters", "label_centres", "source_of"]

#: Optimisers of the two ways to train.
BATCH, MINI = ("lbfgs", "adaptive"), ("rmsprop", "adam")


def check_parameters(model: Any, client: Any) -> None:
    """Refuse parameters of an NNEVCLUS that are wrong by themselves, or with a client."""
    for name in ("n_clusters", "n_components", "n_iter_no_change", "max_iter", "n_init",
                 "checkpoint_every"):  # fmt: skip
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
    one_of("device", model.device, ("auto", "cpu", "cuda"))
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


def source_of(X: NDArray, metric: Any, metric_features: Any) -> Source:
    """Dissimilarities of the rows of X, or of the features given instead."""
    Z = X if metric_features is None else np.asarray(load(metric_features), dtype=float)
    if is_pair_list(Z, metric):
        raise ValueError(
            'NNEVCLUS needs the dissimilarity of any two objects: metric="pairs" is not known.'
        )
    source = make_source(Z, metric)
    assert not isinstance(source, PairList)
    if source.n != len(X):
        raise ValueError(f"metric_features has {source.n} rows, X has {len(X)}.")
    return source


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


def label_centres(
    centres: Any, x: NDArray, source: Source, *, n_clusters: int, d0: float, seed: int,
    n_jobs: int | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """The objects that stand for the clusters, (c,), and labels that say so, (n,)."""
    c, n = n_clusters, source.n
    if isinstance(centres, str):
        if one_of("centres", centres, ("peaks", "evclus")) == "peaks":
            found = peak_centres(x, c, seed)
        else:
            found = evclus_centres(source, c, d0, seed, thread_count(n_jobs))
    else:
        found = np.asarray(centres)
        whole = found.dtype.kind in "iu" and found.shape == (c,)
        if not whole or found.min() < 0 or found.max() >= n or len(set(found.tolist())) < c:
            raise ValueError(
                f"centres must be {c} different objects of 0..{n - 1}, one for each cluster, "
                f'or "peaks" or "evclus", got {centres!r}.'
            )
        found = found.astype(np.int64)
    labels = np.full(n, -1, np.int64)
    labels[found] = np.arange(len(found))
    return found, labels

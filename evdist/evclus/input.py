"""What EVCLUS compares: the rows, their dissimilarities, how many clusters, and the map if any."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evdist.data.inputs import load
from evdist.data.pair_checks import checked_pairs
from evdist.data.sources import PairList, Source, is_pair_list, make_source
from evdist.estimators.checks import integer
from evdist.estimators.number import clusters_for
from evdist.evclus.floor import check_noise_floor, less_noise
from evdist.evclus.maps import MAPS, Map, compared, mapped
from evdist.evclus.shapes import clearer_metric
from evdist.evclus.views import has_views, viewed
from evdist.kernels.threads import thread_count


def metric_asked(model: Any, X: Any) -> Any:
    """The metric of an EVCLUS `model`; "auto" is Euclidean for sparse rows and a distance as d0."""
    if not isinstance(model.metric, str) or model.metric != "auto":
        return model.metric
    return "auto" if isinstance(model.d0, str) and not sparse.issparse(X) else "euclidean"


def rows_to_compare(
    model: Any, X: Any, seed: int, metric: Any, attributes: Any = None, alone: bool = True
) -> tuple[Any, Source | PairList, int, Map | None]:
    """The rows, their dissimilarities, the number of clusters, and what mapped the rows.

    `alone`: without links and weights, which views know nothing of.
    """
    listed = is_pair_list(X, metric)
    noise_floor = check_noise_floor(model.noise_floor)
    X = load(X) if listed else model._table(X, ensure_min_samples=2)
    threads, made = thread_count(model.n_jobs), None
    if not listed and isinstance(X, np.ndarray) and X.dtype.kind == "f":
        _refuse_large(X)
    if isinstance(metric, str) and metric in ("auto", *MAPS) and not listed:
        if attributes is not None:
            raise ValueError(_ATTRIBUTES)
        # Modes are counted where the rows lie, not where they are mapped to.
        c = integer("n_clusters", clusters_for(model.n_clusters, X), 1)
        if metric == "auto" and has_views(X, c):
            # Masses that are given and other sets of clusters are of one way of comparing, too.
            alone = alone and isinstance(model.init, str) and model.focal_sets == "simple"
            metric = "views" if alone else "euclidean"
        elif metric == "auto":
            metric = clearer_metric(model, X, c, seed)
        if metric == "views":
            X, made = viewed(model, X, c, seed)
            metric = compared(made)
        if metric in MAPS:
            X, made = mapped(metric, X, seed, model.n_jobs)
            metric = compared(made)
        data = less_noise(
            make_source(X, metric, threads), noise_floor,
            n_clusters=c, seed=seed, n_threads=threads,
        )  # fmt: skip
        return X, data, c, made
    data = make_source(X, metric, threads)
    if isinstance(data, PairList):
        data = checked_pairs(data, attributes, seed)
    elif attributes is not None:
        raise ValueError(_ATTRIBUTES)
    # Modes are counted as the rows lie, with their noise.
    c = integer("n_clusters", clusters_for(model.n_clusters, data), 1)
    data = less_noise(data, noise_floor, n_clusters=c, seed=seed, n_threads=threads)
    return X, data, c, None


def _refuse_large(X: NDArray[Any]) -> None:
    """Kernels compare in single precision, where larger numbers have no square."""
    largest = max(float(X.max()), -float(X.min()))
    if largest > _LARGEST:
        raise ValueError(
            f"EVCLUS compares in single precision and needs numbers below {_LARGEST:g}, but X goes "
            f'up to {largest:.3g}. Divide X by a number, or set scale="standard".'
        )


_LARGEST = 1e18
_ATTRIBUTES = "attributes belong to a list of pairs; here X has them: leave it out."

"""What EVCLUS compares: the rows, their dissimilarities, how many clusters, and the map if any."""

from __future__ import annotations

from typing import Any

from evdist.data.inputs import load
from evdist.data.pair_checks import checked_pairs
from evdist.data.sources import PairList, Source, is_pair_list, make_source
from evdist.estimators.checks import integer
from evdist.estimators.number import clusters_for
from evdist.evclus.geodesic import mapped
from evdist.evclus.shapes import less_cut
from evdist.features.geodesic import GeodesicMap
from evdist.kernels.threads import thread_count


def rows_to_compare(
    model: Any, X: Any, seed: int, attributes: Any = None
) -> tuple[Any, Source | PairList, int, GeodesicMap | None]:
    """The rows, their dissimilarities, the number of clusters, and what mapped the rows."""
    listed = is_pair_list(X, model.metric)
    X = load(X) if listed else model._table(X, ensure_min_samples=2)
    metric, threads, made = model.metric, thread_count(model.n_jobs), None
    if metric in ("auto", "geodesic") and not listed:
        if attributes is not None:
            raise ValueError(_ATTRIBUTES)
        # Modes are counted where the rows lie, not along them.
        c = integer("n_clusters", clusters_for(model.n_clusters, X), 1)
        if metric == "auto":
            metric = less_cut(model, X, c, seed)
        if metric == "geodesic":
            X, made = mapped(X, seed, model.n_jobs)
            metric = "chebyshev"
        return X, make_source(X, metric, threads), c, made
    data = make_source(X, metric, threads)
    if isinstance(data, PairList):
        data = checked_pairs(data, attributes, seed)
    elif attributes is not None:
        raise ValueError(_ATTRIBUTES)
    return X, data, integer("n_clusters", clusters_for(model.n_clusters, data), 1), None


_ATTRIBUTES = "attributes belong to a list of pairs; here X has them: leave it out."

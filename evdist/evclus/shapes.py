"""metric="auto" with few columns: straight distances or the way along the data, the clearer one.

Clusters that bend are found along the data, clusters that touch by straight distances. Which of the
two lies before us is seen without labels: objects of one cluster are each other's neighbours. So a
sample is clustered both ways. How doubtful a partition is follows from two shares: of the edges of
the neighbour graph that its clusters lose (`conductance`), and of the objects that are not sure. Of
the clearer one, which is taken, their product is smaller. docs/decisions/metric-auto.md has the
measurements.
"""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import neighbors

from evdist.evclus.resolution import NEIGHBOURS
from evdist.evclus.views import FROM_COLUMNS, FROM_OBJECTS, STOP

#: Objects that are clustered both ways: so many, or so many for each cluster.
SAMPLE, PER_CLUSTER = 1_000, 30


def clearer_metric(model: Any, X: NDArray, n_clusters: int, seed: int) -> str:
    """The metric for an EVCLUS with these settings; "euclidean" if both are as clear.

    With so many columns that there would be views of more objects, "euclidean" always: of a few
    hundred objects, distances along the data were never better (docs/decisions/metric-auto.md).
    """
    if n_clusters == 1 or (X.shape[1] >= FROM_COLUMNS and len(X) < FROM_OBJECTS):
        return "euclidean"
    m = min(len(X), max(SAMPLE, PER_CLUSTER * n_clusters))
    rows = np.sort(np.random.default_rng(seed).choice(len(X), m, replace=False))
    some = np.asarray(X[rows])
    graph = neighbors.kneighbors_graph(some, min(NEIGHBOURS, m - 1), n_jobs=model.n_jobs)
    graph = sparse.csr_array(graph.maximum(graph.T))
    # With the user's own seed: where the sample is all objects, what is tried is what will be done.
    given = model.random_state if isinstance(model.random_state, Integral) else seed
    settings = model.get_params(deep=False) | {
        "n_clusters": n_clusters, "random_state": given, "scale": None, "init": "auto",
        "checkpoint": None, "memory_limit": None, "partitions": "never", **STOP,
        "callbacks": (), "verbose": False,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit that follows says it of all objects
        doubt = {
            metric: _doubt(type(model)(**settings | {"metric": metric}).fit(some), graph)
            for metric in ("euclidean", "geodesic")
        }
    return min(doubt, key=doubt.__getitem__)  # the first of two equal ones


def _doubt(model: Any, graph: sparse.csr_array) -> float:
    """How little a partition is to be believed: 0 if it cuts nothing, or all are sure."""
    sure = float(model.credal_partition_.decide().sure.mean())
    return conductance(model.labels_, graph, model.n_clusters_) * (1.0 - sure)


def conductance(labels: NDArray, graph: sparse.csr_array, n_clusters: int) -> float:
    """Mean over clusters of the share of their edges that leave them; one for an empty cluster.

    Shi and Malik (2000), whose normalised cut is its sum.
    """
    edges = graph.tocoo()
    ends = np.bincount(labels[edges.row], minlength=n_clusters)
    leave = labels[edges.row] != labels[edges.col]
    left = np.bincount(labels[edges.row][leave], minlength=n_clusters)
    return float(np.where(ends > 0, left / np.maximum(ends, 1), 1.0).mean())

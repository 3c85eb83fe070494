"""How strange an object is for its cluster: a score that ranks outliers.

    score(x) = log( r(x) / sqrt(r_k r_all) ) + m(0)

r(x) is the mean distance of x to its K nearest others, r_k its median in x's cluster k, r_all that
of all objects.

Mass on the empty set says that an object is far from all others on the scale of d0, the distance
between clusters. Strange objects inside the hull of the data, or between clusters that are small
against d0, have none of it; the distance to the nearest others
finds them. On the scale of the own cluster alone it would know dense clusters from sparse ones, and
call the edge of a dense one as strange as an object far from all: half of each ranks planted
outliers best (benchmarks/answers_outliers.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn import neighbors

if TYPE_CHECKING:
    from evdist.partition import CredalPartition

#: Objects among which the nearest are looked for, so that the cost grows linearly with n.
SAMPLE = 20_000


def outlier_scores(
    partition: CredalPartition, X: Any, *, n_neighbors: int = 5
) -> NDArray[np.float64]:
    """An outlier score for each object, larger for more unusual ones; about 0 for usual members.

    Parameters
    ----------
    partition : CredalPartition of n objects
        Whose clusters say what is usual.
    X : (n, d) array or data frame
        What the distances are computed from, Euclidean: on the scale that was clustered.
    n_neighbors : int
        K. Above 20,000 objects they are looked for among as many, drawn at random.

    Returns
    -------
    (n,) array
        The scores.

    Examples
    --------
    >>> import numpy as np
    >>> from evdist import EVCLUS
    >>> from evdist.metrics import outlier_scores
    >>> X = np.vstack([np.random.default_rng(0).normal(size=(99, 2)), [[9.0, 9.0]]])
    >>> model = EVCLUS(1, d0="q0.9", random_state=0).fit(X)
    >>> int(outlier_scores(model.credal_partition_, X).argmax())
    99
    """
    rows = np.asarray(X, dtype=float)
    n = partition.n_objects
    if rows.ndim != 2 or len(rows) != n:
        raise ValueError(f"X must have one row for each of the {n} objects, got {rows.shape}.")
    if not 1 <= n_neighbors < n:
        raise ValueError(f"n_neighbors must be from 1 to {n - 1}, got {n_neighbors}.")
    away = _mean_distance(rows, int(n_neighbors))
    labels = np.asarray(partition.labels())
    usual = np.ones(partition.n_clusters)
    for k in range(partition.n_clusters):
        if (labels == k).any():
            usual[k] = np.median(away[labels == k])
    # Of a cluster that is mostly copies, the usual distance is that of all objects.
    whole = float(np.median(away)) or 1.0
    usual = np.where(usual > 0, usual, whole)
    ratio = np.maximum(away / np.sqrt(usual[labels] * whole), 1e-6)
    return np.log(ratio) + np.asarray(partition.mass)[:, 0]


def _mean_distance(rows: NDArray[np.float64], K: int) -> NDArray[np.float64]:
    """Mean distance of each row to its K nearest others, (n,)."""
    n = len(rows)
    if n <= SAMPLE:
        return neighbors.NearestNeighbors(n_neighbors=K).fit(rows).kneighbors()[0].mean(axis=1)
    some = np.sort(np.random.default_rng(n).choice(n, SAMPLE, replace=False))
    far = neighbors.NearestNeighbors(n_neighbors=K + 1).fit(rows[some]).kneighbors(rows)[0]
    # An object of the sample is its own nearest.
    own = np.zeros(n, bool)
    own[some] = True
    return np.where(own, far[:, 1:].mean(axis=1), far[:, :-1].mean(axis=1))

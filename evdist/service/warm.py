"""Compile the kernels of an algorithm before they are needed: ``evdist warm``.

numba compiles a kernel when it is first called and keeps it on disk, for this processor and this
version of evdist. A fit of a small table calls all the kernels that a fit of a large one calls.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from evdist.evclus.groups import SPARSE_FROM
from evdist.registry import ALGORITHMS
from evdist.service.config.algorithms import usual_name
from evdist.sketch.plane import plane

#: What most people call first.
USUAL = ("evclus", "ecm")
#: The algorithms whose first fit takes seconds longer than the second.
COMPILED = (*USUAL, "cecm", "bootclus", "eknnclus")
#: Clusters of the usual small fit.
_FEW = 4
#: Clusters of a fit whose rows are lists of clusters, with twenty objects each.
_MANY = SPARSE_FROM + 5


def warm(algorithm: str, *, many: bool = False) -> None:
    """Fit an algorithm, one of COMPILED, to a small table and place new rows.

    With `many`, EVCLUS is fitted with many clusters as well, which has kernels of its own. The
    fit says itself that it compiles, with a bar where there is a terminal.
    """
    algorithm = usual_name(algorithm)
    if algorithm not in COMPILED:
        raise ValueError(
            f"evdist warm compiles {', '.join(COMPILED)}; got {algorithm!r}. Other algorithms need "
            "no preparation."
        )
    _fit(algorithm, _FEW, 90)
    if algorithm == "evclus":  # the map of a report of four columns or more
        plane(np.random.default_rng(0).normal(size=(90, 4)), 90, "neighbours")
    if many and algorithm == "evclus":
        _fit(algorithm, _MANY, 20 * _MANY)


def _fit(algorithm: str, clusters: int, n: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) + 9.0 * rng.integers(0, clusters, size=(n, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for table in (X, X.astype(np.float32)):  # some kernels are compiled for either
            model = ALGORITHMS[algorithm].cls(clusters, random_state=0).fit(table)
        if hasattr(model, "predict_mass"):
            model.predict_mass(X[:3])

"""What every estimator of a credal partition does alike: read X, keep the answer, predict."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from evdist.data.inputs import load, refuse_bad_values, refuse_text
from evdist.estimators.callbacks import SweepCallbacks
from evdist.estimators.saved import SavedModel
from evdist.partition import CredalPartition

__all__ = ["CredalClusterer", "CredalEstimator"]


class CredalEstimator(SavedModel, SweepCallbacks):
    """Base of the clusterers and classifiers.

    A subclass has the parameters `max_iter` and `callbacks`, calls `_table` on what it was given,
    `_reporting` around its iterations and `_finish` with what they gave. One that places new
    objects has `predict_mass`; what it needs for that, and what else it has fitted, it tells by
    `_state` and takes back by `_set_state` (see `SavedModel`).
    """

    objective_: float
    history_: list[float]
    n_iter_: int
    converged_: bool
    #: What X may be; anything else becomes the first one.
    _table_types: tuple[type, ...] = (np.float64, np.float32)

    def _table(self, X: Any, **check: Any) -> NDArray[Any]:
        """X (array, frame, lazy array or path) as finite numbers, (n, d)."""
        X = load(X)
        refuse_text(X)
        X = validate_data(self, X, dtype=list(self._table_types), ensure_all_finite=False, **check)
        refuse_bad_values(X)
        return X

    def _finish(
        self,
        partition: CredalPartition,
        history: Sequence[float],
        converged: bool,
        *,
        sweeps: str = "iterations",
    ) -> None:
        """Set the fitted attributes that all have; warn when the iterations ran out.

        `history` holds the objective before the first and after every iteration.
        """
        self._keep_partition(partition)
        self.labels_ = partition.labels()
        self.history_ = [float(value) for value in history]
        self.objective_ = self.history_[-1]
        self.n_iter_ = len(self.history_) - 1
        self.converged_ = bool(converged)
        self._folder = None
        if not converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} {sweeps}; "
                "raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )


class CredalClusterer(CredalEstimator, ClusterMixin, BaseEstimator):
    """Base of the clusterers."""

    def predict(self, X: Any) -> Any:
        """Cluster of maximum plausibility of new objects: (rows,). Dask in, Dask out."""
        mass = self.predict_mass(X)
        return CredalPartition(mass, self.credal_partition_.focal_sets).labels()

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

from evdist.data.inputs import load, refuse_bad_values
from evdist.data.scale import LOOKED_AT, Scale, ScaleWarning, dwarfing, scale_of, some_rows
from evdist.estimators.callbacks import SweepCallbacks
from evdist.estimators.saved import SavedModel
from evdist.partition import CredalPartition

#: Metrics that are given dissimilarities, and those that bring columns to one scale by themselves.
_NO_COLUMNS = ("precomputed", "pairs")
_OWN_SCALE = ("mahalanobis", "hamming", "adaptive")


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
    #: Fitted with the parameter `scale`, where an estimator has it; None for columns as they are.
    _scale: Scale | None = None
    #: What X may be; anything else becomes the first one.
    _table_types: tuple[type, ...] = (np.float64, np.float32)

    def _table(self, X: Any, **check: Any) -> NDArray[Any]:
        """X (array, frame, lazy array or path) as finite numbers, (n, d)."""
        X = load(X, numeric=self._numeric)
        if not self._numeric:
            X = X if hasattr(X, "shape") else np.asarray(X)
            return validate_data(self, X, dtype=None, ensure_all_finite=False, **check)
        X = validate_data(self, X, dtype=list(self._table_types), ensure_all_finite=False, **check)
        refuse_bad_values(X)
        if hasattr(self, "scale"):
            X = self._scaled(X, fitted=not check.get("reset", True))
        return X

    def _scaled(self, X: NDArray[Any], fitted: bool) -> NDArray[Any]:
        """The columns on the scale asked for; a warning where none is, and one decides alone."""
        if not fitted:
            related = getattr(self, "metric", None) in _NO_COLUMNS
            if related and self.scale is not None:
                raise ValueError(
                    f"scale is for attributes; with metric={self.metric!r} leave it out."
                )
            self._scale = scale_of(self.scale, X)
            if self.scale is None and not related:
                self._tell_of_spreads(X)
        return X if self._scale is None else self._scale(X)

    def _tell_of_spreads(self, X: NDArray[Any]) -> None:
        if getattr(self, "metric", None) in _OWN_SCALE:
            return
        large, times = dwarfing(some_rows(X, LOOKED_AT).std(axis=0, dtype=np.float64))
        if len(large):
            names = getattr(self, "feature_names_in_", None)
            column = int(large[0]) if names is None else repr(str(names[large[0]]))
            more = f" (and {len(large) - 1} more)" if len(large) > 1 else ""
            warnings.warn(
                f"Column {column}{more} varies {times:,.0f} times as much as the others and "
                'decides alone. Bring the columns to one scale with scale="standard".',
                ScaleWarning,
                stacklevel=5,
            )

    @property
    def _numeric(self) -> bool:
        """Whether X must hold finite numbers: all but a callable metric need them."""
        return True

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = getattr(self, "metric", None) == "precomputed"
        tags.input_tags.sparse = False
        return tags

    def predict(self, X: Any) -> Any:
        """Cluster of maximum plausibility of new objects: (rows,). Dask in, Dask out."""
        mass = self.predict_mass(X)
        return CredalPartition(mass, self.credal_partition_.focal_sets).labels()

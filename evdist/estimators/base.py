"""What every estimator of a credal partition does alike: read X, keep the answer, predict."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from evdist.data.inputs import load, objects, refuse_bad_values
from evdist.data.scale import (
    LOOKED_AT,
    Scale,
    ScaleWarning,
    dwarfing,
    scale_of,
    some_rows,
    spreads,
)
from evdist.estimators.callbacks import SweepCallbacks
from evdist.estimators.checks import tell_of_copies
from evdist.estimators.saved import SavedModel
from evdist.partition import CredalPartition
from evdist.partition.ids import ids_of

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
        if check.get("reset", True):
            self._fitted_ids = ids_of(X)
        if not self._numeric:
            fitted = not check.get("reset", True) and getattr(self, "_of_elements", False)
            X = objects(X, elements=fitted)
            self._of_elements = X.ndim == 1
            if X.ndim == 1:  # elements, not rows: nothing for scikit-learn to look at
                return self._elements(X, **check)
            return validate_data(self, X, dtype=None, ensure_all_finite=False, **check)
        if sp.issparse(X) and self._takes_sparse:
            if getattr(self, "scale", None) is not None:
                raise ValueError("scale is for dense attributes: pass X.toarray() or leave it out.")
            return validate_data(self, X, accept_sparse="csr", dtype=np.float64, **check)
        X = validate_data(self, X, dtype=list(self._table_types), ensure_all_finite=False, **check)
        refuse_bad_values(X)
        related = getattr(self, "metric", None) in _NO_COLUMNS
        if check.get("reset", True) and not related:
            tell_of_copies(X, getattr(self, "n_clusters", None), self._least_different)
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
        large, times = dwarfing(spreads(some_rows(X, LOOKED_AT)))
        if len(large):
            names = getattr(self, "feature_names_in_", None)
            column = int(large[0]) if names is None else repr(str(names[large[0]]))
            more = f" (and {len(large) - 1} more)" if len(large) > 1 else ""
            warnings.warn(
                f"Column {column}{more} varies {times:,.0f} times as much as the others and "
                'dominates the distances. Scale the columns with scale="standard".',
                ScaleWarning,
                stacklevel=5,
            )

    #: Whether X may be a sparse matrix of attributes.
    _takes_sparse = False
    #: `_table` warns where X has fewer different rows than clusters, but at least so many. Where it
    #: has fewer still, the estimator's own checks refuse it.
    _least_different: float = 2

    def _elements(
        self, X: NDArray[Any], reset: bool = True, ensure_min_samples: int = 1
    ) -> NDArray[Any]:
        """Objects of any kind, (n,), that only a callable metric can read."""
        if len(X) < ensure_min_samples:
            raise ValueError(f"There must be at least {ensure_min_samples} objects, got {len(X)}.")
        if reset:
            self.n_features_in_ = 1
        return X

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
        partition = partition.with_ids(self.__dict__.pop("_fitted_ids", None))
        self._keep_partition(partition)
        self.labels_ = self._hard(partition)
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


class CredalClusterer(CredalEstimator, ClusterMixin, TransformerMixin, BaseEstimator):
    """Base of the clusterers; in a pipeline, what they pass on are masses."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = getattr(self, "metric", None) == "precomputed"
        tags.input_tags.sparse = self._takes_sparse
        tags.transformer_tags.preserves_dtype = []  # masses have a type of their own
        return tags

    def predict(self, X: Any) -> Any:
        """Cluster of maximum plausibility of new objects: (rows,). Dask in, Dask out.

        Parameters
        ----------
        X : (rows, d) array, data frame or Dask array
            New objects, as for `predict_mass`.
        """
        return self._hard(self.predict_partition(X))

    @property
    def probabilities_(self) -> Any:
        """How strongly each object belongs to its cluster, 0 to 1, as hdbscan says it; (n,).

        The largest pignistic probability, what is on the empty set left out; 0 for outliers.
        """
        check_is_fitted(self, "credal_partition_")
        partition = self.credal_partition_
        strength = np.asarray(partition.pignistic).max(axis=1)
        strength[np.asarray(partition.outliers())] = 0.0
        return strength

    @property
    def outlier_scores_(self) -> Any:
        """The mass of each object on the empty set, 0 to 1; (n,).

        See `evdist.metrics.outlier_scores` for scores that look at the distances as well.
        """
        check_is_fitted(self, "credal_partition_")
        return np.clip(1.0 - np.asarray(self.credal_partition_.pignistic).sum(axis=1), 0.0, 1.0)

    def score(self, X: Any, y: Any = None) -> float:
        """How definite the masses of new objects are: 1 - N* (k-CEVCLUS, eq. (23)), 0 to 1.

        Larger is better, as model selection wants it; `y` is ignored.

        Parameters
        ----------
        X : (rows, d) array, data frame or Dask array
            New objects, as for `predict_mass`.
        y : None
            Not used; model selection passes it.
        """
        return 1.0 - float(self.predict_partition(X).nonspecificity())

    def predict_partition(self, X: Any) -> CredalPartition:
        """The credal partition of new objects; the index of a data frame names them.

        Parameters
        ----------
        X : (rows, d) array, data frame or Dask array
            New objects, as for `predict_mass`.
        """
        ids = ids_of(X)
        return CredalPartition(self.predict_mass(X), self.credal_partition_.focal_sets, ids)

    def predict_proba(self, X: Any) -> Any:
        """Pignistic probabilities of new objects, (rows, c), which sum to 1. Dask in, Dask out.

        The mass of a set is shared equally by its clusters, and what is on the empty set by all
        in proportion.

        Parameters
        ----------
        X : (rows, d) array, data frame or Dask array
            New objects, as for `predict_mass`.
        """
        return self.predict_partition(X).probability

    def transform(self, X: Any) -> Any:
        """Masses of new objects on the focal sets, (rows, f): what :meth:`predict_mass` gives.

        `fit_transform` places the fitted objects as if they were new; their own masses are
        ``credal_partition_.mass``.

        Parameters
        ----------
        X : (rows, d) array, data frame or Dask array
            New objects, as for `predict_mass`.
        """
        return self.predict_mass(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of :meth:`transform`: mass_{0}, mass_{0,1}, ...

        Parameters
        ----------
        input_features : None
            Not used; scikit-learn passes it.
        """
        check_is_fitted(self, "credal_partition_")
        names = self.credal_partition_.focal_sets.names
        return np.array([f"mass_{name}" for name in names], dtype=object)

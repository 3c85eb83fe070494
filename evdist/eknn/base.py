"""What the evidential classifiers do alike: read X and y, decide, and keep their masses."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from evdist.belief import FocalSets, contour, pignistic
from evdist.data.inputs import load, refuse_bad_values, refuse_text
from evdist.engine.progress import Clock, Report
from evdist.estimators.callbacks import SweepCallbacks
from evdist.estimators.placing import RowMasses
from evdist.estimators.saved import SavedModel
from evdist.partition import CredalPartition

__all__ = ["EvidentialClassifier"]


class EvidentialClassifier(RowMasses, SavedModel, SweepCallbacks, ClassifierMixin, BaseEstimator):
    """Base of the classifiers.

    A subclass fits, calls `_finish`, and has `_masses(X)`: (rows, f) masses of checked rows.
    """

    classes_: NDArray
    objective_: float
    history_: list[float]
    n_iter_: int
    converged_: bool

    def _table(self, X: Any, **check: Any) -> NDArray[np.float64]:
        """X (array, frame, lazy array or path) as finite numbers, (n, d)."""
        X = load(X)
        refuse_text(X)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, **check)
        refuse_bad_values(X)
        return X

    def _targets(self, y: Any, n: int) -> NDArray[np.int32]:
        """Classes as numbers; sets `classes_`."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. "
                "Pass the classes of the objects."
            )
        y = column_or_1d(load(y), warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if len(y) != n:
            raise ValueError(f"y must have one class for each of the {n} objects, got {len(y)}.")
        self.classes_, number = np.unique(y, return_inverse=True)
        return number.astype(np.int32)

    def _clock(self, report: Report, rows: int) -> Clock:
        return Clock(report, "fit", self.max_iter, rows=rows)

    def _finish(
        self, mass: NDArray, focal_sets: FocalSets, history: Sequence[float], converged: bool
    ) -> None:
        """Set the fitted attributes that all have; warn when the iterations ran out."""
        self.credal_partition_ = CredalPartition(mass, focal_sets)
        self.labels_ = self.credal_partition_.labels()
        self.history_ = [float(value) for value in history]
        self.objective_ = self.history_[-1]
        self.n_iter_ = len(self.history_) - 1
        self.converged_ = bool(converged)
        self._folder = None
        if not converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations; "
                "raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # ------------------------------------------------------------------ on disk
    def _class_values(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "class_type": self.classes_.dtype.str}

    def _set_classes(self, values: dict[str, Any]) -> None:
        kind = np.dtype(values["class_type"])
        self.classes_ = np.array(values["classes"], dtype=kind)

    # ------------------------------------------------------------------ decisions
    def predict(self, X: Any) -> NDArray:
        """The class of maximum plausibility: (rows,)."""
        mass = np.asarray(self.predict_mass(X))
        best = contour(mass, self.credal_partition_.focal_sets).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Pignistic probabilities, the mass of a set split evenly among its classes: (rows, c)."""
        mass = np.asarray(self.predict_mass(X))
        return pignistic(mass, self.credal_partition_.focal_sets)

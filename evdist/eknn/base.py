"""What the evidential classifiers do alike: read X and y, decide, and keep their masses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from evdist.belief import contour, pignistic
from evdist.data.inputs import load
from evdist.engine.progress import Clock, Report
from evdist.estimators.base import CredalEstimator
from evdist.estimators.placing import RowMasses


class EvidentialClassifier(RowMasses, CredalEstimator, ClassifierMixin, BaseEstimator):
    """Base of the classifiers.

    A subclass fits, calls `_finish`, and has `_masses(X)`: (rows, f) masses of checked rows.
    """

    classes_: NDArray[Any]
    _table_types = (np.float64,)

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

    # ------------------------------------------------------------------ on disk
    def _class_values(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "class_type": self.classes_.dtype.str}

    def _set_classes(self, values: dict[str, Any]) -> None:
        kind = np.dtype(values["class_type"])
        self.classes_ = np.array(values["classes"], dtype=kind)

    # ------------------------------------------------------------------ decisions
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of maximum plausibility: (rows,).

        Parameters
        ----------
        X : (rows, d) array, data frame or Dask array
            New objects, as for `predict_mass`.
        """
        mass = np.asarray(self.predict_mass(X))
        best = contour(mass, self.credal_partition_.focal_sets).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Pignistic probabilities, the mass of a set split evenly among its classes: (rows, c).

        Parameters
        ----------
        X : (rows, d) array, data frame or Dask array
            New objects, as for `predict_mass`.
        """
        mass = np.asarray(self.predict_mass(X))
        return pignistic(mass, self.credal_partition_.focal_sets)

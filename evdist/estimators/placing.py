"""Masses of new objects for the estimators that compute them row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evdist.partition import CredalPartition
from evdist.partition.rows import is_dask, map_rows


class RowMasses:
    """`predict_mass` of an estimator that has `_masses(X)`: (rows, f) masses of checked rows.

    Each row of masses must depend on its own object alone.
    """

    credal_partition_: CredalPartition
    #: Type of the masses that `_masses` returns.
    _mass_type: type = np.float64
    _masses: Callable[[NDArray[Any]], NDArray[Any]]
    _table: Callable[..., NDArray[Any]]

    def predict_mass(self, X: Any) -> Any:
        """Mass functions of new objects: (rows, f). A Dask array gives a Dask array.

        With metric="precomputed", rows of X are dissimilarities to all fitted objects.

        Parameters
        ----------
        X : (rows, d) array, data frame or Dask array
            New objects, with the columns of the fitted ones; (rows, n) dissimilarities with
            metric="precomputed".
        """
        check_is_fitted(self, "credal_partition_")
        if is_dask(X) and hasattr(X, "map_blocks"):
            f = len(self.credal_partition_.focal_sets)
            return map_rows(self._predict_rows, X, width=f, dtype=self._mass_type)
        return self._masses(self._table(X, reset=False))

    def _predict_rows(self, rows: NDArray[Any], first: int) -> NDArray[Any]:
        return self._masses(self._table(rows, reset=False))

"""What the transformers share: rows in, features out, lazily for Dask."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from evdist.estimators.checks import integer
from evdist.partition.rows import is_dask, map_rows


class RowTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, metaclass=ABCMeta
):
    """A transformer whose features of an object depend on that object alone."""

    _n_features_out: int

    @abstractmethod
    def _features(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Features (rows, n_components) of rows that have been checked."""

    def _rows(self, X: Any) -> NDArray[Any]:
        return validate_data(self, X, reset=False, dtype=np.float64)

    def transform(self, X: Any) -> Any:
        """Features of objects, old or new, (rows, n_components); a Dask array gives a Dask array.

        Parameters
        ----------
        X : (rows, n_features_in_) array, data frame or Dask array
            The objects, with the columns of the fitted ones.
        """
        check_is_fitted(self)
        if is_dask(X) and hasattr(X, "rechunk"):
            return map_rows(self._transform_rows, X, width=self._n_features_out, dtype=float)
        return self._features(self._rows(X))

    def _transform_rows(self, rows: NDArray[Any], first: int) -> NDArray[np.float64]:
        return self._features(self._rows(rows))


def count_features(value: Any, most: int, reason: str) -> int:
    """n_components as given, or `most` where it is None; refused above `most`."""
    if value is None:
        return most
    if integer("n_components", value, 1) > most:
        raise ValueError(f"n_components must be at most {most} ({reason}), got {value}.")
    return int(value)

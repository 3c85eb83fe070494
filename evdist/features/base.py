"""What the transformers share: rows in, features out, lazily for Dask; and checks before work."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from numbers import Integral, Real
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from evdist.partition.rows import is_dask, map_rows

__all__ = ["RowTransformer", "check_count", "check_positive", "count_features", "refuse_beyond"]


class RowTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, metaclass=ABCMeta
):
    """A transformer whose features of an object depend on that object alone."""

    _n_features_out: int

    @abstractmethod
    def _features(self, X: NDArray) -> NDArray[np.float64]:
        """Features (rows, n_components) of rows that have been checked."""

    def _rows(self, X: Any) -> NDArray:
        return validate_data(self, X, reset=False, dtype=np.float64)

    def transform(self, X: Any) -> Any:
        """Features of objects, old or new, (rows, n_components); a Dask array gives a Dask array.

        Parameters
        ----------
        X : (rows, n_features_in_) array, data frame or Dask array
        """
        check_is_fitted(self)
        if is_dask(X) and hasattr(X, "rechunk"):
            return map_rows(self._transform_rows, X, width=self._n_features_out, dtype=float)
        return self._features(self._rows(X))

    def _transform_rows(self, rows: NDArray, first: int) -> NDArray[np.float64]:
        return self._features(self._rows(rows))


def check_count(name: str, value: Any) -> int:
    """A whole number from 1 on."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return int(value)


def check_positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}.")
    return float(value)


def count_features(value: Any, most: int, reason: str) -> int:
    """n_components as given, or `most` where it is None; refused above `most`."""
    if value is None:
        return most
    if check_count("n_components", value) > most:
        raise ValueError(f"n_components must be at most {most} ({reason}), got {value}.")
    return int(value)


def refuse_beyond(need: int, what: str, cure: str) -> None:
    """A MemoryError, before any work, where `need` bytes are more than are free."""
    there = psutil.virtual_memory().available
    if need > there:
        raise MemoryError(
            f"{what} needs about {need / 1e9:.1f} GB, but {there / 1e9:.1f} GB are free. {cure}"
        )

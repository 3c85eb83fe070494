"""Mixed tables for estimators: categories, dates and missing values become comparable numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from evdist.data.encode import Encoding, fit_encoding
from evdist.data.tables import as_frame
from evdist.estimators.checks import one_of


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode numbers, categories, dates and missing values as numbers; see `evdist.data.encode`.

    A category counts as one column: objects of different levels are as far apart as two random ones
    are in a number, and levels of less than one object in a hundred are one. A missing number
    or date becomes the median of its column; a missing or new category equals none of the levels. A
    data frame becomes a data frame with the same index, so ids pass through a pipeline.

    Parameters
    ----------
    scale : {"standard", "robust", "gower"}, default="standard"
        Mean and standard deviation; median and interquartile range; or the range, with which
        ``metric="cityblock"`` is Gower's dissimilarity.
    categories : sequence of str, default=()
        Columns whose numbers are names, such as postal codes.
    drop_ids : bool, default=False
        Leave out columns of text that name objects, such as those with more than a hundred levels;
        otherwise they are refused, all of them in one error.

    Attributes
    ----------
    encoding_ : Encoding
        `encoding_.columns` says of each column what it was taken for.
    n_features_in_, feature_names_in_
        Of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from evdist import ECM
    >>> from evdist.features import TableEncoder
    >>> table = pd.DataFrame({"age": [30, 31, None, 70], "city": ["Oslo", "Oslo", "Rome", "Rome"]})
    >>> TableEncoder().fit(table).get_feature_names_out()
    array(['age', 'city=Oslo', 'city=Rome'], dtype=object)
    >>> model = make_pipeline(TableEncoder(), ECM(2, random_state=0)).fit(table)
    """

    def __init__(
        self,
        *,
        scale: str = "standard",
        categories: Sequence[str] = (),
        drop_ids: bool = False,
    ):
        self.scale = scale
        self.categories = categories
        self.drop_ids = drop_ids

    def fit(self, X: Any, y: Any = None) -> Self:
        """Look at the columns of a table, (n, d).

        Parameters
        ----------
        X : data frame or (n, d) array
            The table; values may be missing.
        y : None
            Not used; pipelines pass it.
        """
        scale: Any = one_of("scale", self.scale, ("standard", "robust", "gower"))
        frame = self._frame(X, reset=True)
        self.encoding_: Encoding = fit_encoding(
            [frame], scale, list(self.categories), bool(self.drop_ids)
        )
        return self

    def transform(self, X: Any) -> Any:
        """The rows as numbers: a data frame for a data frame, else an array.

        Parameters
        ----------
        X : data frame or (rows, d) array
            Rows with the columns of the fitted table.
        """
        check_is_fitted(self, "encoding_")
        frame = self._frame(X, reset=False)
        rows = self.encoding_(frame)
        if not isinstance(as_frame(X), pd.DataFrame):
            return rows
        return pd.DataFrame(rows, index=frame.index, columns=self.encoding_.names)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of numbers: "age", "city=Oslo", ...

        Parameters
        ----------
        input_features : None
            Not used; scikit-learn passes it.
        """
        check_is_fitted(self, "encoding_")
        return np.array(self.encoding_.names, dtype=object)

    def _frame(self, X: Any, reset: bool) -> pd.DataFrame:
        X = as_frame(X)
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if X.shape[0] == 0 or X.shape[1] == 0:
                raise ValueError(f"X must have rows and columns, got shape {X.shape}.")
            return X.set_axis([str(name) for name in X.columns], axis=1)
        X = check_array(X, dtype=None, ensure_all_finite="allow-nan", estimator=self)
        validate_data(self, X, reset=reset, skip_check_array=True)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        return frame.infer_objects()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

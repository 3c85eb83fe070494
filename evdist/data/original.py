"""The rows of a stored data set in the units of the table that they came from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evdist.data.dataset import Dataset
from evdist.data.encode import Encoding


class OriginalTable:
    """A table that reads the rows that it is asked for: `frame`.

    Filled gaps hold what they were filled with, and rare levels their common name.
    """

    def __init__(self, data: Dataset) -> None:
        self._rows = data.X
        self._encoding = Encoding.of_json(data.encoding)
        encoded = None if self._encoding is None else [one.name for one in self._encoding.used]
        names = encoded or data.columns
        self.columns = names or [f"attribute {j}" for j in range(data.d)]
        self.named = names is not None
        self.shape = (data.n, len(self.columns))

    def frame(self, rows: NDArray[Any]) -> pd.DataFrame:
        """Some rows, ascending, under the names of their columns."""
        values = np.asarray(self._rows.oindex[np.asarray(rows), :])
        if self._encoding is None:
            return pd.DataFrame(values, columns=self.columns)
        return self._encoding.original(values)

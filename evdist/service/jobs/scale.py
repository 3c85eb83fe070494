"""Columns brought to one scale: fitted once, kept with the job, applied to new objects alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evdist.data.dataset import Dataset
from evdist.service.jobs.check import Finding

__all__ = ["Scale", "fit_scale"]

#: Rows that medians and quartiles are taken from, at most; more change the third digit.
_SAMPLE = 1_000_000


# Not scikit-learn's scalers: the check of the data has the moments already, from parallel chunks,
# a fitted scale is JSON in the manifest, and StandardScaler.partial_fit gives other bits.
@dataclass(frozen=True)
class Scale:
    """(x - centre) / spread, column by column; both (d,)."""

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]

    def __call__(self, X: NDArray) -> NDArray:
        """Scaled rows, of the type that they had."""
        return ((X - self.centre) / self.spread).astype(X.dtype, copy=False)

    def to_json(self) -> dict[str, Any]:
        return {"centre": self.centre.tolist(), "spread": self.spread.tolist()}

    @classmethod
    def of_json(cls, values: dict[str, Any] | None) -> Scale | None:
        if values is None:
            return None
        return cls(np.array(values["centre"]), np.array(values["spread"]))


def fit_scale(
    kind: Literal["standard", "robust", "gower"] | None, data: Dataset, found: Finding
) -> Scale | None:
    """ "standard": mean and standard deviation; "robust": median and interquartile range.

    A column without spread is left as it is, but for its centre.
    """
    if kind is None:
        return None
    if kind == "standard":
        return Scale(found.mean, _or_one(found.spread))
    step = -(-data.n // _SAMPLE)
    rows = np.concatenate([block[(-first) % step :: step] for first, block in data.blocks()])
    low, centre, high = np.quantile(rows.astype(np.float64), [0.25, 0.5, 0.75], axis=0)
    spread = high - low
    # Half of a column may be one value: then its standard deviation must do.
    return Scale(centre, _or_one(np.where(spread > 0, spread, found.spread)))


def _or_one(spread: NDArray) -> NDArray:
    return np.where(spread > 0, spread, 1.0)

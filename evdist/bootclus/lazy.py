"""Bootclus of data that are never in one place: fitted to a sample, all objects placed lazily.

Every replicate is a weighted fit to all rows, so a fit costs as many passes over the data as EM
takes iterations for each of them: that is for data in memory. Of a Dask array, or of a file larger
than memory, a random sample is drawn; the mixture, its replicates and the masses are those of the
sample, and an object is placed against it when its masses are looked at, as a new object is.

Differs: intervals are those of a mixture that was fitted to as many objects as the sample has. They
hold as often as `confidence` says, but are wider than those of all objects would be.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.bootclus.intervals import Intervals
from evdist.bootclus.solver import Placement
from evdist.data.inputs import refuse_bad_values
from evdist.partition.rows import map_rows

#: Rows of the sample: with 500 replicates a fit takes about a minute on two cores.
SAMPLE = 1 << 16


class Sampled:
    """A Bootclus that may have been fitted to a sample."""

    #: Numbers and masses of the objects that were fitted, where these are a sample.
    _sampled: tuple[NDArray[np.int64], NDArray[np.float32]] | None = None


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows of a table: `numbers` (m,) rising, the rows `X` (m, d), and the whole table."""

    table: Any
    numbers: NDArray[np.int64]
    X: NDArray[np.float64]

    @classmethod
    def of(cls, table: Any, seed: int, client: Any) -> Sample:
        """A random sample of the rows of a Dask array, read chunk by chunk."""
        n = table.shape[0]
        rng = np.random.default_rng([seed, 43, n])
        numbers = np.sort(rng.choice(n, min(SAMPLE, n), replace=False))
        some = table[numbers]
        found = some.compute() if client is None else client.compute(some, retries=3).result()
        X = np.require(found, float, ["C", "W"])
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if bad.size:  # named by its row in the table
            refuse_bad_values(X[bad[:1]], int(numbers[bad[0]]))
        warnings.warn(
            f"Bootclus is fitted to {len(X):,} of these {n:,} rows, drawn at random; masses of all "
            "rows are computed when they are looked at. The intervals are as wide as those of "
            f"{len(X):,} objects. To choose the sample, fit it and predict the others.",
            stacklevel=3,
        )
        return cls(table, numbers, X)

    def masses(self, placement: Placement) -> Any:
        """Masses of all rows of the table, (n, f), computed where they are looked at."""
        function = partial(_placed, placement=placement)
        width = len(placement.focal_sets)
        return map_rows(function, self.table, width=width, dtype=np.float32)

    def intervals(self, found: Intervals) -> Intervals:
        """Intervals of pairs of the sample, with the numbers of their objects in the table."""
        i, j = (self.numbers[part].astype(np.uint32) for part in (found.i, found.j))
        return Intervals(i, j, found.lower, found.upper)


def _placed(rows: NDArray[Any], first: int, placement: Placement) -> NDArray[np.float32]:
    refuse_bad_values(rows, first)
    return placement(np.require(rows, float, ["C", "W"]))

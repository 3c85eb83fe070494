"""Any number of pairs of objects, kept as a two-dimensional histogram.

Symbols
-------
delta   transformed dissimilarity of a pair, >= 0 (1: surely apart)
kappa   degree of conflict of the pair's mass functions, in [0, 1]
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Even, so that two neighbouring cells can be merged when the range doubles.
CELLS = 128
#: Pairs counted at a time, so that temporaries stay at some tens of megabytes.
BLOCK = 1 << 20
#: Rounding in float32 may carry a conflict of 1 this far beyond 1.
SLACK = 1e-5


@dataclass
class PairDensity:
    """How many pairs fall in each cell of the (delta, kappa) plane.

    Counts can be gathered block by block with :meth:`add`, also on several workers, and put
    together with :meth:`merge`. The delta axis starts as [0, 1] and doubles whenever a larger
    value comes, two cells becoming one, so no pass over the data is needed to find its range.

    Attributes
    ----------
    counts : (128, 128) int64 array
        Pairs in each cell, delta along rows, kappa along columns.
    top : float
        Upper end of the delta axis, a power of two.
    squared_error : float
        Sum over pairs of (kappa - delta)^2.

    Examples
    --------
    >>> from evdist.plot import PairDensity, shepard
    >>> density = PairDensity()
    >>> for delta, kappa in (([0.1, 0.9], [0.0, 1.0]), ([0.5], [0.4])):  # block by block
    ...     density = density.add(delta, kappa)
    >>> int(density.counts.sum())
    3
    >>> ax = shepard(density)
    """

    counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((CELLS, CELLS), dtype=np.int64)
    )
    top: float = 1.0
    squared_error: float = 0.0

    @property
    def n_pairs(self) -> int:
        """Number of pairs counted so far."""
        return int(self.counts.sum())

    @property
    def stress(self) -> float:
        """Mean of (kappa - delta)^2 over the pairs; 0 when there is none."""
        return self.squared_error / max(self.n_pairs, 1)

    def add(self, delta: ArrayLike, kappa: ArrayLike) -> PairDensity:
        """Count the pairs of one block; both arrays have the same shape. Returns itself.

        Parameters
        ----------
        delta, kappa : arrays of one shape
            Transformed dissimilarity and degree of conflict of each pair.
        """
        delta, kappa = np.ravel(delta), np.ravel(kappa)
        if delta.shape != kappa.shape:
            raise ValueError(
                f"delta and kappa must name the same pairs, got {delta.size} and {kappa.size}."
            )
        for start in range(0, delta.size, BLOCK):
            d = delta[start : start + BLOCK].astype(float)
            kap = kappa[start : start + BLOCK].astype(float)
            _refuse_outside(d, 0.0, np.finfo(float).max, "delta", start)
            _refuse_outside(kap, -SLACK, 1.0 + SLACK, "kappa", start)
            while d.max() > self.top * (1.0 + SLACK):
                self._double()
            cell = _cell(d / self.top) * CELLS + _cell(kap)
            self.counts += np.bincount(cell, minlength=CELLS**2).reshape(CELLS, CELLS)
            self.squared_error += float(((kap - d) ** 2).sum())
        return self

    def merge(self, other: PairDensity) -> PairDensity:
        """The density of the pairs of both, as a new object.

        Parameters
        ----------
        other : PairDensity
            That of other pairs.
        """
        top = max(self.top, other.top)
        total = PairDensity(top=top, squared_error=self.squared_error + other.squared_error)
        for part in (self, other):
            part = PairDensity(part.counts.copy(), part.top)
            while part.top < top:
                part._double()
            total.counts += part.counts
        return total

    def _double(self) -> None:
        halves = self.counts.reshape(CELLS // 2, 2, CELLS).sum(axis=1)
        self.counts = np.concatenate([halves, np.zeros_like(halves)])
        self.top *= 2.0


def _cell(unit: NDArray[np.float64]) -> NDArray[np.int64]:
    """Cell 0..CELLS-1 of values in [0, 1]; the last cell holds 1 itself."""
    return np.clip((unit * CELLS).astype(np.int64), 0, CELLS - 1)


def _refuse_outside(
    values: NDArray[np.float64], low: float, high: float, name: str, start: int
) -> None:
    good = (values >= low) & (values <= high)  # false for NaN too
    if not good.all():
        row = int(np.argmin(good))
        must = "be finite and not negative" if name == "delta" else "lie in [0, 1]"
        raise ValueError(
            f"{name} must {must}, got {values[row]} for pair {start + row}. "
            "Compare transformed dissimilarities with degrees of conflict."
        )

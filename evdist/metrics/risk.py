"""Risk and coverage: how wrong the labels are among the objects that a partition is surest of.

Objects are taken from the surest on. The *coverage* is the share taken, the *risk* the share of
wrong labels among them; the area under that curve is small when errors come last (El-Yaniv and
Wiener, On the foundations of noise-free selective classification, 2010; Geifman, Uziel and
El-Yaniv, Bias-reduced uncertainty estimation, 2019).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.partition import CredalPartition
from evdist.partition.calibrate import wrong

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """What `risk_coverage` gives: the curve and its area.

    Attributes
    ----------
    coverage, risk : (n,) arrays
        After 1, 2, ..., n objects; equally sure ones share their errors evenly, so that their
        order does not matter.
    score : (n,) array
        That of the object taken last, falling.
    area : float
        Mean risk over the coverages; the error rate itself when the score tells nothing.
    decided : (float, float)
        Coverage and risk of the sure members at `level`; risk is NaN if there are none.
    level : float
        The level of `decided`.
    """

    coverage: Floats
    risk: Floats
    score: Floats
    area: float
    decided: tuple[float, float]
    level: float

    def __repr__(self) -> str:
        cover, risk = self.decided
        return (
            f"RiskCoverage(area={self.area:.4f}, error={self.risk[-1]:.4f}, at level "
            f"{self.level:.2f}: coverage={cover:.3f}, risk={risk:.4f})"
        )

    def coverage_at(self, risk: float) -> float:
        """The largest coverage with at most this risk, 0 where there is none.

        Parameters
        ----------
        risk : float
            The largest risk allowed.
        """
        good = np.flatnonzero(self.risk <= risk)
        return float(self.coverage[good[-1]]) if len(good) else 0.0


def risk_coverage(
    partition: CredalPartition,
    y: ArrayLike,
    *,
    score: ArrayLike | None = None,
    level: float | None = None,
) -> RiskCoverage:
    """Risk and coverage of the labels of a partition against known classes.

    A label is wrong when its cluster is matched to another class, by the one-to-one matching with
    the fewest errors. Posterior probabilities of any other model can be compared through
    ``CredalPartition.from_fuzzy``.

    Parameters
    ----------
    partition : CredalPartition of n objects
        The partition to judge.
    y : (n,) classes
        The known class of each object.
    score : (n,) array, optional
        How sure an object is; by default ``partition.margin()``.
    level : float, optional
        Of the decisions that are marked on the curve; by default the partition's own.
    """
    y = np.asarray(y)
    if y.shape != (partition.n_objects,) or not y.size:
        raise ValueError(
            f"y must hold one class for each of the {partition.n_objects} objects, at least one; "
            f"got shape {y.shape}."
        )
    sure = np.asarray(partition.margin() if score is None else score, dtype=np.float64)
    if sure.shape != y.shape:
        raise ValueError(f"score must have shape {y.shape}, got {sure.shape}.")
    error = wrong(partition.labels(), y, partition.n_clusters)
    order = np.argsort(-sure, kind="stable")
    ranked = sure[order]
    # Objects that are equally sure: each counts as the mean error of them all.
    group = np.concatenate([[0], np.cumsum(ranked[1:] != ranked[:-1])])
    mean = np.bincount(group, weights=error[order]) / np.bincount(group)
    taken = np.arange(1, len(y) + 1)
    risk = np.cumsum(mean[group]) / taken
    decided = partition.decide(level)
    kept = np.asarray(decided.sure)
    return RiskCoverage(
        coverage=taken / len(y),
        risk=risk,
        score=ranked,
        area=float(risk.mean()),
        decided=(float(kept.mean()), float(error[kept].mean()) if kept.any() else float("nan")),
        level=decided.level,
    )

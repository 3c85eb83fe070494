"""A level of decision from what is known of a few objects, with the uncertainty of the estimate.

The known objects are drawn into two parts. On the first the clusters are matched to the classes and
a level is chosen, on the second its risk is measured: a choice looks good on the objects that it
was chosen by, whatever it is worth.

What is promised, for known objects that are a random sample of those that are judged (R(q) is the
share of wrong ones among all that are sure at the level q, with the matching of the first part):

* A level chosen on the first part is fixed when the second is looked at. Of its k sure objects S
  are wrong, S ~ Binomial(k, R): Clopper and Pearson (1934), R <= `bound` with probability 95 %.
* With `confidence`, the first part also fixes a sequence of levels q_1 >= q_2 >= ... The second
  tests them in turn, H_j: R(q_j) > risk, each at the level 1 - confidence, and stops at the first
  that it cannot reject. Let q_i be the first level of the sequence with a true H_i. A level with
  R > risk can only be taken if H_i was rejected, whose probability is at most 1 - confidence: no
  correction for their number (fixed sequence; Angelopoulos, Bates, Candes, Jordan and Lei, Learn
  then test, 2021, section 2.3).

Symbols
-------
r     (k,) doubt of the objects that are known: p_2 / (p_1 + p_2), see `evdist.partition.decisions`
e     (k,) 1 where the cluster of an object is matched to another class than its own, else 0; what
      another partition bets against the match, where that stands for the classes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.partition import decisions, views
from evdist.partition.rows import map_rows, select_rows

Floats = NDArray[np.float64]

#: How often `bound` holds.
CONFIDENCE = 0.95
#: Levels that are tested in turn at most.
_STEPS = 50


@dataclass(frozen=True)
class Calibration:
    """A level, and what known objects say about it that did not choose it.

    Attributes
    ----------
    level : float
        For ``partition.decide(level)``; 1 where no level keeps the risk.
    risk : float
        Share of wrong ones among the sure objects of the second part; NaN if none is sure.
    bound : float
        Upper end of the risk at 95 % confidence, or at the `confidence` asked for, then at most the
        risk asked for: with k sure objects that are all right it is still 1 - .05^(1/k), such as
        3 % for 100. 1 where nothing can be said.
    n_known, n_sure : int
        Objects of the second part that are no outliers, and those of them that are sure at the
        level.
    n_chosen : int
        Objects of the first part, by which clusters were matched and the level was chosen.
    confidence : float
    """

    level: float
    risk: float
    bound: float
    n_known: int
    n_sure: int
    n_chosen: int = 0
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        if not self.n_sure:
            return (
                f"level {self.level:.3f}, chosen by {self.n_chosen:,} known objects: none of "
                f"{self.n_known:,} others is sure, so nothing is known of its risk"
            )
        return (
            f"level {self.level:.3f}, chosen by {self.n_chosen:,} known objects: {self.n_sure:,} "
            f"of {self.n_known:,} others are sure, {self.risk:.1%} of them wrong "
            f"({100 * self.confidence:g} % confidence: at most {self.bound:.1%})"
        )


def calibrate(
    partition: Any, labels: Any, risk: float, confidence: float | None, random_state: int
) -> Calibration:
    """See :meth:`CredalPartition.calibrate`."""
    if not 0.0 <= risk < 1.0:
        raise ValueError(f"risk must lie in [0, 1), got {risk}.")
    if confidence is not None and not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, such as 0.95, got {confidence}.")
    n, other = int(partition.mass.shape[0]), None
    if hasattr(labels, "focal_sets"):
        if labels.mass.shape[0] != n:
            raise ValueError(
                f"The other partition must be of the same {n} objects, it has "
                f"{labels.mass.shape[0]}."
            )
        rows, y, other = np.arange(n), np.asarray(labels.labels()), labels
    else:
        rows, y, _ = known_rows(labels, n)
    part = type(partition)(select_rows(partition.mass, rows), partition.focal_sets)
    r = np.asarray(part._view(decisions.second_doubt, None))
    cluster = np.asarray(part.labels("pignistic"))
    kept = ~np.asarray(part.outliers())
    cluster, y, r, rows = cluster[kept], y[kept], r[kept], rows[kept]
    first = first_part(len(rows), random_state)
    to = match(cluster[first], y[first], partition.n_clusters)[cluster]
    e = (to != y).astype(np.float64) if other is None else _lost_bets(other, rows, to)
    if confidence is None:
        return calibrated(r, e, first, risk)
    return certified(r, e, first, risk, confidence)


def _lost_bets(other: Any, rows: NDArray[np.int64], to: NDArray[np.int64]) -> Floats:
    """What another partition bets against the cluster of each object; 1 where it has none."""
    bet = partial(bets, focal=other.focal_sets, cluster=np.maximum(to, 0))
    found = map_rows(bet, select_rows(other.mass, rows), width=2, dtype=float)
    right, total = np.asarray(found).T
    right = right * (to >= 0)
    return 1.0 - np.divide(right, total, out=np.zeros_like(right), where=total > 0)


def known_rows(labels: Any, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Objects, numbers of their classes, and the classes in the order of these numbers.

    From {object: class}, or from (n,) labels with -1 for unknown ones.
    """
    if isinstance(labels, Mapping):
        rows = np.array(list(labels), dtype=np.int64)
        known = np.array(list(labels.values()))
        if rows.size and not (0 <= rows.min() and rows.max() < n):
            raise ValueError(f"labels must name objects 0..{n - 1}, got {rows.min()}..{rows.max()}")
        order = np.argsort(rows)  # a mapping says nothing by its order
        rows, known = rows[order], known[order]
    else:
        y = np.asarray(labels)
        if y.shape != (n,):
            raise ValueError(
                f"labels must be a mapping of objects to classes, or one label for each of the "
                f"{n} objects with -1 for unknown ones, got shape {y.shape}."
            )
        rows = np.arange(n) if y.dtype.kind in "OUSb" else np.flatnonzero(y != -1)
        known = y[rows]
    if not rows.size:
        raise ValueError("labels name no object: give the class of a few.")
    classes, y = np.unique(known, return_inverse=True)
    return rows, y, classes


def match(cluster: NDArray[Any], y: NDArray[Any], n_clusters: int) -> NDArray[np.int64]:
    """The class of each cluster by the one-to-one matching with the fewest errors; (c,).

    A cluster for which no class is left has -1.
    """
    from scipy.optimize import linear_sum_assignment  # half a second, for this alone

    table = np.zeros((n_clusters, int(y.max(initial=-1)) + 1))
    np.add.at(table, (cluster, y), 1)
    found = np.full(n_clusters, -1, dtype=np.int64)
    clusters, classes = linear_sum_assignment(-table)
    found[clusters] = classes
    return found


def wrong(cluster: ArrayLike, y: ArrayLike, n_clusters: int) -> NDArray[np.bool_]:
    """Objects whose cluster is not matched to their class, see :func:`match`; (n,)."""
    cluster, y = np.asarray(cluster), np.unique(np.asarray(y), return_inverse=True)[1]
    return match(cluster, y, n_clusters)[cluster] != y


def bets(
    m: NDArray[Any], first: int, focal: FocalSets, cluster: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Pignistic probability of one cluster of each object, and the sum of all; (b, 2).

    `cluster` is that of every object of the table, `first` the first one of the block.
    """
    p = np.ascontiguousarray(views.pignistic(m, focal))
    rows = np.arange(len(m))
    return np.column_stack([p[rows, cluster[first + rows]], p.sum(axis=1)])


def first_part(n: int, random_state: Any) -> NDArray[np.bool_]:
    """Which of n known objects choose, the larger half at random; the others measure; (n,)."""
    chosen = np.zeros(n, dtype=bool)
    chosen[np.random.default_rng(random_state).permutation(n)[: (n + 1) // 2]] = True
    return chosen


def calibrated(r: Floats, e: Floats, first: NDArray[np.bool_], risk: float) -> Calibration:
    """The level that the `first` objects choose, and its risk among the others."""
    level = pick_level(r[first], e[first], risk)
    return _measured(level, r, e, first, CONFIDENCE)


def certified(
    r: Floats, e: Floats, first: NDArray[np.bool_], risk: float, confidence: float
) -> Calibration:
    """The lowest level whose risk is at most `risk` with this confidence, by tests in turn.

    The sequence begins at the level that the first part thinks most likely to pass, the one with
    the least upper bound, and goes on to lower ones.
    """
    taken, passed = _measured(1.0, r, e, first, confidence), 1.0
    for level in _sequence(r[first], e[first], confidence):
        found = _measured(level, r, e, first, confidence)
        if found.bound > risk:
            break
        taken, passed = found, risk
    # Of the level that is taken the bound is the one tested: its own was looked at to take it.
    return replace(taken, bound=passed)


def _sequence(r: Floats, e: Floats, confidence: float) -> list[float]:
    """Levels to be tested in turn, falling, from the objects of the first part."""
    r, e = _ranked(r, e)
    if not len(r):
        return []
    errors = np.cumsum(e)
    k = np.flatnonzero(np.append(r[1:] > r[:-1], True)) + 1  # ties stay together
    binary = bool(np.isin(e, (0.0, 1.0)).all())
    bounds = [upper_bound(float(errors[j - 1]), int(j), confidence, binary) for j in k]
    k = k[int(np.argmin(bounds)) :]
    steps = np.linspace(0, len(k) - 1, min(_STEPS, len(k))).round().astype(int)
    return [_between(r, int(j)) for j in k[steps]]


def pick_level(r: Floats, e: Floats, risk: float) -> float:
    """The lowest level at which the mean error of the sure objects, r < 1 - level, keeps `risk`.

    Levels that no known object parts are not told apart: the level lies midway between the doubt
    of the last object that is sure and that of the next. 1 where there is none.
    """
    r, e = _ranked(r, e)
    share = np.cumsum(e) / np.arange(1, len(e) + 1)
    last = np.append(r[1:] > r[:-1], True) if len(r) else np.zeros(0, bool)  # ties stay together
    good = np.flatnonzero((share <= risk) & last)
    return _between(r, int(good[-1]) + 1) if len(good) else 1.0


def _ranked(r: Floats, e: Floats) -> tuple[Floats, Floats]:
    """From the least doubt on, without those of a doubt of one half, which are sure at no level."""
    order = np.argsort(r, kind="stable")
    order = order[r[order] < 0.5]
    return r[order], e[order]


def _between(r: Floats, k: int) -> float:
    """The level at which the first k of the ascending doubts r are sure, the next one not."""
    edge = 0.5 if k == len(r) else (r[k - 1] + r[k]) / 2
    return float(min(1.0, max(0.5, 1.0 - edge)))


def _measured(
    level: float, r: Floats, e: Floats, first: NDArray[np.bool_], confidence: float
) -> Calibration:
    """Risk of the level among the objects of the second part."""
    sure = e[~first & (r < 1.0 - level)]
    k, errors = len(sure), float(sure.sum())
    return Calibration(
        level=level,
        risk=errors / k if k else float("nan"),
        bound=upper_bound(errors, k, confidence, bool(np.isin(e, (0.0, 1.0)).all())),
        n_known=int((~first).sum()),
        n_sure=k,
        n_chosen=int(first.sum()),
        confidence=confidence,
    )


def upper_bound(errors: float, k: int, confidence: float, binary: bool) -> float:
    """Upper end of the mean R of k independent errors between 0 and 1, from their sum.

    `binary` errors are 0 or 1: Clopper and Pearson, from the binomial distribution. For others
    Hoeffding (1963), theorem 1, P(mean <= a) <= exp(-k KL(a, R)) for a < R, solved for R.
    """
    from scipy.special import betaincinv, rel_entr  # half a second, for this alone

    if errors >= k:
        return 1.0
    if binary:
        return float(betaincinv(errors + 1.0, k - errors, confidence))
    share, enough = errors / k, -np.log1p(-confidence) / k
    low, high = share, 1.0
    for _ in range(60):  # the divergence grows with R
        mid = (low + high) / 2
        apart = rel_entr(share, mid) + rel_entr(1.0 - share, 1.0 - mid)
        low, high = (mid, high) if apart < enough else (low, mid)
    return float(high)

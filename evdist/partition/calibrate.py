"""A level of decision from what is known of a few objects, with the uncertainty of the estimate.

Symbols
-------
r     (k,) doubt of the objects that are known: p_2 / (p_1 + p_2), see `evdist.partition.decisions`
e     (k,) 1 where the cluster of an object is matched to another class than its own, else 0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.partition import views

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """A level, and what the known objects say about it.

    Attributes
    ----------
    level : float
        For ``partition.decide(level)``; 1 where no level keeps the risk.
    risk : float
        Share of wrong ones among the known objects that are sure at the level; NaN if none is.
    bound : float
        Upper end of the risk at 95 % confidence (Clopper and Pearson): with k known objects that
        are all right it is still 1 - .05^(1/k), such as 3 % for 100.
    n_known, n_sure : int
        Known objects that are no outliers, and those of them that are sure at the level.
    """

    level: float
    risk: float
    bound: float
    n_known: int
    n_sure: int

    def __str__(self) -> str:
        return (
            f"level {self.level:.3f}: {self.n_sure:,} of {self.n_known:,} known objects are sure, "
            f"{self.risk:.1%} of them wrong (95 % confidence: at most {self.bound:.1%})"
        )


def known_rows(labels: Any, n: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Objects and classes from {object: class}, or from (n,) labels with -1 for unknown ones."""
    if isinstance(labels, Mapping):
        rows = np.array(list(labels), dtype=np.int64)
        known = np.array(list(labels.values()))
        if rows.size and not (0 <= rows.min() and rows.max() < n):
            raise ValueError(f"labels must name objects 0..{n - 1}, got {rows.min()}..{rows.max()}")
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
    return rows, np.unique(known, return_inverse=True)[1]


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


def pick_level(r: Floats, e: Floats, risk: float) -> Calibration:
    """The lowest level at which the mean error of the sure objects, r < 1 - level, keeps `risk`.

    Levels that no known object parts are not told apart: the level lies midway between the doubt
    of the last object that is sure and that of the next.
    """
    from scipy.special import betaincinv  # as above

    order = np.argsort(r, kind="stable")
    r, e = r[order], e[order]
    share = np.cumsum(e) / np.arange(1, len(e) + 1)
    last = np.append(r[1:] > r[:-1], True) if len(r) else np.zeros(0, bool)  # ties stay together
    good = np.flatnonzero((share <= risk) & last)
    if not len(good):
        return Calibration(1.0, float("nan"), 1.0, len(r), 0)
    k = int(good[-1]) + 1
    edge = 0.5 if k == len(r) else (r[k - 1] + r[k]) / 2
    errors = float(e[:k].sum())
    bound = 1.0 if errors >= k else float(betaincinv(errors + 1.0, k - errors, 0.95))
    return Calibration(float(min(1.0, max(0.5, 1.0 - edge))), errors / k, bound, len(r), k)

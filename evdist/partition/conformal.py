"""Conformal sets of clusters: how many clusters an object's set must name to hold the right one.

Clusters have no labels to calibrate on, so labels are drawn from soft ones: split conformal
clustering with stochastic labels (Hur, Nath and Allen, Inference for clustering: conformal sets for
cluster labels, arXiv 2604.03488, 2026; weighted: Nath, Hur and Allen, arXiv 2606.00436). Of both
only the abstracts were at hand: what follows is derived here.

Symbols
-------
q     (n, c) soft labels: normalised pignistic probabilities of the model that makes the sets
g     (m, c) distribution of the label of a calibration object: q itself, that of another model, or
      1 for the cluster that was drawn or is known
s     (n, c) scores: how strange it would be if the object belonged to the cluster
w     (m,) weights of the calibration objects, v that of a new one; all 1 without a shift
t     threshold; the set of an object holds the clusters with s <= t

Statement
---------
Let the functions x -> q(x), g(x) be fixed (fitted to other objects), and let X_1, ..., X_m and a
new X be exchangeable. A label Y~ of X is drawn from g(X). With

    t = the least t with  sum_i w_i sum_k g_ik [s_ik <= t]  >=  (1 - alpha) (sum_i w_i + v)   (1)

the set C(X) = {k : s_k(X) <= t} holds Y~ with probability at least 1 - alpha.

Proof, weights 1. L_i(t) = sum_k g_ik [s_ik > t] is the probability that a set with threshold t
misses the label of object i. It lies in [0, 1], never rises with t and is continuous from the
right. Let t* be the least t with sum_{i <= m+1} L_i(t) <= alpha (m + 1), object m + 1 the new one.
t* does not depend on the order of the m + 1 objects, so E L_{m+1}(t*) is the mean of the m + 1, at
most alpha. (1) says sum_{i <= m} L_i(t) + 1 <= alpha (m + 1), and L_{m+1} <= 1: so t >= t*, and
E L_{m+1}(t) <= alpha. This is conformal risk control (Angelopoulos, Bates, Fisch, Lei and Schuster,
2022). With g of zeros and ones, a label drawn or known, it is split conformal prediction (Vovk,
Gammerman and Shafer, 2005): then t is the ceil((1 - alpha)(m + 1))-th of the scores. Where scores
do not tie, these are covered with probability at most 1 - alpha + 1 / (m + 1).

Weights. Where new objects have another density than the calibration ones, with the ratio w(x), and
the same g(x), the same holds with w_i = w(X_i), v = w(X): exchangeability then holds given the
weights (Tibshirani, Foygel Barber, Candes and Ramdas, 2019). A common factor drops out.

The true component Y, drawn from p(X). Given X and the calibration objects, the probabilities that
Y and Y~ are in C(X) differ by at most TV(p(X), g(X)) = 1/2 sum_k |p_k - g_k|. Hence

    P(Y in C(X)) >= 1 - alpha - E TV(p(X), g(X)).                                             (2)

The guarantee for true components is as good as the soft labels; no calibration without labels can
mend that. For a fit on all objects the article adds a term for how far the fit moves when one
object is replaced; a fit on the other part needs none.

Why pignistic probabilities: a label has to be drawn from a probability, and sharing the mass of a
set equally among its clusters is what `decide`, `predict_proba` and `level` do; for masses on
single clusters (a mixture's posterior) it changes nothing. An object with all mass on the empty set
has 1 / c for each cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.partition import views
from evdist.partition.calibrate import first_part, known_rows, match
from evdist.partition.decisions import named_sets
from evdist.partition.rows import is_dask, select_rows

Floats = NDArray[np.float64]

#: Names of the scores, see :func:`scores`.
SCORES = ("aps", "lac", "randomised-aps")
#: Objects of a table that find its threshold at most; the others are not needed.
MOST = 50_000
#: Bytes of a table of sets at most.
_MOST_MEMBERS = 1 << 31
#: Sums of probabilities are rounded: (1) may lack so much, as a share.
_ROUNDED = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class ConformalSets:
    """A set of clusters for each object, with what is promised of it.

    Attributes
    ----------
    alpha : float
        How often a set may miss.
    members : (n, c) bool array
        Whether the cluster is in the object's set; lazy where the masses are.
    threshold : float or (n,) array
        The largest score in a set; one for each object where they are weighted.
    n_calibration : int
        Objects that found the threshold.
    promise : str
        What holds with probability 1 - alpha, and under what, in a sentence.
    classes : tuple or None
        The class that each cluster is matched to, where sets came from known classes; None for a
        cluster that none was left for.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import ECM
    >>> X, _ = make_blobs(200, centers=3, random_state=0)
    >>> sets = ECM(3, random_state=0).fit(X).credal_partition_.conformal(alpha=0.1)
    >>> int(sets.counts().sum())
    200
    """

    alpha: float
    members: Any
    threshold: Any
    n_calibration: int
    promise: str
    classes: tuple[Any, ...] | None = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Clusters in each object's set; (n,), computed."""
        return np.asarray(np.asarray(self.members).sum(axis=1))

    def open_names(self) -> list[str]:
        """The sets as names, written as `Decisions.open_names` does: "{2}", "{0,2}", "∅"."""
        return named_sets(self.members)

    def counts(self) -> NDArray[np.int64]:
        """Objects with a set of 0, 1, ..., c clusters; (c + 1,)."""
        return np.bincount(self.sizes, minlength=int(self.members.shape[1]) + 1)

    def summary(self) -> str:
        """The sizes of the sets, and the promise."""
        counts = self.counts()
        kinds = ((0, "empty"), (1, "of one cluster"), (2, "of two"))
        words = [f"{counts[k]:,} {what}" for k, what in kinds if k < len(counts) and counts[k]]
        if counts[3:].any():
            words.append(f"{counts[3:].sum():,} of three or more")
        mean = float(self.sizes.mean()) if len(self) else 0.0
        return (
            f"{len(self):,} sets at alpha = {self.alpha:g}, calibrated on {self.n_calibration:,} "
            f"objects: {', '.join(words)}; {mean:.2f} clusters on average.\n{self.promise}"
        )

    def __len__(self) -> int:
        return int(self.members.shape[0])

    def __repr__(self) -> str:
        return f"ConformalSets(alpha={self.alpha:g}, {len(self)} objects)"


# ---------------------------------------------------------------------- scores
def scores(q: Floats, score: str, u: Floats | None = None) -> Floats:
    """Scores s of soft labels q; (n, c).

    "aps": the probability of all clusters that are likelier than k, so that a set is filled from
    the best cluster on until it holds more than t; it always has the best one. "randomised-aps":
    the same plus u q_k, u uniform on (0, 1) for each object; sets are then of the size that was
    asked for on average, and may be empty (adaptive prediction sets; Romano, Sesia and Candes,
    2020). "lac": 1 - q_k, the smallest sets on average, empty where no cluster is likely enough
    (Sadinle, Lei and Wasserman, 2019).
    """
    if score == "lac":
        return 1.0 - q
    order = np.argsort(-q, axis=1, kind="stable")
    ranked = np.take_along_axis(q, order, axis=1)
    before = np.cumsum(ranked, axis=1) - ranked
    before[:, 0] = 0.0
    # Equal clusters have equal scores: that of the first of them.
    tied = np.zeros(q.shape, dtype=bool)
    tied[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    first = np.maximum.accumulate(np.where(tied, 0, np.arange(q.shape[1])), axis=1)
    found = np.empty_like(q)
    np.put_along_axis(found, order, np.take_along_axis(before, first, axis=1), axis=1)
    return found if u is None else found + u[:, None] * q


def thresholds(s: Floats, g: Floats, alpha: float, w: Floats, v: Floats) -> Floats:
    """t of eq. (1) for new objects of weights v; infinite, all clusters, where none is enough."""
    order = np.argsort(s, axis=None)
    held = np.cumsum((g * w[:, None]).ravel()[order])
    total = float(w.sum())
    need = (1.0 - alpha) * (total + v) - _ROUNDED * total
    place = np.searchsorted(held, need)
    return np.append(s.ravel()[order], np.inf)[place]


def members(m: NDArray[Any], focal: FocalSets, score: str, threshold: float) -> NDArray[np.bool_]:
    """The sets of a block of masses; (b, c)."""
    return scores(views.probability(m, focal), score) <= threshold


# ---------------------------------------------------------------------- checks
def check_alpha(alpha: float, m: int) -> float:
    """A share of misses that m calibration objects can show."""
    if not 0.0 < alpha < 1.0:
        raise ValueError(
            f"alpha, the share of sets that may miss, must lie between 0 and 1, such as 0.1; got "
            f"{alpha}."
        )
    least = int(np.ceil(1.0 / alpha - 1.0 - 1e-9))
    if m < least:
        raise ValueError(
            f"alpha={alpha:g} needs at least {least} objects to calibrate on, got {m}. Give more "
            "objects or a larger alpha."
        )
    return float(alpha)


def check_score(score: str, allowed: tuple[str, ...] = SCORES) -> str:
    if score not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ValueError(f"score must be one of {names}, got {score!r}.")
    return score


# ---------------------------------------------------------------------- a partition as it is
def of_partition(
    partition: Any, alpha: float, labels: Any, score: str, random_state: int
) -> ConformalSets:
    """See :meth:`CredalPartition.conformal`."""
    check_score(score, ("aps", "lac"))
    n, c = len(partition), partition.n_clusters
    if labels is None:
        rows = np.arange(n)
        if n > MOST:
            rows = np.sort(np.random.default_rng(random_state).choice(n, MOST, replace=False))
        q = g = _soft(partition, rows)
        promise, classes = _OF_THE_TABLE, None
    else:
        rows, y, names = known_rows(labels, n)
        first = first_part(len(rows), random_state)
        q = _soft(partition, rows)
        to = match(q.argmax(axis=1)[first], y[first], c)
        q, g = q[~first], (to == y[~first, None]).astype(np.float64)
        promise = _OF_CLASSES
        classes = tuple(names[k] if k >= 0 else None for k in to)
        _refuse_lost(g, check_alpha(alpha, len(q)))
    alpha = check_alpha(alpha, len(q))
    if n * c > _MOST_MEMBERS and not is_dask(partition.mass):
        raise ValueError(
            f"Sets of {n:,} objects over {c:,} clusters are a table of {n * c / 2**30:,.0f} GiB. "
            "Take some of the objects: partition[rows].conformal()."
        )
    one = np.ones(1)
    t = float(thresholds(scores(q, score), g, alpha, np.ones(len(q)), one)[0])
    still = partition._view(members, c, bool, score=score, threshold=t)
    return ConformalSets(alpha, still, t, len(q), promise.format(share=100 * (1 - alpha)), classes)


def _soft(partition: Any, rows: NDArray[np.int64]) -> Floats:
    part = type(partition)(select_rows(partition.mass, rows), partition.focal_sets)
    return np.ascontiguousarray(part.probability, dtype=np.float64)


def _refuse_lost(g: Floats, alpha: float) -> None:
    """Refuse classes that no cluster is matched to, where they alone break the promise."""
    lost = int((g.sum(axis=1) == 0).sum())
    if len(g) - lost < (1.0 - alpha) * (len(g) + 1.0) - _ROUNDED * len(g):
        raise ValueError(
            f"{lost} of the {len(g)} known objects that calibrate belong to classes that no "
            f"cluster is matched to: no sets of clusters hold {100 * (1 - alpha):g} % of the "
            "classes. Cluster with as many clusters as there are classes, or raise alpha."
        )


_OF_THE_TABLE = (
    "For an object drawn at random from this table and a label drawn from its own masses, the "
    "label is in the object's set with probability {share:g} % or more. Nothing is promised of new "
    "objects or of true groups: the masses were fitted to these objects."
)
_OF_CLASSES = (
    "With probability {share:g} % or more an object of this table whose class is not known has the "
    "cluster that is matched to its class in its set, where the known objects are a random sample "
    "of the table."
)

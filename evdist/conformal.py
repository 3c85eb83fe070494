"""Conformal sets of clusters for new objects: split conformal clustering, for any estimator.

The objects are drawn into two parts. An estimator is fitted to the first; the second finds how
large sets of clusters must be to hold a label drawn from soft labels with probability 1 - alpha.
What exactly is promised, and its proof, stand in `evdist.partition.conformal`, where partitions
have their own, `CredalPartition.conformal`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted

from evdist.data.inputs import load
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import one_of, positive, random_of
from evdist.partition.conformal import ConformalSets, check_alpha, check_score, scores, thresholds

__all__ = ["ConformalClustering", "ConformalSets"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(eq=False, repr=False)
class ConformalClustering(BaseEstimator):
    """An estimator whose sets of clusters for new objects miss with a probability that is chosen.

    "With probability at least 1 - alpha the set of a new object holds the cluster that ...":
    with ``labels="own"`` the fitted model would draw for it; with ``labels="refit"`` another fit of
    the same estimator, to other objects of the same kind, would draw for it. This holds for any
    estimator and any number of objects, if the new object and those of `fit` are exchangeable,
    such as draws from one population. It is a statement about models. How much less often the set
    holds a true component of the data is bounded by how far the drawn labels are from the true
    probabilities, on average; a wrong model or number of clusters is not told by it.

    Parameters
    ----------
    estimator : estimator
        One of evdist that places new objects, or any with `fit` and `predict_proba`. It is cloned.
    score : {"aps", "randomised-aps", "lac"}, default="aps"
        How sets are filled. "aps": from the likeliest cluster on, which they always have.
        "randomised-aps": the same, with the last cluster left to chance, so that the promise is
        kept exactly and not more. "lac": all clusters above one probability; the smallest sets,
        some of them empty.
    labels : {"own", "refit"}, default="own"
        Whose labels the sets are to hold. "refit" fits twice, each to half of the first part, and
        pairs the clusters of the two; where the fits do not agree, the sets grow.
    drawn : bool, default=False
        Calibrate on one drawn label for each object, as the article does; by default on all
        labels, each with its probability, which has the same guarantee and leaves nothing to
        chance.
    calibration : float, default=0.5
        Share of the objects that calibrate.
    random_state : int, RandomState, Generator or None, default=None
        Of the parts, the labels and the randomised scores; the estimator has its own.

    Attributes
    ----------
    estimator_ : fitted estimator
        Its clusters are those of the sets.
    other_ : fitted estimator or None
        The second fit of ``labels="refit"``.
    pairs_ : (c,) int array or None
        The cluster of `other_` that is paired with each of `estimator_`.
    agreement_ : float or None
        Share of the objects that calibrate whose likeliest cluster the two fits agree on.
    n_clusters_ : int
        Clusters of `estimator_`.
    fitted_rows_, calibration_rows_ : int arrays
        Rows of X that `estimator_` was fitted to, and those that calibrated.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import ECM
    >>> from evdist.conformal import ConformalClustering
    >>> X, _ = make_blobs(400, centers=[[0, 0], [4, 0], [0, 9]], random_state=0)
    >>> model = ConformalClustering(ECM(3, random_state=0), random_state=0).fit(X[:300])
    >>> model.predict_set(X[300:], alpha=0.1).members.shape
    (100, 3)
    """

    estimator: Any
    _: KW_ONLY
    score: str = "aps"
    labels: str = "own"
    drawn: bool = False
    calibration: float = 0.5
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, *, weight: ArrayLike | None = None) -> Self:
        """Fit the estimator to one part of the objects, and score the other.

        Parameters
        ----------
        X : whatever the estimator takes; read into memory
            With metric="precomputed", all dissimilarities, (n, n).
        y : None
            Not used; pipelines pass it.
        weight : (n,) array, optional
            Where new objects come from another population: density of the new ones over that of
            these, at each object, up to a factor.
        """
        self._check()
        X = load(X)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        w = _weights(weight, n)
        rng = np.random.default_rng(int(random_of(self.random_state).randint(2**31 - 1)))
        *fitted, rows = self._parts(n, rng)
        parts = [_Part(self._fit_to(X, some), some) for some in fitted]
        q = parts[0].soft(X, rows)
        self.estimator_, self.fitted_rows_ = parts[0].model, parts[0].rows
        self.other_ = self.pairs_ = self.agreement_ = None
        g = q
        if len(parts) == 2:
            self.other_, self.pairs_ = parts[1].model, _paired(X, *parts)
            g = parts[1].soft(X, rows)[:, self.pairs_]
            self.agreement_ = float((q.argmax(axis=1) == g.argmax(axis=1)).mean())
        self.n_clusters_, self.calibration_rows_ = q.shape[1], rows
        if self.drawn:
            g = _one_drawn(g, rng)
        u = rng.random(len(q)) if self.score == "randomised-aps" else None
        self._seed = int(rng.integers(2**31))
        self._calibrated = scores(q, self.score, u), g, w[rows]
        self._weighted = weight is not None
        return self

    def predict_set(
        self, X: Any, alpha: float = 0.1, *, weight: ArrayLike | None = None
    ) -> ConformalSets:
        """Sets of clusters for new objects.

        Parameters
        ----------
        X : (rows, d) new objects
            With metric="precomputed", their dissimilarities to the objects `fitted_rows_`.
        alpha : float, default=0.1
            How often a set may miss, over draws of the calibration objects and the new one. It is
            to be chosen before the sets are looked at.
        weight : (rows,) array, optional
            Of the new objects, where `fit` had weights.
        """
        check_is_fitted(self, "estimator_")
        s, g, w = self._calibrated
        alpha = check_alpha(alpha, len(s))
        if (weight is not None) != self._weighted:
            raise ValueError(
                "weight must be given to both fit and predict_set, or to neither: both are "
                "values of one density ratio."
            )
        q = np.ascontiguousarray(self.estimator_.predict_proba(X), dtype=np.float64)
        u = None
        if self.score == "randomised-aps":
            u = np.random.default_rng(self._seed).random(len(q))
        v = _weights(weight, len(q))
        t = thresholds(s, g, alpha, w, v)
        found = scores(q, self.score, u) <= t[:, None]
        one = t if self._weighted else float(thresholds(s, g, alpha, w, np.ones(1))[0])
        promise = _PROMISES[self.labels].format(share=100 * (1 - alpha))
        return ConformalSets(alpha, found, one, len(s), promise)

    # ------------------------------------------------------------------ parts
    def _check(self) -> None:
        check_score(self.score)
        one_of("labels", self.labels, tuple(_PROMISES))
        positive("calibration", self.calibration, 1.0)
        model = self.estimator
        if not all(hasattr(model, name) for name in ("fit", "predict_proba")) or (
            isinstance(model, CredalClusterer) and not hasattr(model, "predict_mass")
        ):
            raise TypeError(
                f"estimator must be one that places new objects, with fit and predict_proba; got "
                f"{type(model).__name__}. For the objects that it was fitted to see "
                "CredalPartition.conformal."
            )

    def _parts(self, n: int, rng: np.random.Generator) -> list[Rows]:
        """Rows of X for each fit, and those that calibrate."""
        order = rng.permutation(n)
        m = round(self.calibration * n)
        fits = 2 if self.labels == "refit" else 1
        parts = [*np.array_split(order[m:], fits), order[:m]]
        if min(map(len, parts)) < 2:
            raise ValueError(
                f"There must be at least two objects in each part, got {n} objects for {fits} "
                f"fits and calibration={self.calibration:g}."
            )
        return [np.sort(part) for part in parts]

    def _fit_to(self, X: Any, rows: Rows) -> Any:
        model = clone(self.estimator)
        return model.fit(_cut(X, rows, rows if _pairwise(model) else None))


@dataclass(frozen=True)
class _Part:
    """A fitted model and its rows."""

    model: Any
    rows: Rows

    def soft(self, X: Any, rows: Rows) -> Floats:
        """Soft labels of other rows of X; (rows, c)."""
        new = _cut(X, rows, self.rows if _pairwise(self.model) else None)
        return np.ascontiguousarray(self.model.predict_proba(new), dtype=np.float64)


def _pairwise(model: Any) -> bool:
    return bool(get_tags(model).input_tags.pairwise)


def _cut(X: Any, rows: Rows, columns: Rows | None) -> Any:
    if columns is not None:
        return np.asarray(X)[np.ix_(rows, columns)]
    return _safe_indexing(X, rows)


def _paired(X: Any, one: _Part, two: _Part) -> Rows:
    """The cluster of the second fit for each of the first, by the objects of both; (c,)."""
    rows = np.sort(np.concatenate([one.rows, two.rows]))
    shared = one.soft(X, rows).T @ two.soft(X, rows)
    if shared.shape[0] != shared.shape[1]:
        raise ValueError(
            f"The two fits of labels='refit' found {shared.shape[0]} and {shared.shape[1]} "
            "clusters: nothing can be promised of clusters that another part of the data does not "
            "have. Give n_clusters."
        )
    return np.asarray(linear_sum_assignment(-shared)[1])


def _one_drawn(g: Floats, rng: np.random.Generator) -> Floats:
    """1 for one cluster of each object, drawn from its soft labels; (m, c)."""
    reached = np.cumsum(g, axis=1) > rng.random(len(g))[:, None] * g.sum(axis=1)[:, None]
    found = np.zeros_like(g)
    found[np.arange(len(g)), reached.argmax(axis=1)] = 1.0
    return found


def _weights(weight: ArrayLike | None, n: int) -> Floats:
    if weight is None:
        return np.ones(n)
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(
            f"weight must hold one finite number of at least 0 for each of the {n} objects, got "
            f"shape {w.shape}."
        )
    return w


#: What holds with which labels.
_PROMISES = {
    "own": (
        "With probability {share:g} % or more the set of a new object holds the cluster that the "
        "fitted model would draw for it, if it comes from where the fitted objects come from. A "
        "true group is held less often by at most how far the model's probabilities are from the "
        "true ones."
    ),
    "refit": (
        "With probability {share:g} % or more the set of a new object holds the cluster that the "
        "second fit, to other objects of the same kind, would draw for it, if it comes from where "
        "the fitted objects come from."
    ),
}

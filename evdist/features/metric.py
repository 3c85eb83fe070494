"""Metrics learnt from must-links and cannot-links: LSI and DML-eig.

References: Xing, Ng, Jordan, Russell (2003), Distance metric learning with application to
clustering with side-information, NIPS 15; Ying, Li (2012), Distance metric learning with eigenvalue
optimization, JMLR 13. NN-EVCLUS, section 3.3, names both beside PCCA.

Both learn |x - y|_A^2 = (x - y)' A (x - y), A positive semidefinite, with must-linked objects
together,

    sum over must-links of |x_i - x_j|_A^2 = 1,

and cannot-linked ones as far apart as that allows: LSI the sum of their distances, DML-eig the
least of them. With S the scatter of the must-links and A = S^(-1/2) B S^(-1/2), tr(B) = 1: see
`evdist.features.spectrahedron`.

Differs: where the must-links do not span the space, S has no inverse; `ridge` times its mean
eigenvalue is added to all of them. The two articles were not at hand: the problems are theirs, how
they are solved is ours (`evdist.features.spectrahedron`), and no numbers of equations are given.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from evdist.constraints import check_links
from evdist.engine.memory import check_memory
from evdist.estimators.checks import integer, positive
from evdist.features.base import RowTransformer, count_features
from evdist.features.spectrahedron import Found, farthest_at_least, farthest_in_sum

#: Differences shorter than this share of the longest are those of equal objects.
_EQUAL = 1e-12


@dataclass(eq=False, repr=False)
class _Metric(RowTransformer):
    """Parameters, links and features of both metrics; `_solver` is where they differ."""

    _solver: ClassVar[Callable[..., Found]]

    n_components: int | None = None
    _: KW_ONLY
    ridge: float = 0.1
    tol: float = 1e-2
    max_iter: int = 5000

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> Self:
        """Learn the metric from the linked objects; other objects are ignored.

        Parameters
        ----------
        X : (n, d) array
            The objects.
        y : None
            Not used; pipelines pass it.
        must_link, cannot_link : (p, 2) arrays of object numbers
            Pairs known to be in one cluster, in different clusters; at least one of each.
        """
        ridge, tol = positive("ridge", self.ridge), positive("tol", self.tol)
        most = integer("max_iter", self.max_iter, 1)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        must, cannot = check_links(must_link, cannot_link, len(X))
        d = X.shape[1]
        r = count_features(self.n_components, d, f"X has n_features={d}")
        p, q = len(must), len(cannot)
        check_memory(
            {"links": 8 * d * (p + 3 * q), "metric": 8 * 40 * d * d},  # L-BFGS keeps ten pairs
            "Give fewer links, or fewer columns by PCA.",
            what=f"{type(self).__name__} on {p + q:,} links and {d:,} columns",
        )
        whiten = self._whitener(X[must[:, 0]] - X[must[:, 1]], ridge)
        z = _differing(X[cannot[:, 0]] - X[cannot[:, 1]], type(self).__name__) @ whiten
        found = type(self)._solver(z, tol, most)
        self._take(found, whiten, r)
        self.mean_ = X[np.unique(np.concatenate([must, cannot]))].mean(axis=0)
        return self

    def _whitener(self, delta: NDArray[Any], ridge: float) -> NDArray[np.float64]:
        """W with W W' = (S + ridge tr(S) / d)^-1, (d, d)."""
        S = delta.T @ delta
        size = float(np.trace(S)) / len(S)
        if not size > 0:
            raise ValueError(
                f"{type(self).__name__} needs a must_link between objects that differ, got "
                f"{len(delta)} must-links: nothing would keep the metric from growing."
            )
        values, axes = np.linalg.eigh(S / size)
        return np.asarray(axes / np.sqrt((np.maximum(values, 0.0) + ridge) * size))

    def _take(self, found: Found, whiten: NDArray[Any], r: int) -> None:
        A = whiten @ found.B @ whiten.T
        values, axes = np.linalg.eigh(A)
        lengths = np.sqrt(np.maximum(values[::-1][:r], 0.0))
        L = lengths[:, None] * axes.T[::-1][:r]
        # An eigenvector has no sign of its own: the largest entry of each row is positive.
        largest = np.take_along_axis(L, np.abs(L).argmax(axis=1)[:, None], axis=1)
        self.components_ = np.where(largest < 0, -L, L)
        self.metric_ = A
        self.objective_, self.gap_ = found.value, found.gap
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        self._n_features_out = r
        if not found.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge: the objective may be up to "
                f"{found.gap / found.value:.2%} from its maximum. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _features(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return (X - self.mean_) @ self.components_.T


def _differing(delta: NDArray[Any], name: str) -> NDArray[Any]:
    """The differences of cannot-linked objects that differ at all."""
    length = np.sqrt((delta * delta).sum(axis=1))
    some = length > _EQUAL * length.max(initial=0.0)
    if not some.any():
        raise ValueError(
            f"{name} needs a cannot_link between objects that differ, got {len(delta)} "
            "cannot-links: nothing would be drawn apart."
        )
    return delta[some]


class LSI(_Metric):
    """Learning with side information: cannot-linked objects as far apart as possible in sum.

    The metric of Xing et al. (2003): it maximises the sum of the distances of cannot-linked objects
    where the squared distances of must-linked ones add up to 1. Distances between features are the
    learnt distances. Nothing is random.

    Experimental: a reconstruction. The article's problem is solved, but the ridge and the way of
    solving it are ours; the article was not at hand.

    Parameters
    ----------
    n_components : int or None, default=None
        Features: the directions that count most, at most as many as X has; None is all.
    ridge : float, default=0.1
        Added to the eigenvalues of the scatter of the must-links, as a share of their mean: a few
        links say nothing of some directions, which would be drawn out without end.
    tol : float, default=1e-2
        Stop when no metric can be better by more than this share of the objective.
    max_iter : int, default=5000
        Steps of L-BFGS at most.

    Attributes
    ----------
    components_ : (n_components, d) array
        The map; rows are orthogonal, the longest first.
    metric_ : (d, d) array
        A, the learnt metric: components_.T @ components_ where there are d components.
    mean_ : (d,) array
        Mean of the linked objects, whose features are zero.
    objective_ : float
        The sum of the distances of cannot-linked objects.
    gap_ : float
        The most by which any other metric can be better.
    n_iter_ : int
        Steps made.
    converged_ : bool
        Whether `tol` ended them, not `max_iter`.

    Examples
    --------
    >>> from evdist.features import LSI
    >>> X = [[0, 0], [9, 0], [0, 1], [9, 1]]  # the first coordinate is noise
    >>> model = LSI(1).fit(X, must_link=[(0, 1)], cannot_link=[(0, 2), (1, 3)])
    >>> bool(abs(model.components_[0, 0]) < 0.01 * abs(model.components_[0, 1]))
    True
    """

    _solver = staticmethod(farthest_in_sum)


class DMLEig(_Metric):
    """Metric learning by eigenvalue optimisation: the nearest cannot-link as far as possible.

    The metric of Ying and Li (2012): it maximises the least squared distance of cannot-linked
    objects where the squared distances of must-linked ones add up to 1, a problem equal to making
    the largest eigenvalue of a mean of matrices small. A single wrong cannot-link decides all:
    where links may be wrong, :class:`LSI` or :class:`PCCA` is the safer choice.

    Experimental: a reconstruction. The article's problem is solved, but the ridge and the way of
    solving it are ours; the article was not at hand.

    Parameters
    ----------
    n_components, ridge, tol, max_iter
        As in :class:`LSI`.

    Attributes
    ----------
    components_, metric_, mean_, gap_, n_iter_, converged_
        As in :class:`LSI`.
    objective_ : float
        The least squared distance of cannot-linked objects.

    Examples
    --------
    >>> from evdist.features import DMLEig
    >>> X = [[0, 0], [9, 0], [0, 1], [9, 1]]  # the first coordinate is noise
    >>> model = DMLEig(1).fit(X, must_link=[(0, 1)], cannot_link=[(0, 2), (1, 3)])
    >>> bool(abs(model.components_[0, 0]) < 0.01 * abs(model.components_[0, 1]))
    True
    """

    _solver = staticmethod(farthest_at_least)

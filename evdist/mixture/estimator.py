"""Gaussian mixtures as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from evdist.mixture.select import select_mixture


@dataclass(eq=False, repr=False)
class GaussianMixture(DensityMixin, BaseEstimator):
    """A mixture of Gaussians whose covariance model and number of components BIC chooses.

    Parameters
    ----------
    n_components : int or sequence of int, default=3
        One number, or those to choose from.
    covariance_models : "auto", str or sequence of str, default="auto"
        All fourteen ("auto"), or some of `evdist.mixture.MODELS`. The letters say of volume, shape
        and orientation whether they are Equal over components, Variable, or the Identity.
    init : {"hierarchical", "k-means++"}, default="hierarchical"
        How EM's starting partitions are found: by agglomeration, or by k-means. More than 2000 rows
        are started from 2000 of them.
    n_init : int, default=2
        Starts of every fit; the likeliest result wins. With "hierarchical" the first is Gaussian
        agglomeration, the second Ward's, and the others are k-means.
    tol : float, default=1e-6
        EM stops when an iteration raises the log-likelihood L by less than tol * (1 + abs(L)).
    max_iter : int, default=1000
        Maximum number of iterations of EM.
    random_state : int, RandomState or None, default=None
        For k-means, and for the rows that larger data is started from.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.

    Attributes
    ----------
    covariance_model_ : str
        The chosen model.
    n_components_ : int
        The chosen number.
    weights_ : (c,) array
        Mixing proportions.
    means_ : (c, d) array
        Means of the components.
    covariances_ : (c, d, d) array
        Their covariance matrices.
    parameters_ : Parameters
        The same, small and immutable.
    loglik_ : float
        Log-likelihood of the rows.
    bic_ : float
        2 L - nu log n: larger is better.
    bics_ : DataFrame
        BIC by number of components and model; -inf where the fit has failed.
    converged_ : bool
        Whether `tol` ended EM, not `max_iter`.
    n_iter_ : int
        Iterations done.
    failed_ : str or None
        Why the fit is not to be trusted, if all have failed: a component has collapsed.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist.mixture import GaussianMixture
    >>> X = load_iris().data
    >>> mixture = GaussianMixture(n_components=3).fit(X)
    >>> mixture.covariance_model_, mixture.predict_proba(X).shape
    ('VEV', (150, 3))
    """

    n_components: int | Sequence[int] = 3
    _: KW_ONLY
    covariance_models: str | Sequence[str] = "auto"
    init: str = "hierarchical"
    n_init: int = 2
    tol: float = 1e-6
    max_iter: int = 1000
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit, and choose.

        Parameters
        ----------
        X : (n, d) array
            The rows.
        y : None
            Not used; pipelines pass it.
        sample_weight : (n,) array, zero or more
            A row of weight two counts as two equal rows; the sum of the weights is BIC's n.
        """
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        chosen = select_mixture(
            X, self.n_components, self.covariance_models, sample_weight=sample_weight,
            init=self.init, n_init=self.n_init, tol=self.tol, max_iter=self.max_iter,
            random_state=self.random_state, n_jobs=self.n_jobs,
        )  # fmt: skip
        best = chosen.best
        self.parameters_ = p = best.parameters
        self.covariance_model_, self.n_components_ = p.model, p.n_components
        self.weights_, self.means_, self.covariances_ = p.weights, p.means, p.covariances
        self.loglik_, self.bic_, self.bics_ = best.loglik, chosen.bic, chosen.bics
        self.converged_, self.n_iter_, self.failed_ = best.converged, best.n_iter, best.failed
        if self.failed_ is not None:
            warnings.warn(
                f"No mixture was fitted well: {self.failed_}. Take fewer components, a simpler "
                "covariance model, or leave out coordinates that are constant or depend on others.",
                ConvergenceWarning,
                stacklevel=2,
            )
        elif not self.converged_:
            warnings.warn(
                f"EM did not converge in max_iter={self.max_iter} iterations; raise max_iter or "
                "tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _rows(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self, "parameters_")
        return validate_data(self, X, dtype=np.float64, reset=False)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Posterior probabilities of the components, (n, c).

        Parameters
        ----------
        X : (n, d) array
            Rows with the columns of the fitted ones.
        """
        X = self._rows(X)
        return self.parameters_.posterior(X)

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """The most probable component of each row, (n,).

        Parameters
        ----------
        X : (n, d) array
            Rows with the columns of the fitted ones.
        """
        return self.predict_proba(X).argmax(axis=1)

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log density of each row, (n,).

        Parameters
        ----------
        X : (n, d) array
            Rows with the columns of the fitted ones.
        """
        X = self._rows(X)
        return self.parameters_.log_density(X)

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Mean log density of the rows.

        Parameters
        ----------
        X : (n, d) array
            Rows with the columns of the fitted ones.
        y : None
            Not used; model selection passes it.
        """
        return float(self.score_samples(X).mean())

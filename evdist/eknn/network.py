"""The evidential neural network classifier as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedKFold

from evdist.belief import FocalSets
from evdist.eknn.base import EvidentialClassifier
from evdist.eknn.network_model import Network, first_network, fit_network, masses
from evdist.engine.loop import Solution
from evdist.engine.progress import Clock, Progress
from evdist.estimators.checks import integer, non_negative, random_of, weights
from evdist.kernels.threads import one_blas_thread
from evdist.partition import CredalPartition

#: Prototypes per class by default.
_PER_CLASS = 5


@dataclass(eq=False, repr=False)
class EvidentialNN(EvidentialClassifier):
    """Evidential neural network: prototypes with degrees of membership and reliability.

    Prototype i gives mass alpha_i u_ik exp(-gamma_i d^2) to class k and the rest to the set of
    all classes; Dempster's rule combines the prototypes. Denoeux (2000).

    Parameters
    ----------
    n_prototypes : int or None, default=None
        Divided evenly among the classes; None is five per class.
    mu : float or "cv", default=0.0
        Weight of the sum of reliabilities in the objective; "cv" takes the one of `mus` with the
        smallest error in cross-validation.
    mus : sequence of float, default=(0, 0.01, 0.1, 1, 10)
        What "cv" tries.
    cv : int, default=5
        Folds of "cv".
    n_init : int, default=1
        Starts; the one with the smallest objective is kept.
    tol : float, default=1e-7
        Relative change of the objective at which a fit stops.
    max_iter : int, default=500
        Maximum number of iterations of each start.
    random_state : int, RandomState, Generator or None, default=None
        Draws the starts and the folds.
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    classes_ : (c,) array
        The classes, sorted.
    prototypes_ : (r, d) array
        The r prototypes.
    membership_ : (r, c) array
        u: degrees of membership of the prototypes to the classes; rows sum to 1.
    reliability_ : (r,) array
        alpha: the total mass that a prototype gives to classes at distance 0.
    gamma_ : (r,) array
        How fast the mass of a prototype falls with the squared distance.
    mu_ : float
        The weight that was used.
    cv_errors_ : list of (mu, error)
        What "cv" found; empty otherwise.
    credal_partition_ : CredalPartition
        Masses of the learning set.
    objective_ : float
        The objective at the end.
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether `tol` ended the fit, not `max_iter`.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist import EvidentialNN
    >>> X, y = load_iris(return_X_y=True)
    >>> EvidentialNN(n_prototypes=6, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    n_prototypes: int | None = None
    _: KW_ONLY
    mu: float | str = 0.0
    mus: Sequence[float] = (0.0, 0.01, 0.1, 1.0, 10.0)
    cv: int = 5
    n_init: int = 1
    tol: float = 1e-7
    max_iter: int = 500
    random_state: Any = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from objects with known classes.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; a path is that of a .npy, .csv, .parquet or .zarr file.
        y : (n,) array of classes
            The known classes, of any type that sorts.
        sample_weight : (n,) array, positive
            Weights of the objects' errors.
        """
        X = self._table(X, ensure_min_samples=2)
        number = self._targets(y, len(X))
        w = weights(sample_weight, len(X))
        w = np.ones(len(X)) if w is None else w
        per_class = self._checked(number)
        seed = int(random_of(self.random_state).randint(2**31 - 1))
        with one_blas_thread(), self._reporting() as report:
            self.mu_, self.cv_errors_ = self._chosen_mu(X, number, w, per_class, seed)
            clock = self._clock(report, len(X))
            best = self._best(X, number, w, per_class, self.mu_, seed, clock)
        self._network = best.value
        partition = CredalPartition(masses(self._network, X), FocalSets.simple(len(self.classes_)))
        self._finish(partition, best.history, best.converged)
        return self

    def _checked(self, y: NDArray[np.int32]) -> NDArray[np.int64]:
        """Prototypes of each class, once every parameter has been checked."""
        count = np.bincount(y)
        c = len(count)
        for name in ("n_init", "max_iter"):
            integer(name, getattr(self, name), 1)
        non_negative("tol", self.tol)
        self._check_callbacks()
        if isinstance(self.mu, str):
            if self.mu != "cv":
                raise ValueError(f'mu must be "cv" or a number of at least 0, got {self.mu!r}.')
            integer("cv", self.cv, 2)
            for mu in self.mus:
                non_negative("mus", mu)
            if count.min() < self.cv:
                raise ValueError(
                    f"cv={self.cv} folds need {self.cv} objects of each class, but class "
                    f"{self.classes_[count.argmin()]!r} has {count.min()}. Lower cv, or pass mu."
                )
        else:
            non_negative("mu", self.mu)
        r = _PER_CLASS * c if self.n_prototypes is None else self.n_prototypes
        if integer("n_prototypes", r, 1) < c:
            raise ValueError(
                f"n_prototypes must be at least one for each of the {c} classes, got {r}."
            )
        return np.minimum(r // c + (np.arange(c) < r % c), count)

    def _best(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.int32],
        w: NDArray[np.float64],
        per_class: NDArray[np.int64],
        mu: float,
        seed: int,
        clock: Clock | None = None,
    ) -> Solution[Network]:
        runs = (
            fit_network(
                first_network(X, y, per_class, seed + start), X, y, w, mu=mu, tol=self.tol,
                max_iter=self.max_iter, clock=clock,
            )
            for start in range(self.n_init)
        )  # fmt: skip
        return min(runs, key=lambda run: run.objective)

    def _chosen_mu(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.int32],
        w: NDArray[np.float64],
        per_class: NDArray[np.int64],
        seed: int,
    ) -> tuple[float, list[tuple[float, float]]]:
        """mu itself, or the one with the smallest error; of equal ones the largest."""
        if not isinstance(self.mu, str):
            return float(self.mu), []
        folds = StratifiedKFold(self.cv, shuffle=True, random_state=seed % 2**32)
        errors = []
        for mu in sorted((float(mu) for mu in self.mus), reverse=True):
            wrong = 0.0
            for train, test in folds.split(X, y):
                few = np.minimum(per_class, np.bincount(y[train], minlength=len(per_class)))
                fitted = self._best(X[train], y[train], w[train], few, mu, seed)
                guess = masses(fitted.value, X[test])[:, 1:-1].argmax(axis=1)
                wrong += float(w[test] @ (guess != y[test]))
            errors.append((mu, wrong / float(w.sum())))
        best = min(errors, key=lambda item: item[1])
        return best[0], sorted(errors)

    def _masses(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return masses(self._network, X)

    @property
    def prototypes_(self) -> NDArray[np.float64]:
        return self._network.P

    @property
    def membership_(self) -> NDArray[np.float64]:
        return self._network.U

    @property
    def reliability_(self) -> NDArray[np.float64]:
        return self._network.alpha

    @property
    def gamma_(self) -> NDArray[np.float64]:
        return self._network.gamma

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        net = self._network
        errors = [[mu, error] for mu, error in self.cv_errors_]
        values = {**self._class_values(), "mu": self.mu_, "cv_errors": errors}
        return values, {"P": net.P, "b": net.b, "x": net.x, "g": net.g}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._set_classes(values)
        self.mu_ = float(values["mu"])
        self.cv_errors_ = [(float(mu), float(error)) for mu, error in values["cv_errors"]]
        self._network = Network(arrays["P"], arrays["b"], arrays["x"], arrays["g"])

"""The evidential K-nearest-neighbour classifier as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evdist.eknn.base import EvidentialClassifier
from evdist.eknn.labels import CrispLabels, SoftLabels, learn
from evdist.eknn.search import nearest_of_new, nearest_others, search
from evdist.engine.progress import Progress
from evdist.estimators.checks import integer, non_negative, positive
from evdist.kernels.threads import one_blas_thread
from evdist.partition import CredalPartition

#: Soft labels are combined on all sets of classes.
_MAX_SOFT_CLASSES = 10


@dataclass(eq=False, repr=False)
class EKNNClassifier(EvidentialClassifier):
    """Evidential K-nearest-neighbour classifier with learnt scale parameters.

    Each neighbour of class k gives mass alpha * exp(-gamma_k d^2) to its class and the rest to
    the set of all classes; Dempster's rule combines them. Denoeux (1995), Zouhal and Denoeux
    (1998).

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours used as evidence for an object.
    alpha : float, default=0.95
        Mass that a neighbour at distance 0 gives to its class, below 1.
    gamma : "learn", float or (c,) array, default="learn"
        Learnt by minimising the squared error of the plausibilities, each object being classified
        by its neighbours; or given.
    tol : float, default=1e-9
        Relative change of the objective at which learning stops.
    max_iter : int, default=200
        Maximum number of iterations of the learning.
    n_jobs : int or None, default=None
        Threads of the neighbour search.
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    classes_ : (c,) array
        The classes, sorted.
    gamma_ : (c,) array, or (1,) with soft labels
        How fast the evidence of a neighbour of each class falls with its squared distance.
    credal_partition_ : CredalPartition
        Masses of the learning set, each object by its neighbours.
    objective_ : float
        Mean over objects of the squared error of the plausibilities of all classes.
    history_ : list of float
        The objective before the first and after every iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether `tol` ended the learning, not `max_iter`.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist import EKNNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> EKNNClassifier(n_neighbors=10).fit(X, y).predict_mass(X[:2]).shape
    (2, 5)
    """

    n_neighbors: int = 10
    _: KW_ONLY
    alpha: float = 0.95
    gamma: Any = "learn"
    tol: float = 1e-9
    max_iter: int = 200
    n_jobs: int | None = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from objects with known classes.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; a path is that of a .npy, .csv, .parquet or .zarr file.
        y : (n,) array of classes, or a CredalPartition of the n objects (soft labels)
            With soft labels, `classes_` are 0, 1, ...
        """
        X = self._table(X, ensure_min_samples=2)
        K = self._checked(len(X))
        labels = self._labels(y, len(X))
        given = self._given_gamma(labels.n_gamma)
        self._X = X
        self._index = search(X, n_jobs=self.n_jobs)
        d, who = nearest_others(self._index, X, K)
        d2 = d * d
        if given is None:
            with one_blas_thread(), self._reporting() as report:
                learnt = learn(
                    labels, d2, who, self.alpha, tol=self.tol, max_iter=self.max_iter,
                    clock=self._clock(report, len(X)),
                )  # fmt: skip
            given, history, converged = learnt.value, learnt.history, learnt.converged
        else:
            history = [labels.loss(d2, who, self.alpha, given)[0] / len(X)]
            converged = True
        self.gamma_, self._labels_known = given, labels
        mass = labels.masses(d2, who, self.alpha, given)
        self._finish(CredalPartition(mass, labels.focal_sets), history, converged)
        return self

    def _checked(self, n: int) -> int:
        K = min(integer("n_neighbors", self.n_neighbors, 1), n - 1)
        positive("alpha", self.alpha, below=1.0)
        non_negative("tol", self.tol)
        integer("max_iter", self.max_iter, 1)
        self._check_callbacks()
        return K

    def _labels(self, y: Any, n: int) -> CrispLabels | SoftLabels:
        if not isinstance(y, CredalPartition):
            number = self._targets(y, n)
            return CrispLabels(number, len(self.classes_))
        c = y.focal_sets.n_clusters
        if y.n_objects != n:
            raise ValueError(f"y has soft labels of {y.n_objects} objects, X has {n}.")
        if c > _MAX_SOFT_CLASSES:
            raise ValueError(
                f"Soft labels are combined on all 2^c sets of classes: at most "
                f"{_MAX_SOFT_CLASSES} classes, got {c}. Pass y.labels() instead."
            )
        self.classes_ = np.arange(c)
        return SoftLabels.of(np.asarray(y.mass), y.focal_sets)

    def _given_gamma(self, size: int) -> NDArray[np.float64] | None:
        if isinstance(self.gamma, str):
            if self.gamma == "learn":
                return None
            raise ValueError(f'gamma must be "learn" or positive numbers, got {self.gamma!r}.')
        gamma = np.asarray(self.gamma, dtype=float)
        if gamma.shape not in ((), (size,)) or not (np.isfinite(gamma) & (gamma > 0)).all():
            raise ValueError(
                f'gamma must be "learn", a positive number or {size} of them, got {self.gamma!r}.'
            )
        return np.broadcast_to(gamma, (size,)).copy()

    def _masses(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        d, who = nearest_of_new(self._index, X, min(self.n_neighbors, len(self._X)))
        return self._labels_known.masses(d * d, who, self.alpha, self.gamma_)

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {"rows": self._X, "gamma": self.gamma_}
        labels = self._labels_known
        if isinstance(labels, CrispLabels):
            arrays["y"] = labels.y
        else:
            arrays["q"] = labels.q
        return self._class_values(), arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._set_classes(values)
        self._X, self.gamma_ = arrays["rows"], arrays["gamma"]
        self._index = search(self._X, n_jobs=self.n_jobs)
        c = len(self.classes_)
        self._labels_known = (
            CrispLabels(arrays["y"], c)
            if "y" in arrays
            else SoftLabels(arrays["q"], arrays["q"][:, [1 << k for k in range(c)]])
        )

"""RECM as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import spatial

from evdist.belief import FocalSets
from evdist.ecm.base import check_descent, chosen_sets, ecm_parameters
from evdist.ecm.relational import RECMSolver, RelationalModel, euclidean_shift, seeded_weights
from evdist.engine.loop import best_of
from evdist.engine.memory import check_memory
from evdist.engine.progress import Progress
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import one_of, random_of, weights
from evdist.estimators.placing import RowMasses
from evdist.partition import CredalPartition

_FAMILIES = ("simple", "pairs", "full")
_METRICS = ("precomputed", "euclidean", "cityblock", "chebyshev", "cosine", "correlation")
#: Squared dissimilarities of a pair may differ by this part of the largest, one way and the other.
_SYMMETRY = 1e-8


@dataclass(eq=False, repr=False)
class RECM(RowMasses, CredalClusterer):
    """Relational evidential c-means: ECM on squared dissimilarities between objects.

    With squared Euclidean distances it is equivalent to ECM on the attributes, except for seeds.
    The square matrix of all objects is held in memory.

    Parameters
    ----------
    n_clusters : int, default=4
        Number of clusters.
    alpha, beta, delta : float, default=1, 2 and "auto"
        As in ECM; `delta` squared is in the units of the squared dissimilarities, and "auto" the
        mean of these.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="simple"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets.
    metric : str, default="precomputed"
        "precomputed": X is the square matrix of squared dissimilarities. "euclidean", "cityblock",
        "chebyshev", "cosine", "correlation": X contains attributes, and these distances are
        squared.
    init : "k-means++", (n, f) array of masses or CredalPartition
        "k-means++" starts from objects that are far from each other.
    n_init : int, default=5
        Starts with "k-means++", of which the best is kept.
    tol : float, default=1e-5
        Stop when the relative decrease of the objective is smaller than this.
    max_iter : int, default=200
        Maximum number of iterations.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the starts: an int gives the same result every time.
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses of the objects.
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    weights_ : (c, n) array
        Each prototype as a weighted mean of the objects; rows sum to one.
    delta_ : float
        The distance to the empty set that was used.
    shift_ : float
        Constant that was added to the squared dissimilarities of different objects to make them
        Euclidean; 0 if they already were.
    objective_ : float
        The objective at the end.
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether `tol` ended the fit, not `max_iter`.
    n_features_in_ : int
        Columns of X; with "precomputed" the number of objects.

    Examples
    --------
    >>> from scipy.spatial.distance import pdist, squareform
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import RECM
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> D = squareform(pdist(X, "sqeuclidean"))
    >>> RECM(n_clusters=3, random_state=0).fit(D).credal_partition_.mass.shape
    (300, 5)
    """

    _mass_type = np.float32

    n_clusters: int = 4
    _: KW_ONLY
    alpha: float = 1.0
    beta: float = 2.0
    delta: float | str = "auto"
    focal_sets: str | FocalSets = "simple"
    metric: str = "precomputed"
    init: str | ArrayLike | CredalPartition = "k-means++"
    n_init: int = 5
    tol: float = 1e-5
    max_iter: int = 200
    random_state: Any = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def fit(self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, n) or (n, d) array, data frame, Dask or zarr array, or path
            Squared dissimilarities, or attributes (see `metric`). Squared dissimilarities are
            symmetric, zero on the diagonal, none negative.
        y : None
            Not used; pipelines pass it.
        sample_weight : (n,) array, positive
            They are divided by their mean.
        """
        X = np.asarray(self._table(X, ensure_min_samples=2), dtype=float)
        sets, mass = self._checked(len(X))
        w = weights(sample_weight, len(X))
        w = np.ones(len(X)) if w is None else w
        D = self._square(X)
        numbers = ecm_parameters(self.alpha, self.beta, _delta_for(self.delta, D, w))
        rng = np.random.default_rng(random_of(self.random_state).randint(2**31 - 1))
        self.shift_ = euclidean_shift(D)
        c, n = sets.n_clusters, len(D)
        plain = RelationalModel(
            sets, np.full((c, n), 1.0 / n), np.zeros((c, c)), *numbers, self.shift_
        )
        if mass is None:
            starts = [seeded_weights(D, c, rng, w) for _ in range(self.n_init)]
        else:
            starts = [plain.weights(mass, w)]
        solvers = [RECMSolver(D, replace(plain, Q=Q), float(self.tol), w) for Q in starts]
        with self._reporting() as report:
            fit = best_of(solvers, int(self.max_iter), report=report)
        self._keep(fit.value.model)
        mass = fit.value.mass.astype(np.float32)
        self._finish(CredalPartition(mass, sets), fit.history, fit.converged)
        return self

    def _square(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Squared dissimilarities of all objects; what new objects are compared with is kept."""
        self._objects = None
        if self.metric == "precomputed":
            _check_square(X)
            return X
        check_memory(
            {"dissimilarities": 8 * 2 * len(X) ** 2},
            "ECM takes attributes, EVCLUS any metric, without a square matrix.",
            what=f"RECM of {len(X):,} objects",
        )
        self._objects = X
        D = self._squared(X)
        np.fill_diagonal(D, 0.0)
        return D

    def _squared(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Squared dissimilarities of these objects to the fitted ones, (rows, n)."""
        D = spatial.distance.cdist(X, self._objects, self.metric)
        D *= D
        bad = ~np.isfinite(D)
        if bad.any():
            row = int(np.argwhere(bad)[0][0])
            raise ValueError(
                f"The {self.metric} distance from row {row} is not defined. Leave out rows that "
                "are zero or constant, or use another metric."
            )
        return D

    def _checked(self, n: int) -> tuple[FocalSets, NDArray[np.float64] | None]:
        """Focal sets, and the masses given as `init`."""
        c = check_descent(self, n)
        one_of("metric", self.metric, _METRICS)
        ecm_parameters(self.alpha, self.beta, 1.0 if self.delta == "auto" else self.delta)
        sets = chosen_sets(self.focal_sets, c, _FAMILIES)
        if isinstance(self.init, str):
            if self.init != "k-means++":
                raise ValueError(f'init must be masses or "k-means++", got {self.init!r}.')
            return sets, None
        given = self.init
        if not isinstance(given, CredalPartition):
            given = CredalPartition(np.asarray(given, dtype=float), sets)
        if given.focal_sets != sets:
            raise ValueError(
                f"init must have masses on {', '.join(sets.names)}, got "
                f"{', '.join(given.focal_sets.names)}. Pass focal_sets=init.focal_sets."
            )
        if given.n_objects != n:
            raise ValueError(f"init has {given.n_objects} objects, X has {n}.")
        return sets, np.asarray(given.mass, dtype=float)

    def _keep(self, model: RelationalModel) -> None:
        self._model, self.weights_ = model, model.Q
        self.shift_, self.delta_ = model.shift, model.delta

    # ------------------------------------------------------------------ new objects, on disk
    def _masses(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Precomputed dissimilarities are squared, as those of the fit."""
        D = np.asarray(X, dtype=float)
        if self._objects is None:
            _refuse_negative(D)
        else:
            D = self._squared(D)
        return self._model.new_masses(D).astype(np.float32)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        model = self._model
        names = ("alpha", "beta", "delta", "shift")
        arrays = {"Q": model.Q, "K": model.K}
        if self._objects is not None:
            arrays["objects"] = self._objects
        return {name: getattr(model, name) for name in names}, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        numbers = (float(values[name]) for name in ("alpha", "beta", "delta", "shift"))
        sets = self.credal_partition_.focal_sets
        Q, K = (np.asarray(arrays[name], dtype=float) for name in ("Q", "K"))
        self._objects = arrays.get("objects")
        self._keep(RelationalModel(sets, Q, K, *numbers))


def _delta_for(delta: Any, D: NDArray[Any], w: NDArray[Any]) -> Any:
    """What was given, or for "auto" the root of the mean squared dissimilarity."""
    if isinstance(delta, str) and delta == "auto":
        square = float(w @ D @ w) / len(D) ** 2  # weights have mean one
        return float(np.sqrt(square)) if square > 0 else 1.0
    return delta


def _check_square(D: NDArray[Any]) -> None:
    """Square, not negative, zero on the diagonal, the same both ways."""
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"X must be a square matrix of squared dissimilarities, got shape {D.shape}. For "
            'attributes use metric="euclidean".'
        )
    _refuse_negative(D)
    most = D.max() * _SYMMETRY
    own = np.abs(np.diagonal(D))
    if own.max() > most:
        i = int(own.argmax())
        raise ValueError(f"An object is at 0 from itself, but X[{i}, {i}] is {D[i, i]}.")
    for i in range(len(D)):
        gap = np.abs(D[i] - D[:, i])
        if gap.max() > most:
            j = int(gap.argmax())
            raise ValueError(
                f"X must be symmetric, but X[{i}, {j}] is {D[i, j]} and X[{j}, {i}] is {D[j, i]}. "
                "Pass (X + X.T) / 2 if that is what is meant."
            )


def _refuse_negative(D: NDArray[Any]) -> None:
    if D.size and D.min() < 0:
        i, j = np.unravel_index(int(D.argmin()), D.shape)
        raise ValueError(
            f"Squared dissimilarities must not be negative, but X[{i}, {j}] is {D[i, j]}. For "
            'attributes use metric="euclidean".'
        )

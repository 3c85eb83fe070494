"""EGMM as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.egmm.solver import EMSolver, EvidentialMixture, Expected, evidential_bic, rows_of
from evdist.engine.loop import Solution, best_of, minimise
from evdist.engine.memory import check_memory
from evdist.engine.progress import Progress
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import (
    at_most_objects,
    focal_family,
    integer,
    non_negative,
    one_of,
    random_of,
)
from evdist.estimators.placing import RowMasses
from evdist.mixture.starts import MOST_ROWS, Starts
from evdist.partition import CredalPartition

_FAMILIES = ("simple", "pairs", "full")
_INITS = ("hierarchical", "k-means++")


@dataclass(eq=False, repr=False)
class EGMM(RowMasses, CredalClusterer):
    """Evidential Gaussian mixture: a Gaussian for every set of clusters, masses as posteriors.

    The Gaussian of a set lies at the barycentre of the means of its clusters, and all have one
    covariance: an object between two clusters belongs to the set of both. Jiao, Denoeux, Liu and
    Pan (2022).

    Parameters
    ----------
    n_clusters : int or sequence of int, default=3
        A number, or several from which the evidential BIC chooses.
    focal_sets : {"pairs", "simple", "full"} or FocalSets, default="pairs"
        Sets that have a Gaussian; the article uses all. The empty set has none and gets no mass.
    init : {"hierarchical", "k-means++"}, default="hierarchical"
        Partitions from which EM starts: by agglomeration, then by k-means; or by k-means alone.
        With more than 2000 objects, the start is computed from 2000 of them.
    n_init : int, default=5
        Number of starts; the result with the highest likelihood is kept.
    tol : float, default=1e-6
        EM stops when an iteration raises the mean log-likelihood by less than this.
    max_iter : int, default=1000
        Maximum number of iterations of EM.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        For k-means, and for the sample that the start of larger data uses.
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses of the objects: the posterior probabilities of the sets.
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    n_clusters_ : int
        The chosen number.
    proportions_ : (f,) array
        Of the focal sets, in their order; that of the empty set is 0.
    prototypes_ : (c, d) array
        Means of the clusters.
    covariance_ : (d, d) array
        The covariance that all Gaussians share.
    loglik_ : float
        Log-likelihood of the objects.
    bic_ : float
        2 L - nu log n: larger is better.
    bics_ : dict
        BIC by number of clusters.
    objective_ : float
        Minus the mean log-likelihood.
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
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import EGMM
    >>> X, _ = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> EGMM(n_clusters=range(1, 6), random_state=0).fit(X).n_clusters_
    3
    """

    _least_different = np.inf  # it refuses them: a Gaussian needs a row of its own

    n_clusters: int | Sequence[int] = 3
    _: KW_ONLY
    focal_sets: str | FocalSets = "pairs"
    init: str = "hierarchical"
    n_init: int = 5
    tol: float = 1e-6
    max_iter: int = 1000
    n_jobs: int | None = None
    random_state: Any = None
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; a path is that of a .npy, .csv, .parquet or .zarr file.
        y : None
            Not used; pipelines pass it.
        """
        X = np.ascontiguousarray(self._table(X, ensure_min_samples=2), dtype=float)
        families = self._checked(*X.shape)
        starts = self._starts(X, max(families))
        fits: dict[int, Solution[Expected]] = {}
        with self._reporting() as report:
            for c, sets in families.items():
                fits[c] = self._best(X, sets, starts, report)
        self.bics_ = {c: evidential_bic(fit.value, len(X)) for c, fit in fits.items()}
        chosen = max(self.bics_, key=lambda c: self.bics_[c])
        best = fits[chosen]
        self._keep(best.value.mixture, best.value.sums.loglik)
        partition = CredalPartition(self._mixture.masses(X), families[chosen])
        self._finish(partition, best.history, best.converged)
        return self

    def _checked(self, n: int, d: int) -> dict[int, FocalSets]:
        """Number of clusters -> focal sets, once every parameter has been checked."""
        single = isinstance(self.n_clusters, Integral)
        numbers = [self.n_clusters] if single else list(self.n_clusters)  # type: ignore[arg-type]
        if not numbers:
            raise ValueError("n_clusters must name at least one number, got an empty sequence.")
        for name in ("n_init", "max_iter"):
            integer(name, getattr(self, name), 1)
        non_negative("tol", self.tol)
        one_of("init", self.init, _INITS)
        self._check_callbacks()
        families = {}
        for number in numbers:
            c = integer("n_clusters", number, 1)
            at_most_objects(c, n)
            family = focal_family(self.focal_sets, c, _FAMILIES)
            sets = getattr(FocalSets, family)(c) if isinstance(family, str) else family
            if (sets.singletons < 0).any():
                lone = int(sets.singletons.argmin())
                raise ValueError(
                    f"focal_sets must hold every single cluster, but {{{lone}}} is not among "
                    "them. Start from FocalSets.simple."
                )
            families[c] = sets
        f = max(map(len, families.values()))
        check_memory(
            {"masses": 16 * n * f, "sums": 8 * f * d * d * (1 + n // 8192)},
            "Use fewer focal sets.", what=f"EGMM of {n:,} objects with {f} focal sets",
        )  # fmt: skip
        return families

    def _starts(self, X: NDArray[np.float64], most: int) -> Starts:
        rng = np.random.default_rng(int(random_of(self.random_state).randint(2**31 - 1)))
        if len(X) > MOST_ROWS:
            X = X[np.sort(rng.choice(len(X), MOST_ROWS, replace=False))]
        seed = int(rng.integers(2**31))
        starts = Starts(X, np.ones(len(X)), most, self.init, int(self.n_init), seed)
        if starts.n_distinct < most:
            raise ValueError(
                f"n_clusters must be at most the number of different rows, got {most} for "
                f"{starts.n_distinct} different rows."
            )
        return starts

    def _best(
        self, X: NDArray[np.float64], sets: FocalSets, starts: Starts, report: Any
    ) -> Solution[Expected]:
        """EM from all starts; of many objects on those of the starts first."""
        tol, most = float(self.tol), int(self.max_iter)
        with rows_of(starts.X, self.n_jobs) as some:
            begin = (
                EvidentialMixture.of_partition(sets, some.X, labels, some.floor)
                for labels in starts.labels(sets.n_clusters)
            )
            best = best_of([EMSolver(some, one, tol) for one in begin], most, report=report)
        if len(X) > len(starts.X):
            with rows_of(X, self.n_jobs) as rows:
                best = minimise(EMSolver(rows, best.value.mixture, tol), most, report=report)
        return best

    def _keep(self, mixture: EvidentialMixture, loglik: float) -> None:
        self._mixture = mixture
        self.n_clusters_ = mixture.focal_sets.n_clusters
        self.proportions_ = np.concatenate([[0.0], mixture.proportions])
        self.prototypes_, self.covariance_ = mixture.means, mixture.covariance
        self.loglik_ = loglik

    @property
    def bic_(self) -> float:
        """Evidential BIC of the number of clusters that was chosen."""
        return self.bics_[self.n_clusters_]

    # ------------------------------------------------------------------ new objects
    def _masses(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return self._mixture.masses(np.asarray(X, dtype=float))

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        bics = [[c, bic] for c, bic in self.bics_.items()]
        return {"loglik": self.loglik_, "bics": bics}, {
            "proportions": self._mixture.proportions,
            "means": self.prototypes_,
            "covariance": self.covariance_,
        }

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        sets = self.credal_partition_.focal_sets
        found = (arrays[name] for name in ("proportions", "means", "covariance"))
        self._keep(EvidentialMixture(sets, *found), float(values["loglik"]))
        self.bics_ = {int(c): float(bic) for c, bic in values["bics"]}

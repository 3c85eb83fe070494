"""Bootclus as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from evdist.belief import FocalSets, conflict
from evdist.bootclus.checks import FAMILIES, checked_pairs, most_clusters
from evdist.bootclus.kept import KeptReplicates
from evdist.bootclus.lazy import SAMPLE, Sample, Sampled
from evdist.bootclus.replicates import Bootstrap, bootstrap_gaussian, bootstrap_models
from evdist.bootclus.saved import model_state, set_model_state
from evdist.bootclus.solver import (
    LANDMARKS,
    MassFit,
    Placement,
    bayesian_masses,
    check_fit_memory,
    fit_masses,
    interval_focal_sets,
)
from evdist.ecm.lazy import lazy_table
from evdist.engine.device import find_device
from evdist.engine.progress import Progress
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import focal_family, random_of
from evdist.estimators.placing import RowMasses
from evdist.evclus.irqp import Stop
from evdist.evclus.problem import Pairs
from evdist.evclus.rows.protocol import Rows
from evdist.evclus.sites import site_of
from evdist.kernels.threads import thread_count
from evdist.mixture import GaussianMixture
from evdist.partition import CredalPartition
from evdist.stores.fingerprints import fingerprint

#: A bootstrap with a larger share of failed draws is worth a warning.
MANY_FAILED = 0.1


#: Loaded where a GPU is asked for: torch takes seconds.
_DEVICE = "evdist.bootclus.device"


class CalibrationPairs(NamedTuple):
    """What the intervals of pairs are, and what the masses make of them; (p,) each."""

    lower: NDArray[np.float32]
    upper: NDArray[np.float32]
    belief: NDArray[np.floating]
    plausibility: NDArray[np.floating]


@dataclass(eq=False, repr=False)
class Bootclus(Sampled, RowMasses, CredalClusterer):
    """Calibrated evidential clustering: mixtures, bootstrap intervals, mass functions.

    A mixture is fitted to the data and to bootstrap samples, which gives a confidence interval for
    the probability that two objects belong to the same cluster. Every object then gets a mass
    function over sets of clusters such that the belief and the plausibility of two objects being
    together approach the bounds of their interval: if the model is right, [Bel, Pl] contains the
    true probability about as often as `confidence` says.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=3
        A number, or several from which BIC chooses.
    n_bootstrap : int, default=500
        B, the number of bootstrap samples.
    confidence : float, default=0.9
        Level of the intervals.
    covariance_models : "auto", str or sequence of str, default="auto"
        Covariance models of the Gaussian mixture: all fourteen ("auto"), or some of
        `evdist.mixture.MODELS`; BIC chooses.
    mixture : estimator, default=None
        Another mixture with `fit(X, sample_weight=...)` and `predict_proba`; `n_clusters` and
        `covariance_models` are then ignored. If it has `warm_start`, every bootstrap fit starts
        from the solution for the full data.
    focal_sets : {"pairs", "simple", "full", "select"} or FocalSets, default="pairs"
        The sets of clusters that may get mass in addition to single clusters: all pairs; all
        clusters together ("simple"); all sets; or ("select") the pairs of clusters that are among
        each other's nearest. The empty set never gets mass.
    pair_neighbours : int, default=2
        With "select": how many nearest.
    n_dissimilarities : int or "auto", default="auto"
        k, the number of other objects each object is compared with, drawn at random; n - 1 or more
        is all pairs. "auto" is all pairs up to 1000 objects and 100 beyond.
    n_init : int, default=5
        Starts of the Gaussian mixture: two by agglomeration, the others by k-means. With only two,
        ecoli ended in a poor maximum.
    tol : float, default=1e-5
        The sweeps stop when the running mean of the relative change of the objective falls below
        it (eq. (18)).
    max_iter : int, default=200
        Maximum number of sweeps.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    device : {"cpu", "cuda", "cuda:1", ..., "auto"}, default="cpu"
        Where intervals and sweeps are computed; "auto" uses a GPU if there is one. The mixture and
        its replicates are fitted on the CPU, and the masses are the same up to rounding.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the mixture's starts, the bootstrap and the pairs: an int gives the same result
        every time.
    checkpoint : path or URL, default=None
        A folder for the replicates of a Gaussian mixture and, every few sweeps, the masses. After
        a crash the same call resumes and gives the same result; this needs a random_state. With a
        client, all workers must have access to the folder.
    checkpoint_every : int, default=5
        Sweeps between checkpoints, rounded up to a multiple of 4.
    callbacks : sequence of callables, default=()
        Each is called with a `Progress` after every batch of replicates and every sweep.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses of the objects.
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    mixture_ : GaussianMixture, or the mixture given
        Fitted to all the data; cluster k is its component k.
    covariance_model_ : str or None
        None if `mixture` is given.
    n_clusters_ : int
        Number of clusters, that of the mixture's components.
    intervals_ : Intervals
        i, j, lower, upper of the kept pairs, each once; a random million of them if there are more.
    n_failed_ : int
        Bootstrap samples to which no mixture could be fitted and which were drawn again.
    objective_ : float
        Mean over kept pairs of (Bel - lower)^2 + (Pl - upper)^2.
    history_ : list of float
        The objective before the first and after every sweep; it never rises.
    n_iter_ : int
        Sweeps done.
    converged_ : bool
        Whether `tol` ended the sweeps, not `max_iter`.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist import Bootclus
    >>> model = Bootclus(3, n_bootstrap=100, random_state=0).fit(load_iris().data)
    >>> model.covariance_model_, model.credal_partition_.mass.shape
    ('VEV', (150, 7))
    """

    _mass_type = np.float32

    n_clusters: int | Sequence[int] = 3
    _: KW_ONLY
    n_bootstrap: int = 500
    confidence: float = 0.9
    covariance_models: str | Sequence[str] = "auto"
    mixture: Any = None
    focal_sets: str | FocalSets = "pairs"
    pair_neighbours: int = 2
    n_dissimilarities: int | str = "auto"
    n_init: int = 5
    tol: float = 1e-5
    max_iter: int = 200
    n_jobs: int | None = None
    device: str = "cpu"
    random_state: Any = None
    checkpoint: str | Path | None = None
    checkpoint_every: int = 5
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    @property
    def _compiles(self) -> tuple[str, int] | None:  # type: ignore[override]
        on_cpu = self.device == "cpu"
        return ("evdist.bootclus.interval_kernel:interval_rows", 20) if on_cpu else None

    # ------------------------------------------------------------------ fitting
    def fit(self, X: Any, y: Any = None, *, client: Any = None) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; a path is that of a .npy, .csv, .parquet or .zarr file. Of a Dask array of
            more than 2^18 rows, or a file larger than memory, a random sample of 65,536 rows is
            fitted, with a warning; masses and labels of all rows are lazy
        y : None
            Not used; pipelines pass it.
        client : distributed.Client, default=None
            Run the bootstrap and the sweeps on a Dask cluster instead of on threads; the result is
            the same. With a device, the sweeps and intervals run on the GPUs of its workers.
        """
        seed = int(random_of(self.random_state).randint(2**31 - 1))
        table, sample = lazy_table(X), None
        if table is not None:
            checked_pairs(self, SAMPLE)  # before anything is read
            sample = Sample.of(table, seed, client)
            X = sample.X
        # Kernels are compiled for arrays that can be written; for others they would be anew.
        X = np.require(self._table(X, ensure_min_samples=2), float, ["C", "W"])
        k = checked_pairs(self, len(X))
        rows, hold = self._device_rows(X.shape, k, client)
        with self._reporting() as report:
            report(Progress("mixture", 0, 0))
            mixture = self._fitted_mixture(X, seed)
            posterior = np.asarray(mixture.predict_proba(X), dtype=float)
            family = focal_family(self.focal_sets, posterior.shape[1], FAMILIES)
            focal_sets = interval_focal_sets(family, posterior, self.pair_neighbours)
            bootstrap = self._bootstrap(X, mixture, seed, client, report)
            fit = fit_masses(
                X, bootstrap.replicates, focal_sets, bayesian_masses(posterior, focal_sets),
                confidence=self.confidence, k=k, stop=Stop(float(self.tol), int(self.max_iter)),
                seed=seed, site=site_of(self, client, rows), hold=hold,
                identity=self._identity(X, seed, k), report=report,
            )  # fmt: skip
        return self._take(X, mixture, bootstrap, fit, focal_sets, sample)

    def _device_rows(
        self, shape: tuple[int, int], k: int, client: Any
    ) -> tuple[Rows | None, Callable[..., Pairs] | None]:
        """The rows of the device, and what makes its intervals; None where threads do the work.

        Where there is not the memory for it, the fit is refused.
        """
        device = find_device(self.device, client)
        need = shape, k, int(self.n_bootstrap), most_clusters(self)
        if device is None:
            check_fit_memory(*need, client)
            return None, None
        return import_module(_DEVICE).intervals_of(str(device), *need, client)

    def _fitted_mixture(self, X: NDArray, seed: int) -> Any:
        if self.mixture is not None:
            return clone(self.mixture).fit(X)
        mixture = GaussianMixture(
            self.n_clusters, covariance_models=self.covariance_models, n_init=self.n_init,
            random_state=seed, n_jobs=self.n_jobs,
        ).fit(X)  # fmt: skip
        if mixture.failed_ is not None:
            raise ValueError(
                f"No mixture fits these data: {mixture.failed_}. Take fewer clusters, a simpler "
                "covariance model, or leave out coordinates that are constant or depend on others."
            )
        return mixture

    def _bootstrap(
        self, X: NDArray, mixture: Any, seed: int, client: Any, report: Callable[[Progress], None]
    ) -> Bootstrap:
        B = int(self.n_bootstrap)
        how: dict[str, Any] = {
            "n_threads": thread_count(self.n_jobs), "client": client, "report": report
        }  # fmt: skip
        if self.mixture is not None:
            found = bootstrap_models(X, mixture, B, seed, **how)
        else:
            start = mixture.parameters_
            if self.checkpoint is not None:
                problem = fingerprint(X, start.model, start.weights, start.means, seed)
                kept = KeptReplicates(str(self.checkpoint), problem)
                how |= {"known": kept.load(), "keep": kept.save}
            found = bootstrap_gaussian(X, start, B, seed, **how)
        if found.n_failed > MANY_FAILED * (B + found.n_failed):
            warnings.warn(
                f"{found.n_failed} of {B + found.n_failed} bootstrap samples gave no mixture and "
                "were drawn again: the intervals are too narrow. Take fewer clusters or a simpler "
                "covariance model.",
                RuntimeWarning,
                stacklevel=3,
            )
        return found

    def _identity(self, X: NDArray, seed: int, k: int) -> dict[str, Any]:
        """What a checkpoint of the sweeps must agree with."""
        if self.checkpoint is None:
            return {}
        models = None if self.mixture is None else type(self.mixture).__name__
        return {
            "data": fingerprint(X), "k": k, "seed": seed, "confidence": float(self.confidence),
            "n_bootstrap": int(self.n_bootstrap), "mixture": models,
        }  # fmt: skip

    def _take(
        self, X: NDArray, mixture: Any, bootstrap: Bootstrap, fit: MassFit, focal_sets: FocalSets,
        sample: Sample | None,
    ) -> Self:  # fmt: skip
        self.mixture_ = mixture
        self.covariance_model_ = getattr(mixture, "covariance_model_", None)
        self.n_clusters_ = focal_sets.n_clusters
        self.n_failed_ = bootstrap.n_failed
        self.intervals_ = fit.intervals if sample is None else sample.intervals(fit.intervals)
        some = fit.order[:LANDMARKS]  # the order is random
        self._placement = Placement(
            X[some], fit.mass[some], focal_sets, bootstrap.replicates, float(self.confidence)
        )
        mass = fit.mass if sample is None else sample.masses(self._placement)
        self._sampled = None if sample is None else (sample.numbers, fit.mass)
        solution = fit.solution
        self._finish(
            CredalPartition(mass, focal_sets), solution.history, solution.converged,
            sweeps="sweeps",
        )  # fmt: skip
        return self

    # ------------------------------------------------------------------ new objects
    def _masses(self, X: NDArray) -> NDArray[np.float32]:
        """Each row is placed by itself against up to 300 fitted objects, see `Placement`."""
        return self._placement(X, thread_count(self.n_jobs))

    def calibration_pairs(self) -> CalibrationPairs:
        """Bounds of `intervals_` with the belief and plausibility that the masses give their pairs.

        For :func:`evdist.plot.calibration`. Where a sample was fitted, its fitted masses are taken.
        """
        check_is_fitted(self, "credal_partition_")
        kept, sets = self.intervals_, self.credal_partition_.focal_sets
        if self._sampled is None:
            mass = np.asarray(self.credal_partition_.mass)
            mine, other = mass[kept.i], mass[kept.j]
        else:
            numbers, mass = self._sampled
            mine, other = (mass[np.searchsorted(numbers, part)] for part in (kept.i, kept.j))
        mine, other = mine.astype(float), other.astype(float)
        single = sets.singletons
        belief = np.einsum("pk,pk->p", mine[:, single], other[:, single])
        plausibility = 1.0 - conflict(mine, other, sets)
        return CalibrationPairs(kept.lower, kept.upper, belief, plausibility)

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        return model_state(self)

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        set_model_state(self, values, arrays)

"""Bootclus as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from evdist.belief import FocalSets, conflict
from evdist.bootclus.intervals import Intervals
from evdist.bootclus.kept import KeptReplicates
from evdist.bootclus.replicates import (
    Bootstrap,
    GaussianReplicates,
    bootstrap_gaussian,
    bootstrap_models,
)
from evdist.bootclus.solver import (
    LANDMARKS,
    MassFit,
    Placement,
    bayesian_masses,
    check_fit_memory,
    fit_masses,
    interval_focal_sets,
)
from evdist.data.inputs import load
from evdist.engine.device import find_device
from evdist.engine.progress import Progress
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import (
    at_most_objects,
    focal_family,
    integer,
    non_negative,
    positive,
)
from evdist.evclus.irqp import Stop
from evdist.evclus.sites import ClusterSite, LocalSite, Site
from evdist.kernels.threads import thread_count
from evdist.mixture import GaussianMixture, Parameters
from evdist.partition import CredalPartition
from evdist.partition.rows import is_dask, map_rows
from evdist.stores.fingerprints import fingerprint

__all__ = ["Bootclus", "CalibrationPairs"]

_FAMILIES = ("simple", "pairs", "full", "select")
#: Up to this many objects "auto" keeps all pairs; beyond, K_AUTO for each object.
ALL_PAIRS, K_AUTO = 1000, 100
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


class Bootclus(CredalClusterer):
    """Calibrated evidential clustering: mixtures, bootstrap intervals, mass functions.

    A mixture is fitted, and fitted again to bootstrap samples; that gives a confidence interval for
    the probability that two objects belong to the same cluster. Every object then gets a mass
    function over sets of clusters such that the belief and the plausibility of two objects being
    together approach the bounds of their interval: where the model is right, [Bel, Pl] holds the
    true probability about as often as `confidence` says.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=3
        One number, or those that BIC chooses from.
    n_bootstrap : int, default=500
        B, the number of bootstrap samples.
    confidence : float, default=0.9
        Level of the intervals.
    covariance_models : "auto", str or sequence of str, default="auto"
        Covariance models of the Gaussian mixture: all fourteen ("auto"), or some of
        `evdist.mixture.MODELS`; BIC chooses.
    mixture : estimator, default=None
        Another mixture with `fit(X, sample_weight=...)` and `predict_proba`; `n_clusters` and
        `covariance_models` are then not used. One with `warm_start` goes on from the full-data
        solution in every bootstrap sample.
    focal_sets : {"pairs", "simple", "full", "select"} or FocalSets, default="pairs"
        The sets of clusters that may get mass beside the single clusters: all pairs; all clusters
        together ("simple"); all sets; or ("select") the pairs of clusters that are among each
        other's nearest. The empty set never gets mass.
    pair_neighbours : int, default=2
        With "select": how many nearest.
    n_dissimilarities : int or "auto", default="auto"
        k, the number of other objects each object is compared with, drawn at random; n - 1 or more
        is all pairs. "auto" is all pairs up to 1000 objects and 100 beyond.
    n_init : int, default=5
        Starts of the Gaussian mixture: two of agglomeration, the others k-means. With two alone
        ecoli ended in a poor maximum.
    tol : float, default=1e-5
        The sweeps stop when the running mean of the relative change of the objective falls below
        it (eq. (18)).
    max_iter : int, default=200
        Sweeps at most.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    device : {"cpu", "cuda", "cuda:1", ..., "auto"}, default="cpu"
        Where intervals and sweeps run; "auto" is a GPU where there is one. The mixture and its
        replicates are fitted on the CPU, and the masses are the same but for rounding.
    random_state : int, RandomState or None, default=None
    checkpoint : path or URL, default=None
        A folder for the replicates of a Gaussian mixture and, every few sweeps, the masses. The
        same call after a crash goes on where it stopped, with the same bits; it needs a
        random_state. With a client, all workers must reach the folder.
    checkpoint_every : int, default=5
        Sweeps between checkpoints, rounded up to a multiple of 4.
    callbacks : sequence of callables, default=()
        Each is called with a `Progress` after every batch of replicates and every sweep.

    Attributes
    ----------
    credal_partition_ : CredalPartition
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    mixture_ : GaussianMixture, or the mixture given
        Fitted to all the data; cluster k is its component k.
    covariance_model_ : str or None
        None with another mixture.
    n_clusters_ : int
    intervals_ : Intervals
        i, j, lower, upper of the kept pairs, each once; of a random million where there are more.
    n_failed_ : int
        Bootstrap samples that no mixture could be fitted to, and that were drawn again.
    objective_ : float
        Mean over kept pairs of (Bel - lower)^2 + (Pl - upper)^2.
    history_ : list of float
        The objective before the first and after every sweep; it never rises.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from evdist import Bootclus
    >>> model = Bootclus(3, n_bootstrap=100, random_state=0).fit(load_iris().data)
    >>> model.covariance_model_, model.credal_partition_.mass.shape
    ('VEV', (150, 7))
    """

    def __init__(
        self,
        n_clusters: int | Sequence[int] = 3,
        *,
        n_bootstrap: int = 500,
        confidence: float = 0.9,
        covariance_models: str | Sequence[str] = "auto",
        mixture: Any = None,
        focal_sets: str | FocalSets = "pairs",
        pair_neighbours: int = 2,
        n_dissimilarities: int | str = "auto",
        n_init: int = 5,
        tol: float = 1e-5,
        max_iter: int = 200,
        n_jobs: int | None = None,
        device: str = "cpu",
        random_state: Any = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 5,
        callbacks: Sequence[Callable[[Progress], None]] = (),
    ):
        self.n_clusters = n_clusters
        self.n_bootstrap = n_bootstrap
        self.confidence = confidence
        self.covariance_models = covariance_models
        self.mixture = mixture
        self.focal_sets = focal_sets
        self.pair_neighbours = pair_neighbours
        self.n_dissimilarities = n_dissimilarities
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.callbacks = callbacks

    # ------------------------------------------------------------------ fitting
    def fit(self, X: Any, y: Any = None, *, client: Any = None) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, path of a .npy, .csv, .parquet or .zarr
            file
        y : ignored
        client : distributed.Client, default=None
            Run the bootstrap and the sweeps on a Dask cluster instead of on threads; the result is
            the same.
        """
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        # Kernels are compiled for arrays that can be written; for others they would be anew.
        X = np.require(self._table(X, ensure_min_samples=2), float, ["C", "W"])
        k = self._checked(len(X))
        solve = self._solver(X.shape, k, client)
        with self._reporting() as report:
            report(Progress("mixture", 0, 0))
            mixture = self._fitted_mixture(X, seed)
            posterior = np.asarray(mixture.predict_proba(X), dtype=float)
            family = focal_family(self.focal_sets, posterior.shape[1], _FAMILIES)
            focal_sets = interval_focal_sets(family, posterior, self.pair_neighbours)
            bootstrap = self._bootstrap(X, mixture, seed, client, report)
            fit = solve(
                X, bootstrap.replicates, focal_sets, bayesian_masses(posterior, focal_sets),
                confidence=self.confidence, k=k, stop=Stop(float(self.tol), int(self.max_iter)),
                seed=seed, site=self._site(client), identity=self._identity(X, seed, k),
                report=report,
            )  # fmt: skip
        return self._take(X, mixture, bootstrap, fit, focal_sets)

    def _solver(self, shape: tuple[int, int], k: int, client: Any) -> Callable[..., MassFit]:
        """`fit_masses`, here or on the GPU, when it has the memory it needs."""
        device = find_device(self.device, client)
        if client is not None and self.device == "auto":
            device = None  # the workers' GPUs cannot be used yet, see below
        need = shape, k, int(self.n_bootstrap), self._most_clusters()
        if device is None:
            check_fit_memory(*need, client)
            return fit_masses
        if client is not None:
            # Until `evdist.bootclus.device` has an executor for workers.
            raise ValueError(
                f"device={self.device!r} is not yet available for Bootclus with a client: "
                "a client's workers fit on their CPUs. Pass device='cpu', or no client."
            )
        import_module(_DEVICE).check_memory_on(device, *need)
        return partial(import_module(_DEVICE).fit_masses_on, device)

    def _checked(self, n: int) -> int:
        """Check all parameters; returns k, the pairs kept for each object."""
        for name in ("n_bootstrap", "pair_neighbours", "n_init", "max_iter", "checkpoint_every"):
            integer(name, getattr(self, name), 2 if name == "n_bootstrap" else 1)
        non_negative("tol", self.tol)
        positive("confidence", self.confidence, below=1.0)
        self._check_callbacks()
        if self.mixture is None:
            at_most_objects(self._most_clusters(), n)
        elif not has_fit_parameter(self.mixture, "sample_weight") or not hasattr(
            self.mixture, "predict_proba"
        ):
            raise TypeError(
                "mixture must have fit(X, sample_weight=...) and predict_proba(X), got "
                f"{type(self.mixture).__name__}. A bootstrap sample is a weight for each object."
            )
        if isinstance(self.focal_sets, FocalSets):
            _has_singletons(self.focal_sets)
        elif self.focal_sets not in _FAMILIES:
            focal_family(self.focal_sets, 1, _FAMILIES)  # says which there are
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                "checkpoint needs a random_state, such as random_state=0: without it the same "
                "call draws other samples and cannot go on."
            )
        if isinstance(self.n_dissimilarities, str):
            if self.n_dissimilarities != "auto":
                raise ValueError(
                    'n_dissimilarities must be an integer of at least 1 or "auto", got '
                    f"{self.n_dissimilarities!r}."
                )
            return n - 1 if n <= ALL_PAIRS else K_AUTO
        return min(integer("n_dissimilarities", self.n_dissimilarities, 1), n - 1)

    def _most_clusters(self) -> int:
        """The largest number of clusters that may come out; 1 where a mixture decides."""
        if self.mixture is not None:
            return 1
        single = isinstance(self.n_clusters, Integral)
        numbers = [self.n_clusters] if single else list(self.n_clusters)  # type: ignore[arg-type]
        if not numbers:
            raise ValueError("n_clusters must name at least one number, got an empty sequence.")
        return max(integer("n_clusters", number, 1) for number in numbers)

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

    def _site(self, client: Any) -> Site:
        folder = None if self.checkpoint is None else str(self.checkpoint)
        threads = thread_count(self.n_jobs)
        if client is None:
            return LocalSite(threads, folder, self.checkpoint_every)
        return ClusterSite(threads, folder, self.checkpoint_every, client=client)

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
        self, X: NDArray, mixture: Any, bootstrap: Bootstrap, fit: MassFit, focal_sets: FocalSets
    ) -> Self:
        self.mixture_ = mixture
        self.covariance_model_ = getattr(mixture, "covariance_model_", None)
        self.n_clusters_ = focal_sets.n_clusters
        self.n_failed_ = bootstrap.n_failed
        self.intervals_ = fit.intervals
        some = fit.order[:LANDMARKS]  # the order is random
        self._placement = Placement(
            X[some], fit.mass[some], focal_sets, bootstrap.replicates, float(self.confidence)
        )
        solution = fit.solution
        self._finish(
            CredalPartition(fit.mass, focal_sets), solution.history, solution.converged,
            sweeps="sweeps",
        )  # fmt: skip
        return self

    # ------------------------------------------------------------------ new objects
    def predict_mass(self, X: Any) -> Any:
        """Mass functions of new objects, each placed against fitted ones: (rows, f).

        An object's intervals with up to 300 fitted objects come from the same replicates, and its
        masses minimise its own terms of the objective. Each row is placed by itself. A Dask array
        gives a Dask array.
        """
        check_is_fitted(self, "credal_partition_")
        if is_dask(X) and hasattr(X, "map_blocks") and hasattr(X, "rechunk"):
            f = len(self.credal_partition_.focal_sets)
            return map_rows(self._predict_rows, X, width=f, dtype=np.float32)
        return self._placement(self._table(load(X), reset=False), thread_count(self.n_jobs))

    def _predict_rows(self, rows: NDArray, first: int) -> NDArray[np.float32]:
        return self.predict_mass(rows)

    def calibration_pairs(self) -> CalibrationPairs:
        """Bounds of `intervals_` with the belief and plausibility that the masses give their pairs.

        For :func:`evdist.plot.calibration`.
        """
        check_is_fitted(self, "credal_partition_")
        kept, partition = self.intervals_, self.credal_partition_
        mass = np.asarray(partition.mass, dtype=float)
        sets = partition.focal_sets
        mine, other = mass[kept.i], mass[kept.j]
        single = sets.singletons
        belief = np.einsum("pk,pk->p", mine[:, single], other[:, single])
        plausibility = 1.0 - conflict(mine, other, sets)
        return CalibrationPairs(kept.lower, kept.upper, belief, plausibility)

    # ------------------------------------------------------------------ on disk
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        placement, mixture, kept = self._placement, self.mixture_, self.intervals_
        replicates = placement.replicates
        if not isinstance(replicates, GaussianReplicates):
            raise TypeError(
                f"A model with a mixture of type {type(mixture).__name__} cannot be saved without "
                "pickle. Only Gaussian mixtures can."
            )
        values = {
            "covariance_model": self.covariance_model_, "n_clusters": self.n_clusters_,
            "n_failed": self.n_failed_, "confidence": placement.confidence,
            "mixture": {"loglik": mixture.loglik_, "bic": mixture.bic_, "n_iter": mixture.n_iter_,
                        "converged": mixture.converged_},
            "bics": [mixture.bics_.index.tolist(), mixture.bics_.columns.tolist()],
        }  # fmt: skip
        best = {name: getattr(mixture.parameters_, name) for name in replicates.arrays}
        arrays = {
            "row": placement.X, "mass": placement.mass, "bics": mixture.bics_.to_numpy(),
            "pair": np.stack([kept.i, kept.j]), "bound": np.stack([kept.lower, kept.upper]),
            **{f"mixture_{name}": array for name, array in best.items()},
            **{f"replicate_{name}": array for name, array in replicates.arrays.items()},
        }  # fmt: skip
        return values, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        def group(prefix: str) -> dict[str, NDArray]:
            return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}

        model = str(values["covariance_model"])
        self.covariance_model_, self.n_clusters_ = model, int(values["n_clusters"])
        self.n_failed_ = int(values["n_failed"])
        self.intervals_ = Intervals(*arrays["pair"], *arrays["bound"])
        replicates = GaussianReplicates(model, **group("replicate_"))
        sets = self.credal_partition_.focal_sets
        self._placement = Placement(
            arrays["row"], arrays["mass"], sets, replicates, float(values["confidence"])
        )
        self.mixture_ = mixture = GaussianMixture(
            self.n_clusters, covariance_models=self.covariance_models, n_init=self.n_init
        )
        mixture.parameters_ = p = Parameters(model, **group("mixture_"))
        mixture.covariance_model_, mixture.n_components_ = model, p.n_components
        mixture.weights_, mixture.means_, mixture.covariances_ = p.weights, p.means, p.covariances
        known = values["mixture"]
        mixture.loglik_, mixture.bic_ = float(known["loglik"]), float(known["bic"])
        mixture.n_iter_, mixture.converged_ = int(known["n_iter"]), bool(known["converged"])
        numbers, models = values["bics"]
        index = pd.Index(numbers, name="n_components")
        mixture.bics_ = pd.DataFrame(arrays["bics"], index=index, columns=models)
        mixture.failed_, mixture.n_features_in_ = None, p.n_features


def _has_singletons(focal_sets: FocalSets) -> None:
    """Beliefs that two objects are together are carried by the single clusters."""
    missing = np.flatnonzero(focal_sets.singletons < 0)
    if missing.size:
        raise ValueError(
            "focal_sets must hold every single cluster, but "
            f"{{{int(missing[0]) + 1}}} is not among them. Start from FocalSets.simple."
        )

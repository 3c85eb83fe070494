"""Bootstrap replicates of a mixture: vectors of counts, fitted from the full-data solution.

Reference: Denoeux, Calibrated model-based evidential clustering using bootstrapping, algorithm 1.

Replicate b draws its counts with a seed of its own, so neither the number of workers nor the way
replicates are put together makes a difference. One that fails (a component collapses or loses its
objects) is counted and drawn again with the next seed.

Differs from R's bootclus, which stops a fit when an iteration raises the log-likelihood L by less
than 1e-5 |L|: for a million objects that is more than the whole difference between a bootstrap
sample and the data, and no replicate would move. Here the raise itself must be below GAIN, whatever
n; on iris that is the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.bootclus.interval_kernel import gaussian_replicates
from evdist.bootclus.intervals import Replicates
from evdist.engine.progress import Clock, Report
from evdist.engine.workers import map_tasks, smallest_worker
from evdist.mixture import Parameters, fit_em_many
from evdist.mixture.covariance import Spread
from evdist.mixture.parameters import log_factors, whitening

#: A replicate is fitted when an iteration of EM raises its log-likelihood by less than this: a
#: confidence region is as wide as a few units.
GAIN = 2e-3
MAX_ITER = 500
#: Draws of one replicate before the mixture is given up.
DRAWS = 25
#: Counts held at once, in numbers.
BATCH = 4_000_000

#: Replicates by number: parameters and failed draws.
Gaussians = dict[int, tuple[Parameters, int]]


@dataclass(frozen=True, eq=False)
class GaussianReplicates:
    """The parameters of B Gaussian mixtures; see `evdist.mixture.Parameters`.

    Attributes
    ----------
    model : str
    weights, means, volumes, shapes, orientations : (B, c), (B, c, d), (B, c), (B, c, d),
        (B, c, d, d)
    """

    model: str
    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    volumes: NDArray[np.float64]
    shapes: NDArray[np.float64]
    orientations: NDArray[np.float64]

    @classmethod
    def of(cls, fitted: Sequence[Parameters]) -> GaussianReplicates:
        names = [f.name for f in fields(cls)[1:]]
        arrays = (np.stack([getattr(p, name) for p in fitted]) for name in names)
        return cls(fitted[0].model, *arrays)

    @property
    def size(self) -> int:
        return len(self.weights)

    @property
    def n_clusters(self) -> int:
        return self.weights.shape[1]

    @property
    def arrays(self) -> dict[str, NDArray[np.float64]]:
        return {f.name: getattr(self, f.name) for f in fields(self)[1:]}

    @cached_property
    def factors(self) -> tuple[NDArray, NDArray, NDArray]:
        """U (B, c, d, d), mu (B, c, d) and a (B, c) of `evdist.mixture.kernel`."""
        spread = Spread(self.volumes, self.shapes, self.orientations)
        factors = whitening(spread), self.means, log_factors(self.weights, spread)
        return tuple(np.require(a, float, ["C", "W"]) for a in factors)  # type: ignore[return-value]

    def posteriors(self, X: NDArray, out: NDArray[np.float32]) -> None:
        """Probabilities of the components given each row of X, into `out` (rows, c, B)."""
        gaussian_replicates(np.require(X, float, ["C", "W"]), *self.factors, out)


@dataclass(frozen=True, eq=False)
class ModelReplicates:
    """B fitted mixtures of any kind that have `predict_proba`."""

    models: tuple[Any, ...]
    n_clusters: int

    @property
    def size(self) -> int:
        return len(self.models)

    def posteriors(self, X: NDArray, out: NDArray[np.float32]) -> None:
        """Probabilities of the components given each row of X, into `out` (rows, c, B)."""
        for b, model in enumerate(self.models):
            out[:, :, b] = model.predict_proba(X)


@dataclass(frozen=True)
class Bootstrap:
    """Good replicates, and how many had to be drawn again."""

    replicates: Replicates
    n_failed: int


def draw_counts(n: int, seed: int, b: int, attempt: int) -> NDArray[np.int64]:
    """How often each of n objects is drawn in a bootstrap sample of size n: (n,)."""
    rng = np.random.default_rng([seed, 13, b, attempt])
    return np.bincount(rng.integers(0, n, n), minlength=n)


# ---------------------------------------------------------------------- Gaussian mixtures
def bootstrap_gaussian(
    X: NDArray,
    start: Parameters,
    B: int,
    seed: int,
    *,
    n_threads: int = 1,
    client: Any = None,
    known: Gaussians | None = None,
    keep: Callable[[Gaussians], None] | None = None,
    report: Report = None,
) -> Bootstrap:
    """B weighted fits from the full-data parameters, on threads or on the workers of a cluster.

    Parameters
    ----------
    X : (n, d) array
    start : Parameters
    B, seed : int
    client : distributed.Client, optional
    known : replicates that are there already
    keep : called with every new batch of replicates
    """
    X = np.ascontiguousarray(X, dtype=float)
    tol = GAIN / (1.0 + abs(start.loglik(X)))
    done = dict(known or {})
    missing = [b for b in range(B) if b not in done]
    workers = 1 if client is None else smallest_worker(client)[0]
    # Small enough to balance the workers, and to hold the counts of a batch.
    share = -(-len(missing) // (4 * workers)) if client is not None else len(missing)
    size = max(1, min(share, BATCH // len(X)))
    batches = [missing[i : i + size] for i in range(0, len(missing), size)]
    task = partial(_fit_gaussians, start, seed, tol)
    clock = Clock(report, "bootstrap", B, rows=len(X), already=len(done), unit="replicate")
    clock.tell(len(done))
    here = (task(X, batch, n_threads) for batch in batches)
    for found in here if client is None else map_tasks(client, task, X, batches):
        done.update(found)
        if keep is not None:
            keep(found)
        clock.tell(len(done))
    fitted = [done[b] for b in range(B)]
    replicates = GaussianReplicates.of([parameters for parameters, _ in fitted])
    return Bootstrap(replicates, sum(failed for _, failed in fitted))


def _fit_gaussians(
    start: Parameters, seed: int, tol: float, X: NDArray, numbers: Sequence[int], n_threads: int = 1
) -> Gaussians:
    found: Gaussians = {}
    left, reason = list(numbers), ""
    for attempt in range(DRAWS):
        counts = np.stack([draw_counts(len(X), seed, b, attempt) for b in left])
        fits = fit_em_many(X, start, counts, tol=tol, max_iter=MAX_ITER, n_jobs=n_threads)
        for b, fit in zip(left, fits, strict=True):
            if fit.failed is None:
                found[b] = fit.parameters, attempt
            else:
                reason = fit.failed
        left = [b for b in left if b not in found]
        if not left:
            return found
    raise _given_up(left[0], reason)


# ---------------------------------------------------------------------- any mixture
def bootstrap_models(
    X: NDArray,
    fitted: Any,
    B: int,
    seed: int,
    *,
    n_threads: int = 1,
    client: Any = None,
    report: Report = None,
) -> Bootstrap:
    """B copies of a fitted mixture, each fitted again with `fit(X, sample_weight=counts)`.

    A mixture with the parameter `warm_start` goes on from the full-data solution.
    """
    model = copy.deepcopy(fitted)
    if "warm_start" in getattr(model, "get_params", dict)():
        model.set_params(warm_start=True)
    n_clusters = np.shape(model.predict_proba(X[:1]))[1]
    task = partial(_fit_model, model, n_clusters, seed)
    clock = Clock(report, "bootstrap", B, rows=len(X), unit="replicate")
    clock.tell(0)
    done: dict[int, tuple[Any, int]] = {}
    with ThreadPoolExecutor(n_threads) as pool:
        if client is None:
            found = pool.map(partial(task, X), range(B))
        else:
            found = map_tasks(client, task, X, range(B))
        for b, replicate, failed in found:
            done[b] = replicate, failed
            clock.tell(len(done))
    models = tuple(done[b][0] for b in range(B))
    return Bootstrap(ModelReplicates(models, n_clusters), sum(done[b][1] for b in range(B)))


def _fit_model(model: Any, n_clusters: int, seed: int, X: NDArray, b: int) -> tuple[int, Any, int]:
    """Replicate b: its number, the fitted copy of the model, and its failed draws."""
    reason = ""
    for attempt in range(DRAWS):
        mine = copy.deepcopy(model)
        counts = draw_counts(len(X), seed, b, attempt).astype(float)
        try:
            P = mine.fit(X, sample_weight=counts).predict_proba(X)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            reason = str(error)
            continue
        if np.shape(P) == (len(X), n_clusters) and np.isfinite(P).all():
            return b, mine, attempt
        reason = "its probabilities are not finite, or of another number of clusters"
    raise _given_up(b, reason)


def _given_up(b: int, reason: str) -> RuntimeError:
    return RuntimeError(
        f"Bootstrap replicate {b} has failed {DRAWS} times, the last time because {reason}. "
        "Take fewer clusters or a simpler covariance model."
    )

"""NN-EVCLUS as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from evdist.belief import FocalSets
from evdist.blocks.local import thread_count
from evdist.constraints import check_links
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import (
    at_most_objects,
    checked_d0,
    focal_family,
    integer,
    non_negative,
    one_of,
    positive,
)
from evdist.estimators.inputs import is_pair_list, load, make_source
from evdist.estimators.nnevclus_inputs import Preparation
from evdist.partition import CredalPartition
from evdist.partition.rows import is_dask, map_rows
from evdist.solvers.evclus import first_focal_sets
from evdist.solvers.irqp import Progress
from evdist.solvers.nnevclus import (
    Fit,
    Problem,
    fit_batch,
    fit_epochs,
    network_masses,
    pick_d0,
    rebuilt,
    starts,
)
from evdist.solvers.nnevclus_centres import evclus_centres, peak_centres
from evdist.solvers.nnevclus_epochs import Schedule
from evdist.solvers.nnevclus_ranks import fit_ranks
from evdist.solvers.nnevclus_rows import Known, Weights, pick_device
from evdist.solvers.nnevclus_saved import Checkpoints, from_arrays, to_arrays
from evdist.sources import PairList, Source
from evdist.stores.encoding import StoreError
from evdist.stores.fingerprints import fingerprint
from evdist.stores.paths import Url, address

__all__ = ["NNEVCLUS"]

_FAMILIES = ("simple", "pairs", "full")
_BATCH, _MINI = ("lbfgs", "adaptive"), ("rmsprop", "adam")
#: batch_size="auto" trains on all objects at once up to AT_ONCE of them, else on so many.
AT_ONCE, MINI = 2000, 200


class NNEVCLUS(CredalClusterer):
    """Evidential clustering by a neural network, which places new objects by itself.

    A network maps attributes to mass functions such that the conflict between those of two objects
    matches their dissimilarity, as in EVCLUS. Links and labels may guide it. With a gate, objects
    unlike all training objects get their mass on the empty set.

    Parameters
    ----------
    n_clusters : int, default=4
    hidden : sequence of int, default=(20,)
        Rectified units of each hidden layer. The paper takes 1.5 times the number of focal sets.
    body : torch.nn.Module or None, default=None
        The hidden layers, instead of `hidden`: any module from float32 rows of X to (rows,
        features). Its weights are those of the first start; later starts reset them.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="simple"
        As for EVCLUS.
    metric : str or callable, default="euclidean"
        As for EVCLUS, without lists of pairs. With "precomputed" the inputs of the network are
        `n_components` principal components of the rows of dissimilarities.
    n_components : int, default=5
        With metric="precomputed" only.
    d0 : float, "auto" or str such as "q0.9", default="auto"
        As for EVCLUS.
    n_dissimilarities : int or None, default=None
        Partners that each object is compared with when all objects are trained on at once; None
        is all pairs.
    batch_size : int, None or "auto", default="auto"
        Objects of a mini-batch, among which all pairs count; None trains on all objects at once.
        "auto" is None up to 2,000 objects, else 200.
    optimizer : {"auto", "lbfgs", "adaptive", "rmsprop", "adam"}, default="auto"
        At once: L-BFGS ("auto") or the paper's adaptive steps. Mini-batches: RMSprop ("auto") or
        Adam.
    learning_rate : float, default=0.01
        Of RMSprop and Adam. It is divided by 5, twice at most, when the loss falls no more.
    l2_penalty : float, default=0
        lambda, the weight of the mean squares of each layer's weights.
    gate : bool, default=False
        Pair the network with a one-class SVM.
    gate_outliers : float, default=0.2
        Share of the objects that may lie outside the region of the SVM: its nu.
    gate_width : float, default=0.5
        The SVM's kernel is exp(-gate_width |x - x'|^2 / v), where v is the sum of the variances
        of the attributes: a smaller one makes the region smoother.
    centres : {"peaks", "evclus"}, (c,) object numbers or None, default=None
        Objects that stand for the clusters and are learnt as labelled: the largest belief peaks,
        or the objects of maximum plausibility of EVCLUS.
    constraint_weight : float, default=0.5
        xi, the weight of must-link and cannot-link constraints.
    label_weight : float, default=0.5
        nu, the weight of labelled objects against the dissimilarities, below 1.
    validation_fraction : float, default=0
        Share of the objects that is held out; training stops, and the weights of the best
        iteration are kept, when the loss among them falls no more.
    n_iter_no_change : int, default=10
        Iterations in which the loss must fall by `tol`.
    tol : float, default=1e-3
        Relative.
    max_iter : int, default=1000
        Iterations, or epochs, at most.
    n_init : int, default=3
        Random starts; the lowest objective wins.
    device : {"auto", "cpu", "cuda"}, default="auto"
        "auto" is the CUDA device where there is one.
    n_jobs : int, default=None
        Threads for choosing d0 and for centres="evclus"; the result does not depend on it. The
        network itself trains on one thread, or on many workers.
    random_state : int, RandomState or None, default=None
    checkpoint : path or URL, default=None
        A folder that keeps the state of a training by mini-batches. The same call goes on where
        it stopped; it needs a random_state.
    checkpoint_every : int, default=5
        Epochs between checkpoints, and between restore points on a cluster.
    callbacks : sequence of callables, default=()
        As for EVCLUS; a sweep is an iteration or an epoch.

    Attributes
    ----------
    credal_partition_ : CredalPartition
    labels_ : (n,) int array
    objective_ : float
        Mean over the pairs of (conflict - transformed dissimilarity)^2, with the terms of links,
        labels and weights. With mini-batches, pairs inside subsets of about 1,000 objects.
    history_ : list of float
        The objective before the first and after every iteration; with mini-batches the mean over
        each epoch, but for the last value, which is `objective_`.
    n_iter_ : int
    converged_ : bool
    d0_ : float
    d0_curve_ : list of (quantile, criterion)
    centres_ : (c,) int array
        The objects that `centres` gave; not there without.
    network_ : torch.nn.Module
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import NNEVCLUS
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> NNEVCLUS(n_clusters=3, random_state=0).fit(X).predict_mass(X[:5]).shape
    (5, 5)
    """

    def __init__(
        self,
        n_clusters: int = 4,
        *,
        hidden: Sequence[int] = (20,),
        body: Any = None,
        focal_sets: str | FocalSets = "simple",
        metric: str | Callable = "euclidean",
        n_components: int = 5,
        d0: float | str = "auto",
        n_dissimilarities: int | None = None,
        batch_size: int | str | None = "auto",
        optimizer: str = "auto",
        learning_rate: float = 0.01,
        l2_penalty: float = 0.0,
        gate: bool = False,
        gate_outliers: float = 0.2,
        gate_width: float = 0.5,
        centres: str | ArrayLike | None = None,
        constraint_weight: float = 0.5,
        label_weight: float = 0.5,
        validation_fraction: float = 0.0,
        n_iter_no_change: int = 10,
        tol: float = 1e-3,
        max_iter: int = 1000,
        n_init: int = 3,
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 5,
        callbacks: Sequence[Callable[[Progress], None]] = (),
    ):
        self.n_clusters = n_clusters
        self.hidden = hidden
        self.body = body
        self.focal_sets = focal_sets
        self.metric = metric
        self.n_components = n_components
        self.d0 = d0
        self.n_dissimilarities = n_dissimilarities
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.l2_penalty = l2_penalty
        self.gate = gate
        self.gate_outliers = gate_outliers
        self.gate_width = gate_width
        self.centres = centres
        self.constraint_weight = constraint_weight
        self.label_weight = label_weight
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.callbacks = callbacks

    # ------------------------------------------------------------------ fit
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        metric_features: Any = None,
        client: Any = None,
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path; (n, n) dissimilarities with
            metric="precomputed"
        y : ignored
        must_link, cannot_link : (p, 2) arrays of object numbers
        labels : (n,) integers
            Clusters 0..c-1 of the objects where they are known, -1 elsewhere.
        metric_features : (n, p) array or frame
            What the dissimilarities are computed from, instead of X: features adapted to links or
            labels (`evdist.features`), or with metric="precomputed" a square matrix beside the
            attributes X. New objects need X alone.
        client : distributed.Client, default=None
            Train on the workers of a Dask cluster by mini-batches, each worker on rows of its
            own. The result depends on the number of workers.
        """
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._check_parameters(client)
        X = self._table(X, ensure_min_samples=2)
        n = len(X)
        at_most_objects(int(self.n_clusters), n)
        source = self._source(X, metric_features)
        must, cannot = check_links(must_link, cannot_link, n)
        known = self._labels(labels, n)
        own = self.metric == "precomputed" and metric_features is None
        self._prepare = Preparation.of(
            X, n_components=int(self.n_components) if own else None,
            gate=(float(self.gate_outliers), float(self.gate_width)) if self.gate else None,
            raw=self.body is not None, seed=seed,
        )  # fmt: skip
        x, fx = self._prepare(X)
        threads = thread_count(self.n_jobs)
        self.d0_, self.d0_curve_ = pick_d0(source, self.d0, int(self.n_clusters), seed, threads)
        if self.centres is not None:
            known = self._with_centres(known, x, source, seed)
        sets = first_focal_sets(self._family(), int(self.n_clusters))
        weights = Weights(
            float(self.constraint_weight), float(self.label_weight), float(self.l2_penalty)
        )
        problem = Problem(
            x, fx, source, self.d0_, sets, weights, Known.of(x, fx, must, cannot, known),
            pick_device(self.device),
        )  # fmt: skip
        networks = starts(tuple(self.hidden), self.body, problem, int(self.n_init), seed)
        with self._reporting() as report:
            train = self._method(problem, seed, report, client)
            fits = [
                train(network, stage="fit" if i == 0 else f"fit {i + 1}")
                for i, network in enumerate(networks)
            ]
        best = min(fits, key=lambda fit: fit.objective)
        self.network_ = rebuilt(best.weights, tuple(self.hidden), self.body)
        mass = network_masses(self.network_, x, fx, problem.device)
        self._finish(CredalPartition(mass, sets), best.history, best.converged)
        return self

    def _method(
        self, problem: Problem, seed: int, report: Callable, client: Any
    ) -> Callable[..., Fit]:
        """The training asked for: a function of a network and the name of its stage."""
        size = self._mini_batch(problem.n, client)
        optimizer = self.optimizer
        if optimizer == "auto":
            optimizer = "lbfgs" if size is None else "rmsprop"
        known = _BATCH if size is None else _MINI
        if optimizer not in known:
            what = "all objects at once" if size is None else f"mini-batches of {size}"
            raise ValueError(
                f"Training on {what} takes optimizer {' or '.join(known)}, got {optimizer!r}. "
                "Change optimizer or batch_size."
            )
        schedule = Schedule(
            optimizer, float(self.learning_rate), size or 0, float(self.validation_fraction),
            float(self.tol), int(self.n_iter_no_change), int(self.max_iter), seed,
        )  # fmt: skip
        if size is None:
            k = self.n_dissimilarities
            k = None if k is None or k >= problem.n - 1 else int(k)
            return partial(
                fit_batch, problem, k=k, optimizer=optimizer, stop=schedule, report=report
            )
        train = partial(fit_epochs, problem)
        if client is not None:
            train = partial(fit_ranks, problem, client=client)

        def with_checkpoints(network: Any, stage: str) -> Fit:
            every = int(self.checkpoint_every)
            if self.checkpoint is None:
                return train(network, schedule=schedule, report=report, stage=stage, every=every)
            keep = Checkpoints(self.checkpoint, stage, self._identity(problem, network, schedule))
            return train(
                network, schedule=schedule, report=report, stage=stage, every=every,
                state=keep.load(), keep=keep.save,
            )  # fmt: skip

        return with_checkpoints

    def _identity(self, problem: Problem, network: Any, schedule: Schedule) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        drawn = network.state_dict()
        return {
            "data": fingerprint(problem.x),
            "dissimilarities": problem.source.fingerprint(),
            "d0": problem.d0,
            "focal sets": fingerprint(list(problem.focal_sets.masks)),
            "start": fingerprint(*(drawn[name].cpu().numpy() for name in sorted(drawn))),
            "weights": [problem.weights.links, problem.weights.labels, problem.weights.l2],
            "known": "nothing" if problem.known is None else fingerprint(
                problem.known.x, problem.known.must, problem.known.cannot, problem.known.labelled,
                problem.known.truth,
            ),
            "optimizer": schedule.optimizer,
            "learning rate": schedule.learning_rate,
            "batch size": schedule.batch_size,
            "validation": schedule.validation,
            "seed": schedule.seed,
        }  # fmt: skip

    # ------------------------------------------------------------------ what is given
    def _check_parameters(self, client: Any) -> None:
        for name in ("n_clusters", "n_components", "n_iter_no_change", "max_iter", "n_init",
                     "checkpoint_every"):  # fmt: skip
            integer(name, getattr(self, name), 1)
        for name in ("tol", "l2_penalty", "constraint_weight"):
            non_negative(name, getattr(self, name))
        positive("learning_rate", self.learning_rate)
        positive("gate_outliers", self.gate_outliers, below=1.0)
        positive("gate_width", self.gate_width)
        for name in ("label_weight", "validation_fraction"):
            if non_negative(name, getattr(self, name)) >= 1:
                raise ValueError(f"{name} must be below 1, got {getattr(self, name)!r}.")
        widths = list(self.hidden)
        if not widths:
            raise ValueError("hidden must name at least one layer, such as (20,).")
        for width in widths:
            integer("hidden", width, 1)
        if self.n_dissimilarities is not None:
            integer("n_dissimilarities", self.n_dissimilarities, 1)
        if self.batch_size is not None and self.batch_size != "auto":
            integer("batch_size", self.batch_size, 2)
        one_of("optimizer", self.optimizer, ("auto", *_BATCH, *_MINI))
        one_of("device", self.device, ("auto", "cpu", "cuda"))
        checked_d0(self.d0)
        self._family()
        self._check_callbacks()
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                "checkpoint needs a random_state, such as random_state=0: without it the same "
                "call draws other weights and cannot go on."
            )
        if client is not None and self.batch_size is None:
            raise ValueError(
                "Workers train by mini-batches; batch_size=None trains on all objects at once. "
                'Pass a number or "auto", or no client.'
            )

    def _mini_batch(self, n: int, client: Any) -> int | None:
        """Objects of a mini-batch, None for all at once."""
        if self.batch_size == "auto":
            return None if n <= AT_ONCE and client is None else min(MINI, n)
        return None if self.batch_size is None else min(int(self.batch_size), n)

    def _family(self) -> FocalSets | str:
        return focal_family(self.focal_sets, int(self.n_clusters), _FAMILIES)

    def _source(self, X: NDArray, metric_features: Any) -> Source:
        Z = X if metric_features is None else np.asarray(load(metric_features), dtype=float)
        if is_pair_list(Z, self.metric):
            raise ValueError(
                'NNEVCLUS needs the dissimilarity of any two objects: metric="pairs" is not known.'
            )
        source = make_source(Z, self.metric)
        assert not isinstance(source, PairList)
        if source.n != len(X):
            raise ValueError(f"metric_features has {source.n} rows, X has {len(X)}.")
        return source

    def _labels(self, labels: Any, n: int) -> NDArray[np.int64] | None:
        if labels is None:
            return None
        found = np.asarray(labels)
        if found.shape != (n,):
            raise ValueError(f"labels must have shape ({n},), got {found.shape}.")
        bad = (found != np.floor(found)) | (found < -1) | (found >= self.n_clusters)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"labels must be clusters 0..{self.n_clusters - 1}, or -1 where unknown, but "
                f"object {row} has {found[row]!r}."
            )
        return found.astype(np.int64)

    def _with_centres(
        self, labels: NDArray[np.int64] | None, x: NDArray, source: Source, seed: int
    ) -> NDArray[np.int64]:
        """Labels with one object more for each cluster."""
        c, n = int(self.n_clusters), source.n
        if isinstance(self.centres, str):
            if one_of("centres", self.centres, ("peaks", "evclus")) == "peaks":
                self.centres_ = peak_centres(x, c, seed)
            else:
                threads = thread_count(self.n_jobs)
                self.centres_ = evclus_centres(source, c, self.d0_, seed, threads)
        else:
            found = np.asarray(self.centres)
            whole = found.dtype.kind in "iu" and found.shape == (c,)
            if not whole or found.min() < 0 or found.max() >= n or len(set(found.tolist())) < c:
                raise ValueError(
                    f"centres must be {c} different objects of 0..{n - 1}, one for each cluster, "
                    f'or "peaks" or "evclus", got {self.centres!r}.'
                )
            self.centres_ = found.astype(np.int64)
        if labels is None:
            labels = np.full(n, -1, np.int64)
            labels[self.centres_] = np.arange(len(self.centres_))
            return labels
        raise ValueError(
            "Give labels or centres, not both: a centre's cluster need not be that of a label."
        )

    # ------------------------------------------------------------------ new objects
    def predict_mass(self, X: Any) -> Any:
        """Mass functions that the network gives to objects, old or new: (rows, f).

        With metric="precomputed" (and no `metric_features`) the rows of X are dissimilarities to
        all training objects. A Dask array gives a Dask array.
        """
        check_is_fitted(self, "credal_partition_")
        if is_dask(X) and hasattr(X, "map_blocks") and hasattr(X, "rechunk"):
            f = len(self.credal_partition_.focal_sets)
            return map_rows(self._predict_rows, X, width=f, dtype=np.float32)
        x, fx = self._prepare(self._table(load(X), reset=False))
        return network_masses(self.network_, x, fx, pick_device(self.device))

    def _predict_rows(self, rows: NDArray, first: int) -> NDArray[np.float32]:
        return self.predict_mass(rows)

    # ------------------------------------------------------------------ on disk
    @classmethod
    def load(cls, url: Url, *, body: Any = None, metric: Callable | None = None) -> Self:
        """The fitted model that :meth:`save` wrote; it predicts the same bits.

        `body` is a module like the one that the model was trained with: of such a module only the
        weights are saved. `metric` is the function of a model with a callable metric.
        """
        given = {"body": body, "metric": metric}
        return cls._load(address(url), {k: v for k, v in given.items() if v is not None})

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        values, arrays = self._prepare.state()
        values["d0"] = float(self.d0_)
        values["d0_curve"] = [[float(q), float(value)] for q, value in self.d0_curve_]
        weights = {k: v.cpu().numpy() for k, v in self.network_.state_dict().items()}
        arrays |= to_arrays("network", weights)
        if hasattr(self, "centres_"):
            arrays["centres"] = self.centres_
        return values, arrays

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray]) -> None:
        self._prepare = Preparation.from_state(values, arrays)
        if self._prepare.raw and self.body is None:
            raise StoreError(
                "This model was trained with a body of its own: pass a module like it, "
                "NNEVCLUS.load(url, body=module)."
            )
        self.d0_ = float(values["d0"])
        self.d0_curve_ = [(float(q), float(value)) for q, value in values["d0_curve"]]
        if "centres" in arrays:
            self.centres_ = arrays["centres"]
        self.network_ = rebuilt(from_arrays("network", arrays), tuple(self.hidden), self.body)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = False
        return tags

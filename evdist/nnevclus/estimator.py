"""NN-EVCLUS as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.ecm.lazy import lazy_table
from evdist.engine.device import find_device, find_here
from evdist.engine.progress import Progress
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import random_of
from evdist.estimators.placing import RowMasses
from evdist.evclus.d0 import find_d0
from evdist.evclus.groups import MANY
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.solver import first_focal_sets
from evdist.kernels.threads import thread_count
from evdist.nnevclus.centres import find_centres
from evdist.nnevclus.checks import Given, check_parameters, check_stored
from evdist.nnevclus.fit import training_of
from evdist.nnevclus.inputs import Masses, Preparation
from evdist.nnevclus.loss import LossTerms, Supervision
from evdist.nnevclus.network import (
    draw_networks,
    network_masses,
    rebuild_network,
)
from evdist.nnevclus.objects import Objects, Recipe, objects_here, objects_stored
from evdist.nnevclus.problem import Problem
from evdist.nnevclus.saved import from_arrays, to_arrays
from evdist.nnevclus.teach import hidden_widths, teach_networks
from evdist.partition import CredalPartition
from evdist.partition.rows import map_rows
from evdist.stores.encoding import StoreError
from evdist.stores.paths import Url, address

#: Kept dissimilarities of each object when d0 is chosen.
TRIAL_PAIRS = 100


@dataclass(eq=False, repr=False)
class NNEVCLUS(RowMasses, CredalClusterer):
    """Evidential clustering by a neural network, which also predicts new objects.

    A network maps attributes to mass functions such that the conflict between two objects matches
    their dissimilarity, as in EVCLUS. Links and labels may guide it. With a gate, objects unlike
    all training objects get their mass on the empty set.

    Parameters
    ----------
    n_clusters : int or "auto", default=4
        "auto" counts the prominent modes of the density of a sample; the result may be one.
        `n_clusters_` is the number.
    hidden : sequence of int or "auto", default="auto"
        Rectified units of each hidden layer. "auto" is one layer of 20, or of 1.5 units for each of
        13 clusters or more; the paper takes 1.5 times the number of focal sets.
    body : torch.nn.Module or None, default=None
        The hidden layers, instead of `hidden`: any module from float32 rows of X to (rows,
        features). Its weights are those of the first start; later starts reset them.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="simple"
        As for EVCLUS.
    metric : str or callable, default="euclidean"
        As for EVCLUS, without lists of pairs. With "precomputed" the inputs of the network are
        `n_components` principal components of the rows of dissimilarities.
    scale : {"standard", "robust"} or None, default=None
        Centre each column of X and divide it by its spread: mean and standard deviation, or
        median and interquartile range. New objects are scaled in the same way.
    n_components : int, default=5
        With metric="precomputed" only.
    d0 : float, "auto" or str such as "q0.9", default="auto"
        As for EVCLUS.
    n_dissimilarities : int or None, default=None
        Number of partners of each object when training on all objects at once; None is all
        pairs.
    batch_size : int, None or "auto", default="auto"
        Objects in a mini-batch, of which all pairs are used; None trains on all objects at once.
        "auto" is None up to 2,000 objects, else 200.
    n_shards : int or None, default=None
        Parts into which mini-batch training divides the objects. Each part takes eight steps of
        its own, then all continue from the mean of their weights. None is one part, or with a
        client one part per worker. The result depends on this number, but not on the number of
        workers.
    optimizer : {"auto", "lbfgs", "adaptive", "rmsprop", "adam"}, default="auto"
        At once: L-BFGS ("auto") or the paper's adaptive steps. Mini-batches: RMSprop ("auto") or
        Adam.
    learning_rate : float, default=0.01
        For RMSprop and Adam. It is divided by 5, at most twice, when the loss stops falling.
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
        Share of the objects that is held out. Training stops when their loss stops falling, and
        the weights of the best iteration are kept.
    n_iter_no_change : int, default=10
        Iterations in which the loss must fall by `tol`.
    tol : float, default=1e-3
        Relative.
    max_iter : int, default=1000
        Iterations, or epochs, at most.
    n_init : int, default=3
        Random starts; the one with the lowest objective is kept. With 13 clusters or more, and no
        `body`, each first learns the masses that EVCLUS gives a sample.
    device : {"cpu", "cuda", "cuda:1", ..., "auto"}, default="auto"
        Where the network is trained and predicts; "auto" uses a GPU if there is one. With a
        client this applies to each worker.
    n_jobs : int, default=None
        Threads for choosing d0 and for centres="evclus"; the result does not depend on it. The
        network itself trains on one thread, or on many workers.
    random_state : int, RandomState, Generator or None, default=None
        Seed of pairs, weights and batches: an int gives the same result every time.
    checkpoint : path or URL, default=None
        A folder for the state of mini-batch training. The same call resumes where it stopped;
        this needs a random_state.
    checkpoint_every : int, default=5
        Epochs between checkpoints, and between restore points on a cluster.
    callbacks : sequence of callables, default=()
        As for EVCLUS; a sweep is an iteration or an epoch.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses of the objects.
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    objective_ : float
        Mean over the pairs of (conflict - transformed dissimilarity)^2, with the terms of links,
        labels and weights; with 25 clusters or more and no `body`, pairs that start in one
        cluster have half the weight. With mini-batches, pairs inside subsets of about 1,000
        objects, at most about 2^18 objects of each of the `n_shards` parts.
    history_ : list of float
        The objective before the first and after every iteration; with mini-batches the mean over
        each epoch, but for the last value, which is `objective_`.
    n_iter_ : int
        Iterations, or epochs, done.
    converged_ : bool
        False where `max_iter` ended the training.
    n_clusters_ : int
        Number of clusters.
    d0_ : float
        The d0 that was used.
    d0_curve_ : list of (quantile, agreement)
        As in EVCLUS.
    centres_ : (c,) int array
        The objects chosen by `centres`; absent without `centres`.
    network_ : torch.nn.Module
        The trained network.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import NNEVCLUS
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> NNEVCLUS(n_clusters=3, random_state=0).fit(X).predict_mass(X[:5]).shape
    (5, 5)
    """

    _mass_type = np.float32

    n_clusters: int | Literal["auto"] = 4
    _: KW_ONLY
    hidden: Sequence[int] | Literal["auto"] = "auto"
    body: Any = None
    focal_sets: str | FocalSets = "simple"
    metric: str | Callable = "euclidean"
    scale: str | None = None
    n_components: int = 5
    d0: float | str = "auto"
    n_dissimilarities: int | None = None
    batch_size: int | str | None = "auto"
    n_shards: int | None = None
    optimizer: str = "auto"
    learning_rate: float = 0.01
    l2_penalty: float = 0.0
    gate: bool = False
    gate_outliers: float = 0.2
    gate_width: float = 0.5
    centres: str | ArrayLike | None = None
    constraint_weight: float = 0.5
    label_weight: float = 0.5
    validation_fraction: float = 0.0
    n_iter_no_change: int = 10
    tol: float = 1e-3
    max_iter: int = 1000
    n_init: int = 3
    device: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    checkpoint: str | Path | None = None
    checkpoint_every: int = 5
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

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
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; (n, n) dissimilarities with metric="precomputed". A Dask array of more than
            2^18 rows, or a file larger than memory, is never loaded whole; masses and labels are
            then lazy, with the same bits
        y : None
            Not used; pipelines pass it.
        must_link, cannot_link : (p, 2) arrays of object numbers
            Pairs of objects known to be in one cluster, or in different ones.
        labels : (n,) integers
            Clusters 0..c-1 of the objects where they are known, -1 elsewhere.
        metric_features : (n, p) array or frame
            Data for the dissimilarities, instead of X: features adapted to links or labels
            (`evdist.features`), or with metric="precomputed" a square matrix in addition to the
            attributes X. New objects need only X.
        client : distributed.Client, default=None
            Train on the workers of a Dask cluster by mini-batches, each worker on some of the
            `n_shards` parts of the objects. The result does not depend on the number of workers,
            on lost workers, or on whether there is a client.
        """
        seed = int(random_of(self.random_state).randint(2**31 - 1))
        check_parameters(self, client)
        self._check_callbacks()
        trained_on = find_device(self.device, client)
        device = torch.device(find_here(trained_on) or "cpu")
        lazy = lazy_table(X)
        if lazy is not None:
            check_stored(self, lazy.shape[0], metric_features)
        else:
            X = self._table(X, ensure_min_samples=2)
        with self._reporting() as report:
            if lazy is not None:
                objects = objects_stored(self, X, client, report)
                self.n_features_in_, self._scale = lazy.shape[1], None
                self._tell_of_spreads(objects.X)
            else:
                objects = objects_here(self, X, metric_features)
            given = Given.of(self, objects, must_link, cannot_link, labels, metric_features)
            problem = self._problem(objects, given, seed, device)
            focal_sets = problem.terms.focal_sets
            networks = draw_networks(
                hidden_widths(self.hidden, given.n_clusters), self.body, problem.x,
                len(focal_sets), problem.fx is not None, n_init=int(self.n_init), seed=seed,
            )  # fmt: skip
            if given.n_clusters >= MANY and self.body is None:
                threads = thread_count(self.n_jobs)
                problem = teach_networks(networks, problem, seed, threads, report)
            train = training_of(self, problem, seed, report, client, trained_on or "cpu")
            fits = [
                train(network, stage="fit" if i == 0 else f"fit {i + 1}")
                for i, network in enumerate(networks)
            ]
        best = min(fits, key=lambda fit: fit.objective)
        self.network_ = rebuild_network(best.value, self.body)
        mass: Any
        if lazy is not None:
            mass = map_rows(self._masses_of(), lazy, width=len(focal_sets), dtype=np.float32)
        elif objects.many is not None:
            mass = self._masses_of().in_blocks(X)
        else:
            mass = network_masses(self.network_, problem.x, problem.fx, device)
        self._finish(CredalPartition(mass, focal_sets), best.history, best.converged)
        return self

    def _problem(self, objects: Objects, given: Given, seed: int, device: torch.device) -> Problem:
        """What the network sees of X, d0, and the labels of the centres."""
        X, source = objects.X, objects.source
        self._prepare = Preparation.of(
            X, n_components=int(self.n_components) if given.own_matrix else None,
            gate=(float(self.gate_outliers), float(self.gate_width)) if self.gate else None,
            raw=self.body is not None, seed=seed, device=device,
        )  # fmt: skip
        x, fx = self._prepare(X, device)
        c, threads = given.n_clusters, thread_count(self.n_jobs)
        [self.d0_, *_], self.d0_curve_ = find_d0(
            source, self.d0, c, k=TRIAL_PAIRS, seed=seed, rows=NumbaRows(threads)
        )
        self.__dict__.pop("centres_", None)  # of a fit before
        known, truth = given.known
        if self.centres is not None:
            known = self.centres_ = find_centres(
                self.centres, x, objects, n_clusters=c, d0=self.d0_, seed=seed, n_threads=threads
            )
            truth = np.arange(len(known))
            known, truth = known[np.argsort(known)], truth[np.argsort(known)]

        def inputs(rows: NDArray[np.int64]) -> tuple[NDArray, NDArray | None]:
            if objects.many is not None:
                return self._prepare(objects.many.pick(rows), device)
            return x[rows], None if fx is None else fx[rows]

        terms = LossTerms(
            first_focal_sets(given.family, c), float(self.constraint_weight),
            float(self.label_weight), float(self.l2_penalty),
            Supervision.of(inputs, given.must, given.cannot, known, truth),
        )  # fmt: skip
        metric = source.metric if isinstance(source, AttributeSource) else None
        recipe = Recipe(self._prepare, metric, self.d0_)
        return Problem(objects, x, fx, recipe, terms, device)

    # ------------------------------------------------------------------ new objects
    def _masses_of(self) -> Masses:
        return Masses(self.network_, self._prepare, self.device)

    def _masses(self, X: NDArray) -> NDArray[np.float32]:
        """What the network gives to objects, old or new."""
        return self._masses_of()(X)

    # ------------------------------------------------------------------ on disk
    @classmethod
    def load(cls, url: Url, *, body: Any = None, metric: Callable | None = None) -> Self:
        """Load a model that :meth:`save` wrote; its predictions are identical.

        `body` is a module like the one that the model was trained with, of which only the
        weights are saved. `metric` is the function of a model with a callable metric.

        Parameters
        ----------
        url : path or URL
            The folder that was saved to.
        body : torch.nn.Module, optional
            As given to the model.
        metric : callable, optional
            The function that the model was fitted with.
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
        self.network_ = rebuild_network(from_arrays("network", arrays), self.body)

"""EVCLUS as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from evdist.belief import FocalSets
from evdist.data.sources import PairList, Source
from evdist.data.sparse import SPARSE_METRICS
from evdist.data.tables import as_frame
from evdist.engine.admission import admitted
from evdist.engine.progress import Progress
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import random_of, weights
from evdist.estimators.placing import RowMasses
from evdist.estimators.saved import same_part
from evdist.evclus.begin import layout_of
from evdist.evclus.checks import USUAL, checked_settings
from evdist.evclus.floor import is_less_noise
from evdist.evclus.groups import Groups
from evdist.evclus.input import metric_asked, rows_to_compare
from evdist.evclus.kept import some_pairs
from evdist.evclus.maps import MAPS, compared, load_map, map_name, save_map
from evdist.evclus.memory import check_disk, check_memory, worker_need
from evdist.evclus.partitions.estimator import (
    fit_model_in_partitions,
    in_partitions,
    partition_site,
)
from evdist.evclus.sites import (
    device_rows,
    has_device,
    plain_rows,
    row_kernel,
    rows_are_lists,
    site_of,
    takes_groups,
)
from evdist.evclus.solver import Constraints, Fit, first_focal_sets, fit_evclus
from evdist.evclus.start import Settings, place
from evdist.evclus.stored import (
    check_landmarks,
    load_kept,
    load_landmarks,
    save_kept,
    save_landmarks,
)
from evdist.evclus.views import Views
from evdist.kernels.sparse_rows import decode
from evdist.kernels.threads import thread_count
from evdist.partition import CredalPartition
from evdist.stores.paths import Url, address, join


@dataclass(eq=False, repr=False)
class EVCLUS(RowMasses, CredalClusterer):
    """Evidential clustering of attributes or dissimilarities, linear in the number of objects.

    Every object gets a mass function over sets of clusters such that the conflict between the
    mass functions of two objects matches their dissimilarity: distant objects conflict, close
    ones agree. Objects far from all others get mass on the empty set. Objects between clusters
    get mass on each of them or on their union; see ``credal_partition_.decide()``.

    Parameters
    ----------
    n_clusters : int or "auto", default=4
        "auto" counts the prominent modes of the density of a sample; the result may be one.
        `n_clusters_` is the number.
    n_dissimilarities : int or "auto", default=100
        k, the number of random other objects that each object is compared with; n - 1 or more
        means the full matrix. "auto" is the full matrix up to 400 objects and 100 beyond.
    metric : str or callable, default="auto"
        "auto" looks at the data in several ways. With four columns and 500 objects or more an
        object's masses are the mean of those that several views give it (`views_`); with two or
        three columns a sample is clustered with "euclidean" and with "geodesic", and the clearer
        one is taken; with fewer objects it is "euclidean". It is "euclidean", too, where something
        says that objects are compared in one way: a number as `d0`, sparse rows, partitions, and
        with four columns or more given masses, links, weights and `focal_sets` other than
        "simple". See docs/decisions/metric-auto.md.
        "euclidean" is the fastest, for millions of objects; "sqeuclidean", "cityblock",
        "chebyshev", "cosine", "correlation", "hamming", "mahalanobis"; "precomputed" for a square
        matrix of dissimilarities; "pairs" for rows (i, j, dissimilarity); or a function of two
        rows, called as metric(X[i], X[j]) with i < j. "geodesic" measures along the data, for
        clusters of any shape: all rows, including new ones, are first mapped by
        `evdist.features.GeodesicMap`. "layout" lays neighbours together and strangers apart, for
        clusters in many attributes (`evdist.features.NeighbourLayout`).
        A sparse square matrix always holds the dissimilarities of the pairs it stores.
    scale : {"standard", "robust"} or None, default=None
        Centre each column of X and divide it by its spread: mean and standard deviation, or
        median and interquartile range. New objects are scaled in the same way.
    noise_floor : bool or "auto", default="auto"
        Whether half the mean squared distance of an object to its nearest others is taken off all
        its squared distances: in many dimensions that much of them is noise. "auto" does so where
        distances hardly vary. For attributes and metrics that are Euclidean in some coordinates;
        `noise_floor_` tells whether it was done.
    focal_sets : {"simple", "pairs", "full", "select"} or FocalSets, default="simple"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets; or ("select") the pairs of neighbouring clusters,
        found in a first fit with "simple".
    pair_neighbours : int, default=2
        With "select": two clusters form a pair if each is among this many nearest of the other.
    d0 : float, "auto" or str such as "q0.9", default="auto"
        Dissimilarity above which two objects are almost surely (0.95) in different clusters: a
        number, a quantile of the dissimilarities, or "auto", chosen on a sample (for a list of
        pairs "q0.9"; with many clusters from a preliminary partition).
    init : {"auto", "landmarks", "k-means++", "random"} or array or CredalPartition
        "landmarks" fits a sample of the objects from several starts and derives the masses of the
        others from it; "k-means++" does the same from seeded starts only; with many clusters both
        begin with a preliminary partition; "random" starts from random masses; an (n, f) array or
        a CredalPartition is used as the start, and only as that: d0 and pairs are those of
        "landmarks". "auto" is "landmarks", or "random" for a list of pairs.
    n_init : int, default=1
        Restarts of the landmark problem (each tries several starts) or, with "random", of the
        whole fit. The one with the lowest objective is kept.
    tol : float or "auto", default="auto"
        Stop when the running mean of the relative change of the objective falls below it
        (k-CEVCLUS, eq. (21)). "auto" is 1e-5; from 50,000 objects on, but for random starts, a
        fit ends with the sweep, the third or later, that lowers the objective by less than 5e-4.
    max_iter : int, default=200
        Maximum number of sweeps.
    constraint_weight : float, default=0.5
        xi, the weight of must-link and cannot-link constraints against the stress.
    expand_constraints : int, default=0
        K: each constraint also applies to the K nearest pairs of neighbours (k-CEVCLUS, algorithm
        2).
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the pairs and the starts: an int gives the same result every time.
    outliers : {"cluster", "label"}, default="cluster"
        What `labels_` and `predict` say of outliers: the cluster that is most plausible, or -1, as
        scikit-learn's DBSCAN and hdbscan do.
    checkpoint : path or URL, default=None
        A folder for the pairs and, every few sweeps, the masses. After a crash the same call
        resumes and gives the same result; this needs a random_state. With a client, all workers
        must have access to the folder.
    checkpoint_every : int, default=5
        Sweeps between checkpoints, rounded up to a multiple of 4.
    device : {"cpu", "cuda", "cuda:1", ..., "auto"}, default="cpu"
        Where start, sweeps and prediction run; "auto" uses a GPU if there is one. The pairs are
        the same, and so is the optimum up to rounding. Needs torch; see docs/gpu.md. With a
        client each worker uses one GPU, and the result equals that of one GPU.
    memory_limit : int, default=None
        Bytes that a fit may use on each GPU; None means the free memory. If the kept pairs do not
        fit, they are sent from host memory or computed again in every sweep, which callbacks
        report; the result is the same. On a CPU, bytes that this process may use in total: a fit
        that needs more is done in `partitions`, or refused if that does not help.
    partitions : {"auto", "always", "never"} or even int, default="auto"
        Whether the objects are shuffled into partitions on disk, each of which is compared with a
        few others, so that no process holds all objects: for data larger than memory and for Dask
        arrays with a client. "auto" does so if the fit needs it to fit into memory, and for Dask
        collections of more than 2^18 rows with a client; a number sets the number of partitions.
        Masses then stay in a store (in `checkpoint`, if given), and Dask input gives Dask output;
        see docs/partitions.md.
    callbacks : sequence of callables, default=()
        Each is called after every sweep with a `Progress` (stage, sweep, max_sweeps, objective,
        change, rows_per_second, seconds_left), and when a stage without sweeps begins (max_sweeps
        is 0): `ProgressBar()`, `LogProgress()`, or any function.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses of the objects.
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    objective_ : float
        Mean over kept pairs of (conflict - transformed dissimilarity)^2, plus the penalty of the
        constraints.
    history_ : list of float
        The objective before the first and after every sweep; it never rises.
    n_iter_ : int
        Sweeps done.
    converged_ : bool
        Whether `tol` ended the fit, not `max_iter`.
    n_clusters_ : int
        Number of clusters.
    metric_ : str or callable
        The metric; with "auto" the chosen one, or "views".
    views_ : dict of CredalPartition
        With metric="auto" and several views: the partition of each. Their clusters have numbers of
        their own.
    noise_floor_ : bool
        Whether noise floors were taken off.
    d0_ : float
        The d0 that was used.
    d0_curve_ : list of (quantile, agreement)
        What "auto" tried: how far the partition of each quantile agrees with the reference and
        with its neighbours, see docs/decisions/d0-auto.md; empty otherwise.
    n_features_in_ : int
        Columns of X.
    probabilities_, outlier_scores_ : (n,) arrays
        How strongly each object belongs to its cluster, and its mass on the empty set.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import EVCLUS
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> EVCLUS(n_clusters=3, random_state=0).fit(X).credal_partition_.mass.shape
    (300, 5)
    """

    _mass_type = np.float32

    n_clusters: int | Literal["auto"] = 4
    _: KW_ONLY
    n_dissimilarities: int | Literal["auto"] = 100
    metric: str | Callable = "auto"
    scale: str | None = None
    noise_floor: bool | Literal["auto"] = "auto"
    focal_sets: str | FocalSets = "simple"
    pair_neighbours: int = 2
    d0: float | str = "auto"
    init: str | ArrayLike | CredalPartition = "auto"
    n_init: int = 1
    tol: float | Literal["auto"] = "auto"
    max_iter: int = 200
    constraint_weight: float = 0.5
    expand_constraints: int = 0
    n_jobs: int | None = None
    random_state: Any = None
    outliers: str = "cluster"
    checkpoint: str | Path | None = None
    checkpoint_every: int = 5
    device: str = "cpu"
    memory_limit: int | None = None
    partitions: str | int = "auto"
    callbacks: Sequence[Callable[[Progress], None]] = ()
    verbose: bool = False

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        attributes: Any = None,
        client: Any = None,
    ) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, or path
            The objects; (n, n) dissimilarities with metric="precomputed"; sparse matrix; pair list.
            A path is that of a .npy, .csv, .parquet or .zarr file.
        y : None
            Not used; pipelines pass it.
        must_link, cannot_link : (p, 2) arrays of object numbers
            Pairs known to be in one cluster, in different clusters: k-CEVCLUS.
        sample_weight : (n,) array, positive
            A pair counts with the product of its objects' weights.
        attributes : (n, d) array, optional
            With a list of pairs or a sparse matrix: attributes for the distances of additional
            random pairs. A graph of nearest neighbours cannot be clustered without them.
        client : distributed.Client, default=None
            Run the sweeps on a Dask cluster instead of on threads; the result is the same. With a
            device, on the GPUs of its workers.
        """
        X = as_frame(X)
        seed = int(random_of(self.random_state).randint(2**31 - 1))
        linked = must_link is not None or cannot_link is not None
        weighted = sample_weight is not None
        if in_partitions(self, X, client, linked=linked, weighted=weighted):
            fit_model_in_partitions(self, X, seed, client)
            return self
        X, data, c, self._map = rows_to_compare(
            self, X, seed, metric_asked(self, X), attributes, alone=not (linked or weighted)
        )
        settings = checked_settings(self, data, seed, c)
        metric = self._resolved if self._map is None else compared(self._map)
        constraints = Constraints.of(
            X, data, must_link, cannot_link, self.expand_constraints, metric
        )
        weight = weights(sample_weight, data.n)
        groups = takes_groups(self, data, settings, bool(constraints), client)
        settings = replace(settings, groups=groups)
        self._list_rows = rows_are_lists(data, settings, bool(constraints))
        settings = replace(settings, lists=self._list_rows)
        rows = device_rows(self, data, settings, bool(constraints), client)
        if rows is None:
            check_memory(data, settings, client, self.memory_limit)
        if self.checkpoint is not None:
            check_disk(data, settings, str(self.checkpoint))
        need = worker_need(data, settings, client)
        known = self._known_groups(data, settings) if rows is None else None
        with self._reporting() as report, admitted(client, need, report):
            fit = fit_evclus(
                data, settings, constraints=constraints, weight=weight,
                site=site_of(self, client, rows), report=report, known=known,
            )  # fmt: skip
        return self._take(fit)

    def sample_pairs(self, X: Any, *, client: Any = None) -> Self:
        """Draw only the pairs that :meth:`fit` will compare, and store them in `checkpoint`.

        Where the fit will be done in partitions, lay these out instead.

        The fit that follows finds them there. A list of pairs, a fit without a folder, and a GPU,
        which makes them faster than it could read them, need nothing of the kind; nor does one that
        maps its rows first (metric "auto", "geodesic" and "layout").

        Parameters
        ----------
        X : as for `fit`
            The objects.
        client : distributed.Client, default=None
            As for `fit`.
        """
        X = as_frame(X)
        seed = int(random_of(self.random_state).randint(2**31 - 1))
        if in_partitions(self, X, client):
            if self.checkpoint is not None:
                partition_site(self, client).lay_out(X)
            return self
        metric = metric_asked(self, X)
        if isinstance(metric, str) and metric in ("auto", *MAPS):
            return self  # the fit maps the rows first, and would map them again
        _, data, c, self._map = rows_to_compare(self, X, seed, metric)
        settings = checked_settings(self, data, seed, c)
        if has_device(self, client):
            return self
        settings = replace(settings, lists=rows_are_lists(data, settings, False))
        check_memory(data, settings, client, self.memory_limit)
        if self.checkpoint is not None and not isinstance(data, PairList):
            check_disk(data, settings, str(self.checkpoint))
            family = first_focal_sets(settings.focal_sets, settings.n_clusters)
            layout, groups = layout_of(data, family, settings, thread_count(self.n_jobs))
            if groups is not None:  # the fit that follows begins with them
                self._sampled = _basis(data, settings), groups
            need = worker_need(data, settings, client)
            with self._reporting() as report, admitted(client, need, report):
                # The store holds dissimilarities as they are: no d0 is needed yet.
                site_of(self, client).sample(data, layout, 1.0, seed)
        return self

    def _known_groups(self, data: Source | PairList, settings: Settings) -> Groups | None:
        """The groups that `sample_pairs` has found, where they are those of this fit."""
        basis, groups = self.__dict__.pop("_sampled", (None, None))
        if groups is None or isinstance(data, PairList) or basis != _basis(data, settings):
            return None
        return groups

    @property
    def _resolved(self) -> str | Callable:
        """The metric, of "auto" the one it took."""
        if self._map is not None:
            return map_name(self._map)
        return "euclidean" if self.metric == "auto" else self.metric

    @property
    def metric_(self) -> str | Callable:
        check_is_fitted(self, "credal_partition_")
        return self._resolved

    @property
    def noise_floor_(self) -> bool:
        check_is_fitted(self, "credal_partition_")
        return self._landmarks is not None and is_less_noise(self._landmarks.source)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        said = super().__repr__(N_CHAR_MAX)
        # What the data decided, and no parameter asked for.
        found = "credal_partition_" in self.__dict__ and self.noise_floor_
        return f"{said}  # less noise floors" if found and self.noise_floor == "auto" else said

    @property
    def views_(self) -> dict[str, CredalPartition]:
        check_is_fitted(self, "credal_partition_")
        if not isinstance(self._map, Views):
            raise AttributeError(f"There are no views with the metric {self._resolved!r}.")
        return self._map.partitions

    #: Whether the rows of the fit that comes are lists of clusters, with kernels of their own.
    _list_rows = False

    @property
    def _compiles(self) -> tuple[str, int] | None:  # type: ignore[override]
        return row_kernel(self._list_rows) if self.device == "cpu" else None

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        return isinstance(self.metric, str) and self.metric in ("auto", *SPARSE_METRICS)

    @property
    def _numeric(self) -> bool:
        return not callable(self.metric)

    def _take(self, fit: Fit) -> Self:
        self.d0_ = fit.d0
        self.d0_curve_ = fit.d0_curve
        self._landmarks = fit.landmarks
        self._kept = fit.kept or some_pairs(fit.pairs, fit.order)
        solution = fit.solution
        partition = CredalPartition(fit.mass, fit.focal_sets)
        if isinstance(self._map, Views):
            # The objective is that of the joint fit, and so are the conflicts.
            self._kept = self._kept.with_conflicts(partition)
            partition = CredalPartition(self._map.match(fit.mass), fit.focal_sets)
        self._finish(partition, solution.history, solution.converged, sweeps="sweeps")
        return self

    # ------------------------------------------------------------------ on disk
    @classmethod
    def load(cls, url: Url, *, metric: Callable | None = None) -> Self:
        """Load a model that :meth:`save` wrote; its predictions are identical.

        The masses stay in the folder and are read when they are needed; :meth:`append` adds to
        them there. Pass `metric` if the model was fitted with a callable metric: only the rows
        that it compares are saved, not the function.

        Parameters
        ----------
        url : path or URL
            The folder that was saved to.
        metric : callable, optional
            The function that the model was fitted with.
        """
        return cls._load(address(url), {} if metric is None else {"metric": metric})

    def stores(self) -> tuple[str, ...]:
        """Names of the stores in the folder of a saved model, beside its masses."""
        return ("landmarks", "kept", "views", *MAPS)

    def _save_parts(self, url: str) -> tuple[dict[str, Any], dict[str, str | None]]:
        landmarks = None
        if self._landmarks is not None:
            landmarks = save_landmarks(join(url, "landmarks.zarr"), self._landmarks)
        kept = save_kept(join(url, "kept.zarr"), self._kept)
        curve = [[float(q), float(value)] for q, value in self.d0_curve_]
        parts = {"landmarks": landmarks, "kept": kept}
        if self._map is not None:
            parts |= save_map(url, self._map)
        return {"d0": float(self.d0_), "d0_curve": curve}, parts

    def _load_parts(self, url: str, fitted: dict[str, Any], parts: Mapping[str, Any]) -> None:
        self.d0_ = float(fitted["d0"])
        self.d0_curve_ = [(float(q), float(value)) for q, value in fitted["d0_curve"]]
        self._landmarks = None
        self._map = load_map(url, parts, type(self))
        if parts["landmarks"] is not None:
            given = self.metric if callable(self.metric) else None
            self._landmarks, mark = load_landmarks(join(url, "landmarks.zarr"), given)
            same_part(url, "landmarks", mark, parts)
            width = self.n_features_in_ if self._map is None else self._map._n_features_out
            check_landmarks(self._landmarks, self.credal_partition_.focal_sets, width)
        self._kept, mark = load_kept(join(url, "kept.zarr"))
        same_part(url, "kept", mark, parts)

    # ------------------------------------------------------------------ new objects
    def _masses(self, X: NDArray) -> NDArray[np.float32]:
        """Each row is placed by itself against k of the fitted objects."""
        if self._landmarks is None:
            raise ValueError(
                "A model fitted to a list of pairs cannot place new objects: nothing tells their "
                "dissimilarities to the fitted ones."
            )
        if isinstance(self._map, Views):
            bets, mean = self._map.place(X)
            return self._map.together(mean, self._from_landmarks(bets))
        return self._from_landmarks(X if self._map is None else self._map.transform(X))

    def _from_landmarks(self, X: NDArray) -> NDArray[np.float32]:
        """Masses of rows where they are compared, from the landmarks."""
        assert self._landmarks is not None
        rows, k = plain_rows(self), self.n_dissimilarities
        k = USUAL if k == "auto" else k
        found = rows.on_host(place(self._landmarks, X, k=k, seed=0, rows=rows, spread=False))
        if self._landmarks.sparse:
            return decode(found, self.n_clusters_)
        if self._landmarks.reach is not None:
            found = np.array(found)
            self._landmarks.give_back_new(found, X)
        return found

    def shepard_pairs(self) -> tuple[NDArray[np.float32], NDArray[np.floating]]:
        """Dissimilarities and conflicts of kept pairs, for :func:`evdist.plot.shepard`.

        Returns
        -------
        delta : (p,) array
            Transformed dissimilarities of the pairs that the fit has kept, each pair once; a
            random 200,000 of them where there are more.
        kappa : (p,) array
            Degrees of conflict of the pairs' mass functions. Without weights and constraints, the
            mean of (kappa - delta)^2 over all kept pairs is `objective_`.
        """
        check_is_fitted(self, "credal_partition_")
        return self._kept.delta, self._kept.conflicts(self.credal_partition_)


def _basis(source: Source, settings: Settings) -> tuple[str, int, int]:
    """What groups follow from."""
    return source.fingerprint(), settings.n_clusters, settings.seed

"""EVCLUS as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from evdist.belief import FocalSets, conflict
from evdist.constraints import check_links, expand_constraints
from evdist.data.inputs import is_pair_list, load, make_source
from evdist.data.sources import AttributeSource, PairList, Source
from evdist.engine.device import find_device
from evdist.engine.progress import Progress
from evdist.estimators.base import CredalClusterer
from evdist.estimators.checks import (
    at_most_objects,
    checked_d0,
    focal_family,
    integer,
    non_negative,
    weights,
)
from evdist.estimators.number import clusters_for
from evdist.estimators.saved import same_part
from evdist.evclus.geodesic import load_map, mapped, save_map
from evdist.evclus.irqp import Stop
from evdist.evclus.kept import some_pairs
from evdist.evclus.landmarks import Landmarks
from evdist.evclus.memory import check_disk, check_memory, most_focal_sets
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.rows.protocol import Rows
from evdist.evclus.sampling import draw_layout
from evdist.evclus.sites import ClusterSite, LocalSite, Site
from evdist.evclus.solver import Constraints, Fit, Settings, first_focal_sets, fit_evclus, widen
from evdist.evclus.start import place
from evdist.evclus.stored import load_kept, load_landmarks, save_kept, save_landmarks
from evdist.kernels.threads import thread_count
from evdist.partition import CredalPartition
from evdist.partition.rows import is_dask, map_rows
from evdist.stores.encoding import StoreError
from evdist.stores.paths import Url, address, join

__all__ = ["EVCLUS"]

#: Loaded where a GPU is asked for: torch takes seconds.
_DEVICE = "evdist.evclus.rows.device"
_FAMILIES = ("simple", "pairs", "full", "select")
_INITS = ("auto", "landmarks", "random", "k-means++")


class EVCLUS(CredalClusterer):
    """Evidential clustering of attributes or dissimilarities, linear in the number of objects.

    Every object gets a mass function over sets of clusters such that the conflict between the
    mass functions of two objects matches their dissimilarity: far objects conflict, near ones
    agree. Objects far from all get mass on the empty set; those between clusters divide it
    between these or put it on their union, see ``credal_partition_.decide()``.

    Parameters
    ----------
    n_clusters : int or "auto", default=4
        "auto" counts the modes of the density that stand out, among a sample of the objects; it may
        say one. `n_clusters_` holds the number.
    n_dissimilarities : int, default=100
        k, the number of other objects each object is compared with, drawn at random; n - 1 or
        more is the full matrix.
    metric : str or callable, default="euclidean"
        "euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine", "correlation", "hamming",
        "mahalanobis"; "precomputed" for a square matrix of dissimilarities; "pairs" for rows
        (i, j, dissimilarity); or a function of two rows, called as metric(X[i], X[j]) with i < j.
        "geodesic" measures along the data, for clusters of any shape: the rows are mapped by
        `evdist.features.GeodesicMap` (power=2) first, new ones alike.
        A sparse matrix always holds the dissimilarities of the pairs it stores.
    scale : {"standard", "robust"} or None, default=None
        Take its centre from each column of X and divide it by its spread: mean and standard
        deviation, or median and interquartile range. New objects are brought to the same scale.
    focal_sets : {"simple", "pairs", "full", "select"} or FocalSets, default="simple"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets; or ("select") the pairs of neighbouring clusters,
        found in a first fit with "simple".
    pair_neighbours : int, default=2
        With "select": pairs of clusters that are among each other's so many nearest.
    d0 : float, "auto" or str such as "q0.9", default="auto"
        Dissimilarity from which on two objects are almost surely (0.95) in different clusters: a
        number, a quantile of the dissimilarities, or chosen on a sample ("auto"; for a list of
        pairs that is "q0.9").
    init : {"auto", "landmarks", "k-means++", "random"} or array or CredalPartition
        "landmarks" solves a sample of the objects from several starts and places the others
        against it; "k-means++" the same from seeded starts only; "random" starts from random
        masses; an (n, f) array or a CredalPartition is taken as it is. "auto" is "landmarks", or
        "random" for a list of pairs.
    n_init : int, default=1
        Restarts: of the landmark problem (each tries several starts) or of the whole fit
        ("random"). The lowest objective wins.
    tol : float, default=1e-5
        Stop when the running mean of the relative change of the objective falls below it
        (k-CEVCLUS, eq. (21)).
    max_iter : int, default=200
        Sweeps at most.
    constraint_weight : float, default=0.5
        xi, the weight of must-link and cannot-link constraints against the stress.
    expand_constraints : int, default=0
        K: each constraint is given to the K nearest pairs of neighbours too (k-CEVCLUS, algorithm
        2).
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
    checkpoint : path or URL, default=None
        A folder for the pairs and, every few sweeps, the masses. The same call after a crash goes
        on where it stopped, with the same bits; it needs a random_state. With a client, all
        workers must reach the folder.
    checkpoint_every : int, default=5
        Sweeps between checkpoints, rounded up to a multiple of 4.
    device : {"cpu", "cuda", "cuda:1", ..., "auto"}, default="cpu"
        Where start, sweeps and prediction run; "auto" takes a GPU where there is one. The pairs
        are the same, and so is the optimum but for rounding. Needs torch; see docs/gpu.md. With a
        client each worker is one GPU, and the result that of one GPU.
    memory_limit : int, default=None
        Bytes that a fit may take on each GPU; None is what is free there. Where kept pairs do not
        fit, they are sent from the host's memory or computed again in every sweep, which a
        callback is told; the result is the same.
    callbacks : sequence of callables, default=()
        Each is called after every sweep with a `Progress` (stage, sweep, max_sweeps, objective,
        change, rows_per_second, seconds_left), and when a stage without sweeps begins (max_sweeps
        is 0): `ProgressBar()`, `LogProgress()`, or any function.

    Attributes
    ----------
    credal_partition_ : CredalPartition
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    objective_ : float
        Mean over kept pairs of (conflict - transformed dissimilarity)^2, plus the penalty of the
        constraints.
    history_ : list of float
        The objective before the first and after every sweep; it never rises.
    n_iter_ : int
    converged_ : bool
    n_clusters_ : int
    d0_ : float
    d0_curve_ : list of (quantile, agreement)
        What "auto" tried: how far the partition of each quantile agrees with the reference, see
        docs/decisions/d0-auto.md; empty otherwise.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import EVCLUS
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> EVCLUS(n_clusters=3, random_state=0).fit(X).credal_partition_.mass.shape
    (300, 5)
    """

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 4,
        *,
        n_dissimilarities: int = 100,
        metric: str | Callable = "euclidean",
        scale: str | None = None,
        focal_sets: str | FocalSets = "simple",
        pair_neighbours: int = 2,
        d0: float | str = "auto",
        init: str | ArrayLike | CredalPartition = "auto",
        n_init: int = 1,
        tol: float = 1e-5,
        max_iter: int = 200,
        constraint_weight: float = 0.5,
        expand_constraints: int = 0,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 5,
        device: str = "cpu",
        memory_limit: int | None = None,
        callbacks: Sequence[Callable[[Progress], None]] = (),
    ):
        self.n_clusters = n_clusters
        self.n_dissimilarities = n_dissimilarities
        self.metric = metric
        self.scale = scale
        self.focal_sets = focal_sets
        self.pair_neighbours = pair_neighbours
        self.d0 = d0
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.constraint_weight = constraint_weight
        self.expand_constraints = expand_constraints
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.device = device
        self.memory_limit = memory_limit
        self.callbacks = callbacks

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        client: Any = None,
    ) -> Self:
        """Cluster the objects.

        Parameters
        ----------
        X : (n, d) array, data frame, Dask or zarr array, path of a .npy, .csv, .parquet or .zarr
            file; (n, n) dissimilarities with metric="precomputed"; sparse matrix; pair list
        y : ignored
        must_link, cannot_link : (p, 2) arrays of object numbers
            Pairs known to be in one cluster, in different clusters: k-CEVCLUS.
        sample_weight : (n,) array, positive
            A pair counts with the product of its objects' weights.
        client : distributed.Client, default=None
            Run the sweeps on a Dask cluster instead of on threads; the result is the same. With a
            device, on the GPUs of its workers.
        """
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        X, data, c = self._source(X, seed)
        settings = self._settings(data, seed, c)
        constraints = self._constraints(X, data, must_link, cannot_link)
        weight = weights(sample_weight, data.n)
        rows = self._rows(data, settings, bool(constraints), client)
        if self.checkpoint is not None:
            check_disk(data, settings, str(self.checkpoint))
        with self._reporting() as report:
            fit = fit_evclus(
                data, settings, constraints=constraints, weight=weight,
                site=self._site(client, rows), report=report,
            )  # fmt: skip
        return self._take(fit)

    def _rows(
        self, data: Source | PairList, settings: Settings, linked: bool, client: Any
    ) -> Rows | None:
        """The rows of a device, None for threads, when there is the memory that a fit needs."""
        device = find_device(self.device, client)
        if device is None:
            check_memory(data, settings, client)
            return None
        if isinstance(data, PairList):
            raise ValueError(
                "A list of pairs has a graph of its own, which the GPU's sweeps cannot follow. Use "
                "device='cpu', or pass the attributes or a square matrix."
            )
        rows = import_module(_DEVICE).DeviceRows(str(device), self.memory_limit)
        return rows.prepared(data, settings.k, most_focal_sets(settings), linked, client)

    def sample_pairs(self, X: Any, *, client: Any = None) -> Self:
        """Only draw the pairs that :meth:`fit` will compare, into the folder `checkpoint`.

        The fit that follows finds them there. A list of pairs, a fit without a folder, and a GPU,
        which makes them faster than it could read them, need nothing of the kind.
        """
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        X, data, c = self._source(X, seed)
        settings = self._settings(data, seed, c)
        if find_device(self.device, client) is not None:
            return self
        check_memory(data, settings, client)
        if self.checkpoint is not None and not isinstance(data, PairList):
            check_disk(data, settings, str(self.checkpoint))
            layout = draw_layout(data.n, settings.k, seed)
            # The store holds dissimilarities as they are: no d0 is needed yet.
            self._site(client).sample(data, layout, 1.0, seed)
        return self

    def _site(self, client: Any, rows: Rows | None = None) -> Site:
        folder = None if self.checkpoint is None else str(self.checkpoint)
        threads = thread_count(self.n_jobs)
        if client is None:
            return LocalSite(threads, folder, self.checkpoint_every, rows)
        return ClusterSite(threads, folder, self.checkpoint_every, rows, client)

    def _source(self, X: Any, seed: int) -> tuple[Any, Source | PairList, int]:
        """The rows that are compared, their dissimilarities, and the number of clusters."""
        X = load(X)
        if not is_pair_list(X, self.metric):
            X = self._table(X, ensure_min_samples=2)
        self._map, metric, threads = None, self.metric, thread_count(self.n_jobs)
        if metric == "geodesic":
            # Modes are counted where the rows lie, not along them.
            c = clusters_for(self.n_clusters, X)
            X, self._map = mapped(X, seed, self.n_jobs)
            return X, make_source(X, "chebyshev", threads), integer("n_clusters", c, 1)
        data = make_source(X, metric, threads)
        return X, data, integer("n_clusters", clusters_for(self.n_clusters, data), 1)

    def _table(self, X: Any, **check: Any) -> NDArray:
        """X as an array: of finite numbers, or of anything that a callable metric can read."""
        if callable(self.metric):
            X = X if hasattr(X, "shape") else np.asarray(X)
            return validate_data(self, X, dtype=None, ensure_all_finite=False, **check)
        return super()._table(X, **check)

    def _constraints(
        self, X: Any, data: Source | PairList, must_link: Any, cannot_link: Any
    ) -> Constraints:
        must, cannot = check_links(must_link, cannot_link, data.n)
        # A list of pairs takes no constraints, which the solver says.
        expand = self.expand_constraints and not isinstance(data, PairList)
        if expand and len(must) + len(cannot):
            # Guessed links may contradict each other in a roundabout way; the given ones may not.
            metric = self.metric if self._map is None else "chebyshev"
            must, cannot = expand_constraints(
                X, must, cannot, self.expand_constraints, metric=metric
            )
        return Constraints(must, cannot)

    def _settings(self, data: Source | PairList, seed: int, c: int) -> Settings:
        n = data.n
        for name, least in (("n_dissimilarities", 1), ("pair_neighbours", 1), ("n_init", 1),
                            ("max_iter", 1), ("checkpoint_every", 1)):  # fmt: skip
            integer(name, getattr(self, name), least)
        integer("expand_constraints", self.expand_constraints, 0)
        for name in ("tol", "constraint_weight"):
            non_negative(name, getattr(self, name))
        if self.memory_limit is not None:
            integer("memory_limit", self.memory_limit, 1)
        self._check_callbacks()
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                "checkpoint needs a random_state, such as random_state=0: without it the same "
                "call draws other pairs and cannot go on."
            )
        at_most_objects(c, n)
        family = focal_family(self.focal_sets, c, _FAMILIES)
        return Settings(
            n_clusters=c,
            k=min(int(self.n_dissimilarities), n - 1),
            focal_sets=family,
            d0=checked_d0(self.d0),
            init=self._initial(data, family, c),
            n_init=int(self.n_init),
            stop=Stop(float(self.tol), int(self.max_iter)),
            constraint_weight=float(self.constraint_weight),
            pair_neighbours=int(self.pair_neighbours),
            seed=seed,
        )

    def _initial(self, data: Source | PairList, family: FocalSets | str, c: int) -> str | NDArray:
        init, listed = self.init, isinstance(data, PairList)
        if isinstance(init, str):
            if init not in _INITS:
                raise ValueError(f"init must be masses or one of {_INITS}, got {init!r}.")
            if init == "auto":
                return "random" if listed else "landmarks"
            if listed and init != "random":
                raise ValueError(
                    f'init="{init}" needs the dissimilarity of any two objects; for a list of '
                    'pairs use "random" or masses.'
                )
            return init
        sets = first_focal_sets(family, c)
        partition = init
        if not isinstance(partition, CredalPartition):
            partition = CredalPartition(np.asarray(init, dtype=float), sets)
        if partition.n_objects != data.n:
            raise ValueError(f"init has {partition.n_objects} objects, X has {data.n}.")
        given = partition.focal_sets
        if given.n_clusters != sets.n_clusters or not set(given.masks) <= set(sets.masks):
            raise ValueError(
                f"init must have masses on {', '.join(sets.names)}, got {', '.join(given.names)}. "
                "Pass focal_sets=init.focal_sets, or init.project(...) to the ones wanted."
            )
        return widen(np.asarray(partition.mass), given, sets)

    def _take(self, fit: Fit) -> Self:
        self.d0_ = fit.d0
        self.d0_curve_ = fit.d0_curve
        self._landmarks = fit.landmarks
        self._kept = some_pairs(fit.pairs, fit.order)
        solution = fit.solution
        self._finish(
            CredalPartition(fit.mass, fit.focal_sets), solution.history, solution.converged,
            sweeps="sweeps",
        )  # fmt: skip
        return self

    # ------------------------------------------------------------------ on disk
    @classmethod
    def load(cls, url: Url, *, metric: Callable | None = None) -> Self:
        """The fitted model that :meth:`save` wrote; it predicts the same bits.

        Its masses stay where they are and are read when they are needed; :meth:`append` adds to
        them there. `metric` is the function that a model with a callable metric was fitted with:
        of such a metric only the rows it compares are saved.
        """
        return cls._load(address(url), {} if metric is None else {"metric": metric})

    def stores(self) -> tuple[str, ...]:
        return ("landmarks", "kept", "geodesic")

    def _save_parts(self, url: str) -> tuple[dict[str, Any], dict[str, str | None]]:
        landmarks = None
        if self._landmarks is not None:
            landmarks = save_landmarks(join(url, "landmarks.zarr"), self._landmarks)
        kept = save_kept(join(url, "kept.zarr"), self._kept)
        curve = [[float(q), float(value)] for q, value in self.d0_curve_]
        parts = {"landmarks": landmarks, "kept": kept}
        if self._map is not None:
            parts["geodesic"] = save_map(join(url, "geodesic.zarr"), self._map)
        return {"d0": float(self.d0_), "d0_curve": curve}, parts

    def _load_parts(self, url: str, fitted: dict[str, Any], parts: Mapping[str, Any]) -> None:
        self.d0_ = float(fitted["d0"])
        self.d0_curve_ = [(float(q), float(value)) for q, value in fitted["d0_curve"]]
        self._landmarks = self._map = None
        if parts.get("geodesic") is not None:
            self._map, mark = load_map(join(url, "geodesic.zarr"))
            same_part(url, "geodesic", mark, parts)
        if parts["landmarks"] is not None:
            given = self.metric if callable(self.metric) else None
            self._landmarks, mark = load_landmarks(join(url, "landmarks.zarr"), given)
            same_part(url, "landmarks", mark, parts)
            self._check_landmarks(self._landmarks)
        self._kept, mark = load_kept(join(url, "kept.zarr"))
        same_part(url, "kept", mark, parts)

    def _check_landmarks(self, landmarks: Landmarks) -> None:
        """They belong to these masses and these features."""
        cure = "Save the model again."
        if landmarks.focal_sets != self.credal_partition_.focal_sets:
            raise StoreError(f"masses.zarr has other focal sets than landmarks.zarr. {cure}")
        source = landmarks.source
        width = len(source.metric.centre) if isinstance(source, AttributeSource) else None
        known = self.n_features_in_ if self._map is None else len(self._map.landmarks_)
        if width is not None and width != known:
            raise StoreError(f"landmarks.zarr has {width} features, the model {known}. {cure}")

    # ------------------------------------------------------------------ new objects
    def predict_mass(self, X: Any) -> Any:
        """Mass functions of new objects, each placed against k of the fitted ones: (rows, f).

        Each row is placed by itself: the others make no difference. With metric="precomputed" the
        rows of X are dissimilarities to all fitted objects. A Dask array gives a Dask array.
        """
        check_is_fitted(self, "credal_partition_")
        if is_dask(X) and hasattr(X, "map_blocks") and hasattr(X, "rechunk"):
            f = len(self.credal_partition_.focal_sets)
            return map_rows(self._predict_rows, X, width=f, dtype=np.float32)
        landmarks = self._landmarks
        if landmarks is None:
            raise ValueError(
                "A model fitted to a list of pairs cannot place new objects: nothing tells their "
                "dissimilarities to the fitted ones."
            )
        X = self._table(load(X), reset=False)
        X = X if self._map is None else self._map.transform(X)
        device = find_device(self.device)
        rows: Rows = NumbaRows(thread_count(self.n_jobs))
        if device is not None:
            rows = import_module(_DEVICE).DeviceRows(str(device), self.memory_limit)
        mass = place(landmarks, X, k=self.n_dissimilarities, seed=0, rows=rows, spread=False)
        return rows.on_host(mass)

    def _predict_rows(self, rows: NDArray, first: int) -> NDArray[np.float32]:
        return self.predict_mass(rows)

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
        kept, partition = self._kept, self.credal_partition_
        mass = np.asarray(partition.mass)
        kappa = conflict(mass[kept.i], mass[kept.j], partition.focal_sets)
        return kept.delta, kappa

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = False
        return tags

"""What the estimator does where a fit is done in partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from evdist.belief import FocalSets
from evdist.engine.partitioning import table_shape
from evdist.evclus.kept import SomePairs
from evdist.evclus.landmarks import Landmarks
from evdist.evclus.partitions.door import Asked, lazy_partition, needs_partitions, work_folder
from evdist.evclus.partitions.fit import fit_partitions
from evdist.evclus.partitions.sites import PartitionSite
from evdist.evclus.rows.numba import NumbaRows
from evdist.kernels.threads import thread_count
from evdist.partition.rows import is_dask

__all__ = ["PartitionedFits"]


class PartitionedFits:
    """The part of EVCLUS that fits data in partitions; parameters are those of EVCLUS."""

    n_clusters: Any
    n_dissimilarities: Any
    metric: Any
    focal_sets: Any
    init: Any
    n_jobs: int | None
    checkpoint: Any
    checkpoint_every: int
    device: str
    memory_limit: int | None
    partitions: str | int
    _settings: Callable[..., Any]
    _reporting: Any
    _finish: Callable[..., None]
    _landmarks: Landmarks | None
    _kept: SomePairs

    def _in_partitions(
        self, X: Any, client: Any, linked: bool = False, weighted: bool = False
    ) -> bool:
        """Whether X is fitted in partitions."""
        others = {
            "constraints": linked,
            "sample_weight": weighted,
            "given masses as init": not isinstance(self.init, str),
            'focal_sets="select"': isinstance(self.focal_sets, str) and self.focal_sets == "select",
            "a GPU": self.device != "cpu",
        }
        named = ", ".join(name for name, there in others.items() if there)
        k, c = self.n_dissimilarities, self.n_clusters
        if not isinstance(k, int) or not isinstance(c, int):
            k = c = 1  # which is refused in its place
        asked = Asked(
            self.partitions, self.metric, k, self._focal_set_count(c), self.memory_limit, named
        )
        return needs_partitions(X, asked, client)

    def _focal_set_count(self, c: int) -> int:
        family = self.focal_sets
        if isinstance(family, FocalSets):
            return len(family)
        known = {"full": 2 ** min(c, 30), "pairs": c + 2 + c * (c - 1) // 2}
        return known.get(family, c + 2) if isinstance(family, str) else c + 2

    def _partition_site(self, client: Any) -> PartitionSite:
        count = None if isinstance(self.partitions, str) else int(self.partitions)
        threads = thread_count(self.n_jobs)
        return PartitionSite(
            NumbaRows(threads), work_folder(self, self.checkpoint, client), threads,
            self.checkpoint_every, self.memory_limit, count, client,
        )  # fmt: skip

    def _fit_partitions(self, X: Any, seed: int, client: Any) -> Self:
        site = self._partition_site(client)
        n, self.n_features_in_ = table_shape(X)
        with self._reporting() as report:
            settings = self._settings(_Counted(n), seed)
            fit = fit_partitions(X, self.metric, settings, site, report)
        self.d0_, self.d0_curve_ = fit.d0, fit.d0_curve
        self._landmarks, self._kept = fit.landmarks, fit.kept
        partition = lazy_partition(fit.answer, client is not None or is_dask(X))
        self._finish(partition, fit.solution.history, fit.solution.converged, sweeps="sweeps")
        return self


class _Counted:
    """As much of the data as parameters are checked against."""

    def __init__(self, n: int):
        self.n = n

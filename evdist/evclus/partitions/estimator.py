"""What an EVCLUS does where its fit is done in partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evdist.belief import FocalSets
from evdist.engine.admission import admitted
from evdist.engine.partitioning import table_shape
from evdist.engine.turns import SHARE
from evdist.engine.workers import smallest_worker
from evdist.estimators.checks import integer
from evdist.evclus.checks import USUAL, checked_settings
from evdist.evclus.groups import SPARSE_FROM, near_share
from evdist.evclus.partitions.door import Asked, lazy_partition, needs_partitions, work_folder
from evdist.evclus.partitions.fit import fit_partitions
from evdist.evclus.partitions.sites import PartitionSite
from evdist.evclus.sites import plain_rows, takes_groups
from evdist.kernels.sparse_rows import WORDS
from evdist.kernels.threads import thread_count
from evdist.partition.rows import is_dask
from evdist.partition.sparse import SparseMasses


def in_partitions(
    model: Any,
    X: Any,
    client: Any,
    *,
    linked: bool = False,
    weighted: bool = False,
    started: bool = False,
) -> bool:
    """Whether an EVCLUS `model` fits X in partitions; `started`: it will be given masses."""
    family = model.focal_sets
    others = {
        "constraints": linked,
        "sample_weight": weighted,
        "given masses as init": started or not isinstance(model.init, str),
        'focal_sets="select"': isinstance(family, str) and family == "select",
        'n_clusters="auto"': isinstance(model.n_clusters, str),
        "scale": model.scale is not None,
    }
    named = ", ".join(name for name, there in others.items() if there)
    k, c = model.n_dissimilarities, model.n_clusters
    k = USUAL if k == "auto" else k
    if not isinstance(k, int) or not isinstance(c, int):
        k = c = 1  # which is refused in its place
    asked = Asked(
        model.partitions, _one_metric(model), k, _focal_set_count(family, c), model.memory_limit,
        _device(model, client), _has_lists(family, c), near_share(k, c) > 0, named,
    )  # fmt: skip
    return needs_partitions(X, asked, client)


def _one_metric(model: Any) -> Any:
    """The metric: partitions compare in one way, where "auto" is Euclidean."""
    return "euclidean" if model.metric == "auto" else model.metric


def _device(model: Any, client: Any) -> Any:
    if model.device == "cpu":
        return None
    rows = plain_rows(model, client)  # "auto" may find none
    return None if rows.device_group is None else rows


def _has_lists(family: Any, c: int) -> bool:
    """Whether rows of a fit without partitions are lists of clusters."""
    return isinstance(family, str) and family == "simple" and c >= SPARSE_FROM


def _focal_set_count(family: Any, c: int) -> int:
    """Focal sets of a fit without partitions; rows that are lists are of the size of WORDS."""
    if _has_lists(family, c):
        return WORDS
    if isinstance(family, FocalSets):
        return len(family)
    known = {"full": 2 ** min(c, 30), "pairs": c + 2 + c * (c - 1) // 2}
    return known.get(family, c + 2) if isinstance(family, str) else c + 2


def partition_site(model: Any, client: Any) -> PartitionSite:
    """Where the partitions of an EVCLUS `model` lie, and who works on them."""
    count = None if isinstance(model.partitions, str) else int(model.partitions)
    threads = thread_count(model.n_jobs)
    return PartitionSite(
        plain_rows(model, client), work_folder(model, model.checkpoint, client), threads,
        model.checkpoint_every, model.memory_limit, count, client,
    )  # fmt: skip


def fit_model_in_partitions(model: Any, X: Any, seed: int, client: Any) -> None:
    """Fit, and set what a fitted EVCLUS has."""
    n, model.n_features_in_ = table_shape(X)
    counted: Any = _Counted(n)
    settings = checked_settings(model, counted, seed, integer("n_clusters", model.n_clusters, 1))
    groups = takes_groups(model, counted, settings, False, client)
    settings = replace(settings, groups=groups)
    with model._reporting() as report, admitted(client, _taken(client), report):
        fit = fit_partitions(X, _one_metric(model), settings, partition_site(model, client), report)
    model.d0_, model.d0_curve_ = fit.d0, fit.d0_curve
    model._landmarks, model._kept, model._map = fit.landmarks, fit.kept, None
    partition = lazy_partition(fit.answer, client is not None or is_dask(X))
    stored = lazy_partition(fit.answer, False)
    model._lists = stored if isinstance(stored.mass, SparseMasses) else None
    model._finish(partition, fit.solution.history, fit.solution.converged, sweeps="sweeps")


def _taken(client: Any) -> int:
    """Bytes of each worker that owners of partitions take at most: what they may have."""
    limit = 0 if client is None else smallest_worker(client)[1]
    return int(SHARE * limit) if limit < 2**62 else 0


class _Counted:
    """As much of the data as parameters are checked against."""

    def __init__(self, n: int):
        self.n = n

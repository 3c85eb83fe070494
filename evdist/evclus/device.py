"""EVCLUS on GPUs, under the same stages, checkpoints and constraints as everywhere.

Attributes are sampled, started and swept on the device; other dissimilarities are computed here,
and swept there. Pairs are those of the same fit on the CPU; they are made again whenever they are
needed: a checkpoint folder holds masses only. With a client each worker is one GPU, which updates
its share of the rows; the bits are those of one GPU alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from evdist.data.sources import AttributeSource, PairList, Source
from evdist.engine.progress import Progress
from evdist.evclus.device_pairs import DevicePairs
from evdist.evclus.device_sites import DeviceSite, DeviceWorkers
from evdist.evclus.device_start import Sizes, place_on
from evdist.evclus.gpu.memory import Need
from evdist.evclus.sites import ClusterSite, LocalSite
from evdist.evclus.solver import Constraints, Fit, Settings, first_focal_sets, fit_evclus

__all__ = ["DevicePairs", "DeviceSite", "fit_evclus_on", "place_on"]


def fit_evclus_on(
    name: str | torch.device,
    data: Source | PairList,
    settings: Settings,
    *,
    constraints: Constraints,
    weight: NDArray[np.float32] | None,
    site: LocalSite | ClusterSite,
    report: Callable[[Progress], None] | None = None,
    memory_limit: int | None = None,
) -> Fit:
    """`fit_evclus` with its work on a device, or on those of a cluster's workers.

    Threads, folder and client are those of `site`; `memory_limit` are bytes on each device.
    """
    if isinstance(data, PairList):
        raise ValueError(
            "A list of pairs has a graph of its own, which the GPU's sweeps cannot follow. Use "
            "device='cpu', or pass the attributes or a square matrix."
        )
    device = torch.device(name)
    need = _need(data, settings, bool(constraints))
    there: DeviceSite | DeviceWorkers
    if isinstance(site, ClusterSite):
        there = DeviceWorkers(
            site.n_threads, site.folder, site.checkpoint_every, site.client, device, memory_limit
        )
    else:
        there = DeviceSite(site.n_threads, site.folder, site.checkpoint_every, device)
    choice = there.choose(need, memory_limit)
    if isinstance(there, DeviceSite):
        there = replace(there, choice=choice)
    if report is not None and choice.where != "device":
        report(Progress(str(choice), 0, 0))
    curve: list[tuple[float, float]] = []
    if isinstance(data, AttributeSource):
        settings, curve = there.start(data, settings, Sizes.of(data.n, settings))
    fit = fit_evclus(
        data, settings, constraints=constraints, weight=weight, site=there, report=report
    )
    return replace(fit, d0_curve=curve) if curve else fit


def _need(data: Source, settings: Settings, linked: bool) -> Need:
    """Of one process with all rows; "select" may end with all pairs of clusters."""
    family = "pairs" if settings.focal_sets == "select" else settings.focal_sets
    f = len(first_focal_sets(family, settings.n_clusters))
    d = len(data.metric.centre) if isinstance(data, AttributeSource) else 0
    return Need(data.n, settings.k, f, d, data.n, linked=linked)

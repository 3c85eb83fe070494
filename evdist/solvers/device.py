"""EVCLUS on GPUs, under the same stages, checkpoints and constraints as everywhere.

Attributes are sampled, started and swept on the device; other dissimilarities are computed here,
and swept there. Pairs are those of the same fit on the CPU; they are made again whenever they are
needed: a checkpoint folder holds masses only. With a client each worker is one GPU, which updates
its share of the rows; the bits are those of one GPU alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evdist.blocks.tasks import smallest_worker
from evdist.gpu.memory import Need
from evdist.solvers.device_pairs import DevicePairs
from evdist.solvers.device_sites import DeviceSite, DeviceWorkers
from evdist.solvers.device_start import Sizes, place_on
from evdist.solvers.evclus import Constraints, Fit, Settings, first_focal_sets, fit_evclus
from evdist.solvers.irqp import Progress
from evdist.solvers.sites import ClusterSite, LocalSite
from evdist.sources import AttributeSource, PairList, Source

__all__ = ["DevicePairs", "DeviceSite", "find_device", "fit_evclus_on", "place_on"]


def find_device(name: str, client: Any = None) -> torch.device | None:
    """The GPU of device="cuda", "cuda:1" or "auto"; None where "auto" finds none.

    With a client, that of every worker.
    """
    if client is not None:
        return _find_on_workers(name, client)
    if torch.cuda.is_available():
        device = torch.device("cuda" if name == "auto" else name)
        if (device.index or 0) < torch.cuda.device_count():
            return device
        raise ValueError(
            f"device={name!r} was asked for, but there are {torch.cuda.device_count()} GPUs."
        )
    if name == "auto":
        return None
    raise ValueError(
        f"device={name!r} needs a GPU that torch can use, but torch {torch.__version__} finds none "
        "here. Use device='cpu', or 'auto' to take a GPU only where there is one."
    )


def _find_on_workers(name: str, client: Any) -> torch.device | None:
    smallest_worker(client)  # refuses what is no client
    counts = client.run(torch.cuda.device_count)
    device = torch.device("cuda" if name == "auto" else name)
    without = sorted(w for w, count in counts.items() if count <= (device.index or 0))
    if not without:
        return device
    if name == "auto":
        return None
    raise ValueError(
        f"device={name!r} needs that GPU on every worker, but torch finds none on "
        f"{', '.join(without)}. Use workers with GPUs, or device='cpu'."
    )


def fit_evclus_on(
    device: torch.device,
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

"""Where a fit of EVCLUS on a GPU starts, and how new objects are placed there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from evdist.data.sources import AttributeSource
from evdist.evclus.gpu.arrays import untile
from evdist.evclus.gpu.data import CODES, ReadyRows, tiles_of
from evdist.evclus.gpu.fit import LANDMARK_SWEEPS, PLACED_AGAINST, STARTS, some_objects
from evdist.evclus.gpu.share import device_here
from evdist.evclus.gpu.start import Landmarks as DeviceLandmarks
from evdist.evclus.gpu.start import choose_d0, fit_landmarks, place
from evdist.evclus.solver import (
    LANDMARKS_PER_CLUSTER,
    MIN_LANDMARKS,
    MIN_TRIAL,
    TRIAL_PER_CLUSTER,
    Settings,
    first_focal_sets,
)
from evdist.evclus.start import Landmarks

__all__ = ["Sizes", "place_on", "start_on"]


def some_tiles(
    device: torch.device, source: AttributeSource, objects: NDArray
) -> tuple[torch.Tensor, ReadyRows]:
    """Objects of a source, ready for its metric, on a device."""
    ready = ReadyRows(CODES[source.name])
    where = torch.as_tensor(objects.astype(np.int64), device=device)
    return tiles_of(source.table[:, : len(source.metric.centre)], ready, where), ready


@dataclass(frozen=True)
class Sizes:
    """Objects tried for d0, landmarks, and starts on them."""

    trial: int
    landmarks: int
    starts: int

    @classmethod
    def of(cls, n: int, settings: Settings) -> Sizes:
        c = settings.n_clusters
        return cls(
            max(MIN_TRIAL, TRIAL_PER_CLUSTER * c),
            max(MIN_LANDMARKS, LANDMARKS_PER_CLUSTER * c),
            STARTS * settings.n_init,
        )


def start_on(
    device: str, source: AttributeSource, settings: Settings, sizes: Sizes
) -> tuple[Settings, list[tuple[float, float]]]:
    """Settings with the d0 and the masses that the device has found, and the curve of d0."""
    here = device_here(device)
    n, c, seed = source.n, settings.n_clusters, settings.seed
    curve: list[tuple[float, float]] = []
    if settings.d0 == "auto":
        few = some_objects(n, sizes.trial, seed)
        data, ready = some_tiles(here, source, few)
        d0, curve = choose_d0(data, len(few), ready.code, c, k=settings.k, seed=seed)
        settings = replace(settings, d0=d0)
    objects = some_objects(n, sizes.landmarks, seed)
    seeded = isinstance(settings.init, str) and settings.init != "random"
    if not seeded or isinstance(settings.d0, str) or len(objects) == n:
        return settings, curve
    data, ready = some_tiles(here, source, objects)
    sets = first_focal_sets(settings.focal_sets, c)
    landmarks = fit_landmarks(
        data, len(objects), ready.code, sets, settings.d0, k=settings.k, n_starts=sizes.starts,
        init=str(settings.init), tol=settings.stop.tol, max_iter=LANDMARK_SWEEPS, seed=seed,
        everyone=False,
    )  # fmt: skip
    everyone, _ = some_tiles(here, source, np.arange(n))
    k = min(settings.k, PLACED_AGAINST)
    mass = untile(place(landmarks, everyone, n, ready.code, k=k, seed=seed), n).cpu().numpy()
    mass[objects] = landmarks.mass.cpu().numpy()
    return replace(settings, init=mass), curve


def place_on(
    name: str | torch.device, landmarks: Landmarks, X: NDArray, k: int
) -> NDArray[np.float32] | None:
    """Masses of new objects (rows, f), each against the same k landmarks.

    None where the landmarks have no attributes.
    """
    source, device = landmarks.source, torch.device(name)
    if not isinstance(source, AttributeSource):
        return None
    known, ready = some_tiles(device, source, np.arange(source.n))
    mass = torch.as_tensor(np.array(landmarks.mass), device=device)
    there = DeviceLandmarks(known, mass, landmarks.focal_sets, landmarks.d0)
    rows = source.metric.table(X)[:, : len(source.metric.centre)]
    data = tiles_of(rows, ready, torch.arange(len(X), device=device))
    found = place(there, data, len(X), ready.code, k=k, seed=0, spread=False)
    return untile(found, len(X)).cpu().numpy()

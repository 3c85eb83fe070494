"""Rows mapped before they are compared: metric="geodesic", metric="layout"; the map on disk.

```
geodesic.zarr/  {"evdist": "geodesic map", "version": 1, "arrays", "seal", "complete"}
  anchors       (m, d) float64   objects that carry the neighbour graph
  landmarks     (L,)   int64     which of them are landmarks
  table         (m, L) float64   distances to the landmarks, to the power
  numbers       (3,)   float64   unit of the distances, power, neighbours
views.zarr/     a folder of models, one for each view (`evdist.evclus.views`), beside layout.zarr
layout.zarr/    {"evdist": "neighbour layout", "version": 1, "arrays", "seal", "complete"}
  anchors       (m, d) float32   objects that new ones are placed by
  places        (m, q) float32   where they lie
  numbers       (2,)   float64   neighbours, whether by angle
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.estimators.saved import same_part
from evdist.evclus.views import Views
from evdist.features.geodesic import GeodesicMap
from evdist.features.layout import NeighbourLayout
from evdist.stores.arrays import read_arrays, write_arrays
from evdist.stores.encoding import as_written
from evdist.stores.paths import join

#: Metrics that begin with a map: what maps, what the store calls it, how mapped rows are compared.
MAPS: dict[str, tuple[Any, str, str]] = {
    "geodesic": (GeodesicMap, "geodesic map", "chebyshev"),
    "layout": (NeighbourLayout, "neighbour layout", "euclidean"),
}
VERSION = 1
#: Of the steps along the data: 4 tells thin gaps apart better than 2 (docs/features.md).
POWER = 4.0
_CURE = "Save the model again."
Map = GeodesicMap | NeighbourLayout | Views


def mapped(
    metric: str, X: NDArray[Any], seed: int, n_jobs: int | None
) -> tuple[NDArray[np.floating], Map]:
    """The rows where they are compared, and the map that brings new ones there."""
    if metric == "layout":
        layout = NeighbourLayout(n_jobs=n_jobs, random_state=seed)
        return layout.fit_transform(X), layout
    made = GeodesicMap(power=POWER, n_jobs=n_jobs, random_state=seed).fit(X)
    return made.transform(X), made


def map_name(made: Map) -> str:
    """The metric that begins with this map."""
    if isinstance(made, Views):
        return "views"
    return next(name for name, (kind, _, _) in MAPS.items() if isinstance(made, kind))


def compared(made: Map) -> str:
    """The metric that mapped rows are compared by."""
    return "euclidean" if isinstance(made, Views) else MAPS[map_name(made)][2]


def save_map(folder: str, made: Map) -> dict[str, str]:
    """Write a map into a folder, and return its stores and their seals."""
    if isinstance(made, Views):
        seals = made.save(join(folder, "views.zarr"))
        return {"views": seals, **save_map(folder, made.layout)}
    name = map_name(made)
    url = join(folder, f"{name}.zarr")
    return {name: write_arrays(url, MAPS[name][1], VERSION, {}, made.to_arrays())}


def load_map(folder: str, parts: Mapping[str, Any], model: type) -> Map | None:
    """The map in the folder of a `model` with these parts; None where there is none."""
    found: Map | None = None
    for name, (kind, what, _) in MAPS.items():
        if parts.get(name) is None:
            continue
        url = join(folder, f"{name}.zarr")
        attributes, arrays = read_arrays(url, what, VERSION, what=what, cure=_CURE)
        with as_written(url, _CURE):
            found = kind.of_arrays(arrays)
        same_part(folder, name, attributes["seal"], parts)
    if parts.get("views") is not None:
        found, mark = Views.load(join(folder, "views.zarr"), model, found)
        same_part(folder, "views", mark, parts)
    return found

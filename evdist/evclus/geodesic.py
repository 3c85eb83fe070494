"""metric="geodesic": rows mapped along the data before they are compared, and the map on disk.

```
geodesic.zarr/  {"evdist": "geodesic map", "version": 1, "arrays", "seal", "complete"}
  anchors       (m, d) float64   objects that carry the neighbour graph
  landmarks     (L,)   int64     which of them are landmarks
  table         (m, L) float64   distances to the landmarks, to the power
  numbers       (3,)   float64   unit of the distances, power, neighbours
```
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.features.geodesic import GeodesicMap
from evdist.stores.arrays import read_arrays, write_arrays
from evdist.stores.encoding import as_written

KIND, VERSION = "geodesic map", 1
#: Of the steps along the data: 4 tells thin gaps apart better than 2 (docs/features.md).
POWER = 4.0
_CURE = "Save the model again."


def mapped(
    X: NDArray[Any], seed: int, n_jobs: int | None
) -> tuple[NDArray[np.float64], GeodesicMap]:
    """Coordinates whose Chebyshev distance is that along the data, and the map that gives them."""
    made = GeodesicMap(power=POWER, n_jobs=n_jobs, random_state=seed).fit(X)
    return made.transform(X), made


def save_map(url: str, made: GeodesicMap) -> str:
    """Write a map to a new store, and return its seal."""
    return write_arrays(url, KIND, VERSION, {}, made.to_arrays())


def load_map(url: str) -> tuple[GeodesicMap, str]:
    """The map in a store, and the seal of that."""
    attributes, arrays = read_arrays(url, KIND, VERSION, what="geodesic map", cure=_CURE)
    with as_written(url, _CURE):
        made = GeodesicMap.of_arrays(arrays)
    return made, attributes["seal"]

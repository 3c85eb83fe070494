"""What a fitted model needs later, on disk: its landmarks, and the sample of pairs to look at.

```
landmarks.zarr/  {"evdist": "landmarks", "version": 1, "metric", "n_clusters", "focal_sets", "d0",
                 "size", "arrays", "seal", "complete"}
  object         (L,)  uint32   which of the fitted objects they are
  mass           (L,f) float32; with "sparse", (L,WORDS) in the layout of this number (true: the
                 first), see evdist.kernels.sparse_rows
  members        (c,m) uint32   with many clusters only: landmarks of each cluster
  near           (p,)  uint32   with d0 "auto": landmarks that neighbours are looked for among, and
  reach          (2,)  float64  usual distance and fence, see evdist.evclus.reach
  row            (L,d) float32  as they are compared: centred, whitened, of length one; with
                                "reference" one number more, the root of the noise floor
  centre         (d,)  float64  taken from rows before they are compared
  whiten         (d,d) float64  with "mahalanobis" only
  reference      (m,d) float32  where noise floors are taken off: rows they are measured against
kept.zarr/       {"evdist": "kept pairs", "version": 1, "arrays", "seal", "complete"}
  pair           (2,p) uint32   objects
  delta          (p,)  float32  transformed dissimilarities
  kappa          (p,)  float64  degrees of conflict, where masses were changed after the fit
```
With metric "precomputed" there are no rows: new objects come with their dissimilarities to all
``size`` fitted objects, of which the columns ``object`` are taken. With a callable, "row" holds the
rows as they were given, of any numeric type, and there is no centre.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource, CallableSource, MatrixSource, Source
from evdist.data.sparse import SparseSource
from evdist.evclus.kept import SomePairs
from evdist.evclus.landmarks import Landmarks
from evdist.evclus.reach import Reach
from evdist.kernels.distances import METRICS, Metric
from evdist.kernels.sparse_rows import LAYOUT, WORDS, from_first_layout
from evdist.stores.arrays import read_arrays, write_arrays
from evdist.stores.encoding import StoreError, as_written
from evdist.stores.paths import Url, address

KIND, VERSION = "landmarks", 1
KEPT, KEPT_VERSION = "kept pairs", 1
_CURE = "Save the model again."


# ---------------------------------------------------------------------- landmarks
def save_landmarks(url: Url, landmarks: Landmarks) -> str:
    """Write landmarks to a new store, and return its seal."""
    source, focal_sets = landmarks.source, landmarks.focal_sets
    attributes: dict[str, Any] = {
        "metric": source.name,
        "n_clusters": focal_sets.n_clusters,
        "focal_sets": [list(members) for members in focal_sets.sets],
        "d0": float(landmarks.d0),
    }
    if isinstance(source, MatrixSource):
        attributes["size"] = source.size
    if isinstance(source, SparseSource):
        attributes["sparse_width"] = int(source.X.shape[1])
    if landmarks.sparse:
        attributes["sparse"] = LAYOUT
    arrays = {"object": landmarks.objects, "mass": landmarks.mass, **_described(source)}
    if landmarks.reach is not None:
        arrays["near"] = landmarks.reach.place
        arrays["reach"] = np.array([landmarks.reach.usual, landmarks.reach.fence])
    if landmarks.members is not None:
        arrays["members"] = landmarks.members
    return write_arrays(url, KIND, VERSION, attributes, arrays)


def load_landmarks(url: Url, metric: Callable | None = None) -> tuple[Landmarks, str]:
    """Landmarks and the seal of their store; `metric` is the function of a callable metric."""
    attributes, arrays = read_arrays(url, KIND, VERSION, what="store of landmarks", cure=_CURE)
    with as_written(address(url), _CURE):
        focal_sets = FocalSets.of(attributes["focal_sets"], attributes["n_clusters"])
        objects, mass, d0 = arrays["object"], arrays["mass"], float(attributes["d0"])
        sparse = bool(attributes.get("sparse"))
        L, f = len(objects), WORDS if sparse else len(focal_sets)
        _must(L > 0 and objects.dtype == np.uint32, "objects")
        _must(mass.shape == (L, f) and mass.dtype == np.float32, "masses")
        _must(bool(np.isfinite(mass).all()) and 0 < d0 < np.inf, "masses and d0")
        if attributes.get("sparse") is True:
            mass = from_first_layout(mass)
        source = _source(attributes, arrays, metric)
        _must(source.n == L, "rows")
        members = arrays.get("members")
        _must(members is None or (members.ndim == 2 and members.max() < L), "members")
        reach = _reach(arrays, L)
    found = Landmarks(source, objects, mass, focal_sets, d0, members, sparse, reach)
    return found, attributes["seal"]


def _reach(arrays: Mapping[str, NDArray], L: int) -> Reach | None:
    if "near" not in arrays:
        return None
    near, reach = arrays["near"], arrays["reach"]
    _must(near.ndim == 1 and near.dtype == np.uint32 and bool((near < L).all()), "neighbours")
    _must(reach.shape == (2,) and bool(np.isfinite(reach).all()), "distances of neighbours")
    return Reach(near, float(reach[0]), float(reach[1]))


def check_landmarks(landmarks: Landmarks, focal_sets: FocalSets, n_features: int) -> None:
    """They belong to a model with these focal sets and features."""
    if landmarks.focal_sets != focal_sets:
        raise StoreError(f"masses.zarr has other focal sets than landmarks.zarr. {_CURE}")
    source = landmarks.source
    width = len(source.metric.centre) if isinstance(source, AttributeSource) else n_features
    if width != n_features:
        raise StoreError(f"landmarks.zarr has {width} features, the model {n_features}. {_CURE}")


def _described(source: Source) -> dict[str, NDArray]:
    """The arrays of a source that say how dissimilar a new object is to each landmark."""
    match source:
        case AttributeSource():
            metric = source.metric
            row = source.rows
            parts = {"whiten": metric.whiten, "reference": metric.reference}
            there = {name: part for name, part in parts.items() if part is not None}
            return {"row": row, "centre": metric.centre, **there}
        case CallableSource():
            if source.X.dtype.kind == "U":  # text of one width: its letters are numbers
                width = source.X.dtype.itemsize // 4
                letters = np.ascontiguousarray(source.X).reshape(-1).view(np.uint32)
                return {"text": letters.reshape(*source.X.shape, width)}
            if source.X.dtype.kind not in "fiub":
                raise TypeError(
                    f"Rows of {source.X.dtype} cannot be saved without pickle. Describe the "
                    "objects by numbers, such as their places in a list, and let the metric look "
                    "them up."
                )
            return {"row": source.X}
        case SparseSource():
            return source.arrays()
        case _:
            return {}


def _source(
    attributes: Mapping[str, Any], arrays: Mapping[str, NDArray], metric: Callable | None
) -> Source:
    name = attributes["metric"]
    if name == "callable":
        if metric is None:
            raise StoreError(
                "The model was fitted with a function as its metric, which cannot be saved. Pass "
                "the same function again: EVCLUS.load(url, metric=function)."
            )
        if "text" in arrays:
            letters = np.ascontiguousarray(arrays["text"], np.uint32)
            return CallableSource(letters.view(f"<U{letters.shape[-1]}")[..., 0], metric)
        return CallableSource(arrays["row"], metric)
    if metric is not None:
        raise StoreError(
            f"The model was fitted with metric {name!r}, which is saved with it. Leave out metric."
        )
    if name == "precomputed":
        objects, size = arrays["object"], attributes["size"]
        _must(type(size) is int and objects.max() < size, "numbers of the objects")
        # Dissimilarities among the landmarks themselves are needed by a fit only.
        return MatrixSource(np.empty((len(objects), 0)), objects, size)
    if "sparse_width" in attributes:
        return SparseSource.of_arrays(arrays, int(attributes["sparse_width"]), name)
    row, centre, whiten = arrays["row"], arrays["centre"], arrays.get("whiten")
    reference = arrays.get("reference")
    d = row.shape[1] - (reference is not None)
    whitened = name == "mahalanobis"
    _must(name in METRICS and whitened == (whiten is not None), "metric and the arrays")
    _must(row.dtype == np.float32 and bool(np.isfinite(row).all()), "rows")
    _must(centre.shape == (d,) and centre.dtype == np.float64, "centres")
    if whiten is not None:
        _must(whiten.shape == (d, d) and whiten.dtype == np.float64, "rows of the whitening")
    if reference is not None:
        _must(reference.shape[1:] == (d,) and reference.dtype == np.float32, "rows of the floor")
        _must(METRICS[name][0] == "squares" and len(reference) > 0, "rows of the floor")
    return AttributeSource.of_rows(row, Metric(name, centre, whiten, reference))


# ---------------------------------------------------------------------- a sample of the pairs
def save_kept(url: Url, kept: SomePairs) -> str:
    """Write a sample of pairs to a new store, and return its seal."""
    pair = np.stack([kept.i, kept.j]).astype(np.uint32)
    arrays: dict[str, NDArray[Any]] = {"pair": pair, "delta": kept.delta}
    if kept.kappa is not None:
        arrays["kappa"] = kept.kappa
    return write_arrays(url, KEPT, KEPT_VERSION, {}, arrays)


def load_kept(url: Url) -> tuple[SomePairs, str]:
    """A sample of pairs, and the seal of its store."""
    attributes, arrays = read_arrays(url, KEPT, KEPT_VERSION, what="sample of pairs", cure=_CURE)
    with as_written(address(url), _CURE):
        pair, delta = arrays["pair"], arrays["delta"]
        _must(pair.shape == (2, *delta.shape) and delta.ndim == 1, "pairs")
        kappa = arrays.get("kappa")
        _must(kappa is None or kappa.shape == delta.shape, "conflicts")
    return SomePairs(pair[0], pair[1], delta, kappa), attributes["seal"]


# ---------------------------------------------------------------------- what is refused
def _must(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"the {what} do not fit")

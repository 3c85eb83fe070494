"""A fitted model in a folder, on disk or in object storage, without pickle.

```
FOLDER/
  NAME.zarr        the estimator's own stores; most have one, "state", of a few arrays
  masses.zarr      the credal partition, as `CredalPartition.save` writes it; it may grow
  model.json       {"evdist": "model", "version": 2, "estimator", "library", "parameters",
                   "fitted", "parts", "seal"}, written last: with it the model is whole
```
``parts`` holds the seals of the estimator's stores. Of the parameters only those are there that
JSON can write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evdist import __version__
from evdist.belief import FocalSets
from evdist.data.inputs import row_blocks
from evdist.data.scale import Scale
from evdist.partition import CredalPartition, io
from evdist.partition.ids import ids_of, joined_ids
from evdist.partition.rows import is_dask
from evdist.partition.sparse import SparseMasses
from evdist.stores.arrays import read_arrays, write_arrays
from evdist.stores.encoding import (
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
    as_written,
    seal,
    sealed_json,
)
from evdist.stores.paths import (
    Url,
    address,
    alone,
    children,
    exists,
    join,
    read_bytes,
    replace_bytes,
    sync,
)

KIND, VERSION = "model", 2
STATE = "model state"
_SEALED = ("evdist", "version", "estimator", "library", "parameters", "fitted", "parts")
_CURE = "Save the model again; to change a parameter, load it and call set_params."


class SavedModel:
    """Saves and loads a fitted estimator, and appends objects wherever its partition lies.

    An estimator tells by `_state` what it has fitted beside the attributes that all have, and takes
    it back by `_set_state`. One with stores of its own writes and reads them by `_save_parts` and
    `_load_parts` instead.
    """

    credal_partition_: CredalPartition
    labels_: NDArray[np.int64]
    predict_mass: Callable[[Any], Any]
    get_params: Callable[..., dict[str, Any]]
    #: Where the partition lies; None when it is in memory.
    _folder: str | None
    #: The partition as lists of clusters, where a fit in partitions gives it as a Dask array of all
    #: masses, made from these lists.
    _lists: CredalPartition | None = None

    def _keep_partition(self, partition: CredalPartition) -> None:
        self.credal_partition_ = partition
        if "n_clusters" in self.get_params(deep=False):
            self.n_clusters_ = partition.n_clusters

    def _hard(self, partition: CredalPartition) -> Any:
        """Labels; outliers have -1 where the parameter `outliers` of an estimator says so."""
        apart = getattr(self, "outliers", "cluster") == "label"
        return partition.labels(outlier=-1 if apart else None)

    def stores(self) -> tuple[str, ...]:
        """Names of this estimator's own stores in the folder of a model."""
        return ("state",)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What this estimator has fitted: values that JSON can write, and (small) arrays."""
        return {}, {}

    def _set_state(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take what :meth:`_state` gave."""

    def _save_parts(self, url: str) -> tuple[dict[str, Any], dict[str, str | None]]:
        """Write this estimator's stores: what it has fitted, and the seal of each store."""
        values, arrays = self._state()
        return values, {"state": write_arrays(join(url, "state.zarr"), STATE, 1, {}, arrays)}

    def _load_parts(self, url: str, fitted: dict[str, Any], parts: Mapping[str, Any]) -> None:
        """Read what :meth:`_save_parts` wrote; the partition and what all have is there already."""
        store = join(url, "state.zarr")
        attributes, arrays = read_arrays(store, STATE, 1, what="state of a model", cure=_CURE)
        same_part(url, "state", attributes["seal"], parts)
        self._set_state(fitted, arrays)

    def save(self, url: Url) -> None:
        """Write the fitted model to a new folder, a path or any fsspec URL; no pickle is involved.

        Parameters that JSON cannot write (`callbacks`, masses given as `init`, a RandomState, a
        function) are left out and have their defaults after loading.

        Parameters
        ----------
        url : path or URL
            Folder to make; nothing may be in it yet.
        """
        check_is_fitted(self, "credal_partition_")
        url = address(url)
        if children(url):
            raise StoreExistsError(f"{url} exists already. Remove it, or save under another name.")
        self.save_in(url)

    def save_in(self, url: str) -> None:
        """As :meth:`save`, into a folder that holds other things: none of the model's names.

        Parameters
        ----------
        url : str
            The folder.
        """
        values, parts = self._save_parts(url)
        partition = self.credal_partition_
        if self._lists is not None and is_dask(partition.mass):
            partition = self._lists.with_ids(partition.ids)
        partition.save(join(url, "masses.zarr"))
        sync(url)
        model = {
            "evdist": KIND,
            "version": VERSION,
            "estimator": type(self).__name__,
            "library": __version__,
            "parameters": _written(self.get_params(deep=False)),
            "fitted": {**_fitted(self), **values},
            "parts": parts,
        }
        content = json.dumps(seal(model), indent=1, allow_nan=False)
        replace_bytes(join(url, "model.json"), content.encode())

    @classmethod
    def load(cls, url: Url) -> Self:
        """Load a model that :meth:`save` wrote; its predictions are identical.

        Its masses stay where they are and are read when they are needed; :meth:`append` adds to
        them there.

        Parameters
        ----------
        url : path or URL
            The folder that was saved to.
        """
        return cls._load(address(url), {})

    @classmethod
    def _load(cls, url: str, parameters: Mapping[str, Any]) -> Self:
        """As :meth:`load`, with `parameters` that could not be saved."""
        found = _model(url, cls.__name__)
        partition = CredalPartition.load(join(url, "masses.zarr"))
        with as_written(join(url, "model.json"), _CURE):
            model = cls(**{**_read(found["parameters"]), **parameters})
            fitted = found["fitted"]
            _take(model, fitted)
            _check(partition, fitted["n_objects"])
            model._keep_partition(partition)
            model._folder = url
            model._load_parts(url, fitted, dict(found["parts"]))
        model.labels_ = model._hard(partition)
        return model

    def append(self, X: Any) -> Self:
        """Add new objects to the fitted partition, without moving those that are there.

        X is as for :meth:`predict_mass`; paths and lazy arrays are read block by block. The
        partition of a model that was loaded grows where it is stored: all new objects are there
        once the call returns, and none when it is stopped. No other process may append
        meanwhile; on disk, not in object storage, that is checked.

        Parameters
        ----------
        X : array, data frame, path, Dask or zarr array
            New objects, with the columns of the fitted ones.
        """
        check_is_fitted(self, "credal_partition_")
        return self.append_masses(self._placed(X), ids_of(X))

    def append_masses(self, blocks: Iterable[NDArray[Any]], ids: Any = None) -> Self:
        """As :meth:`append`, of objects whose masses are known: blocks (rows, f).

        Where the fitted objects have ids, `ids` are those of the new ones.

        Parameters
        ----------
        blocks : iterable of (rows, f) arrays
            Masses of the new objects on the fitted focal sets, in order.
        ids : (rows in all,) array-like, optional
            Ids of the new objects.
        """
        partition = self.credal_partition_
        both = None
        if partition.ids is not None:  # refused before anything is computed
            both = joined_ids(partition.ids, ids, 0 if ids is None else len(ids))
        if self._folder is None:
            mass: Any
            if isinstance(partition.mass, SparseMasses):
                parts = [partition.mass, *(SparseMasses.of(block) for block in blocks)]
                rows = np.concatenate([part.in_memory().rows for part in parts])
                mass = SparseMasses(rows, partition.n_clusters)
            else:
                mass = np.concatenate([np.asarray(partition.mass), *blocks])
            self.credal_partition_ = CredalPartition(mass, partition.focal_sets, both)
        else:
            masses = join(self._folder, "masses.zarr")
            with _writing(self._folder):
                io.append(masses, blocks, both)
            self.credal_partition_ = CredalPartition.load(masses)
        self.labels_ = self._hard(self.credal_partition_)
        return self

    def _placed(self, X: Any) -> Iterator[NDArray[np.float32]]:
        """Masses of new objects, block by block."""
        for first, block in row_blocks(X):
            try:
                mass = self.predict_mass(block)
            except ValueError as error:
                if first:
                    raise ValueError(f"Counted from row {first} of X on: {error}") from error
                raise
            yield mass


@contextmanager
def _writing(folder: str) -> Iterator[None]:
    try:
        with alone(join(folder, "model.json")):
            yield
    except BlockingIOError as error:
        raise StoreError(
            f"Another process is appending to {folder}. Wait until it is done."
        ) from error


# ---------------------------------------------------------------------- model.json
def _model(url: str, estimator: str) -> dict[str, Any]:
    path = join(url, "model.json")
    content = read_bytes(path)
    if content is None:
        if not exists(url):
            raise StoreNotFoundError(f"There is no model at {url}.")
        raise StoreError(
            f"{url} has no model.json: it is no model, or half written. Save the model to another "
            "place."
        )
    model = sealed_json(path, content, KIND, VERSION, _SEALED, _CURE)
    if model["estimator"] != estimator:
        raise StoreError(f"{url} holds a model of {model['estimator']!r}, not of {estimator}.")
    return model


def same_part(url: str, name: str, mark: str, parts: Mapping[str, Any]) -> None:
    """The store of that name is the one that the model was saved with."""
    if mark != parts.get(name):
        raise StoreError(f"{join(url, name)}.zarr is that of another model. {_CURE}")


# ---------------------------------------------------------------------- parameters
def _written(parameters: dict[str, Any]) -> dict[str, Any]:
    """Those parameters that JSON can write."""
    out: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, FocalSets):
            out[name] = {
                "n_clusters": value.n_clusters,
                "sets": [list(members) for members in value.sets],
            }
        elif isinstance(value, PurePath):
            out[name] = str(value)
        elif isinstance(value, np.generic):
            out[name] = value.item()
        elif value is None or isinstance(value, bool | int | float | str):
            out[name] = value
        elif _is_series(value):
            out[name] = list(value)
    return out


def _is_series(value: Any) -> bool:
    """A few numbers or words, such as the sizes of layers."""
    known = isinstance(value, tuple | list) and len(value) > 0
    return known and all(isinstance(item, int | float | str) for item in value)


def _read(parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        name: FocalSets.of(value["sets"], value["n_clusters"]) if isinstance(value, dict) else value
        for name, value in parameters.items()
    }


# ---------------------------------------------------------------------- fitted attributes
def _fitted(model: Any) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    return {
        "objective": float(model.objective_),
        "history": [float(value) for value in model.history_],
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "n_objects": model.credal_partition_.n_objects,
        # A list of pairs has no features.
        "n_features_in": getattr(model, "n_features_in_", None),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "column_scale": None if model._scale is None else model._scale.to_json(),
    }


def _take(model: Any, fitted: dict[str, Any]) -> None:
    model.objective_ = float(fitted["objective"])
    model.history_ = [float(value) for value in fitted["history"]]
    model.n_iter_ = int(fitted["n_iter"])
    model.converged_ = bool(fitted["converged"])
    model._scale = Scale.of_json(fitted.get("column_scale"))
    if fitted["n_features_in"] is not None:
        model.n_features_in_ = int(fitted["n_features_in"])
    if fitted["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(fitted["feature_names_in"], dtype=object)


def _check(partition: CredalPartition, n_objects: int) -> None:
    if partition.n_objects < n_objects:
        raise StoreError(
            f"masses.zarr has {partition.n_objects} objects, the model was saved with {n_objects}. "
            f"{_CURE}"
        )

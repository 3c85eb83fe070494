"""The objects that a network is trained on: all in memory, or many, of which a process has some.

Up to `PARTITION_ROWS` objects everything is learnt from all of them. Beyond that, and for data that
no process holds, they are put in the random order of `Shuffle`: what is needed before training (the
centre and scale of the inputs, the gate, the metric, d0, centres) is learnt from the first of them,
which are a random sample; shards and their pieces are runs of positions. So a fit of an array in
memory and one of the same rows in a store, read by the processes that train on them, have the same
bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from evdist.data.layout import PartitionedData
from evdist.data.sources import AttributeSource, CallableSource, Source
from evdist.engine.memory import give_back
from evdist.engine.partitioning import lay_out, run_tasks
from evdist.engine.progress import Progress, Report
from evdist.evclus.partitions.door import work_folder
from evdist.kernels.distances import METRICS, Metric
from evdist.kernels.shuffle import PARTITION_ROWS, Shuffle
from evdist.nnevclus.deltas import features_of, make_deltas, source_of
from evdist.nnevclus.inputs import Preparation
from evdist.nnevclus.network import ROWS
from evdist.nnevclus.shards import Loads, Piece, Shard
from evdist.stores.fingerprints import fingerprint
from evdist.stores.paths import join

#: Objects, in the order, that everything before training is learnt from at least, and per cluster.
SAMPLE, PER_CLUSTER = 1 << 15, 240
#: Rows that become inputs at once: whole blocks of the gate.
_BLOCK = 16 * ROWS


@dataclass(frozen=True)
class Recipe:
    """What makes pieces of rows; small but for a gate's anchors."""

    prepare: Preparation
    metric: Metric | None
    d0: float

    def piece(self, X: NDArray, source: Source) -> Piece:
        """Rows of X, and their dissimilarities. The gate is computed on the CPU everywhere."""
        x = np.empty(X.shape, np.float32)
        fx = None if self.prepare.gate is None else np.empty(len(X), np.float32)
        for lo in range(0, len(X), _BLOCK):
            block = slice(lo, lo + _BLOCK)
            x[block], f = self.prepare(X[block], torch.device("cpu"))
            if fx is not None:
                fx[block] = f
        return Piece(x, fx, make_deltas(source, self.d0))

    def stored(self, X: NDArray) -> Piece:
        """Rows whose dissimilarities are those of a metric."""
        assert self.metric is not None
        return self.piece(X, AttributeSource(self.metric.table(X), self.metric))


class Many(Protocol):
    """Objects in the order of `shuffle`."""

    @property
    def shuffle(self) -> Shuffle: ...

    def sample(self, count: int) -> tuple[NDArray, Source]:
        """The first rows of the order, and their dissimilarities."""
        ...

    def pick(self, objects: NDArray[np.int64]) -> NDArray:
        """Rows of some objects, by their numbers."""
        ...

    def piece(self, lo: int, hi: int, recipe: Recipe) -> Loads:
        """The objects at positions lo..hi-1."""
        ...

    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class InMemory:
    """An array X (n, d); dissimilarities of the rows of Z (n, p), which may be X."""

    X: NDArray
    Z: NDArray
    metric: Any

    @property
    def shuffle(self) -> Shuffle:
        return Shuffle.of(len(self.X))

    def sample(self, count: int) -> tuple[NDArray, Source]:
        objects = self.shuffle.objects(0, count)
        if callable(self.metric):
            return self.X[objects], self._called(objects)
        return self.X[objects], AttributeSource.of(self.Z[objects], self.metric)

    def _called(self, objects: NDArray[np.int64]) -> Source:
        return CallableSource(self.Z, self.metric).subset(objects.astype(np.uint32))

    def pick(self, objects: NDArray[np.int64]) -> NDArray:
        return self.X[objects]

    def piece(self, lo: int, hi: int, recipe: Recipe) -> Loads:
        objects = self.shuffle.objects(lo, hi)
        X, metric = self.X[objects], recipe.metric
        if metric is None:
            return recipe.piece(X, self._called(objects))
        Z = X if self.Z is self.X else self.Z[objects]
        return recipe.piece(X, AttributeSource(metric.table(Z), metric))

    def fingerprint(self) -> str:
        return fingerprint(self.X, self.Z)


@dataclass(frozen=True)
class Stored:
    """Rows laid out in a store; the client's workers, or this process, read them."""

    data: PartitionedData
    metric: str
    client: Any
    #: Lives as long as the folder of the store.
    folder: Any

    @property
    def shuffle(self) -> Shuffle:
        return self.data.shuffle

    def sample(self, count: int) -> tuple[NDArray, Source]:
        X = self.data.sample(count)
        return X, AttributeSource.of(X, self.metric)

    def pick(self, objects: NDArray[np.int64]) -> NDArray:
        places, bounds = _places(self.shuffle, objects), self.shuffle.bounds
        part = np.searchsorted(bounds, places, side="right") - 1
        parts = np.unique(part).tolist()
        items = [(b, places[part == b] - bounds[b]) for b in parts]
        X = np.empty((len(objects), self.data.d), self.data.X.dtype)
        found = run_tasks(self.client, _some_rows, self.data, items=items)
        for b, rows in zip(parts, found, strict=True):
            X[part == b] = rows
        return X

    def piece(self, lo: int, hi: int, recipe: Recipe) -> Loads:
        return StoredPiece(self.data, lo, hi, recipe)

    def fingerprint(self) -> str:
        return self.data.fingerprint


def _places(shuffle: Shuffle, objects: NDArray[np.int64]) -> NDArray[np.int64]:
    found = [shuffle.positions(i, i + 1) for i in objects.tolist()]
    return np.concatenate([np.empty(0, np.int64), *found])


def _some_rows(data: PartitionedData, partition: int, rows: NDArray[np.int64]) -> NDArray:
    return data.read(partition)[rows]


@dataclass(frozen=True)
class StoredPiece:
    """Positions lo..hi-1 of a store; small, so that it can be sent to a worker."""

    data: PartitionedData
    lo: int
    hi: int
    recipe: Recipe

    def load(self) -> Piece:
        try:
            return self.recipe.stored(self.data.positions(self.lo, self.hi))
        finally:
            give_back()  # a worker is paused for what the C library has not returned


# ---------------------------------------------------------------------- all, or many
@dataclass(frozen=True)
class Objects:
    """n objects, and those of them that everything before training is learnt from.

    Attributes
    ----------
    X, source : (m, d) rows, and their dissimilarities: of all objects, or of a sample of many
    many : None where these are all
    """

    n: int
    X: NDArray
    source: Source
    many: Many | None = None

    @classmethod
    def of_many(cls, many: Many, n_clusters: Any) -> Objects:
        n = many.shuffle.n
        c = 0 if isinstance(n_clusters, str) else int(n_clusters)
        return cls(n, *many.sample(min(n, max(SAMPLE, PER_CLUSTER * c))), many)

    def number(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The objects that some rows of `X` belong to."""
        return rows if self.many is None else self.many.shuffle.objects_of(rows)


def objects_here(model: Any, X: NDArray, metric_features: Any) -> Objects:
    """Those of an array, for an NNEVCLUS `model`."""
    metric, n = model.metric, len(X)
    rows = callable(metric) or (isinstance(metric, str) and metric in METRICS)
    if n <= PARTITION_ROWS or model.batch_size is None or not rows:
        return Objects(n, X, source_of(X, metric, metric_features))
    return Objects.of_many(InMemory(X, features_of(X, metric_features), metric), model.n_clusters)


def objects_stored(model: Any, X: Any, client: Any, report: Report) -> Objects:
    """Those of a table that is in no process, laid out in a store first.

    The store is in the folder `checkpoint`, or in one that is removed after the fit.
    """
    folder = _Folder()
    url = join(work_folder(folder, model.checkpoint, client), "partitions.zarr")

    def tell(stage: str, done: int, whole: int) -> None:
        if report is not None:
            report(Progress(stage, done, whole, unit="block"))

    data = lay_out(X, url, client=client, tell=tell)
    return Objects.of_many(Stored(data, model.metric, client, folder), model.n_clusters)


class _Folder:
    """When it is gone, so is the folder that was made for it."""


# ---------------------------------------------------------------------- how they are dealt
def deal_pieces(many: Many, count: int, recipe: Recipe) -> list[Shard]:
    """Runs of positions as shards; each in as many pieces, of at most about PARTITION_ROWS rows."""
    n = many.shuffle.n
    parts = piece_count(n, count)
    shards = []
    for number in range(count):
        lo, hi = n * number // count, n * (number + 1) // count
        cuts = [lo + (hi - lo) * p // parts for p in range(parts + 1)]
        pieces = [many.piece(cuts[p], cuts[p + 1], recipe) for p in range(parts)]
        shards.append(Shard(number, pieces))
    return shards


def piece_count(n: int, shards: int) -> int:
    """Pieces of a shard: the same for all of them."""
    return -(-(n // shards) // PARTITION_ROWS)

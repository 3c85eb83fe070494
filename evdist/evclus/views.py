"""metric="auto" with many columns: several ways of comparing objects, and one partition of them.

Each view is an EVCLUS of its own and sees what others miss; no score that knows no labels tells
which is right. So they are not chosen but combined: the bets of all views side by side are
coordinates of the objects, and these are clustered. In this joint fit nothing has to be matched,
and a view that is clear weighs more than one that is not. The clusters of the views are matched to
its own; an object's masses are the mean of the views' and, for a quarter, those of the joint fit.
Where views differ an object lies between clusters.

=================  ==============================================================================
straight           the attributes, by angle where all rows have length one; less a noise floor
                   where dissimilarities hardly vary
along              distances along the data (`evdist.features.GeodesicMap`)
layout             a layout of neighbours (`evdist.features.NeighbourLayout`)
along the layout   distances along that layout
=================  ==============================================================================

docs/decisions/metric-auto.md has the measurements.

Symbols
-------
c, V    clusters, views
bets    (n, c) of a view: m({k}) + m(Omega) / c; not divided by 1 - m(empty set), so that an outlier
        bets little on any cluster
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from evdist.engine.progress import Progress
from evdist.features.layout import NeighbourLayout
from evdist.kernels.sparse_rows import encode
from evdist.partition import CredalPartition
from evdist.partition.sparse import SparseMasses
from evdist.stores.arrays import read_arrays, write_arrays
from evdist.stores.encoding import StoreError
from evdist.stores.paths import join, read_bytes

#: Columns from which on there are views: a layout of fewer loses what distances show.
FROM_COLUMNS = 4
#: Objects from which on there are views: neighbours of fewer are far away, and layouts and ways
#: along the data invent clusters from them (docs/decisions/metric-auto.md).
FROM_OBJECTS = 500
#: Clusters up to which there are views: their bets are so many columns each.
MOST_CLUSTERS = 64
#: Name of a view, where it compares, and how.
VIEWS = (
    ("straight", "rows", "euclidean"),
    ("along", "rows", "geodesic"),
    ("layout", "layout", "euclidean"),
    ("along the layout", "layout", "geodesic"),
)
#: Where the fit of a view, or of a sample, ends; `tol` and `max_iter` are those of the fit that
#: follows, which may be asked to go on for ever.
STOP = {"tol": "auto", "max_iter": 200}
#: Squared lengths that are taken for one: vectors of models come in half precision.
_UNIT = 0.01
#: Kind and version of the store of `matching`.
_MATCHING = "matching of views", 1
_CURE = "Save the model again."
#: Share of the joint fit in an object's masses; the rest is the mean of the views.
JOINT = 0.25
#: Rows whose masses are matched and averaged at a time.
_ROWS = 65_536


@dataclass
class Views:
    """Fitted views: maps rows to their bets, and says what all views and the joint fit say."""

    models: dict[str, Any]
    layout: NeighbourLayout
    n_clusters: int
    #: Which cluster of each view is cluster k of the joint fit, (V, c); none before `match`.
    matching: NDArray[np.int64]

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters * len(self.models)

    @property
    def partitions(self) -> dict[str, CredalPartition]:
        return {name: model.credal_partition_ for name, model in self.models.items()}

    def place(self, X: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Rows, old or new: their bets, and the mean of the views' masses, clusters matched."""
        masses = self._placed(X)
        return _side_by_side(masses), self._mean(masses)

    def match(self, joint: Any) -> Any:
        """Match the views' clusters to those of the joint fit, and return what all say together.

        joint (n, c + 2) and the views' masses are of simple sets, tables or lists; the answer is
        what joint is. Two clusters are alike as far as objects have mass on both.
        """
        masses = [view.mass for view in self.partitions.values()]
        blocks = [slice(lo, lo + _ROWS) for lo in range(0, len(joint), _ROWS)]
        alike = np.zeros((len(masses), self.n_clusters, self.n_clusters))
        for some in blocks:
            mine = np.asarray(joint[some])[:, 1:-1].astype(float)
            for v, mass in enumerate(masses):
                alike[v] += mine.T @ np.asarray(mass[some])[:, 1:-1]
        self.matching = np.array([optimize.linear_sum_assignment(-one)[1] for one in alike])
        together = (
            self.together(
                self._mean([np.asarray(mass[some]) for mass in masses]), np.asarray(joint[some])
            )
            for some in blocks
        )
        if isinstance(joint, SparseMasses):
            return SparseMasses(np.vstack([encode(mass) for mass in together]), self.n_clusters)
        return np.vstack(list(together))

    @staticmethod
    def together(mean: NDArray[np.float32], joint: NDArray[np.float32]) -> NDArray[np.float32]:
        """Masses from the mean of the views' and those of the joint fit."""
        share = np.float32(JOINT)
        return (np.float32(1.0) - share) * mean + share * joint

    def _placed(self, X: NDArray[Any]) -> list[NDArray[np.float32]]:
        placed = {"rows": X, "layout": self.layout.transform(X)}
        return [self.models[name].predict_mass(placed[where]) for name, where, _ in VIEWS]

    def _mean(self, masses: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        mean = np.zeros(masses[0].shape, np.float32)
        for mass, order in zip(masses, self.matching, strict=True):
            mean += mass[:, np.concatenate([[0], 1 + order, [-1]])] / np.float32(len(masses))
        return mean

    # ------------------------------------------------------------------ on disk
    def save(self, url: str) -> str:
        """Write every view's model into a folder, and return their seals."""
        for name, model in self.models.items():
            model.save(join(url, _folder(name)))
        order = {"order": self.matching}
        mark = write_arrays(join(url, "matching.zarr"), *_MATCHING, {}, order)
        return f"{_seals(url)} {mark}"

    @classmethod
    def load(cls, url: str, kind: Any, layout: Any) -> tuple[Views, str]:
        """The views in a folder, models of `kind`, and their seals."""
        models = {name: kind.load(join(url, _folder(name))) for name, _, _ in VIEWS}
        attributes, arrays = read_arrays(
            join(url, "matching.zarr"), *_MATCHING, what="matching of views", cure=_CURE
        )
        clusters = models["straight"].n_clusters_
        made = cls(models, layout, clusters, arrays["order"].astype(np.int64))
        return made, f"{_seals(url)} {attributes['seal']}"


def has_views(X: NDArray[Any], n_clusters: int) -> bool:
    """Whether "auto" combines views of rows X."""
    return X.shape[1] >= FROM_COLUMNS and len(X) >= FROM_OBJECTS and 1 < n_clusters <= MOST_CLUSTERS


def viewed(
    model: Any, X: NDArray[Any], n_clusters: int, seed: int
) -> tuple[NDArray[np.float32], Views]:
    """The bets of all views of an EVCLUS `model` on rows X, and the views."""
    settings = model.get_params(deep=False) | {
        "n_clusters": n_clusters, "random_state": seed, "scale": None, "init": "auto",
        "focal_sets": "simple", "checkpoint": None, "memory_limit": None, "partitions": "never",
        "verbose": False, **STOP,
    }  # fmt: skip
    models = {}
    with model._reporting() as report:
        report(Progress("lay out neighbours", 0, 0))
        layout = NeighbourLayout(n_jobs=model.n_jobs, random_state=seed)
        placed = {"rows": X, "layout": layout.fit_transform(X)}
        for name, where, metric in VIEWS:
            if metric == "euclidean" and where == "rows" and _of_length_one(X):
                metric = "cosine"
            told = partial(_tell, report, name)
            models[name] = type(model)(**settings | {"metric": metric, "callbacks": (told,)})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a view may find nothing: the others say more
                models[name].fit(placed[where])
            models[name].callbacks = ()
    masses = [np.asarray(view.credal_partition_.mass) for view in models.values()]
    unmatched = np.zeros((0, n_clusters), np.int64)
    return _side_by_side(masses), Views(models, layout, n_clusters, unmatched)


def _tell(report: Callable[[Progress], None], name: str, news: Progress) -> None:
    """Say what the fit of a view does, and of which."""
    report(replace(news, stage=f"view {name}: {news.stage}"))


def _side_by_side(masses: list[NDArray[Any]]) -> NDArray[np.float32]:
    """Bets from masses (n, c + 2) of simple sets, for one view after another."""
    bets = [mass[:, 1:-1] + mass[:, -1:] / (mass.shape[1] - 2) for mass in masses]
    return np.hstack(bets).astype(np.float32)


def _of_length_one(X: NDArray[Any]) -> bool:
    """Whether all rows have length one: vectors of a language model, say."""
    return bool((np.abs(np.einsum("ij,ij->i", X, X, dtype=np.float64) - 1.0) < _UNIT).all())


def _folder(name: str) -> str:
    return name.replace(" ", "-")


def _seals(url: str) -> str:
    """The seals of all views' models, in order."""
    found = []
    for name, _, _ in VIEWS:
        path = join(join(url, _folder(name)), "model.json")
        content = read_bytes(path)
        if content is None:
            raise StoreError(f"{path} is missing. {_CURE}")
        kept: Mapping[str, Any] = json.loads(content)
        found.append(str(kept["seal"]))
    return " ".join(found)

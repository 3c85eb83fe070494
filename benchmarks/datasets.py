"""The labelled sets of the data folder beside the checkout, made ready for clustering.

The benchmarks share this loader, so that "wine" means the same attributes in every table. Which
sets are standardised is part of the result (wine: ARI .44 raw, .93 standardised), so it is written
down here once, with the reason:

* standardised (mean 0, variance 1): attributes in different units;
* raw: coordinates of one plane, or measurements in one unit (iris, in centimetres);
* divided by 255: the pixels of MNIST, which all have one unit and 256 levels.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["NAMES", "SHARED", "DataSet", "bananas_links", "load", "raw", "reference"]

SHARED = Path(__file__).resolve().parents[2] / "shared"
#: Random subsets of the two sets that are too large for grids of fits.
MNIST_OBJECTS, COVTYPE_OBJECTS = 10_000, 20_000

_GENERATED = ("fourclass", "bananas2000", "gauss4_n1000", "gauss4_n2000", "gauss4_n5000",
              "gauss4_n10000")  # fmt: skip
_PLANE = ("S1", "S2")
_UNITS_DIFFER = ("wine", "ecoli3", "heart", "seeds", "glass", "letters_IJL", "drybean", "vehicle",
                 "ionosphere", "vowel")  # fmt: skip


@dataclass(frozen=True)
class DataSet:
    """Attributes (n, d), or dissimilarities (n, n) where `metric` is "precomputed"."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    scale: str
    metric: str = "euclidean"

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.y))

    def take(self, rows: NDArray) -> DataSet:
        """Some of the objects, attributes as they are."""
        return replace(self, X=self.X[rows], y=self.y[rows])

    def standardised(self) -> DataSet:
        """Mean 0, variance 1; a constant column (ionosphere has one) becomes zero."""
        spread = self.X.std(axis=0)
        X = (self.X - self.X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return replace(self, X=X, scale="standardised")


def _table(name: str) -> pd.DataFrame:
    for ending in (".csv.gz", ".csv"):
        path = SHARED / "data" / (name + ending)
        if path.exists():
            return pd.read_csv(path)
    raise FileNotFoundError(
        f"The benchmarks read {SHARED / 'data'}, which holds no {name}.csv.gz or {name}.csv. Put "
        "the data folder beside the checkout."
    )


def _labels(column: pd.Series) -> NDArray[np.int64]:
    return np.unique(column.to_numpy(), return_inverse=True)[1].astype(np.int64)


def raw(name: str) -> DataSet:
    """A set whose label is the last column, attributes as they are in the file."""
    table = _table(name)
    return DataSet(name, table.iloc[:, :-1].to_numpy(float), _labels(table.iloc[:, -1]), "raw")


def _standardised(name: str) -> DataSet:
    return raw(name).standardised()


def _iris() -> DataSet:
    table = _table("iris")
    return DataSet("iris", table.iloc[:, :4].to_numpy(float), _labels(table["y"]), "raw")


def _diabetes() -> DataSet:
    # Glucose, insulin and SSPG are areas and levels of different size: insulin's spread is four
    # times glucose's.
    table = _table("diabetes")
    X = table.iloc[:, 1:].to_numpy(float)
    return DataSet("diabetes", X, _labels(table["class"]), "raw").standardised()


def _protein() -> DataSet:
    D = _table("protein_D").to_numpy(float)
    y = _labels(_table("protein_labels")["y"])
    return DataSet("protein", D, y, "dissimilarities", "precomputed")


def _mnist() -> DataSet:
    with np.load(SHARED / "data" / "mnist.npz") as stored:
        X, y = stored["X"], stored["y"].astype(np.int64)
    rows = np.random.default_rng(0).choice(len(y), MNIST_OBJECTS, replace=False)
    X = X[rows].reshape(len(rows), -1) / 255.0
    return DataSet("mnist", X, y[rows], "divided by 255")


def _covtype() -> DataSet:
    # The first ten attributes are quantities; the other 44 are two categories (wilderness area,
    # soil type) spelled out in zeros and ones, which standardising would blow up.
    table = _table("covtype")
    rows = np.random.default_rng(0).choice(len(table), COVTYPE_OBJECTS, replace=False)
    some = table.iloc[rows]
    X = some.iloc[:, :10].to_numpy(float)
    return DataSet("covtype", X, _labels(some["label"]), "raw").standardised()


_LOADERS: dict[str, Callable[[], DataSet]] = {
    **{name: partial(raw, name) for name in _GENERATED + _PLANE},
    "iris": _iris,
    "diabetes": _diabetes,
    "protein": _protein,
    **{name: partial(_standardised, name) for name in _UNITS_DIFFER},
    "mnist": _mnist,
    "covtype": _covtype,
}
#: Every labelled set.
NAMES = tuple(_LOADERS)


@cache
def load(name: str) -> DataSet:
    """A set by name, one of `NAMES`."""
    if name not in _LOADERS:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(NAMES)}.")
    return _LOADERS[name]()


def bananas_links() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The 2,000 links exported with bananas2000: must-links and cannot-links, (p, 2) each."""
    links = _table("bananas2000_links")
    pairs = links[["i", "j"]].to_numpy(np.int64) - 1  # stored from one
    must = (links["type"] == "ML").to_numpy()
    return pairs[must], pairs[~must]


def reference(name: str) -> Any:
    """Results of R's evclust, from the folder of reference values."""
    with open(SHARED / "reference" / f"{name}.json") as file:
        return json.load(file)

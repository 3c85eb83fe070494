"""The number of clusters of tables: indicators make no modes, and one cluster is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evdist import ECM
from evdist.data.sources import AttributeSource
from evdist.estimators.number import StructureWarning, find_modes
from evdist.features import TableEncoder


def blobs(apart: float, d: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, 300)
    return rng.normal(size=(300, d)) + apart * np.eye(3, d)[kind], rng


def count(X) -> int:
    return find_modes(AttributeSource.of(X, "euclidean")).choose()


def test_levels_of_a_category_are_no_clusters():
    X, rng = blobs(10.0, d=3)
    city = np.eye(4)[rng.integers(0, 4, 300)]
    assert count(np.hstack([X, city])) == count(X) == 3


def test_indicators_alone_are_counted():
    city = np.eye(3)[np.random.default_rng(0).integers(0, 3, 300)]
    assert count(city) == 3


def test_one_cluster_is_told_with_two_numbers_to_try():
    X = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.warns(StructureWarning, match=r"one cluster.*next best numbers are \d and \d"):
        assert ECM("auto", random_state=0).fit(X).n_clusters_ == 1


@pytest.mark.parametrize(("name", "c"), [("sm_ccard", 2), ("USArrests", 1), ("birthwt", 1)])
def test_one_is_said_only_where_k_means_and_hdbscan_do_not_contradict(shared, name, c):
    table = pd.read_csv(shared / f"data/tables/{name}.csv.gz")
    assert count(TableEncoder(drop_ids=True).fit_transform(table).to_numpy(float)) == c

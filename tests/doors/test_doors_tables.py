"""A few ordinary tables with defaults: clear clusters have sure members, and outliers are few."""

from __future__ import annotations

import pandas as pd
import pytest

from evdist import EVCLUS
from evdist.features import TableEncoder
from evdist.metrics import adjusted_rand_index


@pytest.mark.parametrize(
    ("name", "c"), [("cats", 2), ("biopsy", 2), ("USArrests", 4), ("ruspini", 4)]
)
def test_clear_tables_have_sure_members_and_few_outliers(shared, name, c):
    table = pd.read_csv(shared / f"data/tables/{name}.csv.gz")
    table = table.drop(columns={"cats": "Sex", "biopsy": "class"}.get(name, []))
    X = TableEncoder(drop_ids=True).fit_transform(table)
    decided = EVCLUS(c, random_state=0).fit(X).credal_partition_.decide()
    assert decided.sure.mean() > 0.3
    assert decided.outlier.mean() < 0.15


def test_the_number_of_clusters_of_patients(shared):
    table = pd.read_csv(shared / "data/tables/biopsy.csv.gz")
    X = TableEncoder(drop_ids=True).fit_transform(table.drop(columns="class"))
    model = EVCLUS("auto", random_state=0).fit(X)
    assert model.n_clusters_ == 2
    assert adjusted_rand_index(model.credal_partition_, table["class"].to_numpy()) > 0.7

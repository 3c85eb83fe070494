"""A table with categories, dates and blanks by every door: one call, the same answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

from evdist import ECM, Client, CredalPartition, run
from evdist.features import TableEncoder
from evdist.service.cli.app import app
from evdist.service.config import ConfigError

pytestmark = pytest.mark.process
PARAMETERS = {"n_clusters": 2, "random_state": 0}


def shoppers(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 2
    frame = pd.DataFrame(
        {
            "customer": [f"c{seed}-{i}" for i in range(n)],
            "age": rng.normal(30 + 30 * kind, 4),
            "city": np.where(kind, "Rome", "Oslo"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    frame.loc[3, "age"] = np.nan
    frame.loc[5, "city"] = None
    return frame


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mixed")
    shoppers().to_csv(folder / "shoppers.csv", index=False)
    shoppers(8, seed=1).to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def by_hand():
    return make_pipeline(TableEncoder(), ECM(**PARAMETERS)).fit(shoppers().set_index("customer"))


@pytest.fixture(scope="module")
def job(place):
    data = {"url": str(place / "shoppers.csv"), "id": "customer", "encode": True}
    folder = str(place / "job")
    return run({"algorithm": "ecm", "parameters": PARAMETERS, "data": data, "folder": folder})


def test_a_job_gives_what_the_pipeline_gives(by_hand, job):
    assert job.partition == by_hand[-1].credal_partition_
    assert job.partition.ids.tolist() == shoppers()["customer"].tolist()


def test_what_was_filled_in_is_told(job):
    assert "Column 'age': 1 missing values are set to its median." in job.metrics["warnings"]


def test_new_objects_by_command_and_by_python(place, by_hand, job):
    new = shoppers(8, seed=1).set_index("customer")
    expected = by_hand[-1].predict_partition(by_hand[:-1].transform(new))
    here = job.predict(new)
    assert here == expected and here.ids.tolist() == new.index.tolist()
    words = ["predict", place / "job", place / "new.csv", "-o", place / "new", "-q"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    there = CredalPartition.load(place / "new" / "masses.zarr")
    assert there == expected and there.ids.tolist() == new.index.tolist()


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_a_client_encodes_what_it_uploads(place, job, kind):
    frame = shoppers()
    X = frame if kind == "pandas" else pa.Table.from_pandas(frame)
    client = Client(place / "storage")
    sent = client.submit(X, "ecm", id="customer", encode=True, **PARAMETERS)
    sent.wait(timeout=100, bar=False)
    assert sent.result() == job.partition
    assert sent.predict(shoppers(8, seed=1)).ids[0] == "c1-0"


def test_without_encode_the_error_names_it(place):
    words = ["cluster", place / "shoppers.csv", "-c", 2, "-o", place / "no", "--id", "customer"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 1 and "--encode" in result.output


@pytest.mark.parametrize(
    ("data", "said"),
    [({"categories": ["a"]}, "belongs to data.encode"), ({"scale": "gower"}, "belongs to")],
)
def test_what_belongs_to_encode(data, said, place):
    with pytest.raises(ConfigError, match=said):
        run({"data": {"url": "x.csv", **data}, "parameters": PARAMETERS, "folder": str(place)})

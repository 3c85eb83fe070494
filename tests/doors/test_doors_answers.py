"""The same partition by every door (fit, run, client, command): the same ids, numbers, columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from evdist import ECM, Client, CredalPartition, JobConfig, run
from evdist.service.cli.app import app
from evdist.service.jobs import JobError, JobFolder, JobState

pytestmark = pytest.mark.process

N = 60
PARAMETERS = {"n_clusters": 3, "random_state": 0}


def customers(n: int = N, seed: int = 0, prefix: str = "c") -> pd.DataFrame:
    """Three groups, named by text in the column `customer`; a column that is of no use."""
    rng = np.random.default_rng(seed)
    centre = np.repeat([[0, 0], [9, 0], [0, 9]], n // 3, axis=0)
    X = centre + rng.normal(size=(n, 2))
    frame = pd.DataFrame(X, columns=["age", "spent"])
    frame.insert(0, "customer", [f"{prefix}{i:03}" for i in range(n)])
    return frame.assign(comment=1.0)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("doors")
    customers().to_csv(folder / "customers.csv", index=False)
    customers(9, seed=1, prefix="n").to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def indexed() -> pd.DataFrame:
    return customers().set_index("customer").drop(columns="comment")


@pytest.fixture(scope="module")
def by_fit(indexed) -> ECM:
    return ECM(**PARAMETERS).fit(indexed)


@pytest.fixture(scope="module")
def by_job(place) -> Path:
    data = {"url": str(place / "customers.csv"), "id": "customer", "drop": ["comment"]}
    run({"algorithm": "ecm", "parameters": PARAMETERS, "data": data, "folder": str(place / "job")})
    return place / "job"


@pytest.fixture(scope="module")
def client(place) -> Client:
    return Client(place / "storage")


@pytest.fixture(scope="module")
def by_client(client, indexed):
    return client.submit(indexed, "ecm", **PARAMETERS).wait(timeout=100, bar=False)


@pytest.fixture(scope="module")
def by_command(place) -> Path:
    words = ["cluster", place / "customers.csv", "-o", place / "cli", "-a", "ecm", "-c", 3]
    command(*words, "--id", "customer", "--column", "age,spent", "--seed", 0, "-q")
    return place / "cli"


def command(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def table(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path / "objects.parquet")


class TestOneAnswer:
    def test_in_the_tables_of_all_doors(self, place, by_fit, by_job, by_client, by_command):
        ours = place / "fit.parquet"
        by_fit.credal_partition_.save(ours)
        by_client.copy("objects.parquet", place / "client" / "objects.parquet")
        expected = pd.read_parquet(ours)
        assert expected["id"].tolist() == customers()["customer"].tolist()
        assert list(expected.columns) == [
            *("id", "label", "decision", "open", "set"),
            *("probability", "margin", "nonspecificity", "empty"),
            *("probability_0", "probability_1", "probability_2"),
            *("plausibility_0", "plausibility_1", "plausibility_2"),
        ]
        for found in (table(by_job), table(place / "client"), table(by_command)):
            pd.testing.assert_frame_equal(found, expected)

    def test_in_the_partitions_of_all_doors(self, by_fit, by_job, by_client, by_command):
        expected = by_fit.credal_partition_
        for folder in (by_job, by_client.url, by_command):
            found = CredalPartition.load(f"{folder}/masses.zarr")
            assert found == expected and found.ids.tolist() == expected.ids.tolist()

    def test_a_frame_joins_the_data(self, indexed, by_fit):
        joined = indexed.join(by_fit.credal_partition_.to_frame())
        assert joined["label"].tolist() == by_fit.labels_.tolist()
        assert not joined.isna().any(axis=None)

    def test_a_csv_says_the_same_as_the_frame(self, place, by_fit):
        partition = by_fit.credal_partition_
        partition.save(place / "q.csv")
        found = pd.read_csv(place / "q.csv", index_col="id")
        expected = partition.to_frame()
        assert found.index.tolist() == expected.index.tolist()
        for name in expected.columns:
            if expected[name].dtype == "category":
                assert found[name].tolist() == expected[name].tolist()
            else:
                np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)

    def test_the_numbers_of_clusters_are_the_labels(self, by_fit):
        partition = by_fit.credal_partition_
        frame = partition.to_frame()
        sure = frame["decision"] == "sure"
        assert (frame["open"][sure] == [f"{{{k}}}" for k in frame["label"][sure]]).all()
        row = int(np.flatnonzero(sure)[0])
        assert f"surely in cluster {{{by_fit.labels_[row]}}}" in str(partition.explain(row))


class TestNewObjects:
    """`predict` remembers columns and ids of the training data; every door places alike."""

    @pytest.fixture
    def expected(self, by_fit) -> pd.DataFrame:
        new = customers(9, seed=1, prefix="n").set_index("customer")[["age", "spent"]]
        return by_fit.predict_partition(new).to_frame()

    def test_by_command(self, place, by_command, expected):
        command("predict", by_command, place / "new.csv", "-o", place / "p", "-q")
        found = table(place / "p").set_index("id")
        pd.testing.assert_series_equal(found["label"], expected["label"])
        assert found.index[0] == "n000"

    def test_by_client(self, client, by_client, expected):
        new = customers(9, seed=1, prefix="n").set_index("customer")
        job = client.predict(by_client, new).wait(timeout=100, bar=False)
        found = job.result()
        assert found.ids.tolist() == expected.index.tolist()
        assert found.labels().tolist() == expected["label"].tolist()

    def test_appended_ones_keep_their_names(self, place, by_job):
        command("append", by_job, place / "new.csv", "-o", place / "appended", "-q")
        ids = CredalPartition.load(by_job / "masses.zarr").ids
        assert ids[[0, N - 1, N, -1]].tolist() == ["c000", f"c{N - 1:03}", "n000", "n008"]

    def test_appended_ones_need_names_where_the_others_have_them(self, place, by_command):
        new = customers(9).drop(columns="customer")
        new.to_csv(place / "unnamed.csv", index=False)
        with pytest.raises(JobError, match="the new ones have none"):
            config = {"task": "append", "model": str(by_command), "folder": str(place / "b")}
            run({**config, "data": {"url": str(place / "unnamed.csv")}})


class TestIds:
    def test_an_id_that_stands_twice_is_refused(self, place):
        frame = customers().assign(customer=lambda f: f["customer"].replace("c007", "c003"))
        frame.to_csv(place / "twice.csv", index=False)
        with pytest.raises(JobError, match="'c003' twice, in rows 3 and 7"):
            data = {"url": str(place / "twice.csv"), "id": "customer"}
            run({"algorithm": "ecm", "parameters": PARAMETERS, "data": data,
                 "folder": str(place / "twice")})  # fmt: skip

    def test_a_missing_id_is_refused(self, place):
        frame = customers()
        frame.loc[4, "customer"] = None
        frame.to_csv(place / "gap.csv", index=False)
        with pytest.raises(JobError, match="no value in row 4"):
            data = {"url": str(place / "gap.csv"), "id": "customer"}
            run({"algorithm": "ecm", "parameters": PARAMETERS, "data": data,
                 "folder": str(place / "gap")})  # fmt: skip


class TestInANotebook:
    def test_a_job_and_a_client_show_where_they_stand(self, client, by_client):
        shown = by_client._repr_html_()
        assert "done" in shown and "60 objects in 3 clusters" in shown
        assert by_client.id in client._repr_html_()


def test_a_cancelled_job_says_that_it_has_no_answer(client, by_client):
    config = by_client.folder.config.model_copy(update={"title": "b", "folder": "unused"})
    other = JobConfig.of({**config.model_dump(exclude_none=True), "parameters": {"n_clusters": 2}})
    folder = JobFolder.create(other.model_copy(update={"folder": f"{client.storage}/jobs/c"}))
    folder.set_state(JobState.CANCELLED)
    with pytest.raises(JobError, match=r"is cancelled, not done. It has no result; job.resume\(\)"):
        client.job("c").result()


def test_a_job_is_deleted_by_command(place, client):
    job = client.submit(customers()[["age", "spent"]], "ecm", n_clusters=2, title="<b>")
    job.wait(timeout=100, bar=False)
    name = job.id
    assert name in command("delete", name, "--storage", place / "storage")
    assert name not in [one.id for one in client.jobs()]

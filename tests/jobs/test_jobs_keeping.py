"""Housekeeping: jobs that are removed, data that no job names, a quota."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from jobs.jobs_cases import blobs
from s3_bucket import s3_bucket
from typer.testing import CliRunner

from evdist import Client, JobConfig
from evdist.service.cli.app import app
from evdist.service.jobs import JobFolder, JobState
from evdist.service.jobs.keeping import check_quota, collect, delete, folders, total
from evdist.stores.encoding import StoreError, seal
from evdist.stores.paths import children, exists, join, read_bytes, replace_bytes, size


@pytest.fixture(scope="module")
def bucket():
    with s3_bucket("keeping") as url:
        yield url


@pytest.fixture(params=["disk", "s3"])
def storage(request, tmp_path, bucket) -> str:
    return str(tmp_path / "s") if request.param == "disk" else f"{bucket}/{tmp_path.name}"


def ended(storage: str, name: str, url: str = "x.npy", **more) -> JobFolder:
    """A job as a run leaves it."""
    folder = JobFolder.create(
        JobConfig.of(
            folder=join(storage, f"jobs/{name}"),
            data={"url": url},
            parameters={"n_clusters": 3},
            **more,
        )
    )
    replace_bytes(folder.path("metrics.json"), b"{}")
    folder.set_state(JobState.DONE)
    return folder


def test_a_job_is_removed_whole_and_nothing_else(storage):
    one, other = ended(storage, "one"), ended(storage, "other")
    assert delete(one, storage=storage) > 0
    assert not exists(one.url)
    assert [folder.url for folder in folders(storage)] == [other.url]
    assert total(storage) == size(other.url) > 0


def test_a_job_that_runs_or_is_needed_stays(storage):
    folder = ended(storage, "one")
    started = ended(storage, "two", start=folder.url)
    started.set_state(JobState.FAILED)
    with pytest.raises(StoreError, match=rf"is needed by {started.id}, which is not finished"):
        delete(folder, storage=storage)
    delete(started, storage=storage)
    holder = JobFolder.open(folder.url)
    with holder.held():
        holder.set_state(JobState.RUNNING)
        holder.tell({"stage": "fit"})
        if "://" not in storage:  # in object storage its beats are watched first
            with pytest.raises(StoreError, match="Another process is running the job"):
                delete(folder, storage=storage)
        assert collect(storage, days=0.0).jobs == []
        assert exists(folder.path("manifest.json"))


def test_old_jobs_and_data_that_no_job_names_are_collected(storage):
    client = Client(storage)
    used, unused = client.upload(blobs(60)), client.upload(blobs(70))
    new, old = ended(storage, "new", used.url), ended(storage, "old", unused.url)
    remains = join(storage, "jobs/remains/pairs.zarr/zarr.json")
    if "://" not in storage:
        os.makedirs(os.path.dirname(remains))
    replace_bytes(remains, b"{}")
    old._manifest.created -= 40 * 24 * 3600
    old._write()
    assert collect(storage, days=30, grace=1e9).jobs == [old.id]
    assert not exists(old.url)
    told = collect(storage, grace=-5.0, dry_run=True)
    assert told.uploads == [Path(unused.url).name]
    assert exists(unused.url), "only told"
    found = collect(storage, grace=-5.0)
    assert (found.uploads, found.jobs) == (told.uploads, ["remains"])
    assert found.bytes == told.bytes > 0
    left = [name for name in children(join(storage, "data")) if name.endswith(".zarr")]
    assert left == [Path(used.url).name]
    assert not any(Path(unused.url).name in name for name in children(join(storage, "data")))
    assert [folder.url for folder in folders(storage)] == [new.url]


def test_a_quota_refuses_new_data(tmp_path, monkeypatch):
    client = Client(tmp_path)
    client.upload(blobs(100))
    monkeypatch.setenv("EVDIST_QUOTA", "4k")
    told = r"grow by 24.* kB, but its quota is 4.1 kB \(EVDIST_QUOTA\). Remove jobs"
    with pytest.raises(StoreError, match=told):
        client.upload(np.random.default_rng(0).normal(size=(1000, 3)))
    monkeypatch.setenv("EVDIST_QUOTA", "1 GiB")
    assert client.upload(blobs(101)).n == 101
    check_quota(str(tmp_path), 2**29)
    monkeypatch.setenv("EVDIST_QUOTA", "much")
    with pytest.raises(ValueError, match="EVDIST_QUOTA must be a size such as 200G, got 'much'"):
        check_quota(str(tmp_path))


def test_the_client_removes_and_collects(tmp_path):
    client = Client(tmp_path)
    folder = ended(str(tmp_path), "a")
    assert client.delete("a") > 0
    assert client.jobs() == []
    assert not exists(folder.url)
    old = ended(str(tmp_path), "b")
    old._manifest.created = time.time() - 3 * 24 * 3600
    old._write()
    assert client.collect(days=2).jobs == [old.id]


def test_the_command_line_lists_removes_and_collects(tmp_path):
    def told(*words: str) -> str:
        result = CliRunner().invoke(app, ["jobs", *words, "--storage", str(tmp_path)])
        assert result.exit_code == 0, result.output
        return result.output

    folder, other = ended(str(tmp_path), "a"), ended(str(tmp_path), "b")
    assert folder.id in told("list")
    assert "are free" in told("rm", "a")
    assert json.loads(told("list", "--json"))["jobs"][0]["folder"] == other.url
    other._manifest.created -= 3 * 24 * 3600
    other._write()
    assert "would be free" in told("gc", "--days", "2", "--dry-run")
    assert f"job {other.id}" in told("gc", "--days", "2")
    assert json.loads(told("list", "--json"))["jobs"] == []
    refused = CliRunner().invoke(app, ["jobs", "rm", "b", "--storage", str(tmp_path)])
    assert refused.exit_code == 3
    assert "There is no job" in refused.output


def test_data_stay_while_a_job_cannot_be_read(storage):
    client = Client(storage)
    data = client.upload(blobs(20))
    folder = ended(storage, "one", data.url)
    whole = read_bytes(folder.path("manifest.json"))
    replace_bytes(folder.path("manifest.json"), whole[:-20])
    found = collect(storage, grace=-1.0)
    assert found.unread == ["one"]
    assert not found.uploads
    assert exists(data.url)
    replace_bytes(folder.path("manifest.json"), whole)
    assert not collect(storage, grace=-1.0).unread
    delete(folder)
    assert len(collect(storage, grace=-1.0).uploads) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [("created", []), ("id", 1.5), ("stages", "x"), ("config", None), ("state", "odd"),
     ("error", {}), ("created", 1e300), ("stages", {"load": {"outputs": {}}}),
     ("stages", {"load": {"fingerprint": "a", "outputs": {"files": "x"}, "seconds": 1,
                          "finished": 1}})],
)  # fmt: skip
def test_a_manifest_whose_values_are_of_another_kind_is_refused(tmp_path, key, value):
    folder = ended(str(tmp_path), "one")
    found = json.loads(read_bytes(folder.path("manifest.json")))
    found.pop("seal")
    replace_bytes(folder.path("manifest.json"), json.dumps(seal({**found, key: value})).encode())
    with pytest.raises(StoreError, match=r"manifest\.json is not as it was written"):
        JobFolder.open(folder.url)
    assert list(folders(str(tmp_path))) == []


def test_names_that_no_terminal_can_show_are_written_out(tmp_path):
    folder = ended(str(tmp_path), "one")
    found = json.loads(read_bytes(folder.path("manifest.json")))
    found.pop("seal")
    spoilt = json.dumps(seal({**found, "id": "\ud800"})).encode()
    replace_bytes(folder.path("manifest.json"), spoilt)
    for words in (["jobs", "list"], ["status"]):
        said = CliRunner().invoke(app, [*words, "--storage", str(tmp_path)])
        assert said.exit_code == 0, said.output
        assert "\\ud800" in said.output
